"""Exact quotients as decimal text."""

_DECIMALS = 12
_SCALE = 10**_DECIMALS


def quotient(numerator: int, denominator: int) -> str:
    """Return a quotient as decimal text with at most 12 decimals, rounded half to even.

    Args:
        numerator: any whole number.
        denominator: any whole number but zero.
    """
    scaled, rest = divmod(abs(numerator) * _SCALE, abs(denominator))
    if 2 * rest > abs(denominator) or (2 * rest == abs(denominator) and scaled % 2):
        scaled += 1
    whole, fraction = divmod(scaled, _SCALE)
    text = f"{whole}.{fraction:0{_DECIMALS}d}".rstrip("0").rstrip(".")
    return f"-{text}" if (numerator < 0) != (denominator < 0) and scaled else text


def percentage(part: int | None, whole: int | None) -> str | None:
    """Return the percentage of a part in a whole; None if either is unknown, or the whole is zero."""
    return quotient(100 * part, whole) if part is not None and whole else None
