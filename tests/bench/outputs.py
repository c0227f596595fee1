"""Collecting a chain of 1,000,000 outputs from a local node: outputs per second, memory, size of the stored outputs.

One transaction of ten pays watched addresses. Each run is a separate process (`outputs_process`), so that the measured
memory excludes the node's. Two bounds are measured at the same concurrency with the bodies discarded: the requests
that are sent, and blocks as JSON with their transactions, which other collectors request.
"""

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tests.bench.measurement import Measurement
from tests.chain.utxo_node import UtxoNode
from tests.chain.utxo_world import UtxoWorld

_BLOCKS = 100
# Transactions in a block, and outputs in each.
_SHAPE = (10, 1_000)
_WALLETS = 10
_REPEAT = 3
_MIB = 2**20


def run(folder: Path, repeat: int | None, note: Callable[[str], None], measured: list[Measurement]) -> None:
    """Fill a chain once, then measure each part `repeat` times."""
    transactions, outputs = _SHAPE
    count = _BLOCKS * transactions * outputs

    def add(quantity: str, unit: str, value: float, goal: str = "") -> None:
        measured.append(Measurement("outputs", quantity, unit, value, goal))

    with UtxoNode(txindex=False) as node:
        note(f"outputs: filling a chain with {count:,} outputs")
        world = UtxoWorld(node)
        world.mature(transactions * _BLOCKS // 10)
        first = world.head + 1
        watched = [world.address() for _ in range(_WALLETS)]
        strangers = [world.address() for _ in range(_WALLETS)]
        for _ in range(_BLOCKS):
            for position in range(transactions):
                paid = strangers if position else watched
                world.pay([(address, 1_000) for address in paid * (outputs // _WALLETS)])
            world.mine()
        for number in range(repeat or _REPEAT):
            note(f"outputs: run {number + 1}")
            found = {
                part: _run(part, folder / f"{part}-{number}", node.url, str(first), str(world.head), *watched)
                for part in ("decoded", "discard", "collect", "half", "cycle")
            }
            stored = count // transactions
            if (found["collect"]["rows"], found["cycle"]["rows"]) != (stored, stored):
                raise RuntimeError(f"{found}: not {stored:,} outputs of watched addresses")
            add("outputs per second, collected", "outputs/s", count / found["collect"]["wall"])
            add("  the same requests, bodies discarded", "outputs/s", count / found["discard"]["wall"])
            add("  share of it", "%", 100 * found["discard"]["wall"] / found["collect"]["wall"])
            add("  blocks as JSON with transactions, discarded", "outputs/s", count / found["decoded"]["wall"])
            add("  share of that", "%", 100 * found["decoded"]["wall"] / found["collect"]["wall"], "above 90")
            add("outputs per second of the network's whole cycle", "outputs/s", count / found["cycle"]["wall"])
            add("peak memory of collecting, after imports", "MiB", _used(found["collect"]))
            add("  of half of the blocks", "MiB", _used(found["half"]), "the same")
            add("peak memory of the network's whole cycle", "MiB", found["cycle"]["peak"] / _MIB)
            add("warehouse, per stored output", "bytes", found["cycle"]["bytes"] / stored)


def _used(found: dict[str, Any]) -> float:
    return float(found["peak"] - found["imported"]) / _MIB


def _run(part: str, folder: Path, *arguments: str) -> dict[str, Any]:
    folder.mkdir(parents=True)
    done = subprocess.run(
        [sys.executable, "-m", "tests.bench.outputs_process", part, str(folder), *arguments],
        stdout=subprocess.PIPE,
        check=True,
    )
    answer: dict[str, Any] = json.loads(done.stdout)
    return answer
