"""Read every bomb of a size in megabytes in a separate process, and print the peak memory of each in MiB."""

import gc
import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from pipelines.extract.errors import ExtractError
from pipelines.extract.evm.blocks import read_head, read_headers
from pipelines.extract.evm.dialect import EVM
from pipelines.extract.evm.logs import TransferFilter, fetch_transfers
from pipelines.extract.evm.probe import probe
from pipelines.extract.evm.state import BlockPoint, Read, read_state
from pipelines.extract.evm.traces import read_internal_transfers
from pipelines.extract.jsonrpc.client import RpcClient
from tests.chain.hostile_answers import BOMBS
from tests.unit.extract.test_hostile_node import HostileNode

_ADDRESS = "0x" + "aa" * 20
_QUESTIONS: dict[str, Callable[[RpcClient], Any]] = {
    "probe": lambda client: probe(client, 1, _ADDRESS),
    "head": read_head,
    "headers": lambda client: read_headers(client, range(10)),
    "logs": lambda client: list(fetch_transfers(client, TransferFilter(), 1, 1)),
    "balances": lambda client: read_state(client, [Read(_ADDRESS, "0x00")] * 9, BlockPoint(1, None), None),
    "multicall": lambda client: read_state(client, [Read(_ADDRESS, "0x00")] * 9, BlockPoint(1, None), _ADDRESS),
    "traces": lambda client: list(read_internal_transfers(client, 1, 2, {_ADDRESS}, "trace_block")),
}


def _memory(name: str) -> int:
    """Return a value of the process's status in MiB."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith(f"{name}:"):
            return int(line.split()[1]) // 1024
    raise LookupError(name)


def meet(mode: str, size: int) -> dict[str, Any]:
    """Send every kind of request to a node that answers each one with a bomb."""
    errors: dict[str, None] = {}
    answer = BOMBS[mode](size * 1_000_000)
    answer([{"id": 1}])
    with HostileNode(answer) as node:
        gc.collect()
        Path("/proc/self/clear_refs").write_text("5")
        before = _memory("VmHWM")
        for ask in _QUESTIONS.values():
            client = RpcClient("testnet", [node.url], EVM, max_attempts=1)
            try:
                ask(client)
            except ExtractError as error:
                errors[type(error).__name__] = None
            else:
                errors["none"] = None
            finally:
                client.close()
        return {"growth": _memory("VmHWM") - before, "errors": list(errors)}


if __name__ == "__main__":
    json.dump({mode: meet(mode, int(sys.argv[1])) for mode in BOMBS}, sys.stdout)
