"""Past concentration figures: they equal their definitions, and hold for every split of unattributed supply."""

from dataclasses import astuple
from random import Random

import pytest

from figures.cap_table import concentrate
from tests.oracles.balances import concentration


def test_figures_equal_their_definitions() -> None:
    random = Random(11)
    statuses: set[object] = set()
    for _ in range(3000):
        count, largest = random.randrange(0, 14), random.choice((3, 20, 10**6, 10**30))
        balances = sorted((random.randrange(1, largest + 1) for _ in range(count)), reverse=True)
        rest = random.choice((0, 0, 1, -1, random.randrange(largest), sum(balances)))
        supply = sum(balances) + rest
        if supply <= 0:
            continue
        standing = random.choice(("Observed", "Unconfirmed"))
        found = astuple(concentrate(balances, supply, is_confirmed=standing == "Observed"))
        assert found == concentration(balances, supply, standing), (balances, supply)
        statuses |= {(place, status) for place, status in enumerate(found) if place % 2}
    # Every figure occurred with each of its statuses.
    unknown = {(place, "HoldersUnknown") for place in (3, 5, 7)}
    standing_ones = {(place, status) for place in (1, 3, 5, 7) for status in ("Observed", "Unconfirmed")}
    assert statuses == standing_ones | {(1, "LowerBound")} | unknown


def test_observed_figure_is_equal_for_every_split_of_the_rest() -> None:
    random = Random(12)
    seen = 0
    for _ in range(2000):
        balances = sorted((random.randrange(1, 1000) for _ in range(random.randrange(1, 14))), reverse=True)
        rest = random.choice((1, 2, 5, 50))
        supply = sum(balances) + rest
        found = concentrate(balances, supply)
        cuts = sorted(random.choices(range(rest + 1), k=random.randrange(4)))
        parts = [part for low, high in zip([0, *cuts], [*cuts, rest], strict=True) if (part := high - low)]
        whole = concentrate(sorted([*balances, *parts], reverse=True), supply)
        for name in ("top10", "hhi", "nakamoto"):
            if getattr(found, f"{name}_status") == "Observed":
                seen += 1
                assert getattr(found, name) == getattr(whole, name), (balances, parts, name)
        assert found.gini is None
    assert seen > 1000


def test_gini_equal_in_both_extreme_cases_may_differ_in_between() -> None:
    """With 1, 1 and a rest of 4 it is 1/3 if one holder or infinitely many own the rest, and 1/6 if two do."""
    assert concentrate([4, 1, 1], 6).gini == "0.333333333333"
    assert concentrate([2, 2, 1, 1], 6).gini == "0.166666666667"
    assert concentrate([1, 1], 6).gini is None


@pytest.mark.parametrize(("supply", "status"), [(None, "Unknown"), (0, "ZeroSupply")])
def test_figures_are_null_without_a_supply(supply: int | None, status: str) -> None:
    assert astuple(concentrate([], supply)) == (None, status) * 4


def test_rest_below_the_last_digit_does_not_change_the_hhi() -> None:
    found = concentrate([10**18, 10**18, 10**18], 3 * 10**18 + 1)
    assert (found.hhi, found.hhi_status) == ("3333.333333333333", "Observed")
    assert (found.top10_status, found.top10) == ("Observed", "100")
    assert (found.nakamoto, found.gini_status) == (2, "HoldersUnknown")
