"""Headers, finality, blocks by time and transactions of wallets, from a scripted chain."""

from contextlib import closing
from datetime import UTC, datetime, timedelta
from typing import Any

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pipelines.extract.errors import ChainReorganised, FalseBlockTime, MalformedAnswer
from pipelines.extract.evm.blocks import (
    TRANSACTION_SCHEMA,
    find_first_block_at_or_after,
    read_final_number,
    read_head,
    read_headers,
    read_wallet_transactions,
)
from pipelines.extract.evm.dialect import EVM
from pipelines.extract.jsonrpc.client import RpcClient
from tests.chain.scripted_node import NodeError, ScriptedNode, block_hash
from tests.unit.extract.conftest import MakeClient

GENESIS = datetime.fromtimestamp(1_600_000_000, UTC)
WALLET, OTHER = "0x" + "11" * 20, "0x" + "22" * 20


def test_the_head_is_read(make_client: MakeClient) -> None:
    with ScriptedNode(head=9) as node:
        head = read_head(make_client(node))
        assert (head.number, head.hash, head.parent_hash) == (9, block_hash(9), block_hash(8))
        assert head.time == GENESIS + timedelta(seconds=108)
        assert head.time.tzinfo is UTC
        node.handlers["eth_getBlockByNumber"] = lambda _: None
        with pytest.raises(MalformedAnswer):
            read_head(make_client(node))


@pytest.mark.parametrize("field", ["hash", "parentHash", "number", "timestamp"])
@pytest.mark.parametrize("value", ["0x", "0xzz", "0x" + "f" * 65, "12", 12, None, "0x1\n"])
def test_a_malformed_header_is_refused(make_client: MakeClient, field: str, value: Any) -> None:
    with ScriptedNode() as node:
        truly = node.handlers["eth_getBlockByNumber"]
        node.handlers["eth_getBlockByNumber"] = lambda params: truly(params) | {field: value}
        with pytest.raises(MalformedAnswer):
            read_head(make_client(node))


def test_times_and_numbers_beyond_reason_are_refused(make_client: MakeClient) -> None:
    with ScriptedNode() as node:
        truly = node.handlers["eth_getBlockByNumber"]
        for change in ({"timestamp": "0xffffffffffffffff"}, {"number": "0xffffffffffffffff"}):
            node.handlers["eth_getBlockByNumber"] = lambda params, change=change: truly(params) | change
            with pytest.raises(MalformedAnswer, match="out of bounds"):
                read_head(make_client(node))


def test_finality_comes_from_the_node_or_else_from_depth(make_client: MakeClient) -> None:
    with ScriptedNode(head=100) as node:
        client = make_client(node)
        head = read_head(client)
        assert read_final_number(client, head, 10) == 36
        truly = node.handlers["eth_getBlockByNumber"]

        def unknown(params: list[Any]) -> Any:
            raise NodeError(-39001, "Unknown block")

        for handler in (unknown, lambda params: None):
            node.handlers["eth_getBlockByNumber"] = handler
            assert read_final_number(client, head, 10) == 90
            assert read_final_number(client, head, 100) == 0
            assert read_final_number(client, head, 101) == -1
            assert read_final_number(client, head, 5_000) == -1
        node.handlers["eth_getBlockByNumber"] = lambda params: truly(["0x64", False]) | {"number": "0x70"}
        assert read_final_number(client, head, 10) == 100


def test_each_header_is_returned_once_and_in_order(make_client: MakeClient) -> None:
    with ScriptedNode(head=400) as node:
        client = make_client(node)
        headers = read_headers(client, [7, 3, *range(100, 351), 7])
        assert headers["block_number"].to_list() == [3, 7, *range(100, 351)]
        assert headers.schema == {
            "block_number": pl.Int64,
            "block_hash": pl.String,
            "parent_hash": pl.String,
            "block_time": pl.Datetime("us"),
        }
        assert headers.row(0) == (3, block_hash(3), block_hash(2), datetime(2020, 9, 13, 12, 27, 16))  # noqa: DTZ001
        assert node.requests == 3
        assert read_headers(client, []).schema == headers.schema


def test_a_missing_block_is_named(make_client: MakeClient) -> None:
    with ScriptedNode() as node:
        node.missing_blocks.add(42)
        with pytest.raises(MalformedAnswer, match="block 42 is missing") as caught:
            read_headers(make_client(node), range(100))
        assert caught.value.from_block == 42


def test_other_block_than_requested_is_malformed(make_client: MakeClient) -> None:
    with ScriptedNode() as node:
        truly = node.handlers["eth_getBlockByNumber"]
        node.handlers["eth_getBlockByNumber"] = lambda params: truly(["0x5", False])
        with pytest.raises(MalformedAnswer, match="block 5 instead of block 4"):
            read_headers(make_client(node), [4])


