"""Bisection over given states, compared with a look at every block."""

from collections.abc import Callable
from itertools import pairwise
from typing import Any

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pipelines.extract.errors import MalformedAnswer, StateUnavailable
from pipelines.extract.evm.dialect import EVM
from pipelines.extract.evm.narrowing import find_balance_changes, find_creation_block
from pipelines.extract.family import BalanceRange
from pipelines.extract.jsonrpc.client import RpcClient
from tests.chain.scripted_node import NodeError, ScriptedNode
from tests.unit.extract.conftest import MakeClient

WALLET, OTHER = "0x" + "11" * 20, "0x" + "22" * 20
# Balances by block; the index is the block's number.
History = list[int]


def with_balances(histories: dict[str, History]) -> ScriptedNode:
    node = ScriptedNode()
    node.handlers["eth_getBalance"] = lambda params: hex(histories[params[0]][int(params[1], 16)])
    return node


def whole(wallet: str, history: History) -> BalanceRange:
    return BalanceRange(wallet, 0, len(history) - 1, history[0], history[-1])


def rows(frame: pl.DataFrame) -> list[tuple[str, int, int]]:
    assert frame.schema == {"holder_address": pl.String, "block_number": pl.Int64, "quantity_raw": pl.String}
    return [(wallet, block, int(quantity)) for wallet, block, quantity in frame.iter_rows()]


def differing(interval: BalanceRange, read: list[tuple[str, int, int]]) -> list[tuple[int, int]]:
    """Return neighbouring readings, including the interval's ends, with different balances."""
    known = [(interval.low_block, interval.low_quantity), (interval.high_block, interval.high_quantity)]
    known = sorted({*known, *((block, quantity) for wallet, block, quantity in read if wallet == interval.wallet)})
    return [(low[0], high[0]) for low, high in pairwise(known) if low[1] != high[1]]


def history_of(length: int, changes: dict[int, int]) -> History:
    quantity, history = 7, []
    for block in range(length):
        quantity += changes.get(block, 0)
        history.append(quantity)
    return history


HISTORIES = st.integers(2, 200).flatmap(
    lambda length: st.dictionaries(st.integers(1, length - 1), st.integers(1, 9), max_size=6).map(
        lambda changes: history_of(length, changes)
    )
)


@settings(max_examples=60)
@given(first=HISTORIES, second=HISTORIES, most_reads=st.one_of(st.integers(0, 60), st.just(10_000)))
def test_changes_equal_those_of_a_scan_of_every_block(first: History, second: History, most_reads: int) -> None:
    histories = {WALLET: first, OTHER: second}
    intervals = [whole(wallet, history) for wallet, history in histories.items()]
    with with_balances(histories) as node:
        client = RpcClient("testnet", [node.url], EVM)
        read = rows(find_balance_changes(client, intervals, most_reads))
        client.close()
        asked = [params for method, params in node.calls if method == "eth_getBalance"]
    assert len(asked) <= most_reads
    assert len({tuple(params) for params in asked}) == len(asked)
    assert all(histories[wallet][block] == quantity for wallet, block, quantity in read)
    for interval, history in zip(intervals, (first, second), strict=True):
        # These balances only grow, so no change cancels another.
        changed = [block for block in range(1, len(history)) if history[block] != history[block - 1]]
        found = differing(interval, read)
        assert all(any(low < block <= high for low, high in found) for block in changed)
        if most_reads == 10_000:
            assert found == [(block - 1, block) for block in changed]
            ends = {interval.low_block, interval.high_block}
            assert [block for wallet, block, _ in read if wallet == interval.wallet] == sorted(
                {near for block in changed for near in (block - 1, block)} - ends
            )


def test_levels_are_read_together(make_client: MakeClient) -> None:
    histories = {f"0x{number:040x}": history_of(4_097, {number: 1}) for number in range(1, 51)}
    with with_balances(histories) as node:
        intervals = [whole(wallet, history) for wallet, history in histories.items()]
        read = rows(find_balance_changes(make_client(node), intervals, 10_000))
        assert node.requests == 12
        assert len(read) == 99
        # One change each: its block and the previous one, except for the given block 0.
        assert read[0] == ("0x" + f"{1:040x}", 1, 8)
        assert find_balance_changes(make_client(node), [], 100).is_empty()
        assert find_balance_changes(make_client(node), intervals, 0).is_empty()
        assert node.requests == 12


