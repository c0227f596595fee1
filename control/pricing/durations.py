"""Durations as tenants write them: ISO 8601 of weeks, days, hours, minutes and seconds, which have exact lengths."""

import re

from control.errors import Invalid

LONGEST_DAYS = 3650
FORMS = "an ISO 8601 duration of weeks, days, hours, minutes or seconds, such as P1D, P2W or PT90M"

DURATION = re.compile(
    r"P(?:(?P<weeks>\d{1,9})W|(?=.)(?:(?P<days>\d{1,9})D)?"
    r"(?:T(?=.)(?:(?P<hours>\d{1,9})H)?(?:(?P<minutes>\d{1,9})M)?(?:(?P<seconds>\d{1,9})S)?)?)",
    re.ASCII,
)
_WITH_MONTHS = re.compile(r"P(?=\d*[YM])(\d+Y)?(\d+M)?(\d+D)?(T[\dHMS]+)?", re.ASCII)
_SECONDS = {"weeks": 604_800, "days": 86_400, "hours": 3_600, "minutes": 60, "seconds": 1}


def read_duration(field: str, text: str) -> int:
    """Return the length of a duration in seconds: whole, more than nothing, at most ten years of 365 days.

    Raises:
        Invalid: on the field.
    """
    found = DURATION.fullmatch(text)
    if found is None:
        wrong = f"{field} is {text[:60]!r}"
        if _WITH_MONTHS.fullmatch(text):
            raise Invalid(field, "not-exact", f"{wrong}; months and years have no exact length: write days")
        raise Invalid(field, "malformed", f"{wrong}; write {FORMS}")
    length = sum(_SECONDS[unit] * int(count) for unit, count in found.groupdict().items() if count is not None)
    if not 0 < length <= LONGEST_DAYS * _SECONDS["days"]:
        raise Invalid(
            field, "out-of-range", f"{field} is {text}; write a duration above zero and at most P{LONGEST_DAYS}D"
        )
    return length
