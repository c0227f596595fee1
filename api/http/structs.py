"""Structs of requests and cursors: prepare them before threads use them."""

from collections.abc import Iterator

import msgspec


def make_structs_ready() -> None:
    """Make msgspec resolve the types of all structs now, in one thread.

    msgspec 0.22 crashes with a segmentation fault if two threads use a struct for the first time.
    """
    for struct in own_structs():
        msgspec.json.Decoder(struct)


def own_structs(base: type[msgspec.Struct] = msgspec.Struct) -> Iterator[type[msgspec.Struct]]:
    """Yield the loaded structs of the packages `api` and `control`."""
    for struct in base.__subclasses__():
        if struct.__module__.startswith(("api.", "control.")):
            yield struct
        yield from own_structs(struct)
