"""The texts that name a point of time or a block, in one grammar for filters, moments and history requests.

The users of this module define the meaning of a point as the bound of a range.
"""

import re
from datetime import UTC, datetime, timedelta

from control.errors import Invalid, Unparseable

# Digits are written out: in patterns of JSON Schema, \d has the digits of all scripts for some readers.
_LEAP_YEAR = "(?:[0-9]{2}(?:0[48]|[2468][048]|[13579][26])|(?:[02468][048]|[13579][26])00)"
_DAY = re.compile(
    "(?!0000)(?:[0-9]{4}-(?:(?:0[13578]|1[02])-(?:0[1-9]|[12][0-9]|3[01])|(?:0[469]|11)-(?:0[1-9]|[12][0-9]|30)"
    rf"|02-(?:0[1-9]|1[0-9]|2[0-8]))|{_LEAP_YEAR}-02-29)"
)
_ZONE = r"(?:[Zz]|[+-](?:[01][0-9]|2[0-3]):[0-5][0-9])"
_INSTANT = re.compile(rf"{_DAY.pattern}[Tt](?:[01][0-9]|2[0-3]):[0-5][0-9](?::[0-5][0-9](?:\.[0-9]{{1,9}})?)?{_ZONE}?")
_BLOCK = re.compile(r"block:0*([0-9]+)")
_HIGHEST_BLOCK = 2**63 - 1
_MOST_DIGITS_SHOWN = 20

NAMED_DAYS = ("yesterday", "last-month-end")
"""Days that `write_day` knows by name."""

FORMS = "an instant such as 2026-01-31T12:00:00Z or a day such as 2026-01-31"
"""Forms that `read_instant_or_day` accepts, for people."""


def pattern_of(*words: str, blocks: bool = False) -> str:
    """Return the pattern (JSON Schema) of a text that is an instant, a day, or one of some words.

    Args:
        words: the words.
        blocks: `block:N` is accepted, too.
    """
    forms = [*words, *([_BLOCK.pattern] if blocks else []), _DAY.pattern, _INSTANT.pattern]
    return f"^(?:{'|'.join(forms)})$"


def is_day(text: str) -> bool:
    """Say whether a text has the form of a day, without a time."""
    return _DAY.fullmatch(text) is not None


def write_day(text: str, now: datetime) -> str:
    """Return the day that `yesterday` or `last-month-end` names at an aware instant, in UTC; other texts stay."""
    today = now.astimezone(UTC).date()
    if text == "yesterday":
        return (today - timedelta(days=1)).isoformat()
    if text == "last-month-end":
        return (today.replace(day=1) - timedelta(days=1)).isoformat()
    return text


def read_instant_or_day(field: str, text: str, forms: str = FORMS) -> datetime:
    """Return an instant (RFC 3339; UTC where it names no zone) or the start of a day, as an aware UTC datetime.

    Args:
        field: name of the property or parameter, for the error.
        text: the text of the request.
        forms: all that the field accepts, for the error.

    Raises:
        Unparseable: on the field.
        Invalid: on the field, no calendar in UTC has it.
    """
    if _DAY.fullmatch(text) or _INSTANT.fullmatch(text):
        try:
            read = datetime.fromisoformat(text.upper())
            return read.replace(tzinfo=UTC) if read.tzinfo is None else read.astimezone(UTC)
        except ValueError as error:
            raise _malformed(field, text, forms) from error
        except OverflowError as error:
            detail = f"{field} is {text}; in UTC that is outside of the years 1 to 9999"
            raise Invalid(field, "out-of-range", detail) from error
    raise _malformed(field, text, forms)


def write_instant(instant: datetime) -> str:
    """Return an aware instant as RFC 3339 text in UTC, with microseconds only where it has some."""
    return instant.astimezone(UTC).isoformat().replace("+00:00", "Z")


def read_block(field: str, text: str) -> int | None:
    """Return the number of `block:N`, or None when the text has another form.

    Raises:
        Invalid: on the field, no chain has that many blocks.
    """
    found = _BLOCK.fullmatch(text)
    if found is None:
        return None
    digits = found[1]
    # Python reads no number of thousands of digits.
    if len(digits) > len(str(_HIGHEST_BLOCK)) or int(digits) > _HIGHEST_BLOCK:
        is_long = len(digits) > _MOST_DIGITS_SHOWN
        shown = f"{digits[:_MOST_DIGITS_SHOWN]}... ({len(digits)} digits)" if is_long else digits
        detail = f"{field} names block {shown}; the highest possible number is {_HIGHEST_BLOCK}"
        raise Invalid(field, "out-of-range", detail)
    return int(digits)


def _malformed(field: str, text: str, forms: str) -> Unparseable:
    return Unparseable(field, "malformed", f"{field} is {text[:60]!r}; write {forms}")
