"""A JSON-RPC node with a chain and faults scripted by the test, over a real loopback socket.

It is for behaviour of providers that a real node does not show. Behaviour of chains is tested with a real node.
"""

import json
import threading
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, TypeAlias

from tests.chain.http_server import LoopbackServer, Reply

TRANSFER_TOPIC = "0xddf252ad1be2c89b69c2b068fc378daa952ba7f163c4a11628f55a4df523b3ef"

Json: TypeAlias = Any
Handler: TypeAlias = Callable[[list[Json]], Json]
# A request's fault: a different answer, or a change of the true one.
Fault: TypeAlias = Reply | Callable[[Reply], Reply]
# Raises NodeError where a range of logs (first block, last block, number of logs in it) is too wide.
RangeLimit: TypeAlias = Callable[[int, int, int], None]


class NodeError(Exception):
    """A JSON-RPC error, as a node puts it."""

    def __init__(self, code: int, message: str, data: Json = None) -> None:
        super().__init__(message)
        self.error = {"code": code, "message": message, **({} if data is None else {"data": data})}


def block_hash(number: int, fork: int = 0) -> str:
    """The hash of a block of the scripted chain."""
    return f"0x{number:056x}{fork:08x}"


def word(number: int) -> str:
    """32 bytes of hex, without 0x."""
    return f"{number:064x}"


def transfer_log(
    block: int,
    index: int,
    amount: int,
    *,
    token: str = "0x" + "aa" * 20,
    sender: str = "0x" + "01" * 20,
    recipient: str = "0x" + "02" * 20,
    **changes: Json,
) -> dict[str, Json]:
    """An ERC-20 Transfer log as a node answers it."""
    return {
        "address": token,
        "topics": [TRANSFER_TOPIC, "0x" + "0" * 24 + sender[2:], "0x" + "0" * 24 + recipient[2:]],
        "data": "0x" + word(amount),
        "blockNumber": hex(block),
        "blockHash": block_hash(block),
        "transactionHash": f"0x{block:032x}{index:032x}",
        "transactionIndex": hex(index),
        "logIndex": hex(index),
        "removed": False,
        **changes,
    }


class ScriptedNode(LoopbackServer):
    """A chain of blocks 0 to `head`, 12 seconds apart, with the logs and transactions given.

    Attributes:
        handlers: by method; tests add and replace.
        faults: one per coming request, in order; None lets a request through. Batches are one request.
        calls: every (method, params) that arrived, also those that a fault spoilt.
        requests: how many requests arrived.
    """

    def __init__(
        self,
        *,
        head: int = 100,
        logs: Sequence[Mapping[str, Json]] = (),
        transactions: Mapping[int, list[Json]] | None = None,
        receipts: Mapping[str, Json] | None = None,
        range_limit: RangeLimit | None = None,
        batch_limit: int | None = None,
        chain_id: int = 1,
    ) -> None:
        super().__init__()
        self.head = head
        self.logs = logs
        self.transactions = dict(transactions or {})
        self.receipts = dict(receipts or {})
        self.range_limit = range_limit
        self.batch_limit = batch_limit
        self.missing_blocks: set[int] = set()
        self.faults: deque[Fault | None] = deque()
        self.calls: list[tuple[str, list[Json]]] = []
        self.requests = 0
        self.handlers: dict[str, Handler] = {
            "eth_chainId": lambda _: hex(chain_id),
            "eth_blockNumber": lambda _: hex(self.head),
            "eth_getBlockByNumber": self._block,
            "eth_getLogs": self._logs,
            "eth_getTransactionReceipt": lambda params: self.receipts.get(params[0]),
        }
        self._lock = threading.Lock()

    def answer(self, body: bytes) -> Reply:
        """Answer one request, spoilt by the next fault if there is one."""
        asked = json.loads(body)
        with self._lock:
            self.requests += 1
            self.calls += [(call["method"], call["params"]) for call in (asked if isinstance(asked, list) else [asked])]
            fault = self.faults.popleft() if self.faults else None
        if isinstance(fault, Reply):
            return fault
        if isinstance(asked, dict):
            answered: Json = self._answer(asked)
        elif self.batch_limit is not None and len(asked) > self.batch_limit:
            answered = error(-32600, f"Batch of more than {self.batch_limit} requests are not allowed")
        else:
            # Reversed: clients must not rely on the order of a batch's answers.
            answered = [self._answer(call) for call in reversed(asked)]
        reply = Reply(json.dumps(answered).encode())
        return fault(reply) if fault else reply

    def _answer(self, call: dict[str, Json]) -> dict[str, Json]:
        handler = self.handlers.get(call["method"])
        head = {"jsonrpc": "2.0", "id": call["id"]}
        if handler is None:
            return head | {"error": {"code": -32601, "message": "the method does not exist"}}
        try:
            return head | {"result": handler(call["params"])}
        except NodeError as refusal:
            return head | {"error": refusal.error}

    def _block(self, params: list[Json]) -> Json:
        tag, is_full = params
        number = self.head if tag == "latest" else max(self.head - 64, 0) if tag == "finalized" else int(tag, 16)
        if number > self.head or number in self.missing_blocks:
            return None
        transactions = self.transactions.get(number, [])
        return {
            "number": hex(number),
            "hash": block_hash(number),
            "parentHash": block_hash(number - 1) if number else "0x" + "0" * 64,
            "timestamp": hex(1_600_000_000 + 12 * number),
            "transactions": transactions if is_full else [transaction["hash"] for transaction in transactions],
        }

    def _logs(self, params: list[Json]) -> Json:
        asked = params[0]
        first, last = int(asked["fromBlock"], 16), int(asked["toBlock"], 16)
        found = [log for log in self.logs if first <= int(log["blockNumber"], 16) <= last and _matches(log, asked)]
        if self.range_limit is not None:
            self.range_limit(first, last, len(found))
        return found