def test_mismatched_parent_hashes_are_a_reorganisation(make_client: MakeClient) -> None:
    with ScriptedNode() as node:
        truly = node.handlers["eth_getBlockByNumber"]

        def forked(params: list[Any]) -> Any:
            block = truly(params)
            return block | {"parentHash": block_hash(9, fork=1)} if params[0] == "0xa" else block

        node.handlers["eth_getBlockByNumber"] = forked
        with pytest.raises(ChainReorganised) as caught:
            read_headers(make_client(node), [8, 9, 10, 11])
        assert caught.value.block_number == 9
        assert read_headers(make_client(node), [8, 10]).height == 2


@settings(max_examples=40)
@given(head=st.integers(0, 300), low=st.integers(0, 320), seconds=st.integers(-50, 3_700))
def test_the_first_block_at_an_instant(head: int, low: int, seconds: int) -> None:
    low = min(low, head)
    instant = GENESIS + timedelta(seconds=seconds)
    with ScriptedNode(head=head) as node:
        client = RpcClient("testnet", [node.url], EVM)
        found = find_first_block_at_or_after(client, instant, read_head(client), low)
        client.close()
    at_or_after = [number for number in range(low, head + 1) if 12 * number >= seconds]
    assert found == (at_or_after[0] if at_or_after else None)


def test_block_at_a_recent_instant_is_found_with_few_calls(make_client: MakeClient) -> None:
    with ScriptedNode(head=10_000_000) as node:
        client = make_client(node)
        head = read_head(client)
        assert find_first_block_at_or_after(client, head.time - timedelta(seconds=60), head) == 9_999_995
        assert node.requests < 8
        node.requests = 0
        assert find_first_block_at_or_after(client, GENESIS + timedelta(seconds=11), head) == 1
        assert node.requests < 50


def transaction(block: int, index: int, sender: str, to: str | None, value: int = 5, **changes: Any) -> dict[str, Any]:
    return {
        "hash": f"0x{block:032x}{index:032x}",
        "transactionIndex": hex(index),
        "from": sender,
        "to": to,
        "value": hex(value),
        "gasPrice": hex(3),
        "input": "0x",
        **changes,
    }


def receipt(block: int, index: int, **changes: Any) -> dict[str, Any]:
    return {
        "transactionHash": f"0x{block:032x}{index:032x}",
        "blockHash": block_hash(block),
        "blockNumber": hex(block),
        "gasUsed": hex(21_000),
        "effectiveGasPrice": hex(7),
        "status": "0x1",
        "contractAddress": None,
        **changes,
    }


def read(client: RpcClient, last: int = 60) -> list[dict[str, Any]]:
    frames = list(read_wallet_transactions(client, 0, last, {WALLET}))
    assert all(not frame.is_empty() and frame.schema == TRANSACTION_SCHEMA for frame in frames)
    return [row for frame in frames for row in frame.iter_rows(named=True)]


def chain(*entries: tuple[dict[str, Any], dict[str, Any] | None]) -> ScriptedNode:
    transactions: dict[int, list[Any]] = {}
    for sent, _ in entries:
        transactions.setdefault(int(sent["hash"][2:34], 16), []).append(sent)
    receipts = {sent["hash"]: received for sent, received in entries if received is not None}
    return ScriptedNode(transactions=transactions, receipts=receipts)


def test_only_transactions_of_the_wallets_are_returned_in_block_order(make_client: MakeClient) -> None:
    with chain(
        (transaction(3, 0, OTHER, OTHER), receipt(3, 0)),
        (transaction(3, 1, WALLET, OTHER, 2**256 - 1), receipt(3, 1, status="0x0")),
        (transaction(25, 0, OTHER, "0x" + "11" * 20, 0), receipt(25, 0)),
        (transaction(25, 1, WALLET, WALLET), receipt(25, 1, contractAddress="0x" + "dd" * 20)),
        (transaction(59, 0, WALLET, None), receipt(59, 0, contractAddress="0x" + "CC" * 20)),
    ) as node:
        client = make_client(node)
        rows = read(client)
        assert [(row["block_number"], row["transaction_index"]) for row in rows] == [(3, 1), (25, 0), (25, 1), (59, 0)]
        assert rows[0] == {
            "block_number": 3,
            "block_hash": block_hash(3),
            "transaction_index": 1,
            "transaction_hash": f"0x{3:032x}{1:032x}",
            "from_address": WALLET,
            "to_address": OTHER,
            "created_address": None,
            "value_raw": str(2**256 - 1),
            "fee_raw": "147000",
            "gas_used": 21_000,
            "is_success": False,
        }
        assert (rows[3]["to_address"], rows[3]["created_address"]) == (None, "0x" + "cc" * 20)
        assert rows[1]["is_success"] is True
        assert rows[2]["created_address"] is None
        asked = [params[0] for method, params in node.calls if method == "eth_getTransactionReceipt"]
        assert len(asked) == 4
        assert list(read_wallet_transactions(client, 0, 60, [])) == []


