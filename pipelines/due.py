"""Due times of repeated requests."""

from datetime import datetime, timedelta

_MOST_INTERVALS = 32
_GRID_START = datetime(1970, 1, 1)  # noqa: DTZ001 - as the warehouse stores instants


def backoff(failures_in_a_row: int) -> int:
    """Return how many intervals to wait after failures in a row: 1, 2, 4, ..., at most 32."""
    return int(min(2 ** max(failures_in_a_row - 1, 0), _MOST_INTERVALS))


def is_due(due_at: datetime, now: datetime, longest: timedelta) -> bool:
    """Return whether a stored due time has come, or is wrong.

    A time further ahead than the longest pause was stored while the clock was ahead.
    """
    return not now < due_at <= now + longest


def latest_due(now: datetime, interval: timedelta) -> datetime:
    """Return the latest time that `next_due` returns; for `is_due` in SQL."""
    return now + interval * _MOST_INTERVALS


def next_due(now: datetime, interval: timedelta, failures_in_a_row: int = 0) -> datetime:
    """Return the next due time of a request repeated at an interval; each failure in a row delays it further.

    Intervals are aligned to the clock, so they do not depend on the caller or its start.
    """
    return now - (now - _GRID_START) % interval + interval * backoff(failures_in_a_row)
