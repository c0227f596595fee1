"""A node with only a few real mainnet blocks, served over a loopback socket.

It answers from recorded blocks and receipts. Blocks in between are consistent empty headers: hashes and parent hashes
agree, timestamps rise linearly between the real ones. It has no state: it knows no balances, and only answers calls to
contracts with known results.
"""

import bisect
import hashlib
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tests.chain.http_server import LoopbackServer, Reply

# The real first block's time; filler blocks before the first recorded one start there.
_GENESIS_TIME = 1_438_269_973
_BLOCK_SECONDS = 12
_EMPTY_ROOT = "0x56e81f171bcc55a6ff8345e692c0f86e5b48e01b996cadc001622fb5e363b421"
_NO_UNCLES = "0x1dcc4de8dec75d7aab85b567b6ccd41ad312451b948a7413f0a142fd40d49347"

# symbol and decimals of contracts known beyond doubt
_KNOWN_TOKENS = {
    "0xc02aaa39b223fe8d0a0e5c4f27ead9083c756cc2": ("WETH", 18),
    "0xa0b86991c6218b36c1d19d4a2e9eb0ce3606eb48": ("USDC", 6),
    "0xdac17f958d2ee523a2206206994597c13d831ec7": ("USDT", 6),
}
_DECIMALS = "0x313ce567"
_SYMBOL = "0x95d89b41"


class _RpcError(Exception):
    def __init__(self, code: int, message: str) -> None:
        super().__init__(message)
        self.code = code