# Gas used, in receipts: 21,000 at 7, so 147,000.
ISTHMUS, JOVIAN, LATER = ("0x" + version + "000000fa00000006" for version in ("00", "01", "02"))
OPERATOR = {"operatorFeeScalar": "0x5f5", "operatorFeeConstant": "0x8"}
FOOTPRINT = {"blobGasUsed": "0x9c40", "daFootprintGasScalar": "0x190"}


@pytest.mark.parametrize(
    ("sent", "received", "extra_data", "fee"),
    [
        ({}, {}, None, "147000"),
        ({}, {"effectiveGasPrice": "0x0"}, None, "0"),
        ({}, {"effectiveGasPrice": hex(2**200)}, None, str(21_000 * 2**200)),
        # Without an effective price, the transaction's own price applies if it is paid in full.
        ({}, {"effectiveGasPrice": None}, None, "63000"),
        ({"type": "0x1"}, {"effectiveGasPrice": None}, None, "63000"),
        ({"type": "0x2"}, {"effectiveGasPrice": None}, None, None),
        ({"gasPrice": None}, {"effectiveGasPrice": None}, None, None),
        # Blobs
        ({"type": "0x3"}, {"blobGasUsed": "0x20000", "blobGasPrice": "0x2"}, None, str(147_000 + 2 * 131_072)),
        ({"type": "0x3"}, {"blobGasUsed": "0x20000"}, None, None),
        ({"type": "0x3"}, {"blobGasPrice": "0x2"}, None, None),
        ({"type": "0x2"}, {"blobGasUsed": "0x20000", "blobGasPrice": "0x2"}, None, "147000"),
        ({}, {"blobGasUsed": "0x0"}, None, "147000"),
        # OP-stack chains
        ({}, {"l1Fee": "0x64"}, None, "147100"),
        ({"type": "0x2"}, {"l1Fee": "0x64", **FOOTPRINT}, JOVIAN, "147100"),
        ({"type": "0x2"}, {"l1Fee": "0x64", "blobGasUsed": "0x9c40"}, JOVIAN, "147100"),
        ({}, {"l1Fee": "0x64", **OPERATOR}, ISTHMUS, str(147_000 + 100 + 21_000 * 1525 // 10**6 + 8)),
        ({}, {"l1Fee": "0x64", **OPERATOR}, JOVIAN, str(147_000 + 100 + 21_000 * 1525 * 100 + 8)),
        ({}, {"l1Fee": "0x64", **OPERATOR, **FOOTPRINT}, JOVIAN, str(147_000 + 100 + 21_000 * 1525 * 100 + 8)),
        ({}, {**OPERATOR, **FOOTPRINT}, None, str(147_000 + 21_000 * 1525 * 100 + 8)),
        ({}, {**OPERATOR, **FOOTPRINT}, "0x", str(147_000 + 21_000 * 1525 * 100 + 8)),
        ({}, {"operatorFeeScalar": "0x0", "operatorFeeConstant": "0x8"}, ISTHMUS, "147008"),
        ({}, {"operatorFeeScalar": "0x1", "operatorFeeConstant": "0x0"}, ISTHMUS, "147000"),
        # of an unknown fork, or with block and receipt in disagreement
        ({}, OPERATOR, None, None),
        ({}, OPERATOR, "0x", None),
        ({}, OPERATOR, LATER, None),
        ({}, {**OPERATOR, **FOOTPRINT}, LATER, None),
        ({}, {**OPERATOR, **FOOTPRINT}, ISTHMUS, None),
        ({}, {"operatorFeeScalar": "0x1"}, ISTHMUS, None),
        ({}, {"operatorFeeConstant": "0x1"}, JOVIAN, None),
        ({}, {"operatorFeeScalar": "0x0", "operatorFeeConstant": "0x0"}, LATER, "147000"),
        ({}, {"operatorFeeScalar": "0x0", "operatorFeeConstant": "0x0"}, None, "147000"),
        ({"type": "0x7e"}, {"l1Fee": "0x64", **OPERATOR}, JOVIAN, "0"),
        ({"type": "0x7e", "gasPrice": None}, {"effectiveGasPrice": None}, None, "0"),
        # Arbitrum: used gas includes the cost of data
        ({"type": "0x2"}, {"gasUsedForL1": "0x1388", "l1BlockNumber": "0x1"}, None, "147000"),
        ({"type": "0x64"}, {}, None, "0"),
        ({"type": "0x65"}, {}, None, "147000"),
        ({"type": "0x66"}, {}, None, "147000"),
        ({"type": "0x68"}, {}, None, "0"),
        ({"type": "0x69"}, {}, None, None),
        ({"type": "0x6a"}, {"gasUsed": "0x0"}, None, "0"),
        ({"type": "0x78"}, {"effectiveGasPrice": None}, None, None),
        # Polygon's state sync, before and after it has a type
        ({"type": "0x0", "gasPrice": "0x0"}, {"gasUsed": "0x0", "effectiveGasPrice": "0x0"}, None, "0"),
        ({"type": "0x7f", "gasPrice": None}, {"gasUsed": "0x0", "effectiveGasPrice": None}, None, "0"),
        # BNB Smart Chain's system transactions
        ({"gasPrice": "0x0"}, {"effectiveGasPrice": "0x0"}, "0x" + "d8" * 120, "0"),
    ],
)
def test_fees_are_whole_or_unknown(
    make_client: MakeClient, sent: dict[str, Any], received: dict[str, Any], extra_data: str | None, fee: str | None
) -> None:
    with chain((transaction(3, 0, WALLET, OTHER, **sent), receipt(3, 0, **received))) as node:
        truly = node.handlers["eth_getBlockByNumber"]
        node.handlers["eth_getBlockByNumber"] = lambda params: truly(params) | {"extraData": extra_data}
        (row,) = read(make_client(node))
        assert row["fee_raw"] == fee


def test_receipt_before_byzantium_has_no_status(make_client: MakeClient) -> None:
    old = receipt(3, 0, root="0x" + "00" * 32)
    del old["status"]
    with chain((transaction(3, 0, WALLET, OTHER), old)) as node:
        (row,) = read(make_client(node))
        assert row["is_success"] is None


def test_a_receipt_of_another_block_is_a_reorganisation(make_client: MakeClient) -> None:
    moved = receipt(3, 0, blockHash=block_hash(4))
    with chain((transaction(3, 0, WALLET, OTHER), moved)) as node, pytest.raises(ChainReorganised) as caught:
        read(make_client(node))
    assert caught.value.block_number == 3


def test_receipt_that_is_missing_by_hash_is_read_by_its_block(make_client: MakeClient) -> None:
    given = [receipt(3, 0), receipt(3, 1)]
    with chain((transaction(3, 0, WALLET, OTHER), None), (transaction(3, 1, WALLET, OTHER), None)) as node:
        node.handlers["eth_getBlockReceipts"] = lambda params: given if params == ["0x3"] else None
        assert [row["transaction_index"] for row in read(make_client(node))] == [0, 1]
        assert [method for method, _ in node.calls].count("eth_getBlockReceipts") == 1


def test_a_missing_receipt_is_named(make_client: MakeClient) -> None:
    with chain((transaction(3, 0, WALLET, OTHER), None)) as node:
        with pytest.raises(MalformedAnswer, match=r"no receipt of transaction 0x0+3"):
            read(make_client(node))
        truly = node.handlers["eth_getBlockByNumber"]

        def forked(params: list[Any]) -> Any:
            block = truly(params)
            return block if params[1] else block | {"hash": block_hash(3, fork=1)}

        node.handlers["eth_getBlockByNumber"] = forked
        with pytest.raises(ChainReorganised):
            read(make_client(node))


def test_the_receipt_of_another_transaction_is_malformed(make_client: MakeClient) -> None:
    with (
        chain((transaction(3, 0, WALLET, OTHER), receipt(3, 1))) as node,
        pytest.raises(MalformedAnswer, match="another transaction"),
    ):
        read(make_client(node))


def test_links_are_checked_across_requests(make_client: MakeClient) -> None:
    with ScriptedNode() as node:
        truly = node.handlers["eth_getBlockByNumber"]

        def forked(params: list[Any]) -> Any:
            block = truly(params)
            return block | {"parentHash": block_hash(9, fork=1)} if params[0] == "0xa" else block

        node.handlers["eth_getBlockByNumber"] = forked
        with pytest.raises(ChainReorganised) as caught:
            read(make_client(node))
        assert caught.value.block_number == 9


@given(st.lists(st.integers(-20, 20), min_size=2, max_size=12))
@settings(max_examples=40)
def test_headers_are_accepted_only_with_nondecreasing_times(steps: list[int]) -> None:
    """Chains with several blocks a second have equal times."""
    times = [1_600_000_000 + sum(steps[: at + 1]) for at in range(len(steps))]
    with ScriptedNode(head=len(times) - 1) as node, closing(RpcClient("scripted", [node.url], EVM)) as client:
        truly = node.handlers["eth_getBlockByNumber"]
        node.handlers["eth_getBlockByNumber"] = lambda params: (
            truly(params) | {"timestamp": hex(times[int(params[0], 16)])}
        )
        if times == sorted(times):
            assert read_headers(client, range(len(times))).height == len(times)
        else:
            with pytest.raises(FalseBlockTime, match="one of the two times is false"):
                read_headers(client, range(len(times)))
