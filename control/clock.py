"""What rules do with time: read the clock and cut an instant to its second.

Formatting of times for people or JSON does not go here.
"""

from datetime import UTC, datetime


def utc_now() -> datetime:
    """Return the present instant as an aware UTC datetime, in microseconds."""
    return datetime.now(UTC)


def stored_now() -> datetime:
    """Return the present instant as the warehouse stores it: UTC without a zone."""
    return utc_now().replace(tzinfo=None)


def whole_second(instant: datetime) -> datetime:
    """Return the start of the second that holds an aware instant, in UTC.

    Raises:
        ValueError: the instant has no time zone.
    """
    if instant.tzinfo is None:
        raise ValueError(f"{instant.isoformat()} has no time zone; pass an aware datetime")
    return instant.astimezone(UTC).replace(microsecond=0)
