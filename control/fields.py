"""Checks of the texts that tenants write, shared by all rules.

Checks against stored objects (duplicates, references) do not go here.
"""

import re

from control.errors import Invalid

NAME_LENGTH = 200
SYMBOL_LENGTH = 64
EXTERNAL_ID_LENGTH = 200
DESCRIPTION_LENGTH = 2000
FILTER_LENGTH = max(NAME_LENGTH, EXTERNAL_ID_LENGTH)
"""No text that a filter is compared with is longer, except descriptions, which no filter reads."""

LEDGER_NAME = re.compile(r"[a-z0-9][a-z0-9-]{0,62}")
"""Form of the names of ledgers and networks."""
ITEM_SYMBOL = re.compile(r"[A-Za-z0-9][A-Za-z0-9._$:+-]{0,63}")
"""Form of the symbols of priced items."""

# Control characters (with NUL, which Postgres cannot store) and line separators.
_CONTROL = r"\x00-\x1f\x7f-\x9f\u2028\u2029"
# Zero-width characters, and those that change the order in which others appear. Emoji and some scripts need the joiners
# U+200C and U+200D, so those are allowed.
_INVISIBLE = r"\xad\u061c\u180e\u200b\u200e\u200f\u202a-\u202e\u2060-\u2064\u2066-\u206f\ufeff\ufff9-\ufffb"
# JSON in UTF-8 has no lone surrogates, and patterns of JSON Schema cannot name them.
_SURROGATES = r"\ud800-\udfff"
_PRINTED = f"[^{_CONTROL}{_INVISIBLE}]"
LINE_PATTERN = rf"^(?!\s){_PRINTED}*(?<!\s)$"
"""Pattern (JSON Schema) of a text that `check_text` takes."""
TEXT_PATTERN = rf"^(?!\s)(?:{_PRINTED}|[\n\t])*(?<!\s)$"
"""The same of several lines."""

FILTER_PATTERN = f"^[^{_CONTROL}]+$"
"""The same for a text that `check_filter` takes."""

_REFUSED = re.compile(f"[{_CONTROL}{_INVISIBLE}{_SURROGATES}]")
_REFUSED_IN_LINES = re.compile(rf"(?![\n\t]){_REFUSED.pattern}")
_REFUSED_IN_FILTERS = re.compile(f"[{_CONTROL}{_SURROGATES}]")


def check_text(field: str, value: str, maximum: int, *, is_multiline: bool = False) -> str:
    """Return a required text unchanged when it may be stored.

    Args:
        field: JSON name of the property, for the error.
        value: text from the tenant.
        maximum: most characters (code points).
        is_multiline: line feeds and tabs are allowed.

    Raises:
        Invalid: empty, too long, blank at an end, or with control or invisible characters.
    """
    if not value.strip():
        raise Invalid(field, "empty", f"{field} is empty; write 1 to {maximum} characters")
    if len(value) > maximum:
        raise Invalid(field, "too-long", f"{field} has {len(value)} characters; shorten it to {maximum}")
    _refuse(_REFUSED_IN_LINES if is_multiline else _REFUSED, field, value)
    if value != value.strip():
        raise Invalid(field, "surrounding-space", f"{field} begins or ends with white space; remove it")
    return value


def check_optional_text(field: str, value: str | None, maximum: int, *, is_multiline: bool = False) -> str | None:
    """Return an optional text unchanged when it may be stored; None stays None.

    Raises:
        Invalid: as `check_text`; an empty text is refused too, null or absence says «none».
    """
    return None if value is None else check_text(field, value, maximum, is_multiline=is_multiline)


def check_filter(field: str, value: str) -> str:
    """Return the value of a filter unchanged; it may be blank.

    Invisible characters are allowed: names of older releases may have them.

    Raises:
        Invalid: empty, longer than any text that it may fit, or with control characters.
    """
    if not value:
        raise Invalid(field, "empty", f"{field} is empty; give it a value or leave it out")
    if len(value) > FILTER_LENGTH:
        raise Invalid(field, "too-long", f"{field} has {len(value)} characters; shorten it to {FILTER_LENGTH}")
    _refuse(_REFUSED_IN_FILTERS, field, value)
    return value


def _refuse(characters: re.Pattern[str], field: str, value: str) -> None:
    found = characters.search(value)
    if found is not None:
        raise Invalid(
            field,
            "control-character",
            f"{field} has the control or invisible character U+{ord(found[0]):04X} at position {found.start() + 1}; "
            "remove it",
        )
