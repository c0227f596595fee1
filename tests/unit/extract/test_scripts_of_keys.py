"""Derivation of the scripts of wallets of keys: in turns, within a budget, and from where it stopped."""

import itertools
from collections.abc import Sequence
from itertools import groupby
from typing import Any

import pytest

from control.networks.definitions import load_networks
from control.settings import load_settings
from pipelines.extract.budget import Budget
from pipelines.extract.errors import BudgetSpent
from pipelines.extract.utxo.watched import KeyRange, derive_scripts
from tests.unit.control.test_descriptors import COMPRESSED, A, B, C, D

BITCOIN = load_networks(load_settings({}).networks_file, {})["bitcoin"]
_NEW = {"collected_to": None, "needed_to": 999, "stored_indices": 0, "is_viewed": False, "tenant_id": "a"}


def wallet(key: str, path: str = "/<0;1>/*", **values: Any) -> KeyRange:
    return KeyRange(f"keys:{key[-4:]}{path}", f"wpkh({key}{path})", **_NEW | values)


def ticking(seconds: float) -> Budget:
    """Return a budget; its clock advances by a second at each reading."""
    ticks = itertools.count()
    return Budget(seconds, 10, lambda: float(next(ticks)))


def derive(ranges: Sequence[KeyRange], budget: Budget | None = None) -> list[tuple[str, int, int, str, str]]:
    return [row for part in derive_scripts(BITCOIN, ranges, budget) for row in part.iter_rows()]


@pytest.mark.parametrize(
    ("one", "branches", "indices"),
    [
        (wallet(A), (0, 1), range(1_000)),
        (wallet(A, "/7/*"), (0,), range(1_000)),
        (wallet(A, "/<2;3>"), (0, 1), range(1)),
        (wallet(A, collected_to=999, needed_to=1_999, stored_indices=1_000), (0, 1), range(1_000, 2_000)),
    ],
)
def test_every_branch_has_the_scripts_of_the_missing_indices(
    one: KeyRange, branches: Sequence[int], indices: range
) -> None:
    keys = BITCOIN.parse_keys(one.descriptor)
    assert keys is not None
    expected = [
        (one.wallet, branch, index, keys.script(branch, index).hex(), keys.address(branch, index))
        for index in indices
        for branch in branches
    ]
    assert derive([one]) == expected


def test_wallets_take_turns_by_tenant_after_those_that_the_network_waits_for() -> None:
    ranges = [
        wallet(A, "/0"),
        wallet(A, "/1"),
        wallet(A, "/2"),
        wallet(B, "/0", tenant_id="b"),
        wallet(C, "/0", tenant_id="c", is_viewed=True),
        wallet(D, "/0", tenant_id="c", stored_indices=1),
    ]
    assert [row[0] for row in derive(ranges)] == [ranges[at].wallet for at in (4, 0, 3, 1, 2)]


def test_new_wallets_have_a_tenth_of_the_time_and_continue_where_they_stopped() -> None:
    ranges = [wallet(A), wallet(B, tenant_id="b")]
    found: list[tuple[str, int, int, str, str]] = []
    # 200 indices in each cycle of 2,000 s, and one reading of the clock at its begin.
    for cycle in range(1, 12):
        stored = {name: len(list(rows)) // 2 for name, rows in groupby(sorted(found), lambda row: row[0])}
        ranges = [
            KeyRange(one.wallet, one.descriptor, None, 999, stored.get(one.wallet, 0), False, one.tenant_id)
            for one in ranges
        ]
        before = len(found)
        found += derive(ranges, ticking(2_000))
        assert (len(found) - before) // 2 <= 200, cycle
    assert sorted(found) == sorted(derive([wallet(A), wallet(B, tenant_id="b")]))


def test_a_wallet_in_use_without_scripts_takes_all_of_the_time_and_ends_the_cycle() -> None:
    one = wallet(A, collected_to=999, is_viewed=True)
    assert one.is_awaited
    parts = derive_scripts(BITCOIN, [wallet(B), one], ticking(600))
    rows = [*next(parts).rows(), *next(parts).rows()]
    assert {row[0] for row in rows} == {one.wallet}
    assert 590 <= len(rows) // 2 <= 600
    with pytest.raises(BudgetSpent, match="the network used up its 600 s of this cycle"):
        next(parts)


@pytest.mark.parametrize(
    ("one", "derived_to", "is_ready", "is_outgrown"),
    [
        (wallet(A), -1, False, False),
        (wallet(A, stored_indices=999), -1, False, False),
        (wallet(A, stored_indices=1_000), 999, True, False),
        (wallet(A, stored_indices=1_999, needed_to=1_999, collected_to=999), 999, True, False),
        (wallet(A, stored_indices=2_000, needed_to=1_999, collected_to=999), 1_999, True, True),
        # An output left the chain, after which the larger range is not needed any more.
        (wallet(A, stored_indices=2_000, collected_to=999), 999, True, False),
        (wallet(A, stored_indices=1_000, needed_to=1_999, collected_to=1_999), 999, False, False),
        (wallet(A, "/<2;3>"), -1, False, False),
        (wallet(A, "/<2;3>", stored_indices=1), 999, True, False),
        (wallet(COMPRESSED, "", stored_indices=1, collected_to=999), 999, True, False),
    ],
)
def test_a_wallet_uses_whole_ranges_of_stored_scripts(
    one: KeyRange, derived_to: int, is_ready: bool, is_outgrown: bool
) -> None:
    assert (one.derived_to, one.is_ready, one.is_outgrown) == (derived_to, is_ready, is_outgrown)
