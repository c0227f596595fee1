"""Concentration figures of a list of balances, in whole numbers throughout.

The same figures of the current cap table come from its mart; these are for moments that no mart can hold.
"""

from collections.abc import Sequence
from dataclasses import dataclass

_DECIMALS = 12
_LARGEST = 10


@dataclass(frozen=True, slots=True)
class Figures:
    """`top10` percent of the supply, `hhi` 0 to 10,000, `gini` 0 to 1, `nakamoto` a number of holders."""

    top10: str | None
    hhi: str | None
    gini: str | None
    nakamoto: int | None


def concentrate(balances: Sequence[int], supply: int | None) -> Figures:
    """Compute the figures.

    Args:
        balances: of all holders, largest first, none zero.
        supply: total supply in the same units; None when it is unknown.
    """
    if not supply:
        return Figures(None, None, None, None)
    held = sum(balances)
    count = len(balances)
    weighted = sum(place * balance for place, balance in enumerate(reversed(balances), start=1))
    return Figures(
        top10=quotient(100 * sum(balances[:_LARGEST]), supply),
        hhi=quotient(10_000 * sum(balance * balance for balance in balances), supply * supply),
        gini=quotient(2 * weighted - (count + 1) * held, count * held) if held > 0 else None,
        nakamoto=_nakamoto(balances, supply),
    )


def quotient(numerator: int, denominator: int) -> str:
    """Return a quotient as decimal text with at most 12 decimals, rounded half to even.

    Args:
        numerator: any whole number.
        denominator: above zero.
    """
    scaled, rest = divmod(abs(numerator) * 10**_DECIMALS, denominator)
    if 2 * rest > denominator or (2 * rest == denominator and scaled % 2):
        scaled += 1
    whole, fraction = divmod(scaled, 10**_DECIMALS)
    text = f"{whole}.{fraction:0{_DECIMALS}d}".rstrip("0").rstrip(".")
    return f"-{text}" if numerator < 0 and scaled else text


def _nakamoto(balances: Sequence[int], supply: int) -> int | None:
    running = 0
    for count, balance in enumerate(balances, start=1):
        running += balance
        if 2 * running > supply:
            return count
    return None
