"""Bloom filters of blocks, and a second request for blocks that seem empty."""

from collections.abc import Callable
from typing import Any

import polars as pl
import pytest
from eth_utils.crypto import keccak
from hypothesis import given
from hypothesis import strategies as st

from pipelines.extract.errors import ChainReorganised, MalformedAnswer, StateUnavailable
from pipelines.extract.evm.blooms import confirm_empty_blocks, may_contain_transfers
from pipelines.extract.evm.logs import TransferFilter, fetch_transfers, split_filter
from tests.chain.scripted_node import NodeError, ScriptedNode, block_hash, transfer_log
from tests.unit.extract.conftest import MakeClient

TOKEN, OTHER = "0x" + "aa" * 20, "0x" + "bb" * 20
ALICE, BOB, CAROL = ("0x" + digits * 20 for digits in ("01", "02", "03"))
ADDRESSES = st.sampled_from([f"0x{number:040x}" for number in range(1, 9)])


def bloom_of(logs: list[dict[str, Any]]) -> str:
    """Build a bloom like the yellow paper: 2,048 bits, with bit 0 last."""
    bits = ["0"] * 2_048
    for log in logs:
        for item in (log["address"], *log["topics"]):
            digest = keccak(hexstr=item).hex()
            for at in (0, 4, 8):
                bits[2_047 - int(digest[at : at + 4], 16) % 2_048] = "1"
    return f"0x{int(''.join(bits), 2):0512x}"


@given(st.lists(st.tuples(ADDRESSES, ADDRESSES, ADDRESSES), max_size=3), ADDRESSES, ADDRESSES, ADDRESSES)
def test_existing_transfers_match_the_bloom(
    transfers: list[tuple[str, str, str]], token: str, sender: str, recipient: str
) -> None:
    logs = [transfer_log(1, 0, 5, token=token, sender=sender, recipient=to) for token, sender, to in transfers]
    bloom = bloom_of(logs)
    for chosen in (
        TransferFilter(tokens=frozenset([token])),
        TransferFilter(senders=frozenset([sender, recipient])),
        TransferFilter(recipients=frozenset([recipient])),
        TransferFilter(frozenset([token]), frozenset([sender]), frozenset([recipient])),
        TransferFilter(),
    ):
        is_there = any(
            (chosen.tokens is None or has[0] in chosen.tokens)
            and (chosen.senders is None or has[1] in chosen.senders)
            and (chosen.recipients is None or has[2] in chosen.recipients)
            for has in transfers
        )
        assert may_contain_transfers(bloom, [chosen]) or not is_there


def test_absent_transfers_do_not_match_the_bloom() -> None:
    bloom = bloom_of([transfer_log(1, 0, 5, token=TOKEN, sender=ALICE, recipient=BOB)])
    assert may_contain_transfers(bloom, [TransferFilter(tokens=frozenset([TOKEN]))])
    assert may_contain_transfers(bloom, [TransferFilter(senders=frozenset([OTHER])), TransferFilter()])
    for absent in (
        TransferFilter(tokens=frozenset([OTHER])),
        TransferFilter(senders=frozenset([CAROL])),
        TransferFilter(recipients=frozenset([CAROL])),
        TransferFilter(tokens=frozenset([TOKEN]), recipients=frozenset([CAROL])),
        TransferFilter(tokens=frozenset()),
    ):
        assert not may_contain_transfers(bloom, [absent])
    assert not may_contain_transfers(bloom, [])
    without_topic = bloom_of([{"address": TOKEN, "topics": ["0x" + "0" * 24 + ALICE[2:]]}])
    assert not may_contain_transfers(without_topic, [TransferFilter(tokens=frozenset([TOKEN]))])
    assert not may_contain_transfers("0x" + "0" * 512, [TransferFilter()])


# The second request


LOGS = [
    transfer_log(5, 0, 1, sender=ALICE, recipient=BOB),
    transfer_log(5, 1, 2, sender=BOB, recipient=ALICE),
    transfer_log(7, 0, 3, sender=ALICE, recipient=CAROL),
    transfer_log(7, 4, 4, token=OTHER, sender=ALICE, recipient=ALICE),
    transfer_log(9, 0, 5, token=OTHER, sender=BOB, recipient=CAROL),
]
TOKENS = [TransferFilter(tokens=frozenset([TOKEN]))]
WALLETS = [TransferFilter(senders=frozenset([ALICE])), TransferFilter(recipients=frozenset([ALICE]))]


def chain(lag: Callable[[dict[str, Any]], bool] = lambda _: False) -> ScriptedNode:
    """Return a node with blooms; its log responses lag if `lag` is true for the request."""
    node = ScriptedNode(logs=LOGS, head=10)
    block, logs = node.handlers["eth_getBlockByNumber"], node.handlers["eth_getLogs"]

    def with_bloom(params: list[Any]) -> Any:
        answer = block(params)
        number = int(answer["number"], 16)
        return answer | {"logsBloom": bloom_of([log for log in LOGS if int(log["blockNumber"], 16) == number])}

    def answer_logs(params: list[Any]) -> Any:
        asked = dict(params[0])
        if "blockHash" in asked:
            number = hex(int(asked.pop("blockHash")[2:58], 16))
            return logs([asked | {"fromBlock": number, "toBlock": number}])
        return [] if lag(asked) else logs(params)

    node.handlers |= {"eth_getBlockByNumber": with_bloom, "eth_getLogs": answer_logs}
    return node


