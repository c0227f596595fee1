"""Extracting and loading 200,000 ERC-20 transfers from a local node: processor seconds, rows per second, memory.

Each run is a process of its own (`extract_process`), so that its memory is its own and the node's is not counted.
"""

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

from tests.bench.measurement import Measurement
from tests.bench.workload import running_world

# Events in a transaction, transactions in a block, blocks.
_SHAPE = (5, 40, 1000)
_HOLDERS = 300
_REPEAT = 5
_MIB = 2**20


def run(folder: Path, repeat: int | None, note: Callable[[str], None]) -> list[Measurement]:
    """Fill a chain once, then measure each part `repeat` times."""
    events, transactions, blocks = _SHAPE
    rows = events * transactions * blocks
    measured: list[Measurement] = []

    def add(quantity: str, unit: str, value: float, goal: str = "") -> None:
        measured.append(Measurement("extract", quantity, unit, value, goal))

    with running_world(blocks) as world:
        token = world.deploy_token("BENCH", 18)
        note(f"extract: filling a chain with {rows:,} transfers")
        filled = world.emit_blocks(token, blocks=blocks, transactions=transactions, events=events, holders=_HOLDERS)
        arguments = [world.node.url, token.address, str(filled.first), str(filled.last)]
        for number in range(repeat or _REPEAT):
            note(f"extract: run {number + 1}")
            parts = {part: _run_part(part, folder / f"{part}-{number}", arguments) for part in ("extract", "load")}
            cycle = _run_part("cycle", folder / f"cycle-{number}", arguments)
            for part, found in {**parts, "cycle": cycle}.items():
                if found["rows"] != rows:
                    raise RuntimeError(f"{part}: {found['rows']:,} rows arrived, not {rows:,}")
            per_rows = 100_000 / rows
            extract, load = parts["extract"], parts["load"]
            both = (extract["cpu"] + load["cpu"]) * per_rows
            add("CPU of extract and load, per 100,000 rows", "s", both, "0.6")
            add("  of it: fetch and decode", "s", extract["cpu"] * per_rows)
            add("  of it: write to the warehouse, with coverage", "s", load["cpu"] * per_rows)
            add("rows fetched and decoded per second", "rows/s", rows / extract["wall"])
            add("rows written per second", "rows/s", rows / load["wall"])
            add("CPU of the network's whole cycle, per 100,000 rows", "s", cycle["cpu"] * per_rows)
            add("rows per second of the network's whole cycle", "rows/s", rows / cycle["wall"])
            add("peak memory of the network's whole cycle", "MiB", cycle["peak"] / _MIB, "below 400")
            add("  of it: after imports", "MiB", cycle["imported"] / _MIB)
    return measured


def _run_part(part: str, folder: Path, arguments: list[str]) -> dict[str, float]:
    folder.mkdir(parents=True)
    command = [sys.executable, "-m", "tests.bench.extract_process", part, str(folder), *arguments]
    answer: dict[str, float] = json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout)
    return answer
