"""One page of a keyset-paged list of the control store.

Signing a position into an opaque cursor does not go here; that is the API's.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

from control.errors import Invalid

Row = TypeVar("Row")

MAXIMUM_LIMIT = 1000


@dataclass(frozen=True, slots=True)
class After:
    """Where a page ended: the sort value of its last row as text, and that row's id."""

    value: str
    id: str


@dataclass(frozen=True, slots=True)
class Page(Generic[Row]):
    """Rows of one page, and where to go on; `after` is None on the last page."""

    rows: tuple[Row, ...]
    after: After | None


def check_limit(limit: int) -> int:
    """Return the limit when it is within 1 to 1000.

    Raises:
        Invalid: on 'limit'.
    """
    if not 1 <= limit <= MAXIMUM_LIMIT:
        raise Invalid("limit", "out-of-range", f"limit is {limit}; use 1 to {MAXIMUM_LIMIT}")
    return limit


def cut_page(rows: Sequence[tuple[Row, After]], limit: int) -> Page[Row]:
    """Make a page of at most `limit` rows from up to `limit + 1` fetched ones, each with its own position."""
    kept = rows[:limit]
    return Page(tuple(row for row, _ in kept), kept[-1][1] if len(rows) > limit else None)
