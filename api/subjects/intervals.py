"""Time intervals of histories and statistics: half-open, aligned to UTC hours, days, weeks and months."""

from datetime import UTC, datetime, time, timedelta

from api.errors import invalid_parameter
from api.http.parameters import INSTANT, TimeRange
from api.schema import Interval

UNITS: dict[Interval, str] = {"1h": "hour", "1d": "day", "1w": "week", "1M": "month"}
"""The unit of `date_trunc` for each length."""

MOST_INTERVALS = 10_000
"""Largest number of intervals in one answer."""

_DEFAULT_DAYS = 30
_FIRST_INSTANT = datetime.min.replace(tzinfo=UTC)


def bounds(asked: TimeRange, newest: datetime) -> tuple[datetime, datetime]:
    """Return start and end of a range; by default it ends just after `newest`, and begins 30 days before its end."""
    end = asked.end or newest + INSTANT
    if asked.start is not None:
        return asked.start, end
    last_day = datetime.combine((max(end, _FIRST_INSTANT + INSTANT) - INSTANT).date(), time(), UTC)
    return days_before(last_day, _DEFAULT_DAYS - 1), end


def days_before(instant: datetime, count: int) -> datetime:
    """Return the instant `count` days before another one, but at the earliest the first of the calendar."""
    return instant - min(timedelta(days=count), instant - _FIRST_INSTANT)


def intervals(start: datetime, end: datetime, newest: datetime, interval: Interval) -> list[tuple[datetime, datetime]]:
    """Return start and end of each interval that overlaps a range and begins no later than `newest`.

    Raises:
        ApiError: 422, there are more than 10,000 intervals.
    """
    found: list[tuple[datetime, datetime]] = []
    begin = _floor(start, interval)
    while begin < end and begin <= newest:
        if len(found) == MOST_INTERVALS:
            raise invalid_parameter(
                "interval",
                "too-many-intervals",
                f"the range has more than {MOST_INTERVALS} intervals of {interval}; "
                "ask for a shorter range or a longer interval",
            )
        finish = _next(begin, interval)
        found.append((begin, finish))
        begin = finish
    return found


def label(begin: datetime, interval: Interval) -> str:
    """Return the name of an interval in answers: its first day, or for hours its first instant."""
    return f"{begin:%Y-%m-%dT%H:%M:%SZ}" if interval == "1h" else f"{begin:%Y-%m-%d}"


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
