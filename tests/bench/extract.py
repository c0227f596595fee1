"""Extracting and loading 200,000 ERC-20 transfers from a local node: processor seconds, rows per second, memory.

Each run is a separate process (`extract_process`), so that the measured memory excludes the node's. If an interpreter
with cryo is given, it collects the same rows in turn, also in a separate process.
"""

import json
import os
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from tests.bench.measurement import Measurement
from tests.bench.workload import running_world

# Events in a transaction, transactions in a block, blocks.
_SHAPE = (5, 40, 1000)
_HOLDERS = 300
_REPEAT = 5
_MIB = 2**20
_CRYO = """
import json, sys
import cryo
url, token, first, last = sys.argv[1:]
blocks = {"start_block": int(first), "end_block": int(last) + 1}
rows = cryo.collect("erc20_transfers", **blocks, rpc=url, address=[token], verbose=False)
print(json.dumps({"rows": rows.height, "amounts": str(sum(map(int, rows["value_string"])))}))
"""


def run(
    folder: Path,
    repeat: int | None,
    note: Callable[[str], None],
    measured: list[Measurement],
    *,
    cryo: Path | None = None,
) -> None:
    """Fill a chain once, then measure each part `repeat` times.

    Args:
        cryo: an interpreter of an environment in which cryo is installed; None: it is not run.
    """
    events, transactions, blocks = _SHAPE
    rows = events * transactions * blocks

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
            if cryo is not None:
                note(f"extract: cryo, run {number + 1}")
                other = _run([str(cryo), "-c", _CRYO, *arguments])
                for part, found in parts.items():
                    if (other["rows"], other["amounts"]) != (found["rows"], found["amounts"]):
                        raise RuntimeError(f"cryo has other rows than {part}: {other}, not {found}")
                _add_ratios(add, parts, other["whole"], 100_000 / rows)
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


def _add_ratios(add: Callable[..., None], parts: dict[str, dict[str, Any]], cryo: float, per_rows: float) -> None:
    """Add cryo's processor time, and the service's relative to it: for the work alone and for the whole process."""
    extract, load = parts["extract"], parts["load"]
    add("CPU of cryo, whole process, per 100,000 rows", "s", cryo * per_rows)
    add("fetch and decode, times cryo's whole process", "x", extract["cpu"] / cryo, "at most 1")
    add("  with load and coverage", "x", (extract["cpu"] + load["cpu"]) / cryo, "at most 1.15")
    add("whole process that fetches and decodes, times cryo's", "x", extract["whole"] / cryo)
    add("  that also reads headers, loads and covers", "x", load["whole"] / cryo)


def _run_part(part: str, folder: Path, arguments: list[str]) -> dict[str, Any]:
    folder.mkdir(parents=True)
    return _run([sys.executable, "-m", "tests.bench.extract_process", part, str(folder), *arguments])


def _run(command: Sequence[str]) -> dict[str, Any]:
    """Run a process; return its output, and as `whole` its processor seconds including start and imports."""
    with subprocess.Popen(command, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        answer: dict[str, Any] = json.loads(process.stdout.read() or "{}")
        _, status, used = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode != 0:
        raise subprocess.CalledProcessError(process.returncode, command)
    return {**answer, "whole": used.ru_utime + used.ru_stime}
