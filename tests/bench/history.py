"""Collecting the past of tokens and wallets: blocks and rows per second, processor seconds, memory.

Two chains: one with 200 transfers in each of 1,000 blocks, and one of 3,000 blocks of which almost all are empty.
Each run is a separate process (`history_process`). The node shares the machine; its processor time is measured
separately.
"""

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

from tests.bench.measurement import Measurement
from tests.bench.workload import BLOCK_SECONDS, running_world
from tests.chain.world import Token, World, holder_at
from tests.datasets.chain_files import write_aws

# Events in a transaction, transactions in a block, blocks.
_DENSE = (5, 40, 1000)
_HOLDERS = 300
# More than 3,600 blocks back the node forgets states, and its time for a block grows with their number: 20,000 of them
# take four minutes.
_EMPTY_BLOCKS = 3_000
# Blocks from one payment to the wallet to the next.
_DENSE_APART, _EMPTY_APART = 10, 100
_WALLET = holder_at(0)
_REPEAT = 3
_FINAL = 70
_AWS = "aws/logs/date={date}/*.parquet"
_MIB = 2**20


class Case(NamedTuple):
    """A history to collect: its name, subject and blocks, its minimal number of rows, and its files, if any."""

    name: str
    kind: str
    address: str
    native: str
    first: int
    last: int
    least_rows: int
    files: str = ""


def run(folder: Path, repeat: int | None, note: Callable[[str], None], measured: list[Measurement]) -> None:
    """Fill the chains once, then collect each past `repeat` times."""
    for fill in (_fill_dense, _fill_empty):
        with running_world(max(_EMPTY_BLOCKS, _DENSE[2])) as world:
            cases = fill(world, folder, note)
            for number in range(repeat or _REPEAT):
                for case in cases:
                    note(f"history: {case.name}, run {number + 1}")
                    found = measure(world, folder / f"{case.name}-{number}", case)
                    if found["rows"] < case.least_rows:
                        raise RuntimeError(f"{case.name}: {found['rows']:,} rows arrived, not {case.least_rows:,}")
                    measured += _measurements(case, found)


def _fill_dense(world: World, folder: Path, note: Callable[[str], None]) -> list[Case]:
    events, transactions, blocks = _DENSE
    rows = events * transactions * blocks
    token = world.deploy_token("BENCH", 18)
    note(f"history: filling a chain with {rows:,} transfers")
    first = world.node.head() + 1
    for _ in range(blocks // _DENSE_APART):
        world.submit(world.deployer, _WALLET, value=1)
        world.emit_blocks(token, blocks=_DENSE_APART, transactions=transactions, events=events, holders=_HOLDERS)
    last = _end(world, token)
    # Files are read up to the newest final block.
    world.node.mine_empty(_FINAL, BLOCK_SECONDS)
    write_aws(world.node, folder / "aws", tables=["logs"])
    # The wallet is the first of the receivers, and each part begins again with the first receiver.
    received = blocks // _DENSE_APART * -(-(_DENSE_APART * transactions * events) // _HOLDERS)
    payments = blocks // _DENSE_APART
    return [
        Case("token, dense", "token", token.address, "", first, last, rows),
        Case("token, dense, from files", "token", token.address, "", first, last, rows, f"{folder}/{_AWS}"),
        Case("wallet in full, dense", "wallet", _WALLET, "full", first, last, received + payments),
        Case("wallet by balance, dense", "wallet", _WALLET, "balance-only", first, last, received),
    ]


def _fill_empty(world: World, folder: Path, note: Callable[[str], None]) -> list[Case]:
    token = world.deploy_token("BENCH", 18)
    note(f"history: {_EMPTY_BLOCKS:,} empty blocks")
    first = world.node.head() + 1
    for _ in range(_EMPTY_BLOCKS // _EMPTY_APART):
        world.submit(world.deployer, _WALLET, value=1)
        world.mine(world.node.block_time(world.node.head()) + BLOCK_SECONDS)
        world.node.mine_empty(_EMPTY_APART - 1, BLOCK_SECONDS)
    last = world.node.head()
    return [
        Case("token, empty", "token", token.address, "", first, last, 0),
        Case("wallet by balance, empty", "wallet", _WALLET, "balance-only", first, last, 0),
    ]


def _end(world: World, token: Token) -> int:
    """Mine more blocks, so that the history ends before the head; return its last block."""
    last = world.node.head()
    world.emit_blocks(token, blocks=1, transactions=1, events=1, holders=_HOLDERS)
    return last


def measure(world: World, folder: Path, case: Case) -> dict[str, Any]:
    """Collect a history in a separate process; return its output."""
    folder.mkdir(parents=True)
    arguments = [
        world.node.pid,
        folder,
        world.node.url,
        case.kind,
        case.address,
        case.native,
        case.first,
        case.last,
        case.files,
    ]
    command = [sys.executable, "-m", "tests.bench.history_process", *map(str, arguments)]
    answer: dict[str, Any] = json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout)
    return answer


def _measurements(case: Case, found: dict[str, Any]) -> list[Measurement]:
    history, cycle = found["history"], found["cycle"]
    values = [
        ("blocks per second", "blocks/s", found["blocks"] / history["wall"]),
        *([("rows per second", "rows/s", found["rows"] / history["wall"])] if case.least_rows else []),
        ("CPU of the client", "s", history["cpu"]),
        ("CPU of the node", "s", history["node"]),
        ("readings of the next cycle", "readings", found["readings"]),
        ("  that cycle", "s", cycle["wall"]),
        ("  CPU of the client", "s", cycle["cpu"]),
        ("  CPU of the node", "s", cycle["node"]),
        ("peak memory", "MiB", found["peak"] / _MIB),
        ("  of it: after imports", "MiB", found["imported"] / _MIB),
    ]
    return [Measurement(f"history: {case.name}", quantity, unit, value) for quantity, unit, value in values]
