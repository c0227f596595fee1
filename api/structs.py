"""Structs of requests and cursors, which are made ready before threads use them."""

from collections.abc import Iterator

import msgspec

_PACKAGES = ("api", "control")


def make_structs_ready() -> None:
    """Let msgspec read the types of all structs now, in one thread.

    msgspec 0.22 ends the process by a segmentation fault if two threads use a struct for the first time.
    """
    for struct in _structs(msgspec.Struct):
        if struct.__module__.partition(".")[0] in _PACKAGES:
            msgspec.json.Decoder(struct)


def _structs(base: type[msgspec.Struct]) -> Iterator[type[msgspec.Struct]]:
    for struct in base.__subclasses__():
        yield struct
        yield from _structs(struct)
