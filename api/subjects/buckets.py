"""Intervals of a subject's history, each with the covered range that contains its end."""

from bisect import bisect_left
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime
from typing import Any, Protocol, TypeVar

from api.engine.rows import as_utc
from api.http.parameters import INSTANT, TimeRange
from api.schema import Interval
from api.subjects.intervals import bounds, intervals, label
from api.subjects.moments import State, View, covered_range_at, covered_until

_EARLIEST = datetime.min.replace(tzinfo=UTC)


class _Change(Protocol):
    """A row of state in one covered range, valid from the interval that begins at `bucket` (null: from the start)."""

    @property
    def range_from_block(self) -> int: ...

    @property
    def bucket(self) -> datetime | None: ...


Change = TypeVar("Change", bound=_Change)


@dataclass(frozen=True, slots=True)
class Bucket:
    """One interval, `start` <= t < `end`, and the state at its end.

    The state is that just before `until`. `until` is `end`, unless the interval is unfinished or the requested range
    ends inside it. `first_block` is the first block of the covered range that contains this moment, or None.
    """

    start: datetime
    end: datetime
    until: datetime
    is_newest: bool
    """True if the interval is unfinished; its state is that of the newest block."""
    first_block: int | None

    @property
    def last_day(self) -> date:
        """The day of the last moment of the interval."""
        return (self.end - INSTANT).date()

    @property
    def at(self) -> datetime:
        """The moment of the state; values use the prices in effect then."""
        return self.until - INSTANT

    @property
    def is_cut(self) -> bool:
        """Return whether the requested range ends inside the interval."""
        return self.until < self.end and not self.is_newest

    @property
    def is_covered(self) -> bool:
        """Return whether the moment of the state is collected."""
        return self.first_block is not None

    @property
    def is_complete(self) -> bool:
        """Return whether the state is that of the interval's end, and is collected."""
        return self.until == self.end and self.is_covered

    def named(self, interval: Interval) -> dict[str, Any]:
        """Return the fields of an answer that identify the interval."""
        return {"date": label(self.start, interval), "from_": self.start, "to": self.end, "at": self.at}


def read_buckets(view: View, state: State, asked: TimeRange, interval: Interval) -> list[Bucket]:
    """Return the intervals of a range that have begun, in order.

    An interval that ends after the newest block counts as finished if the chain had no block in its remaining time.
    The quantities at its end are then those of the newest block.

    Args:
        view: the subject.
        state: end of the history; if its time is unknown, the result is empty.
        asked: the range. Without `end`, it ends at the moment of `state`. Without `start`, it begins 30 days before
            the end, or at the first covered moment if that is later.
        interval: length of the intervals.

    Raises:
        ApiError: 422, the range has more than 10,000 intervals.
    """
    newest = state.valued_at
    if newest is None:
        return []
    known = (covered_until(view) if state.is_current else None) or newest + INSTANT
    start, end = bounds(asked, newest)
    first = next((as_utc(row.from_time) for row in view.ranges if row.is_covered and row.from_time), None)
    if asked.start is None and first is not None and start < first < end:
        start = first
    found: list[Bucket] = []
    for begin, finish in intervals(start, end, max(newest, known - INSTANT), interval):
        until = finish if asked.end is None else min(finish, asked.end)
        is_newest = until > known
        if is_newest:
            if begin > newest:
                break
            until = newest + INSTANT
        covered = covered_range_at(view, until)
        found.append(Bucket(begin, finish, until, is_newest, covered.from_block if covered else None))
    return found


def carry(buckets: Sequence[Bucket], changes: Sequence[Change]) -> Iterator[Change | None]:
    """Yield the change that is valid at the end of each interval, or None.

    The last change is carried forward within a covered range, but never across a gap: each range has its own first row.

    Args:
        buckets: the intervals, in order.
        changes: rows in order of time, at most one per interval.
    """
    starts = [_EARLIEST if change.bucket is None else as_utc(change.bucket) for change in changes]
    for bucket in buckets:
        position = bisect_left(starts, bucket.end) - 1
        known = changes[position] if position >= 0 else None
        yield known if known is not None and known.range_from_block == bucket.first_block else None
