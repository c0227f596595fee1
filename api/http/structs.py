"""Structs of requests, answers and cursors: prepared before threads use them, and filled from rows."""

from collections.abc import Iterator
from typing import Any, TypeVar

import msgspec

Answer = TypeVar("Answer", bound=msgspec.Struct)


def make_structs_ready() -> None:
    """Make msgspec resolve the types of all structs now, in one thread.

    msgspec 0.22 crashes with a segmentation fault if two threads use a struct for the first time.
    """
    for struct in own_structs():
        msgspec.json.Decoder(struct)


def filled(answer: type[Answer], row: object, **others: Any) -> Answer:
    """Return an answer with a row's attributes of the same names; `others` has fields that differ."""
    names = [name for name in answer.__struct_fields__ if name not in others]
    return answer(**{name: getattr(row, name) for name in names}, **others)


def own_structs(base: type[msgspec.Struct] = msgspec.Struct) -> Iterator[type[msgspec.Struct]]:
    """Yield the loaded structs of the packages `api` and `control`."""
    for struct in base.__subclasses__():
        if struct.__module__.startswith(("api.", "control.")):
            yield struct
        yield from own_structs(struct)
