"""`ledgermart up` with five idle networks: processor time, and memory by process.

The first measurement is without new blocks, so that no cycle runs. In the second one each network has an empty block
every other second.
"""

import time
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path

from pipelines.deliver.progress import read_progress
from tests.bench.measurement import Measurement
from tests.bench.workload import instant_of, new_service, running_world, track
from tests.chain.world import World
from tests.e2e.service import Service
from warehouse.lock import is_locked

_NETWORKS = 5
_FIRST_CHAIN_ID = 31_337
_SETTLE_SECONDS = 60.0
_WINDOW_SECONDS = 60.0
_REPEAT = 3
_BLOCK_SECONDS = 2.0
_COLLECTED_WITHIN_SECONDS = 120.0
_MIB = 2**20
_DEFINITION = """
[[network]]
name = "{name}"
display_name = "{name}"
family = "evm"
chain_id = {chain_id}
is_testnet = true
rpc = ["{url}"]
native = {{ symbol = "ETH", decimals = 18 }}
finality_depth = 64
poll_seconds = 1
"""


def run(folder: Path, repeat: int | None, note: Callable[[str], None], measured: list[Measurement]) -> None:
    """Start the service, wait until it is idle, then measure `repeat` windows of a minute."""

    def add(quantity: str, unit: str, value: float, goal: str = "") -> None:
        measured.append(Measurement("idle", quantity, unit, value, goal))

    with ExitStack() as started:
        worlds = {
            f"chain-{number}": started.enter_context(running_world(chain_id=_FIRST_CHAIN_ID + number))
            for number in range(_NETWORKS)
        }
        definitions = folder / "networks.toml"
        definitions.write_text(
            "".join(
                _DEFINITION.format(name=name, chain_id=_FIRST_CHAIN_ID + number, url=world.node.url)
                for number, (name, world) in enumerate(worlds.items())
            )
        )
        note(f"idle: starting the service with {_NETWORKS} networks")
        data = folder / "idle"
        service, key = new_service(data, "", {"LEDGERMART_NETWORKS": str(definitions)})
        for name, world in worlds.items():
            token = world.deploy_token("BENCH", 18)
            track(service, key, name, {token: instant_of(world.node, 1)})
        started.enter_context(service)
        begun = time.perf_counter()
        service.start()
        add("start to ready", "s", time.perf_counter() - begun)
        _wait_until_collected(data, worlds)
        note(f"idle: settling for {_SETTLE_SECONDS:.0f} s")
        time.sleep(_SETTLE_SECONDS)
        for number in range(repeat or _REPEAT):
            note(f"idle: window {number + 1} of {_WINDOW_SECONDS:.0f} s")
            cycles, before, begun = _newest_cycle(data), _cpu_seconds(service), time.perf_counter()
            time.sleep(_WINDOW_SECONDS)
            after, elapsed = _cpu_seconds(service), time.perf_counter() - begun
            if _newest_cycle(data) != cycles:
                raise RuntimeError("a cycle ran, so the service was not idle")
            used = {role: 100 * (seconds - before[role]) / elapsed for role, seconds in after.items()}
            add("CPU of all processes together, of one core", "%", sum(used.values()), "below 10")
            for role, percent in used.items():
                add(f"  of it: {role}", "%", percent)
            memory = _memory_bytes(service)
            add("resident memory of all processes together", "MiB", sum(memory.values()) / _MIB)
            for role, size in memory.items():
                add(f"  of it: {role}", "MiB", size / _MIB)
        for number in range(repeat or _REPEAT):
            note(f"idle: window {number + 1} of {_WINDOW_SECONDS:.0f} s, with empty blocks")
            cycles, before, begun = _newest_cycle(data), _cpu_seconds(service), time.perf_counter()
            while time.perf_counter() - begun < _WINDOW_SECONDS:
                for world in worlds.values():
                    world.mine()
                time.sleep(_BLOCK_SECONDS)
            after, elapsed = _cpu_seconds(service), time.perf_counter() - begun
            used = {role: 100 * (seconds - before[role]) / elapsed for role, seconds in after.items()}
            add("with empty blocks: CPU of all processes together, of one core", "%", sum(used.values()), "below 10")
            add("  of it: worker and its cycles", "%", used["worker"])
            add("  cycles in a minute", "", 60 * (_newest_cycle(data) - cycles) / elapsed)


def _newest_cycle(data: Path) -> int:
    progress = read_progress(data)
    return progress.batch_id if progress else 0


def _wait_until_collected(data: Path, worlds: dict[str, World]) -> None:
    """Wait for the end of the cycle that brings every network to its head."""
    heads = {name: world.node.head() for name, world in worlds.items()}
    deadline = time.monotonic() + _COLLECTED_WITHIN_SECONDS
    while time.monotonic() < deadline:
        progress = read_progress(data)
        is_collected = progress and all(progress.networks[name].collected_to == head for name, head in heads.items())
        if is_collected and not is_locked(data / "warehouse.lock"):
            return
        time.sleep(1)
    raise RuntimeError(f"not every network was collected within {_COLLECTED_WITHIN_SECONDS:.0f} s: {progress}")


def _cpu_seconds(service: Service) -> dict[str, float]:
    """Processor seconds of every role so far, with those of children that ended."""
    return {role: sum(sum(p.cpu_times()[:4]) for p in processes) for role, processes in service.processes().items()}


def _memory_bytes(service: Service) -> dict[str, float]:
    """Proportional set size of every role: pages that processes share are counted once."""
    return {role: sum(p.memory_full_info().pss for p in processes) for role, processes in service.processes().items()}
