"""The figures of a cap table: complete holders, unattributed supply, and the status of each figure."""

from typing import Any

import pytest

from figures.cap_table import HoldersStatus, SupplyStatus, UnattributedStatus, parse_balances, summarize

UNKNOWN = (None, "HoldersUnknown")


@pytest.mark.parametrize(
    ("balances", "supply", "status", "opens_without_holders", "expected"),
    [
        # 100 of 1,000 are unattributed: the HHI is 3,500 to 3,600, and two holders have the majority in any case.
        ("300 500 100", 1000, "Observed", False, ("HoldersUnknown", 100, "10", "Observed")),
        ("", 0, "ZeroSupply", False, ("HoldersUnknown", 0, None, "ZeroSupply")),
        ("", None, "Unknown", False, ("HoldersUnknown", None, None, "Unknown")),
        ("500 100 300", 900, "Observed", True, ("Complete", 0, "0", "Observed")),
        ("101", 100, "Observed", True, ("HoldersUnknown", -1, "-1", "Negative")),
        ("500 300 100", 900, "Unconfirmed", True, ("HoldersUnknown", 0, "0", "Unconfirmed")),
        ("101", 100, "Unconfirmed", True, ("HoldersUnknown", -1, "-1", "Unconfirmed")),
        ("", 0, "Unconfirmed", True, ("HoldersUnknown", 0, None, "Unconfirmed")),
    ],
)
def test_unattributed_supply_and_completeness_of_holders(
    balances: str,
    supply: int | None,
    status: SupplyStatus,
    opens_without_holders: bool,
    expected: tuple[HoldersStatus, int | None, str | None, UnattributedStatus],
) -> None:
    found = summarize(parse_balances(balances), supply, status, opens_without_holders=opens_without_holders)
    figures = (found.holders_status, found.unattributed, found.unattributed_percentage, found.unattributed_status)
    assert figures == expected


@pytest.mark.parametrize(
    ("balances", "supply", "status", "top10", "hhi", "gini", "nakamoto"),
    [
        ("300 500 100", 1000, "Observed", ("90", "LowerBound"), UNKNOWN, UNKNOWN, (2, "Observed")),
        # Gini of 100, 300, 500: (2 * (100 + 600 + 1500) - 4 * 900) / (3 * 900) = 800 / 2700
        *(
            (
                "500 100 300",
                900,
                status,
                ("100", status),
                ("4320.987654320988", status),
                ("0.296296296296", status),
                (1, status),
            )
            for status in ("Observed", "Unconfirmed")
        ),
        ("101", 100, "Observed", ("101", "LowerBound"), UNKNOWN, UNKNOWN, UNKNOWN),
        ("101", 100, "Unconfirmed", ("101", "Unconfirmed"), UNKNOWN, UNKNOWN, UNKNOWN),
    ],
)
def test_concentration_is_given_if_independent_of_unattributed_supply(
    balances: str, supply: int, status: SupplyStatus, top10: Any, hhi: Any, gini: Any, nakamoto: Any
) -> None:
    found = summarize(parse_balances(balances), supply, status, opens_without_holders=True).concentration
    assert (found.top10, found.top10_status) == top10
    assert (found.hhi, found.hhi_status) == hhi
    assert (found.gini, found.gini_status) == gini
    assert (found.nakamoto, found.nakamoto_status) == nakamoto