def test_changes_that_cancel_out_cost_no_readings(make_client: MakeClient) -> None:
    with with_balances({WALLET: history_of(100, {40: 3, 60: -3})}) as node:
        assert find_balance_changes(make_client(node), [BalanceRange(WALLET, 0, 99, 7, 7)], 100).is_empty()
        assert node.requests == 0
        read = rows(find_balance_changes(make_client(node), [BalanceRange(WALLET, 0, 50, 7, 10)], 100))
        assert read == [(WALLET, 39, 7), (WALLET, 40, 10)]


def pruned_before(block: int, handler: Callable[[list[Any]], Any]) -> Callable[[list[Any]], Any]:
    def answer(params: list[Any]) -> Any:
        if int(params[1], 16) < block:
            raise NodeError(-32000, "missing trie node 12ab (path )")
        return handler(params)

    return answer


def test_pruned_states_leave_a_wide_interval(make_client: MakeClient) -> None:
    history = history_of(129, {10: 1, 100: 1})
    with with_balances({WALLET: history}) as node:
        node.handlers["eth_getBalance"] = pruned_before(50, node.handlers["eth_getBalance"])
        read = rows(find_balance_changes(make_client(node), [whole(WALLET, history)], 1_000))
        assert read == [(WALLET, 64, 8), (WALLET, 99, 8), (WALLET, 100, 9)]
        assert differing(whole(WALLET, history), read) == [(0, 64), (99, 100)]


@pytest.mark.parametrize("answer", [NodeError(-32603, "Internal error"), "many"])
def test_wallet_that_cannot_be_read_leaves_its_own_interval_wide(make_client: MakeClient, answer: Any) -> None:
    histories = {WALLET: history_of(100, {40: 1}), OTHER: history_of(100, {60: 1})}
    with with_balances(histories) as node:
        truly = node.handlers["eth_getBalance"]

        def spoilt(params: list[Any]) -> Any:
            if params[0] != WALLET:
                return truly(params)
            if isinstance(answer, NodeError):
                raise answer
            return answer

        node.handlers["eth_getBalance"] = spoilt
        ranges = [whole(wallet, history) for wallet, history in histories.items()]
        assert rows(find_balance_changes(make_client(node), ranges, 1_000)) == [(OTHER, 59, 7), (OTHER, 60, 8)]


# Creation


def test_the_first_block_with_code(make_client: MakeClient) -> None:
    with ScriptedNode() as node:
        client = make_client(node)
        for head, created in (
            (0, 0),
            (1, 1),
            (1, 0),
            (1_000, 999),
            (1_000, 1_000),
            (1_000, 1),
            (20_000_000, 7_654_321),
        ):
            node.handlers["eth_getCode"] = lambda params, at=created: "0x" if int(params[1], 16) < at else "0x60"
            assert find_creation_block(client, WALLET, head) == created
        node.requests = 0
        assert find_creation_block(client, WALLET, 5_000) is None
        assert node.requests == 1


def test_recreated_contract_gives_one_of_its_creations(make_client: MakeClient) -> None:
    with ScriptedNode() as node:
        lives = [range(10, 40), range(70, 1_000)]
        node.handlers["eth_getCode"] = lambda params: "0x60" if any(int(params[1], 16) in x for x in lives) else "0x"
        assert find_creation_block(make_client(node), WALLET, 100) in (10, 70)


def test_creation_needs_an_archive(make_client: MakeClient) -> None:
    with ScriptedNode() as node:
        node.handlers["eth_getCode"] = pruned_before(90, lambda _: "0x60")
        with pytest.raises(StateUnavailable) as caught:
            find_creation_block(make_client(node), WALLET, 100)
        assert caught.value.from_block == 49
        node.handlers["eth_getCode"] = lambda _: "code"
        with pytest.raises(MalformedAnswer):
            find_creation_block(make_client(node), WALLET, 100)
