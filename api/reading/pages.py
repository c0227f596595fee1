"""One page of marts rows: cut off, and where to go on."""

from collections.abc import Callable, Sequence
from typing import TypeVar

from api.calls import Fetched
from api.paging import Key
from api.rows import Row
from api.schemas.common import Schema

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
    return Fetched(to_items(kept), to_key(kept[-1]) if len(rows) > limit else None)
