"""The figures of a cap table that depend on all its holders: unattributed supply and concentration.

All are computed in whole numbers, from what each holder has at one block.
"""

import math
from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from figures.numbers import percentage, quotient

SupplyStatus = Literal["Observed", "Unconfirmed", "ZeroSupply", "Unknown"]
HoldersStatus = Literal["Complete", "HoldersUnknown"]
UnattributedStatus = Literal["Observed", "Unconfirmed", "Negative", "ZeroSupply", "Unknown"]
FigureStatus = Literal["Observed", "Unconfirmed", "HoldersUnknown", "ZeroSupply", "Unknown"]
Top10Status = Literal["Observed", "Unconfirmed", "LowerBound", "ZeroSupply", "Unknown"]

_LARGEST = 10
_MOST_RANKS = 80


@dataclass(frozen=True, slots=True)
class Concentration:
    """`top10` percent of the supply, `hhi` 0 to 10,000, `gini` 0 to 1, `nakamoto` a number of holders."""

    top10: str | None
    top10_status: Top10Status
    hhi: str | None
    hhi_status: FigureStatus
    gini: str | None
    gini_status: FigureStatus
    nakamoto: int | None
    nakamoto_status: FigureStatus


@dataclass(frozen=True, slots=True)
class Summary:
    """The figures of one cap table; `unattributed` is in base units, None where the supply is unknown."""

    holders_status: HoldersStatus
    unattributed: int | None
    unattributed_percentage: str | None
    unattributed_status: UnattributedStatus
    concentration: Concentration


def parse_balances(text: str) -> list[int]:
    """Return quantities that are written with spaces between them, largest first."""
    return sorted(map(int, text.split()), reverse=True)


def summarize(
    balances: Sequence[int], supply: int | None, supply_status: SupplyStatus, *, opens_without_holders: bool
) -> Summary:
    """Compute the figures of a cap table.

    Args:
        balances: of all holders seen, largest first, none zero, in base units.
        supply: total supply in base units; None when it is unknown.
        supply_status: whether a reading confirms the supply.
        opens_without_holders: whether no balance existed before the covered range.
    """
    rest = None if supply is None else supply - sum(balances)
    is_confirmed = supply_status != "Unconfirmed"
    is_complete = opens_without_holders and rest == 0 and is_confirmed
    return Summary(
        holders_status="Complete" if is_complete else "HoldersUnknown",
        unattributed=rest,
        unattributed_percentage=percentage(rest, supply),
        unattributed_status="Negative" if rest is not None and rest < 0 and is_confirmed else supply_status,
        concentration=concentrate(balances, supply, is_confirmed=is_confirmed),
    )


def concentrate(balances: Sequence[int], supply: int | None, *, is_confirmed: bool = True) -> Concentration:
    """Compute the figures; each is known only if it does not depend on who holds the rest of the supply.

    Each figure is computed for two extreme cases: one unseen holder owns the rest, or infinitely many share it. The
    first case gives the highest share of the ten largest, the highest sum of squares and the lowest Nakamoto number.
    The Gini coefficient also depends on the number of holders, so it is known only without a rest. A negative rest
    bounds no figure.

    Args:
        balances: of all holders seen, largest first, none zero.
        supply: total supply in the same units; None when it is unknown.
        is_confirmed: whether a reading confirms the supply; if not, known figures are `Unconfirmed`.
    """
    if not supply:
        if supply is None:
            return Concentration(None, "Unknown", None, "Unknown", None, "Unknown", None, "Unknown")
        return Concentration(None, "ZeroSupply", None, "ZeroSupply", None, "ZeroSupply", None, "ZeroSupply")
    held = sum(balances)
    rest = supply - held
    largest, squares = sum(balances[:_LARGEST]), sum(balance * balance for balance in balances)
    top10, most_top10 = (
        quotient(100 * part, supply) for part in (largest, max(largest, sum(balances[: _LARGEST - 1]) + rest))
    )
    hhi, most_hhi = (quotient(10_000 * part, supply * supply) for part in (squares, squares + rest * rest))
    nakamoto = _nakamoto(balances, supply, 0)
    least_nakamoto = _nakamoto(balances, supply, rest) if rest else nakamoto
    is_hhi_known = rest >= 0 and hhi == most_hhi
    is_nakamoto_known = rest >= 0 and nakamoto is not None and nakamoto == least_nakamoto
    standing: Literal["Observed", "Unconfirmed"] = "Observed" if is_confirmed else "Unconfirmed"
    is_top10_known = not is_confirmed or (rest >= 0 and top10 == most_top10)
    return Concentration(
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
    """Return the cumulative balance of the largest holders at up to 80 ranks, spaced evenly by logarithm.

    Args:
        balances: of all holders seen, largest first.

    Returns:
        Pairs of rank and cumulative balance, in order of rank.
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


def _gini(balances: Sequence[int], held: int) -> str:
    count = len(balances)
    weighted = sum(place * balance for place, balance in enumerate(reversed(balances), start=1))
    return quotient(2 * weighted - (count + 1) * held, count * held)


def _nakamoto(balances: Sequence[int], supply: int, rest: int) -> int | None:
    """Return the smallest number of holders with a majority; a rest counts as one more large holder among them."""
    running = 0
    for count, balance in enumerate(balances, start=1):
        if 2 * (running + max(balance, rest)) > supply:
            return count
        running += balance
    return None
