"""Decimals that tenants write, such as prices and percentages: what may be stored, and its canonical text."""

from decimal import Decimal

from control.errors import Invalid

MOST_DECIMALS = 18
MOST_INTEGER_DIGITS = 20
"""Together the 38 digits of the warehouse's DECIMAL(38, 18)."""


def positive_decimal(field: str, value: Decimal) -> str:
    """Return the canonical text of a decimal above zero; never rounds.

    Args:
        field: JSON name of the property, for the error.
        value: as written, in any notation.

    Raises:
        Invalid: not a number, not above zero, or with more digits than can be stored.
    """
    if not value.is_finite():
        raise Invalid(field, "not-a-number", f"{field} is {value}; write a decimal above 0")
    if value <= 0:
        raise Invalid(field, "not-positive", f"{field} must be above 0")
    if value.adjusted() >= MOST_INTEGER_DIGITS:
        raise Invalid(field, "too-large", f"{field} has more than {MOST_INTEGER_DIGITS} digits before the point")
    if _decimals(value) > MOST_DECIMALS:
        raise Invalid(field, "too-precise", f"{field} has more than {MOST_DECIMALS} decimals; round it")
    return write_decimal(value)


def write_decimal(value: Decimal) -> str:
    """Return a finite decimal as text without exponent, without trailing zeros behind the point, exactly."""
    text = f"{value:f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


def _decimals(value: Decimal) -> int:
    """How many digits stand behind the point, without trailing zeros."""
    _, digits, exponent = value.as_tuple()
    kept = len(digits)
    while kept > 1 and digits[kept - 1] == 0:
        kept -= 1
    return max(0, -(int(exponent) + len(digits) - kept))
