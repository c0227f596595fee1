"""Schemas of values in requests: bounds and patterns, from the constants by which the rules of `control` refuse.

They only document: the rules refuse values themselves, with their own codes and words.
"""

import re
from collections.abc import Sequence
from typing import Any

from msgspec import Meta

from api.schemas.common import DECIMAL_INPUT
from control import fields
from control.pricing.decimals import MOST_DECIMALS, MOST_INTEGER_DIGITS


def described(description: str, examples: Sequence[Any] | None = None, **keywords: Any) -> Meta:
    """Return a description with keywords of JSON Schema that document, and that nothing enforces here."""
    shown = None if examples is None else list(examples)
    return Meta(description=description, examples=shown, extra_json_schema=keywords)


def line(most: int, description: str, examples: Sequence[str] | None = None) -> Meta:
    """Describe one line of at most `most` characters, as `control.fields` checks it."""
    return described(description, examples, minLength=1, maxLength=most, pattern=fields.LINE_PATTERN)


def text(most: int, description: str) -> Meta:
    """Describe a text of any number of lines, as `control.fields` checks it."""
    return described(description, minLength=1, maxLength=most, pattern=fields.TEXT_PATTERN)


def whole(pattern: re.Pattern[str]) -> str:
    """Return the pattern of JSON Schema that a whole text fits which this one fits; named groups have no names."""
    return f"^(?:{re.sub(r'[(][?]P<[a-z]+>', '(', pattern.pattern)})$"


def positive(description: str, most: int | None = None) -> Meta:
    """Describe a decimal above zero, a number or a text; `most` is the largest, where fewer digits are allowed."""
    bound = {"exclusiveMaximum": 10**MOST_INTEGER_DIGITS} if most is None else {"maximum": most}
    pattern = f"^(?!-)(?=[^eE]*[1-9])(?:{DECIMAL_INPUT.pattern})$"
    return described(
        f"{description} Greater than 0, with at most {MOST_INTEGER_DIGITS} digits before the decimal point and "
        f"{MOST_DECIMALS} after it. A JSON number, or a decimal in a string; both are read exactly.",
        ["1.5"],
        exclusiveMinimum=0,
        pattern=pattern,
        **bound,
    )
