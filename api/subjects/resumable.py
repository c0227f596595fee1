"""Pages of rows of the marts: cut a page, set its next cursor, and continue it in a newer version."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Generic, TypeVar

from api.engine.rows import Row
from api.engine.serving import Snapshot
from api.errors import ApiError
from api.http.calls import Fetch, Fetched
from api.http.paging import Delivered, Key, Position
from api.schema import Schema

RowT = TypeVar("RowT", bound=Row)
Item = TypeVar("Item", bound=Schema)


def cut(
    rows: Sequence[RowT],
    limit: int,
    to_items: Callable[[Sequence[RowT]], Sequence[Item]],
    to_key: Callable[[RowT], Key],
) -> Fetched[Item]:
    """Make a page of at most `limit` rows from up to `limit + 1` found ones.

    `to_items` gets all rows of the page at once, so that it can read related data by one query.
    """
    kept = rows[:limit]
    if len(rows) <= limit:
        return Fetched(to_items(kept), None)
    return Fetched(to_items(kept), to_key(kept[-1]), to_key(kept[0]))


@dataclass(frozen=True, slots=True)
class ResumableCollection(Generic[Item]):
    """A collection with pages that continue in newer versions.

    `digest` computes the digest of all rows between two keys, both included. It is the exclusive or of the rows'
    digests, so the digests of pages combine to the digest of all delivered rows.
    """

    fetch: Fetch[Item]
    digest: Callable[[Snapshot, Key, Key], int]


def next_page(
    snapshot: Snapshot, walk: ResumableCollection[Item], position: Position | None, limit: int
) -> Fetched[Item]:
    """Read the next page from this version, even if earlier pages came from another one.

    If the version differs, compute the digest of the delivered rows again, and compare it. This happens once for each
    new version, since the next cursor belongs to this one.

    Raises:
        ApiError: 410, a row was added to, removed from or changed on the delivered pages.
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