def _matches(log: Mapping[str, Json], asked: Mapping[str, Json]) -> bool:
    if "address" in asked and log["address"] not in asked["address"]:
        return False
    for position, alternatives in enumerate(asked.get("topics", [])):
        if alternatives is None:
            continue
        wanted = [alternatives] if isinstance(alternatives, str) else alternatives
        if len(log["topics"]) <= position or log["topics"][position] not in wanted:
            return False
    return True


def error(code: int, message: str, data: Json = None) -> dict[str, Json]:
    """A JSON-RPC error that names no call."""
    return {"jsonrpc": "2.0", "id": None, "error": NodeError(code, message, data).error}


def error_inside_200(code: int, message: str) -> Reply:
    """An error about the whole request, with HTTP status 200."""
    return Reply(json.dumps(error(code, message)).encode())


def rate_limited(retry_after: str | None = None) -> Reply:
    """HTTP 429, with or without the header."""
    return Reply(b"slow down", status=429, headers={} if retry_after is None else {"Retry-After": retry_after})


def cut_off(reply: Reply) -> Reply:
    """The connection closes in the middle of the body."""
    return replace(reply, cut_after=len(reply.body) // 2)


def truncated(reply: Reply) -> Reply:
    """Half of the JSON, with a length that agrees: a proxy lost the rest."""
    return replace(reply, body=reply.body[: len(reply.body) // 2])


def slow(seconds: float) -> Callable[[Reply], Reply]:
    """The true answer, late."""
    return lambda reply: replace(reply, delay_seconds=seconds)


def with_ids(change: Callable[[list[Json]], list[Json]]) -> Callable[[Reply], Reply]:
    """Return a fault: true answers with changed ids; `change` gets the reply's ids in order."""

    def spoil(reply: Reply) -> Reply:
        answered = json.loads(reply.body)
        answers = answered if isinstance(answered, list) else [answered]
        changed = change([answer["id"] for answer in answers])
        spoilt = [{**answer, "id": id_} for answer, id_ in zip(answers, changed, strict=False)]
        return replace(reply, body=json.dumps(spoilt if isinstance(answered, list) else spoilt[0]).encode())

    return spoil


def infura(most_logs: int) -> RangeLimit:
    """Limits results; proposes the longest prefix that fits, in message and data."""

    def limit(first: int, last: int, logs: int) -> None:
        if logs > most_logs and first < last:
            fitting = first + (last - first) * most_logs // logs // 2
            message = (
                f"query returned more than {most_logs} results. Try with this block range [{first:#x}, {fitting:#x}]."
            )
            raise NodeError(-32005, message, {"from": hex(first), "to": hex(fitting), "limit": most_logs})

    return limit


def alchemy(most_blocks: int) -> RangeLimit:
    """Limits blocks; proposes a prefix in brackets."""

    def limit(first: int, last: int, logs: int) -> None:
        if last - first + 1 > most_blocks:
            fitting = f"[{first:#x}, {first + most_blocks - 1:#x}]"
            message = (
                f"Under the Free tier plan, you can make eth_getLogs requests with up to a {most_blocks} block range. "
                f"Based on your parameters, this block range should work: {fitting}. Upgrade to PAYG for more."
            )
            raise NodeError(-32600, message)

    return limit


def quicknode(most_blocks: int) -> RangeLimit:
    """Limits blocks and proposes nothing."""

    def limit(first: int, last: int, logs: int) -> None:
        if last - first + 1 > most_blocks:
            raise NodeError(-32614, f"eth_getLogs is limited to a {most_blocks} range")

    return limit


def reth(most_logs: int, *, same_range_back: bool = False) -> RangeLimit:
    """Limits results; proposes a prefix in decimal, or the very range that it refused."""

    def limit(first: int, last: int, logs: int) -> None:
        if logs > most_logs and first < last:
            fitting = last if same_range_back else first + (last - first) // 3
            raise NodeError(-32602, f"query exceeds max results {most_logs}, retry with the range {first}-{fitting}")

    return limit
