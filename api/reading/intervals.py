"""Intervals of time that histories and statistics are told by: half-open, on whole UTC hours, days, weeks, months."""

from collections.abc import Iterator
from datetime import UTC, datetime, time, timedelta

from api.errors import invalid_parameter
from api.parameters import TimeRange
from api.schemas.common import Interval

UNITS: dict[Interval, str] = {"1h": "hour", "1d": "day", "1w": "week", "1M": "month"}
"""What `date_trunc` cuts to, for each length."""

_MOST = 10_000
_DEFAULT_DAYS = 30


def bounds(asked: TimeRange, newest: datetime) -> tuple[datetime, datetime]:
    """Return start and end of a range; a bound left open is 30 days before the end, or just after `newest`."""
    end = asked.end or newest + timedelta(microseconds=1)
    if asked.start is not None:
        return asked.start, end
    last_day = datetime.combine((end - timedelta(microseconds=1)).date(), time(), UTC)
    return last_day - timedelta(days=_DEFAULT_DAYS - 1), end


def intervals(start: datetime, end: datetime, newest: datetime, interval: Interval) -> list[tuple[datetime, datetime]]:
    """Return start and end of each interval that has a part in a range and has begun at `newest`.

    Raises:
        ApiError: 422, there are more than 10,000.
    """
    found: list[tuple[datetime, datetime]] = []
    for begin, finish in _from(_floor(start, interval), interval):
        if begin >= end or begin > newest:
            break
        if len(found) == _MOST:
            raise invalid_parameter(
                "interval",
                "too-many-intervals",
                f"the range has more than {_MOST} intervals of {interval}; "
                "ask for a shorter range or a longer interval",
            )
        found.append((begin, finish))
    return found


def label(begin: datetime, interval: Interval) -> str:
    """Return how answers name the interval that begins then: its day, or for hours its instant."""
    return f"{begin:%Y-%m-%dT%H:%M:%SZ}" if interval == "1h" else f"{begin:%Y-%m-%d}"


def _from(begin: datetime, interval: Interval) -> Iterator[tuple[datetime, datetime]]:
    while True:
        finish = _next(begin, interval)
        yield begin, finish
        begin = finish


def _floor(instant: datetime, interval: Interval) -> datetime:
    if interval == "1h":
        return instant.replace(minute=0, second=0, microsecond=0)
    day = instant.replace(hour=0, minute=0, second=0, microsecond=0)
    if interval == "1w":
        return day - timedelta(days=day.weekday())
    return day.replace(day=1) if interval == "1M" else day


def _next(begin: datetime, interval: Interval) -> datetime:
    match interval:
        case "1h":
            return begin + timedelta(hours=1)
        case "1d":
            return begin + timedelta(days=1)
        case "1w":
            return begin + timedelta(days=7)
        case "1M":
            return (begin.replace(day=28) + timedelta(days=4)).replace(day=1)
