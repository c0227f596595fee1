"""Reading balances of 100,000 holders at both ends of a covered range: readings per second, processor time, memory.

The readings run once through Multicall3, and once in JSON-RPC batches after the contract is removed from the node. Each
run is a separate process (`history_process`); the cycle after the history is measured.
"""

from collections.abc import Callable
from pathlib import Path

from tests.bench.history import Case, measure
from tests.bench.measurement import Measurement
from tests.bench.workload import running_world
from tests.chain.world import MULTICALL_ADDRESS

# Events in a transaction, transactions in a block, blocks; each event has a different holder.
_SHAPE = (1000, 1, 100)
_HOLDERS = 100_000
_REPEAT = 3
_MIB = 2**20


def run(folder: Path, repeat: int | None, note: Callable[[str], None], measured: list[Measurement]) -> None:
    """Give every holder something once, then read all of them `repeat` times by each way."""
    events, transactions, blocks = _SHAPE
    with running_world(blocks) as world:
        token = world.deploy_token("BENCH", 18)
        note(f"observations: making {_HOLDERS:,} holders")
        filled = world.emit_blocks(token, blocks=blocks, transactions=transactions, events=events)
        # The history ends before the head, so that both its ends are read.
        world.mine()
        case = Case("holders", "token", token.address, "", filled.first, filled.last, _HOLDERS)
        for way in ("Multicall3", "batches"):
            if way == "batches":
                world.node.set_code(MULTICALL_ADDRESS, "0x")
                world.mine()
            for number in range(repeat or _REPEAT):
                note(f"observations: {way}, run {number + 1}")
                found = measure(world, folder / f"{way}-{number}", case)
                readings, cycle = found["readings"], found["cycle"]
                if readings < 2 * _HOLDERS:
                    raise RuntimeError(f"{way}: {readings:,} readings were made, not {2 * _HOLDERS:,}")
                per_readings = 100_000 / readings
                for quantity, unit, value in (
                    ("readings per second, with the rest of the cycle", "readings/s", readings / cycle["wall"]),
                    ("CPU of the client, per 100,000", "s", cycle["cpu"] * per_readings),
                    ("CPU of the node, per 100,000", "s", cycle["node"] * per_readings),
                    ("peak memory", "MiB", found["peak"] / _MIB),
                ):
                    measured.append(Measurement(f"observations: {way}", quantity, unit, value))
