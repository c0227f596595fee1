"""The intervals that the history of one subject is told by, each with the covered range that its end lies in."""

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
    """What holds from the interval that begins at `bucket` on (null: before all), inside one covered range."""

    @property
    def range_from_block(self) -> int: ...

    @property
    def bucket(self) -> datetime | None: ...


Change = TypeVar("Change", bound=_Change)


@dataclass(frozen=True, slots=True)
class Bucket:
    """One interval, `start` <= t < `end`, and the state at its end.

    That is the state just before `until`: before `end`, unless the interval is not over or the range ends inside it.
    `first_block` begins the covered range that holds it, None outside of any.
    """

    start: datetime
    end: datetime
    until: datetime
    is_newest: bool
    """True while it is not over: its state is that of the newest block."""
    first_block: int | None

    @property
    def last_day(self) -> date:
        """The day of its last moment."""
        return (self.end - INSTANT).date()

    @property
    def at(self) -> datetime:
        """The moment of its state; prices in effect then count."""
        return self.until - INSTANT

    @property
    def is_cut(self) -> bool:
        """Return whether the range ends inside it."""
        return self.until < self.end and not self.is_newest

    @property
    def is_covered(self) -> bool:
        """Return whether the moment of its state is collected."""
        return self.first_block is not None

    @property
    def is_complete(self) -> bool:
        """Return whether the state is that of its end, and is collected."""
        return self.until == self.end and self.is_covered

    def named(self, interval: Interval) -> dict[str, Any]:
        """Return the properties of an answer that say which interval it is."""
        return {"date": label(self.start, interval), "from_": self.start, "to": self.end, "at": self.at}


def read_buckets(view: View, state: State, asked: TimeRange, interval: Interval) -> list[Bucket]:
    """Return the intervals of a range that have begun, in order.

    An interval that ends after the newest block is over all the same where no block of the chain was in what is left of
    it. What is valued at its end is then the same as at that moment.

    Args:
        view: the subject.
        state: the moment up to which its history is told; without a time there are none.
        asked: the range; a bound left open is 30 days before the end, cut at the first covered moment, or the moment.
        interval: length of the intervals.

    Raises:
        ApiError: 422, there are more than 10,000.
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
    """Yield what holds at the end of each interval; changes are in time order, one per interval at most.

    The last change is carried forward, but never across a gap: what a range begins with is read anew.
    """
    starts = [_EARLIEST if change.bucket is None else as_utc(change.bucket) for change in changes]
    for bucket in buckets:
        position = bisect_left(starts, bucket.end) - 1
        known = changes[position] if position >= 0 else None
        yield known if known is not None and known.range_from_block == bucket.first_block else None