def fetch(make_client: MakeClient, node: ScriptedNode, filters: list[TransferFilter]) -> pl.DataFrame:
    return pl.concat([piece.rows for piece in fetch_transfers(make_client(node), filters, 1, 10)])


@pytest.mark.parametrize("filters", [TOKENS, WALLETS])
def test_logs_omitted_by_a_lagging_node_are_found(make_client: MakeClient, filters: list[TransferFilter]) -> None:
    with chain() as node:
        truly = fetch(make_client, node, filters)
    with chain(lambda _: True) as node:
        rows = fetch(make_client, node, filters)
        assert rows.is_empty()
        missing = confirm_empty_blocks(make_client(node), filters, 1, 10, rows)
        assert missing.equals(truly)
        assert missing.schema == truly.schema


def test_each_filter_is_compared_with_its_own_response(make_client: MakeClient) -> None:
    with chain() as node:
        truly = fetch(make_client, node, WALLETS)
    # The senders' response is complete, the recipients' response comes from a lagging node.
    with chain(lambda asked: len(asked["topics"]) == 3) as node:
        rows = fetch(make_client, node, WALLETS)
        assert rows["log_index"].to_list() == [0, 0, 4]
        missing = confirm_empty_blocks(make_client(node), WALLETS, 1, 10, rows)
        assert missing["amount_raw"].to_list() == ["2"]
        assert pl.concat([rows, missing]).sort("block_number", "log_index").equals(truly)


def test_complete_responses_cost_only_headers_and_doubtful_blocks(make_client: MakeClient) -> None:
    with chain() as node:
        rows = fetch(make_client, node, WALLETS)
        node.calls.clear()
        node.requests = 0
        assert confirm_empty_blocks(make_client(node), WALLETS, 1, 10, rows).is_empty()
        assert [method for method, _ in node.calls if method == "eth_getLogs"] == []
        assert node.requests == 1
        assert confirm_empty_blocks(make_client(node), TOKENS, 8, 8, rows.clear()).is_empty()
        assert node.requests == 2
        each = [TransferFilter(tokens=frozenset([token])) for token in (TOKEN, OTHER)]
        assert confirm_empty_blocks(make_client(node), each, 9, 9, rows.clear())["amount_raw"].to_list() == ["5"]
        assert [params[0]["address"] for method, params in node.calls if method == "eth_getLogs"] == [[OTHER]]


def test_false_positive_is_accepted_after_the_second_request(make_client: MakeClient) -> None:
    filters = [TransferFilter(senders=frozenset([CAROL]))]
    with chain() as node:
        rows = fetch(make_client, node, filters)
        assert confirm_empty_blocks(make_client(node), filters, 1, 10, rows).is_empty()
        asked = [params[0]["blockHash"] for method, params in node.calls if "blockHash" in params[0]]
        assert sorted(asked) == [block_hash(7), block_hash(9)]


def test_response_of_a_node_without_the_block_is_not_accepted(make_client: MakeClient) -> None:
    def unknown(_: list[Any]) -> Any:
        raise NodeError(-32000, "unknown block")

    with chain() as node:
        rows = fetch(make_client, node, TOKENS).clear()
        node.handlers["eth_getLogs"] = unknown
        with pytest.raises(StateUnavailable):
            confirm_empty_blocks(make_client(node), TOKENS, 1, 10, rows)
        truly = node.handlers["eth_getBlockByNumber"]
        seen: list[Any] = []

        def moved(params: list[Any]) -> Any:
            seen.append(params)
            return truly(params) | ({"hash": block_hash(5, fork=1)} if len(seen) > 10 else {})

        node.handlers["eth_getBlockByNumber"] = moved
        with pytest.raises(ChainReorganised):
            confirm_empty_blocks(make_client(node), TOKENS, 1, 10, rows)


def test_malformed_answers_are_refused(make_client: MakeClient) -> None:
    with chain() as node:
        rows = fetch(make_client, node, TOKENS).clear()
        node.handlers["eth_getLogs"] = lambda params: [LOGS[0] | {"blockHash": block_hash(5, fork=1)}]
        with pytest.raises(MalformedAnswer, match="another block"):
            confirm_empty_blocks(make_client(node), TOKENS, 5, 5, rows)
        node.handlers["eth_getLogs"] = lambda params: [LOGS[0]]
        with pytest.raises(MalformedAnswer, match="was not requested"):
            confirm_empty_blocks(make_client(node), TOKENS, 7, 7, rows)
        truly = node.handlers["eth_getBlockByNumber"]
        for header in (None, truly(["0x5", False]) | {"logsBloom": "0x12"}):
            node.handlers["eth_getBlockByNumber"] = lambda _, header=header: header
            with pytest.raises(MalformedAnswer):
                confirm_empty_blocks(make_client(node), TOKENS, 5, 5, rows)


def test_parts_of_a_filter_are_equivalent_to_the_filter() -> None:
    wallets = frozenset(f"0x{number:040x}" for number in range(450))
    parts = split_filter(TransferFilter(tokens=frozenset([TOKEN]), senders=wallets))
    assert [len(part.senders or ()) for part in parts] == [200, 200, 50]
    assert frozenset().union(*(part.senders or () for part in parts)) == wallets
    assert {part.tokens for part in parts} == {frozenset([TOKEN])}
    assert split_filter(TransferFilter()) == [TransferFilter()]
    assert split_filter(TransferFilter(tokens=frozenset())) == []
