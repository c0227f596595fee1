"""Rows proven by their block: an honest node proves the collected rows, and a false answer proves nothing."""

from collections.abc import Callable, Iterator
from contextlib import closing
from typing import Any, NamedTuple

import polars as pl
import pytest
from polars.testing import assert_frame_equal

from control.ranges import BlockRange
from pipelines.extract.errors import NotProvable
from pipelines.extract.evm.dialect import EVM
from pipelines.extract.evm.probe import probe
from pipelines.extract.evm.proofs import prove_transfers
from pipelines.extract.family import PROVEN_BLOCKS
from pipelines.extract.jsonrpc.client import RpcClient
from pipelines.rows import Segment
from tests.chain.conftest import GENESIS_TIME
from tests.chain.fault_proxy import FaultProxy, LieFault, RpcFault
from tests.chain.mainnet import FOLDER, listed_transfers
from tests.chain.node import AnvilNode
from tests.chain.replay_node import ReplayNode
from tests.chain.world import Token, World

Tell = Callable[[list[Any], Any], Any]


class Traffic(NamedTuple):
    """A chain with transfers of a token in some of its blocks, and the proven rows of all of them."""

    node: AnvilNode
    token: Token
    segment: Segment
    hashes: dict[int, str]
    moving: int
    """A block with transfers."""
    honest: pl.DataFrame


@pytest.fixture(scope="module")
def traffic() -> Iterator[Traffic]:
    with AnvilNode(genesis_time=GENESIS_TIME) as node:
        world = World(node, wallet_count=4, gas_price=10**9)
        token = world.deploy_token("GOLD", 18)
        first = node.head()
        world.distribute(token, 10**20)
        for amount in range(1, 4):
            world.transfer(token, world.wallets[0], world.wallets[1], amount)
            world.transfer(token, world.wallets[1], world.wallets[2], amount)
            world.mine()
            world.mine()
        numbers = range(first, node.head() + 1)
        hashes = {number: node.rpc("eth_getBlockByNumber", [hex(number), False])["hash"] for number in numbers}
        segment = Segment("token", BlockRange(numbers[0], numbers[-1]), (token.address,))
        with closing(RpcClient("local", [node.url], EVM)) as client:
            honest = prove_transfers(client, segment, hashes)
        yield Traffic(node, token, segment, hashes, honest["block_number"][-1], honest)


@pytest.fixture
def proxy(traffic: Traffic) -> Iterator[FaultProxy]:
    with FaultProxy(traffic.node.url) as running:
        yield running


@pytest.fixture
def client(proxy: FaultProxy) -> Iterator[RpcClient]:
    with closing(RpcClient("local", [proxy.url], EVM)) as opened:
        yield opened


def test_rows_are_the_logs_of_the_node(traffic: Traffic) -> None:
    first, last = traffic.segment.covered
    asked = {"fromBlock": hex(first), "toBlock": hex(last), "address": traffic.token.address}
    logs = traffic.node.rpc("eth_getLogs", [asked])
    assert len(logs) > 6
    columns = ("block_number", "block_hash", "log_index", "transaction_hash", "amount_raw")
    assert traffic.honest.select(columns).rows() == [
        (
            int(log["blockNumber"], 16),
            log["blockHash"],
            int(log["logIndex"], 16),
            log["transactionHash"],
            str(int(log["data"], 16)),
        )
        for log in logs
    ]


def changed_log(name: str, value: Any) -> Tell:
    """The last log of each block that has any, with another value."""

    def tell(params: list[Any], receipts: Any) -> Any:
        for receipt in receipts[::-1]:
            if receipt["logs"]:
                receipt["logs"][-1][name] = value
                break
        return receipts

    return tell


def without_a_log(params: list[Any], receipts: Any) -> Any:
    receipts[-1]["logs"] = receipts[-1]["logs"][:-1]
    return receipts


def with_a_log(params: list[Any], receipts: Any) -> Any:
    logs = receipts[-1]["logs"]
    logs += [log | {"logIndex": hex(int(log["logIndex"], 16) + 1)} for log in logs[-1:]]
    return receipts


def failed(params: list[Any], receipts: Any) -> Any:
    return [*receipts[:-1], receipts[-1] | {"status": "0x0"}]


def of_another_transaction(params: list[Any], receipts: Any) -> Any:
    return [*receipts[:-1], receipts[-1] | {"transactionHash": "0x" + "ab" * 32}]


RECEIPT_LIES: dict[str, tuple[Tell, str, str]] = {
    "log removed": (without_a_log, "root", "root"),
    "log added": (with_a_log, "root", "root"),
    "amount changed": (changed_log("data", "0x" + "00" * 31 + "07"), "root", "root"),
    "token changed": (changed_log("address", "0x" + "ab" * 20), "root", "root"),
    "topics changed": (changed_log("topics", ["0x" + "ab" * 32]), "root", "root"),
    "status flipped": (failed, "root", "root"),
    "receipt left out": (lambda params, receipts: receipts[:-1], "root", "root"),
    "no receipts": (lambda params, receipts: None, "missing", "no receipts"),
    "not receipts": (lambda params, receipts: [{"logs": 5}], "form", "array"),
    "too many topics": (changed_log("topics", ["0x" + "ab" * 32] * 5), "form", "length"),
    "another transaction": (of_another_transaction, "form", "other transactions"),
    "another place": (changed_log("logIndex", "0x63"), "form", "numbered"),
}


