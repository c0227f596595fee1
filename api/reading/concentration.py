"""Concentration figures of a list of balances, in whole numbers throughout.

`marts.cap_table_summaries` says the same of the newest block to whoever reads the marts.
"""

import math
from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from api.schemas.tokens import FigureStatus, Top10Status

_DECIMALS = 12
_SCALE = 10**_DECIMALS
_LARGEST = 10
_MOST_RANKS = 80


@dataclass(frozen=True, slots=True)
class Figures:
    """`top10` percent of the supply, `hhi` 0 to 10,000, `gini` 0 to 1, `nakamoto` a number of holders."""

    top10: str | None
    top10_status: Top10Status
    hhi: str | None
    hhi_status: FigureStatus
    gini: str | None
    gini_status: FigureStatus
    nakamoto: int | None
    nakamoto_status: FigureStatus


def concentrate(balances: Sequence[int], supply: int | None, *, is_confirmed: bool = True) -> Figures:
    """Compute the figures, each only where it does not depend on who holds the rest of the supply.

    The rest is one holder's or many's. The share of the ten largest and the sum of squares are the most, and the fewest
    holders have the majority, where it is one holder's; the other end is a rest that is spread without end. The Gini
    coefficient also depends on how many share the rest. Below zero, it bounds nothing.

    Args:
        balances: of all holders seen, largest first, none zero.
        supply: total supply in the same units; None when it is unknown.
        is_confirmed: whether a reading confirms the supply; otherwise figures that stand are `Unconfirmed`.
    """
    if not supply:
        status: FigureStatus = "Unknown" if supply is None else "ZeroSupply"
        return Figures(None, _as_top10(status), None, status, None, status, None, status)
    held = sum(balances)
    rest = supply - held
    largest, squares = sum(balances[:_LARGEST]), sum(balance * balance for balance in balances)
    top10, most_top10 = (
        quotient(100 * part, supply) for part in (largest, max(largest, sum(balances[: _LARGEST - 1]) + rest))
    )
    hhi, most_hhi = (quotient(10_000 * part, supply * supply) for part in (squares, squares + rest * rest))
    nakamoto, least_nakamoto = _nakamoto(balances, supply, 0), _nakamoto(balances, supply, rest)
    is_hhi_known = rest >= 0 and hhi == most_hhi
    is_nakamoto_known = rest >= 0 and nakamoto is not None and nakamoto == least_nakamoto
    standing: Literal["Observed", "Unconfirmed"] = "Observed" if is_confirmed else "Unconfirmed"
    is_top10_known = not is_confirmed or (rest >= 0 and top10 == most_top10)
    return Figures(
        top10=top10,
        top10_status=standing if is_top10_known else "LowerBound",
        hhi=hhi if is_hhi_known else None,
        hhi_status=standing if is_hhi_known else "HoldersUnknown",
        gini=_gini(balances, held) if rest == 0 else None,
        gini_status=standing if rest == 0 else "HoldersUnknown",
        nakamoto=nakamoto if is_nakamoto_known else None,
        nakamoto_status=standing if is_nakamoto_known else "HoldersUnknown",
    )


def held_by_rank(balances: Sequence[int]) -> list[tuple[int, int]]:
    """Return what the largest holders have together, up to each of at most 80 ranks, evenly apart by logarithm.

    Args:
        balances: of all holders seen, largest first.
    """
    count = len(balances)
    per_log = (_MOST_RANKS - 1) / math.log(count) if count > 1 else 0.0
    ranks = range(1, count + 1)
    ends = {
        bisect_right(ranks, place, key=lambda rank: math.floor(math.log(rank) * per_log))
        for place in range(_MOST_RANKS)
    }
    found: list[tuple[int, int]] = []
    before = running = 0
    for rank in sorted((ends | {count}) - {0}):
        running += sum(balances[before:rank])
        found.append((rank, running))
        before = rank
    return found


def percentage(part_raw: str | None, whole_raw: str | None) -> str | None:
    """Return how many percent of a whole a part is; None where one is unknown, or the whole is zero.

    As the marts' `percentage`, which a test compares; a statement that names it takes 3 ms before the first row.
    """
    if part_raw is None or whole_raw is None or int(whole_raw) == 0:
        return None
    return quotient(100 * int(part_raw), int(whole_raw))


def quotient(numerator: int, denominator: int) -> str:
    """Return a quotient as decimal text with at most 12 decimals, rounded half to even.

    Args:
        numerator: any whole number.
        denominator: above zero.
    """
    scaled, rest = divmod(abs(numerator) * _SCALE, denominator)
    if 2 * rest > denominator or (2 * rest == denominator and scaled % 2):
        scaled += 1
    whole, fraction = divmod(scaled, _SCALE)
    text = f"{whole}.{fraction:0{_DECIMALS}d}".rstrip("0").rstrip(".")
    return f"-{text}" if numerator < 0 and scaled else text


def _as_top10(status: FigureStatus) -> Top10Status:
    return "LowerBound" if status == "HoldersUnknown" else status


def _gini(balances: Sequence[int], held: int) -> str:
    count = len(balances)
    weighted = sum(place * balance for place, balance in enumerate(reversed(balances), start=1))
    return quotient(2 * weighted - (count + 1) * held, count * held)


def _nakamoto(balances: Sequence[int], supply: int, rest: int) -> int | None:
    """Return the fewest holders with a majority; a rest in one hand takes the place of the smallest of them."""
    running = 0
    for count, balance in enumerate(balances, start=1):
        if 2 * (running + max(balance, rest)) > supply:
            return count
        running += balance
    return None
