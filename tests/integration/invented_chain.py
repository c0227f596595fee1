"""A chain that a node makes up after its true head: linked blocks, with transfers in some of them."""

from typing import Any

from tests.chain.fault_proxy import LieFault
from tests.chain.node import AnvilNode
from tests.chain.scripted_node import transfer_log
from tests.chain.world import Token

_NO_LOGS, _ANY_LOGS = "0x" + "00" * 256, "0x" + "ff" * 256


class InventedChain:
    """Invented blocks after the current head.

    Args:
        node: the true node.
        length: number of invented blocks.
        token: a token with one invented transfer in every tenth block.
        is_final: whether the invented head is also final.
    """

    def __init__(self, node: AnvilNode, length: int, token: Token, *, is_final: bool = False) -> None:
        self.node = node
        self.true_head = node.rpc("eth_getBlockByNumber", ["latest", False])
        self.first = int(self.true_head["number"], 16) + 1
        self.head = self.first + length - 1
        self.is_final = is_final
        self.logs = [
            transfer_log(number, 0, 7, token=token.address.lower(), blockHash=self._hash(number))
            for number in range(self.first, self.head + 1, 10)
        ]

    def faults(self) -> list[LieFault]:
        """Faults for the proxy before the node; they stay the same when the node makes blocks."""
        return [
            LieFault(methods=["eth_getBlockByNumber"], tell=self._block),
            LieFault(methods=["eth_getLogs"], tell=self._logs),
            *(LieFault(methods=[method], tell=self._state(method)) for method in ("eth_call", "eth_getCode")),
        ]

    def _hash(self, number: int) -> str:
        return f"0x{number:064x}" if number >= self.first else str(self.true_head["hash"])

    def _block(self, params: list[Any], block: Any) -> Any:
        if params[0] == "finalized":
            return self._invented(self.head) if self.is_final else block
        number = self.head if params[0] == "latest" else int(params[0], 16)
        return block if number < self.first or number > self.head else self._invented(number)

    def _invented(self, number: int) -> dict[str, Any]:
        has_logs = (number - self.first) % 10 == 0
        return self.true_head | {
            "number": hex(number),
            "hash": self._hash(number),
            "parentHash": self._hash(number - 1),
            "logsBloom": _ANY_LOGS if has_logs else _NO_LOGS,
            "transactions": [],
        }

    def _logs(self, params: list[Any], logs: Any) -> Any:
        first, last = (int(params[0][key], 16) for key in ("fromBlock", "toBlock"))
        return (logs or []) + [log for log in self.logs if first <= int(log["blockNumber"], 16) <= last]

    def _state(self, method: str) -> Any:
        def tell(params: list[Any], result: Any) -> Any:
            if result is not None:
                return result
            return self.node.rpc(method, [*params[:-1], self.true_head["number"]])

        return tell
