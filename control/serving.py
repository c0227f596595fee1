"""Pointers to the published versions that API nodes serve, one for each shard.

A pointer moves by compare-and-swap: a builder that was suspended and wakes up finds another version and changes nothing.
"""

from datetime import datetime
from typing import NamedTuple, cast

from sqlalchemy import CursorResult, insert, select, update
from sqlalchemy.exc import IntegrityError
from sqlalchemy.orm import Session

from control.models import ServedVersion


class Served(NamedTuple):
    """A served version.

    Attributes:
        object_name, byte_count, sha256: its object in the store of versions.
        pointer: content of the pointer's file.
    """

    version: int
    object_name: str
    byte_count: int
    sha256: str
    pointer: str
    published_at: datetime


class PointerMovedError(Exception):
    """Another builder published meanwhile; the version at hand must not be served."""

    def __init__(self, shard: int, version: int | None) -> None:
        expected = "nothing" if version is None else f"version {version}"
        super().__init__(f"shard {shard} no longer serves {expected}: another builder published; build again")


def read_served(session: Session, shard: int) -> Served | None:
    """Return the version that a shard serves; None before the first."""
    found = session.get(ServedVersion, shard)
    return None if found is None else Served(*(getattr(found, name) for name in Served._fields))


def served_objects(session: Session) -> set[str]:
    """Return the names of the objects that any shard serves."""
    return set(session.scalars(select(ServedVersion.object_name)))


def move_pointer(session: Session, shard: int, before: int | None, served: Served) -> None:
    """Serve another version in place of `before`, which the caller found when it began to build.

    Raises:
        PointerMovedError: the shard serves another version by now; nothing is changed.
    """
    if before is None:
        try:
            with session.begin_nested():
                session.execute(insert(ServedVersion).values(shard=shard, **served._asdict()))
        except IntegrityError as error:
            raise PointerMovedError(shard, before) from error
        return
    moved = session.execute(
        update(ServedVersion)
        .where(ServedVersion.shard == shard, ServedVersion.version == before)
        .values(**served._asdict())
    )
    if cast("CursorResult[tuple[()]]", moved).rowcount != 1:
        raise PointerMovedError(shard, before)
