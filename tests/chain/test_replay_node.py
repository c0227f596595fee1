"""The replay node: it returns exactly the recorded transfers, and errors for unknown state."""

import json
from collections.abc import Iterator
from typing import Any

import pytest
import urllib3

from tests.chain.mainnet import FOLDER, Transfer, listed_transfers
from tests.chain.replay_node import ReplayNode
from tests.chain.world import TRANSFER_TOPIC

WETH = "0xc02aaa39b223fe8d0a0e5c4f27ead9083c756cc2"


class Client:
    """JSON-RPC calls over one connection."""

    def __init__(self, url: str, pool: urllib3.PoolManager) -> None:
        self.url = url
        self.pool = pool

    def __call__(self, method: str, *params: Any) -> Any:
        answer = self.ask(method, *params)
        assert "error" not in answer, answer
        return answer["result"]

    def ask(self, method: str, *params: Any) -> dict[str, Any]:
        body = {"jsonrpc": "2.0", "id": 1, "method": method, "params": list(params)}
        return dict(self.pool.request("POST", self.url, body=json.dumps(body).encode()).json())


@pytest.fixture(scope="module")
def node() -> Iterator[ReplayNode]:
    with ReplayNode(FOLDER) as running:
        yield running


@pytest.fixture
def rpc(node: ReplayNode) -> Iterator[Client]:
    with urllib3.PoolManager(retries=False, timeout=120) as pool:
        yield Client(node.url, pool)


def transfers(logs: list[dict[str, Any]]) -> list[Transfer]:
    """Those with three topics, in the columns of transfers.csv."""
    return [
        (int(log["blockNumber"], 16), int(log["logIndex"], 16), log["transactionHash"], log["address"],
         "0x" + log["topics"][1][-40:], "0x" + log["topics"][2][-40:], int(log["data"], 16))
        for log in logs
        if len(log["topics"]) == 3
    ]  # fmt: skip


def test_logs_are_exactly_the_listed_transfers(rpc: Client, node: ReplayNode) -> None:
    criteria = {"fromBlock": "0x0", "toBlock": hex(node.numbers[-1]), "topics": [TRANSFER_TOPIC]}
    logs = rpc("eth_getLogs", criteria)
    assert sorted(transfers(logs)) == listed_transfers()
    assert any(len(log["topics"]) == 4 for log in logs)


def test_logs_are_filtered_by_address_topics_and_range(rpc: Client, node: ReplayNode) -> None:
    everything = listed_transfers()
    tokens = sorted({row[3] for row in everything})[:3]
    whole = {"fromBlock": "0x0", "toBlock": "latest"}
    found = transfers(rpc("eth_getLogs", {**whole, "address": tokens, "topics": [[TRANSFER_TOPIC]]}))
    assert sorted(found) == sorted(row for row in everything if row[3] in tokens)
    wallets = sorted({row[5] for row in everything})[:5]
    padded = ["0x" + wallet[2:].rjust(64, "0") for wallet in wallets]
    found = transfers(rpc("eth_getLogs", {**whole, "topics": [TRANSFER_TOPIC, None, padded]}))
    assert sorted(found) == sorted(row for row in everything if row[5] in wallets)
    last = hex(node.numbers[-1])
    found = transfers(rpc("eth_getLogs", {"fromBlock": last, "toBlock": last, "topics": [TRANSFER_TOPIC]}))
    assert sorted(found) == sorted(row for row in everything if row[0] == node.numbers[-1])
    assert rpc.ask("eth_getLogs", {"fromBlock": "0x2", "toBlock": "0x1"})["error"]["code"] == -32602


def test_blocks_are_the_recorded_ones_with_and_without_transactions(rpc: Client, node: ReplayNode) -> None:
    number = node.numbers[0]
    full = rpc("eth_getBlockByNumber", hex(number), True)
    plain = rpc("eth_getBlockByNumber", hex(number), False)
    assert plain["transactions"] == [item["hash"] for item in full["transactions"]]
    assert rpc("eth_getBlockByHash", full["hash"], False) == plain
    receipt = rpc("eth_getTransactionReceipt", plain["transactions"][0])
    assert receipt["blockHash"] == full["hash"]
    for tag in ("latest", "finalized"):
        assert rpc("eth_getBlockByNumber", tag, False)["number"] == hex(node.numbers[-1])
    assert rpc("eth_getBlockByNumber", hex(node.numbers[-1] + 1), False) is None


def test_blocks_in_between_fit_into_one_chain(rpc: Client, node: ReplayNode) -> None:
    around = {number + offset for number in node.numbers for offset in range(-3, 4)}
    chosen = sorted(number for number in {0, 1, 2, 500_000, 7_000_000, *around} if number <= node.numbers[-1])
    blocks = {number: rpc("eth_getBlockByNumber", hex(number), False) for number in chosen}
    times = [int(block["timestamp"], 16) for block in blocks.values()]
    assert times == sorted(set(times))
    for number, block in blocks.items():
        if number - 1 in blocks:
            assert block["parentHash"] == blocks[number - 1]["hash"]


def test_unknown_state_is_an_error(rpc: Client) -> None:
    assert rpc("eth_chainId") == "0x1"
    assert int(rpc("eth_call", {"to": WETH, "data": "0x313ce567"}, "latest"), 16) == 18
    assert bytes.fromhex(rpc("eth_call", {"to": WETH, "data": "0x95d89b41"}, "latest")[130:])[:4] == b"WETH"
    holder = "0x70a08231" + WETH[2:].rjust(64, "0")
    assert rpc.ask("eth_call", {"to": WETH, "data": holder}, "latest")["error"]["message"] == "execution reverted"
    assert "missing trie node" in rpc.ask("eth_getBalance", WETH, "latest")["error"]["message"]
    assert rpc.ask("trace_block", "0x1")["error"]["code"] == -32601
    assert rpc("eth_getCode", WETH, "latest") != "0x"
    assert rpc("eth_getCode", "0x" + "12" * 20, "latest") == "0x"


def test_batches_are_answered_in_one(rpc: Client) -> None:
    body = [{"jsonrpc": "2.0", "id": number, "method": "eth_chainId", "params": []} for number in range(3)]
    answers = rpc.pool.request("POST", rpc.url, body=json.dumps(body).encode()).json()
    assert [(answer["id"], answer["result"]) for answer in answers] == [(0, "0x1"), (1, "0x1"), (2, "0x1")]
