"""The published versions of each shard in the store of versions, and the one in force.

The version in force moves by compare-and-swap: a builder that was suspended and wakes up finds another version and
changes nothing.
"""

from collections.abc import Iterable
from datetime import datetime
from typing import NamedTuple, cast

from sqlalchemy import CursorResult, delete, insert, select, update
from sqlalchemy.exc import IntegrityError
from sqlalchemy.orm import Session

from control.models import PublishedVersion, Shard


class Served(NamedTuple):
    """A published version.

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


class ShardVersions(NamedTuple):
    """The published versions of one shard.

    Attributes:
        in_force: number of the version in force.
        kept: versions that API nodes may read, by number; the one in force is among them.
    """

    in_force: int
    kept: dict[int, Served]

    @property
    def served(self) -> Served:
        """The version in force."""
        return self.kept[self.in_force]


_COLUMNS = tuple(getattr(PublishedVersion, name) for name in Served._fields)


class PointerMovedError(Exception):
    """Another builder published meanwhile; the version at hand must not be served."""

    def __init__(self, shard: int, version: int | None) -> None:
        expected = "nothing" if version is None else f"version {version}"
        super().__init__(f"shard {shard} no longer serves {expected}: another builder published; build again")


def read_served(session: Session, shard: int) -> Served | None:
    """Return the version of a shard that is in force; None before the first."""
    row = session.execute(
        select(*_COLUMNS)
        .join(Shard, (Shard.shard == PublishedVersion.shard) & (Shard.version == PublishedVersion.version))
        .where(Shard.shard == shard)
    ).one_or_none()
    return None if row is None else Served._make(row)


def read_kept(session: Session, shard: int) -> list[Served]:
    """Return the versions of a shard that API nodes may read, the oldest first."""
    query = select(*_COLUMNS).where(PublishedVersion.shard == shard).order_by(PublishedVersion.version)
    return [Served._make(row) for row in session.execute(query)]


def find_kept(session: Session, shard: int, version: int) -> Served | None:
    """Return a version of a shard; None if API nodes may not read it any more."""
    query = select(*_COLUMNS).where(PublishedVersion.shard == shard, PublishedVersion.version == version)
    row = session.execute(query).one_or_none()
    return None if row is None else Served._make(row)


def read_shards(session: Session) -> dict[int, ShardVersions]:
    """Return the versions of each shard with a published version, by shard, in one query."""
    query = (
        select(Shard.shard, Shard.version, *_COLUMNS)
        .join(PublishedVersion, PublishedVersion.shard == Shard.shard)
        .order_by(Shard.shard, PublishedVersion.version)
    )
    found: dict[int, ShardVersions] = {}
    for row in session.execute(query):
        shard, in_force, served = row[0], row[1], Served._make(row[2:])
        found.setdefault(shard, ShardVersions(in_force, {})).kept[served.version] = served
    return found


def publish(session: Session, shard: int, before: int | None, served: Served) -> None:
    """Put a version in force in place of `before`, which the caller found when it began to build.

    Raises:
        PointerMovedError: another version is in force by now; nothing is changed.
    """
    try:
        with session.begin_nested():
            session.execute(insert(PublishedVersion).values(shard=shard, **served._asdict()))
            if before is None:
                session.execute(insert(Shard).values(shard=shard, version=served.version))
                return
            moved = session.execute(
                update(Shard).where(Shard.shard == shard, Shard.version == before).values(version=served.version)
            )
            if cast("CursorResult[tuple[()]]", moved).rowcount != 1:
                raise PointerMovedError(shard, before)
    except IntegrityError as error:
        raise PointerMovedError(shard, before) from error


def forget(session: Session, shard: int, versions: Iterable[int]) -> None:
    """Remove the records of versions that are no longer read; the one in force stays."""
    in_force = select(Shard.version).where(Shard.shard == shard).scalar_subquery()
    session.execute(
        delete(PublishedVersion).where(
            PublishedVersion.shard == shard,
            PublishedVersion.version.in_(list(versions)),
            PublishedVersion.version != in_force,
        )
    )
