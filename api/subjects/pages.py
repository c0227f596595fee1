"""One page of marts rows: cut off, where to go on, and whether one can in a newer version."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Generic, TypeVar

from api.engine.rows import Row
from api.engine.serving import Snapshot
from api.errors import ApiError
from api.http.calls import Fetch, Fetched
from api.http.paging import Delivered, Key, Position
from api.schema import Schema

Found = TypeVar("Found", bound=Row)
Item = TypeVar("Item", bound=Schema)


def cut(
    rows: Sequence[Found],
    limit: int,
    to_items: Callable[[Sequence[Found]], Sequence[Item]],
    to_key: Callable[[Found], Key],
) -> Fetched[Item]:
    """Make a page of at most `limit` rows from up to `limit + 1` found ones.

    Items are made of all rows of the page at once, so that what belongs to them is read in one query.
    """
    kept = rows[:limit]
    if len(rows) <= limit:
        return Fetched(to_items(kept), None)
    return Fetched(to_items(kept), to_key(kept[-1]), to_key(kept[0]))


@dataclass(frozen=True, slots=True)
class Walk(Generic[Item]):
    """A collection whose pages go on from version to version.

    `digest` is that of all its rows between two keys, both included: an exclusive or over the rows, so that those of
    pages make that of all they delivered.
    """

    fetch: Fetch[Item]
    digest: Callable[[Snapshot, Key, Key], int]


def go_on(snapshot: Snapshot, walk: Walk[Item], position: Position | None, limit: int) -> Fetched[Item]:
    """Read the next page in this version, whichever the pages before were read in.

    What was delivered is read again where the version is another, once: the next cursor is of this one.

    Raises:
        ApiError: 410, a row among those delivered has appeared, gone or changed since.
    """
    before = position.delivered if position else None
    if position is not None:
        is_same = before is not None and (
            position.version == snapshot.version or walk.digest(snapshot, before.first, position.key) == before.digest
        )
        if not is_same:
            raise ApiError(
                410,
                "cursor-expired",
                "activities on earlier pages have changed; start again without a cursor",
            )
    fetched = walk.fetch(snapshot, position.key if position else None, limit)
    if fetched.after is None or fetched.first is None:
        return fetched
    digest = walk.digest(snapshot, fetched.first, fetched.after)
    if before is not None:
        return replace(fetched, delivered=Delivered(before.first, before.digest ^ digest))
    return replace(fetched, delivered=Delivered(fetched.first, digest))