class ReplayNode(LoopbackServer):
    """Ethereum mainnet (chain id 1) up to the last recorded block or a little further.

    Its newest block is also the safe and the finalized one.

    Args:
        folder: holds blocks.jsonl and receipts.jsonl: answers of eth_getBlockByNumber(n, true) and
            eth_getTransactionReceipt, one per line.
        blocks_after: empty blocks after the last recorded one.
    """

    def __init__(self, folder: Path, blocks_after: int = 0) -> None:
        super().__init__()
        blocks, receipts = (
            [json.loads(line) for line in (folder / name).read_text(encoding="utf-8").splitlines()]
            for name in ("blocks.jsonl", "receipts.jsonl")
        )
        self._blocks = {int(block["number"], 16): block for block in blocks}
        self.numbers = sorted(self._blocks)
        self.head = self.numbers[-1] + blocks_after
        self._numbers_by_hash = {block["hash"]: number for number, block in self._blocks.items()}
        self._receipts = {receipt["transactionHash"]: receipt for receipt in receipts}
        self._transactions = {item["hash"]: item for block in blocks for item in block["transactions"]}
        self._logs: dict[int, list[dict[str, Any]]] = {number: [] for number in self.numbers}
        for receipt in receipts:
            self._logs[int(receipt["blockNumber"], 16)].extend(receipt["logs"])
        self._contracts = {log["address"] for logs in self._logs.values() for log in logs}
        self._contracts.update(receipt["contractAddress"] for receipt in receipts if receipt["contractAddress"])
        self._methods: dict[str, Callable[..., Any]] = {
            "eth_chainId": lambda: "0x1",
            "net_version": lambda: "1",
            "net_listening": lambda: True,
            "web3_clientVersion": lambda: "replay/1",
            "eth_syncing": lambda: False,
            "eth_blockNumber": lambda: hex(self.head),
            "eth_getBlockByNumber": self._block_by_number,
            "eth_getBlockByHash": self._block_by_hash,
            "eth_getTransactionByHash": self._transactions.get,
            "eth_getTransactionReceipt": self._receipts.get,
            "eth_getBlockReceipts": self._block_receipts,
            "eth_getLogs": self._get_logs,
            "eth_getCode": lambda address, *_: "0x00" if address.lower() in self._contracts else "0x",
            "eth_call": _call,
            "eth_getBalance": _no_state,
            "eth_getStorageAt": _no_state,
        }

    def answer(self, body: bytes) -> Reply:
        """Answer one JSON-RPC call or a batch."""
        request = json.loads(body)
        answers = [self._answer_call(call) for call in (request if isinstance(request, list) else [request])]
        return Reply(json.dumps(answers if isinstance(request, list) else answers[0]).encode())

    def block_hash(self, number: int) -> str:
        """Return the hash of any block up to the newest: a real one's, its parent's as it names it, or made up."""
        if number in self._blocks:
            return str(self._blocks[number]["hash"])
        if number + 1 in self._blocks:
            return str(self._blocks[number + 1]["parentHash"])
        return "0x" + hashlib.sha256(f"filler block {number}".encode()).hexdigest()

    def block_time(self, number: int) -> int:
        """Return a block's timestamp, Unix seconds: real, or in a line between those of its real neighbours."""
        if number in self._blocks:
            return int(self._blocks[number]["timestamp"], 16)
        if number > self.numbers[-1]:
            return self.block_time(self.numbers[-1]) + _BLOCK_SECONDS * (number - self.numbers[-1])
        position = bisect.bisect(self.numbers, number)
        low, low_time = (0, _GENESIS_TIME)
        if position:
            low = self.numbers[position - 1]
            low_time = self.block_time(low)
        high = self.numbers[position]
        return low_time + (self.block_time(high) - low_time) * (number - low) // (high - low)

    def _answer_call(self, call: dict[str, Any]) -> dict[str, Any]:
        head = {"jsonrpc": "2.0", "id": call.get("id")}
        method = self._methods.get(call["method"])
        if method is None:
            message = f"the method {call['method']} does not exist/is not available"
            return {**head, "error": {"code": -32601, "message": message}}
        try:
            return {**head, "result": method(*call.get("params", []))}
        except _RpcError as error:
            return {**head, "error": {"code": error.code, "message": str(error)}}

    def _number(self, tag: str) -> int:
        if tag in ("latest", "safe", "finalized", "pending"):
            return self.head
        return 0 if tag == "earliest" else int(tag, 16)

    def _block_by_number(self, tag: str, is_full: bool) -> dict[str, Any] | None:
        number = self._number(tag)
        if number > self.head:
            return None
        if number not in self._blocks:
            return self._filler(number)
        block: dict[str, Any] = self._blocks[number]
        return block if is_full else {**block, "transactions": [item["hash"] for item in block["transactions"]]}

    def _block_by_hash(self, block_hash: str, is_full: bool) -> dict[str, Any] | None:
        number = self._numbers_by_hash.get(block_hash.lower())
        return None if number is None else self._block_by_number(hex(number), is_full)

    def _filler(self, number: int) -> dict[str, Any]:
        return {
            "number": hex(number),
            "hash": self.block_hash(number),
            "parentHash": self.block_hash(number - 1) if number else "0x" + "0" * 64,
            "timestamp": hex(self.block_time(number)),
            "miner": "0x" + "0" * 40,
            "difficulty": "0x0",
            "extraData": "0x",
            "gasLimit": "0x1c9c380",
            "gasUsed": "0x0",
            "logsBloom": "0x" + "0" * 512,
            "mixHash": "0x" + "0" * 64,
            "nonce": "0x0000000000000000",
            "receiptsRoot": _EMPTY_ROOT,
            "sha3Uncles": _NO_UNCLES,
            "size": "0x21c",
            "stateRoot": _EMPTY_ROOT,
            "transactionsRoot": _EMPTY_ROOT,
            "transactions": [],
            "uncles": [],
        }

    def _block_receipts(self, tag: str) -> list[dict[str, Any]] | None:
        block = self._block_by_hash(tag, False) if len(tag) == 66 else self._block_by_number(tag, False)
        return None if block is None else [self._receipts[name] for name in block["transactions"]]

    def _get_logs(self, criteria: dict[str, Any]) -> list[dict[str, Any]]:
        if "blockHash" in criteria:
            number = self._numbers_by_hash.get(criteria["blockHash"].lower())
            numbers = [] if number is None else [number]
        else:
            first, last = (self._number(criteria.get(key, "latest")) for key in ("fromBlock", "toBlock"))
            if first > last:
                raise _RpcError(-32602, "invalid block range params")
            if last > self.head:
                raise _RpcError(-32602, "block range extends beyond current head block")
            numbers = [number for number in self.numbers if first <= number <= last]
        wanted = criteria.get("address")
        addresses = None if not wanted else {one.lower() for one in ([wanted] if isinstance(wanted, str) else wanted)}
        topics = criteria.get("topics", [])
        return [
            log
            for number in numbers
            for log in self._logs[number]
            if (addresses is None or log["address"] in addresses) and _has_topics(log["topics"], topics)
        ]


def _has_topics(topics: list[str], criteria: list[Any]) -> bool:
    """Return whether a log's topics match: each criterion is null (any), one topic, or a list of alternatives."""
    if len(topics) < len(criteria):
        return False
    return all(
        not wanted or topic in {one.lower() for one in ([wanted] if isinstance(wanted, str) else wanted)}
        for topic, wanted in zip(topics, criteria, strict=False)
    )


def _call(request: dict[str, Any], *_: Any) -> str:
    data = request.get("data") or request.get("input") or "0x"
    known = _KNOWN_TOKENS.get(request["to"].lower())
    if known is not None and data == _DECIMALS:
        return "0x" + known[1].to_bytes(32, "big").hex()
    if known is not None and data == _SYMBOL:
        text = known[0].encode()
        return "0x" + ((32).to_bytes(32, "big") + len(text).to_bytes(32, "big") + text.ljust(32, b"\0")).hex()
    raise _RpcError(3, "execution reverted")


def _no_state(*_: Any) -> str:
    raise _RpcError(-32000, "missing trie node (state is not available)")
