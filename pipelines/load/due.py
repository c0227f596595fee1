"""When something is asked again."""

from datetime import datetime, timedelta

# After failures in a row something is asked after 1, 2, 4, ... times its interval, at most this many.
_MOST_INTERVALS = 32
_GRID_START = datetime(1970, 1, 1)  # noqa: DTZ001 - as the warehouse stores instants


def next_due(now: datetime, interval: timedelta, failures_in_a_row: int = 0) -> datetime:
    """When what is asked at an interval is due again; after failures later and later.

    Intervals are those of absolute time, whoever asks and since when.
    """
    apart: int = min(2 ** max(failures_in_a_row - 1, 0), _MOST_INTERVALS)
    return now - (now - _GRID_START) % interval + interval * apart