@pytest.mark.proof("receipts that do not match their block prove nothing")
@pytest.mark.parametrize("lie", RECEIPT_LIES)
def test_false_receipts_prove_nothing(lie: str, traffic: Traffic, proxy: FaultProxy, client: RpcClient) -> None:
    tell, reason, words = RECEIPT_LIES[lie]
    proxy.inject(LieFault(methods=["eth_getBlockReceipts"], tell=of_block(traffic.moving, tell)))
    check_refused(client, traffic, reason, words)


def of_block(number: int, tell: Tell) -> Tell:
    """Restrict a lie to one block."""
    return lambda params, answer: tell(params, answer) if params[0] == hex(number) else answer


def check_refused(client: RpcClient, traffic: Traffic, reason: str, words: str) -> None:
    with pytest.raises(NotProvable, match=words) as caught:
        prove_transfers(client, traffic.segment, traffic.hashes)
    assert (caught.value.reason, caught.value.from_block, caught.value.to_block) == (
        reason,
        traffic.moving,
        traffic.moving,
    )


HEADER_LIES: dict[str, tuple[Tell, str, str]] = {
    "root changed": (lambda params, block: block | {"receiptsRoot": "0x" + "ab" * 32}, "hash", "has the hash"),
    "bloom emptied": (lambda params, block: block | {"logsBloom": "0x" + "00" * 256}, "hash", "has the hash"),
    "field added": (lambda params, block: block | {"requestsHash": "0x" + "ab" * 32}, "hash", "has the hash"),
    "field missing": (
        lambda params, block: {name: value for name, value in block.items() if name != "mixHash"},
        "form",
        "mixHash",
    ),
    "transactions hidden": (lambda params, block: block | {"transactions": []}, "root", "root"),
    "no block": (lambda params, block: None, "missing", "no such block"),
}


@pytest.mark.parametrize("lie", HEADER_LIES)
def test_false_headers_prove_nothing(lie: str, traffic: Traffic, proxy: FaultProxy, client: RpcClient) -> None:
    tell, reason, words = HEADER_LIES[lie]
    proxy.inject(LieFault(methods=["eth_getBlockByNumber"], tell=of_block(traffic.moving, tell)))
    check_refused(client, traffic, reason, words)


def test_receipts_are_read_one_by_one_if_a_node_has_no_other_call(
    traffic: Traffic, proxy: FaultProxy, client: RpcClient
) -> None:
    proxy.inject(RpcFault(methods=["eth_getBlockReceipts"], code=-32601, message="the method does not exist"))
    assert_frame_equal(prove_transfers(client, traffic.segment, traffic.hashes), traffic.honest)
    block = traffic.node.rpc("eth_getBlockByNumber", [hex(traffic.moving), False])
    last = block["transactions"][-1]
    proxy.inject(
        LieFault(
            methods=["eth_getTransactionReceipt"],
            tell=lambda params, receipt: None if params[0] == last else receipt,
        )
    )
    check_refused(client, traffic, "missing", last)
    proxy.clear()
    pruned = {"code": 4444, "message": "pruned history unavailable"}
    proxy.inject(RpcFault(methods=["eth_getBlockReceipts", "eth_getTransactionReceipt"], **pruned))
    with pytest.raises(NotProvable, match="lacks the state or history") as caught:
        prove_transfers(client, traffic.segment, traffic.hashes)
    assert caught.value.reason == "missing"


def test_a_proof_takes_few_blocks(traffic: Traffic, client: RpcClient) -> None:
    segment = traffic.segment._replace(covered=BlockRange(0, PROVEN_BLOCKS))
    with pytest.raises(ValueError, match="101 blocks in one proof: at most 100"):
        prove_transfers(client, segment, {})


@pytest.mark.parametrize(
    ("tell", "expected"),
    [
        (lambda params, block: block, True),
        (of_block(1, lambda params, block: None), True),
        (of_block(1, lambda params, block: block | {"extraData": "0x07"}), False),
        (of_block(1, lambda params, block: {"number": "0x1"}), False),
        (lambda params, block: block | {"extraData": "0x07"} if int(params[0], 16) > 4 else block, False),
        (lambda params, block: None if int(params[0], 16) > 4 else block, False),
    ],
    ids=["honest", "old header pruned", "old header differs", "old header of another form", "head differs", "no head"],
)
def test_the_probe_recomputes_new_and_old_headers(
    tell: Tell, expected: bool, proxy: FaultProxy, client: RpcClient
) -> None:
    proxy.inject(LieFault(methods=["eth_getBlockByNumber"], tell=tell))
    assert probe(client, 31337, None).recomputes_headers is expected


def test_transfers_of_real_blocks_are_proven() -> None:
    with ReplayNode(FOLDER) as node, closing(RpcClient("mainnet", [node.url], EVM)) as client:
        for number in (1_000_000, 4_369_999, 20_000_000):
            expected = [row for row in listed_transfers() if row[0] == number]
            tokens = tuple({row[3] for row in expected})
            segment = Segment("token", BlockRange(number, number), tokens)
            hashes = {number: node.block_hash(number)}
            rows = prove_transfers(client, segment, hashes)
            columns = ("log_index", "transaction_hash", "token_address", "from_address", "to_address", "amount_raw")
            assert rows.select(columns).rows() == [(*row[1:6], str(row[6])) for row in expected]
            for wallet in {row[4] for row in expected[:5]}:
                of_wallet = prove_transfers(client, Segment("wallet", segment.covered, (wallet,)), hashes)
                indexes = [row[1] for row in expected if wallet in row[4:6]]
                assert of_wallet["log_index"].to_list() == indexes
