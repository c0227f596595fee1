"""When something is asked again."""

from datetime import datetime, timedelta

_MOST_INTERVALS = 32
_GRID_START = datetime(1970, 1, 1)  # noqa: DTZ001 - as the warehouse stores instants


def backoff(failures_in_a_row: int) -> int:
    """Return how many intervals to wait after failures in a row: 1, 2, 4, ..., at most 32."""
    return int(min(2 ** max(failures_in_a_row - 1, 0), _MOST_INTERVALS))


def next_due(now: datetime, interval: timedelta, failures_in_a_row: int = 0) -> datetime:
    """When what is asked at an interval is due again; after failures later and later.

    Intervals are those of absolute time, whoever asks and since when.
    """
    return now - (now - _GRID_START) % interval + interval * backoff(failures_in_a_row)
