"""Conversion of prices from text to exact decimals, without any float in between; other text is refused."""

import re
from decimal import Decimal

LARGEST_SCALE = 18
"""Decimals of a stored price, a DECIMAL(38, 18); the other 20 digits stand before the point."""

_MOST_INTEGER_DIGITS = 20
_LONGEST_TEXT = 120
_NUMBER = re.compile(r"[+-]?(\d+(\.\d*)?|\.\d+)([eE][+-]?\d{1,4})?", re.ASCII)


def exact_price(text: object) -> Decimal:
    """Return a price exactly, without trailing zeros and without an exponent.

    Args:
        text: the price in the source's own words.

    Raises:
        ValueError: the text is no number, not positive, or too long to be stored exactly; says which.
    """
    if not (isinstance(text, str) and len(text) <= _LONGEST_TEXT and _NUMBER.fullmatch(text)):
        raise ValueError(f"{str(text)[:60]!r} is not a number")
    number = Decimal(text)  # exact: the constructor ignores the context's precision
    sign, digits, exponent = number.as_tuple()
    assert isinstance(exponent, int)
    if sign or not any(digits):
        raise ValueError(f"{text} is not positive")
    while digits[-1] == 0:
        digits, exponent = digits[:-1], exponent + 1
    if -exponent > LARGEST_SCALE:
        raise ValueError(f"{text} has more than {LARGEST_SCALE} decimals")
    if len(digits) + exponent > _MOST_INTEGER_DIGITS:
        raise ValueError(f"{text} has more than {_MOST_INTEGER_DIGITS} digits before the point")
    if exponent > 0:
        digits, exponent = digits + (0,) * exponent, 0
    return Decimal((0, digits, exponent))
