"""Checks of the texts that tenants write, shared by all rules.

Whether a text fits what is stored (duplicates, references) does not go here.
"""

import unicodedata

from control.errors import Invalid

NAME_LENGTH = 200
SYMBOL_LENGTH = 64
EXTERNAL_ID_LENGTH = 200
DESCRIPTION_LENGTH = 2000

_PRINTED = r"[^\x00-\x1f\x7f-\x9f\u2028\u2029]"
LINE_PATTERN = rf"^(?!\s){_PRINTED}*(?<!\s)$"
"""Pattern (JSON Schema) of a text that `check_text` takes."""
TEXT_PATTERN = rf"^(?!\s)(?:{_PRINTED}|[\n\t])*(?<!\s)$"
"""The same of several lines."""

# Control characters (with NUL, which Postgres cannot store), lone surrogates (which UTF-8 cannot), line separators.
_REFUSED_CATEGORIES = frozenset({"Cc", "Cs", "Zl", "Zp"})


def check_text(field: str, value: str, maximum: int, *, is_multiline: bool = False) -> str:
    """Return a required text unchanged when it may be stored.

    Args:
        field: JSON name of the property, for the error.
        value: what the tenant wrote.
        maximum: most characters (code points).
        is_multiline: line feeds and tabs are allowed.

    Raises:
        Invalid: empty, too long, blank at an end, or with control characters.
    """
    if not value.strip():
        raise Invalid(field, "empty", f"{field} is empty; write 1 to {maximum} characters")
    if len(value) > maximum:
        raise Invalid(field, "too-long", f"{field} has {len(value)} characters; shorten it to {maximum}")
    _refuse_control_characters(field, value, allowed="\n\t" if is_multiline else "")
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
    """Return the value of a filter unchanged; it may be blank, but hold no character that no stored text has.

    Raises:
        Invalid: empty, or with control characters.
    """
    if not value:
        raise Invalid(field, "empty", f"{field} is empty; give it a value or leave it out")
    _refuse_control_characters(field, value, allowed="")
    return value


def _refuse_control_characters(field: str, value: str, allowed: str) -> None:
    for position, character in enumerate(value, start=1):
        if unicodedata.category(character) in _REFUSED_CATEGORIES and character not in allowed:
            raise Invalid(
                field,
                "control-character",
                f"{field} has the control character U+{ord(character):04X} at position {position}; remove it",
            )
