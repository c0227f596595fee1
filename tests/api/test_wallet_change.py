"""The daily change of a wallet's value, compared with its definition in fractions."""

from fractions import Fraction
from random import Random
from typing import Any

import pytest

from api.schema import TokenReference
from api.wallets.schemas import Position
from api.wallets.totals import change_between

Held = dict[str, str | None]


def positions(held: Held) -> list[Position]:
    """Return positions with these values by symbol; a position without a value has a stale price."""
    return [
        Position(
            token=TokenReference(symbol=symbol, ledger_id=f"0x{symbol}", token_id=None),
            quantity="1",
            quantity_raw="1",
            quantity_status="Known",
            detail=None,
            value=value,
            value_status="StalePrice" if value is None else "Priced",
            price=None,
            price_status="StalePrice" if value is None else "Priced",
            reconciliation="Reconciled",
            checked_block_number=1,
            opened_by="Observed",
            metadata_status="Confirmed",
        )
        for symbol, value in held.items()
    ]


@pytest.mark.parametrize(
    ("before", "now", "expected"),
    [
        # A price that was stale the day before is not a gain.
        ({"A": "100", "B": None}, {"A": "100", "B": "50"}, ("0", "Partial", ["B"])),
        ({"A": "100", "B": "50"}, {"A": "110", "B": None}, ("10", "Partial", ["B"])),
        # Assets bought or sold in between count in full: without a holding the value is 0.
        ({"A": "100"}, {"A": "100", "B": "50"}, ("50", "Priced", [])),
        ({"A": "100", "B": "100"}, {"A": "100"}, ("-50", "Priced", [])),
        ({"A": "100", "B": None}, {"A": "100"}, ("0", "Partial", ["B"])),
        # No asset has a value at both moments, or the earlier value is 0.
        ({"B": None}, {"B": "50"}, (None, "StalePrice", ["B"])),
        ({"B": None}, {"A": "1", "B": "50"}, (None, "ZeroBase", ["B"])),
        ({}, {"A": "1"}, (None, "ZeroBase", [])),
        ({}, {}, (None, "ZeroBase", [])),
        ({"A": "3"}, {"A": "4"}, ("33.333333333333", "Priced", [])),
    ],
)
def test_only_assets_valued_at_both_moments_are_compared(before: Held, now: Held, expected: Any) -> None:
    assert change_between(positions(now), positions(before)) == expected


def test_random_wallets() -> None:
    random = Random(5)
    for _ in range(500):
        then, now = (
            {
                symbol: None
                if random.random() < 0.2
                else f"{random.randrange(1, 10**6)}.{random.randrange(10**18):018d}"
                for symbol in "ABCD"
                if random.random() < 0.7
            }
            for _ in range(2)
        )
        omitted = sorted(one for one in {*then, *now} if None in (then.get(one, "0"), now.get(one, "0")))
        base, worth = (
            sum(Fraction(value) for symbol, value in held.items() if symbol not in omitted and value)
            for held in (then, now)
        )
        change, status, left_out = change_between(positions(now), positions(then))
        assert left_out == omitted
        if base:
            assert change is not None
            assert abs(Fraction(change) - 100 * (worth - base) / base) <= Fraction(1, 2 * 10**12)
            assert status == ("Partial" if omitted else "Priced")
        else:
            assert (change, status) == (None, "StalePrice" if omitted and {*then, *now} == {*omitted} else "ZeroBase")
