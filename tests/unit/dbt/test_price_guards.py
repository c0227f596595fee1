"""The guards of a pair, applied in time order by the model."""

import importlib.util
from pathlib import Path
from typing import Any

_MODEL = Path(__file__).parents[3] / "dbt_project" / "models" / "intermediate" / "prices" / "int_stopped_prices.py"
_ONE = 10**18


def load() -> Any:
    """Import the model as dbt does: a file outside packages."""
    spec = importlib.util.spec_from_file_location("int_stopped_prices", _MODEL)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


model = load()


def said(
    moment: int,
    price: int | None,
    source: str = "a",
    *,
    jump: int | None = None,
    deviation: int | None = None,
    fresh_until: int | None = None,
    decision: str | None = None,
    known: str | None = None,
) -> Any:
    """Return a price of a source; prices and percentages in whole units."""
    return model.Price(
        pair_key=1,
        effective_us=moment,
        source_id=source,
        price=None if price is None else price * _ONE,
        fresh_until_us=fresh_until,
        max_jump=None if jump is None else jump * _ONE,
        max_deviation=None if deviation is None else deviation * _ONE,
        decision=decision,
        known_state=known,
    )


def stopped(*prices: Any) -> list[tuple[int, str, str]]:
    """Return instant, source and guards of each stopped price."""
    return [(moment, source, reason) for _, source, moment, reason in model.stopped(prices)]


def test_jump_is_measured_from_the_last_used_price() -> None:
    prices = [said(moment, price, jump=10) for moment, price in enumerate([100, 110, 122, 121, 90, 108])]
    # 110 is just 10 %; 122 is compared with 110, so is 121 (exactly 10 %); 90 with 121; 108 too.
    assert stopped(*prices) == [(2, "a", "Jump"), (4, "a", "Jump"), (5, "a", "Jump")]


def test_the_smallest_excess_is_a_jump() -> None:
    first, exact = said(0, 100, jump=10), said(1, 110, jump=10)
    assert stopped(first, exact) == []
    assert stopped(first, exact._replace(price=exact.price + 1)) == [(1, "a", "Jump")]


def test_later_prices_are_compared_with_an_accepted_price() -> None:
    level = [said(0, 100, jump=10), said(1, 200, jump=10, decision="Accepted"), said(2, 205, jump=10)]
    assert stopped(*level) == [(1, "a", "Jump")]
    assert stopped(level[0], level[1]._replace(decision=None), level[2]) == [(1, "a", "Jump"), (2, "a", "Jump")]


def test_rejected_price_is_not_used_in_comparisons() -> None:
    rejected = said(1, 105, jump=10, deviation=10, decision="Rejected")
    assert stopped(said(0, 100, jump=10), rejected, said(2, 114, jump=10)) == [(2, "a", "Jump")]
    assert stopped(rejected, said(2, 200, "b", deviation=10)) == []


def test_deviation_is_from_the_median_of_other_fresh_prices() -> None:
    others = [said(0, 100, "b"), said(0, 102, "c"), said(0, 300, "d")]
    assert stopped(*others, said(5, 112, deviation=10)) == []
    assert stopped(*others, said(5, 113, deviation=10)) == [(5, "a", "Deviation")]
    # The median of two others is their mean: 101.
    assert stopped(*others[:2], said(5, 112, deviation=10)) == [(5, "a", "Deviation")]
    assert stopped(*others[:2], said(5, 111, deviation=10)) == []
    # Stale from instant 5 on, or missing: no comparison.
    assert stopped(said(0, 100, "b", fresh_until=5), said(5, 900, deviation=10)) == []
    assert stopped(said(0, 100, "b", fresh_until=6), said(5, 900, deviation=10)) == [(5, "a", "Deviation")]
    assert stopped(said(5, 900, deviation=10)) == []


def test_prices_of_one_instant_see_each_other() -> None:
    assert stopped(said(0, 100, "a", deviation=10), said(0, 200, "b", deviation=10)) == [
        (0, "a", "Deviation"),
        (0, "b", "Deviation"),
    ]


def test_both_guards_are_named() -> None:
    prices = [said(0, 100, "b"), said(0, 100, jump=5), said(1, 150, jump=5, deviation=5)]
    assert stopped(*prices) == [(1, "a", "Jump, Deviation")]


def test_earlier_prices_keep_their_verdict() -> None:
    used, quarantined = said(0, 100, known="Used"), said(1, 500, known="Quarantined")
    assert stopped(used, quarantined, said(2, 105, jump=10)) == []
    assert stopped(used, quarantined, said(2, 490, jump=10)) == [(2, "a", "Jump")]
    # A quarantined price still counts in the median of the other sources.
    assert stopped(quarantined, said(2, 490, "b", deviation=10)) == []


def test_price_without_a_number_is_ignored() -> None:
    assert stopped(said(0, 100), said(1, None, jump=10), said(2, 105, jump=10)) == []
    assert stopped(said(0, 100, "b"), said(1, None, "b"), said(2, 900, deviation=10)) == []
