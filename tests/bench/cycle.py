"""A cycle with 1,000 new transfers on top of 1,000,000 old ones: as a console command, and forked by the worker."""

import json
import os
import re
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import dagster as dg

from pipelines.deliver.progress import read_progress
from tests.bench.measurement import Measurement
from tests.bench.workload import instant_of, new_service, running_world, track
from tests.chain.world import Token, World
from tests.e2e.service import LEDGERMART, Service, ServiceError
from warehouse.lock import writer_lock

# Events in a transaction, transactions in a block, blocks.
_OLD = (1000, 1, 1000)
_NEW = (5, 40, 5)
_HOLDERS = 10_000
_REPEAT = 5
_FINAL_BLOCKS = 80
_MIB = 2**20
_PATIENCE_SECONDS = 300.0


def run(
    folder: Path,
    repeat: int | None,
    note: Callable[[str], None],
    measured: list[Measurement],
    *,
    is_cold: bool = True,
    is_warm: bool = True,
) -> None:
    """Fill a chain and build the marts once, then measure `repeat` cycles, each with its own 1,000 new transfers.

    Args:
        is_cold: measure the console command.
        is_warm: measure cycles that the worker forks.
    """

    def add(quantity: str, unit: str, value: float, goal: str = "") -> None:
        measured.append(Measurement("cycle", quantity, unit, value, goal))

    repeat = repeat or _REPEAT
    with running_world(_OLD[2] + (2 * repeat + 1) * _NEW[2] + 2 * _FINAL_BLOCKS) as world:
        token = world.deploy_token("BENCH", 18)
        note("cycle: filling a chain with 1,000,000 transfers")
        first = _emit(world, token, _OLD)
        data = folder / "cycle"
        service, key = new_service(data, world.node.url)
        track(service, key, "local", {token: instant_of(world.node, first)})
        note("cycle: the first one, over all of them")
        found = _measure(service, data)
        _expect(found, 1_000_000)
        add("first cycle, 1,000,000 transfers", "s", found["total"])
        add("peak memory of the first cycle's process", "MiB", found["peak"] / _MIB)
        for number in range(repeat if is_cold else 0):
            _emit(world, token, _NEW)
            note(f"cycle: run {number + 1}")
            found = _measure(service, data)
            _expect(found, 1_000)
            add("start of the process to published", "s", found["published"], "below 15")
            add("  of it: start of the process to first step", "s", found["start"])
            add("  of it: extraction (step of the network)", "s", found["extraction"], "below 1")
            add("  of it: dbt", "s", found["dbt"])
            add("  of it: publication", "s", found["publication"])
            add("start of the process to its end", "s", found["total"], "below 7")
            add("CPU of the process and dbt", "s", found["cpu"])
            add("peak memory of the process", "MiB", found["peak"] / _MIB)
        if is_warm:
            _run_warm(world, token, service, data, repeat, add, note)
        size = (data / "warehouse.duckdb").stat().st_size
        add("size of the warehouse", "MiB", size / _MIB)
        published = (data / "serving" / "current.duckdb").stat().st_size
        add("size of the published version", "MiB", published / _MIB)


def _run_warm(
    world: World,
    token: Token,
    service: Service,
    data: Path,
    repeat: int,
    add: Callable[..., None],
    note: Callable[[str], None],
) -> None:
    """Measure cycles that the worker forks: with 1,000 new transfers each, and then without any.

    While blocks are mined, the writer's lock prevents the worker from starting a cycle.
    """
    lock = data / "warehouse.lock"
    note("cycle: starting the worker")
    with _worker(service, data):
        for number in range(repeat):
            with writer_lock(lock, "the benchmark", _PATIENCE_SECONDS):
                _emit(world, token, _NEW)
            note(f"cycle: run {number + 1} of the worker")
            found = _measure_warm(data, 1_000)
            add("warm: start of the run to its end", "s", found["total"], "below 3")
            add("  of it: dbt", "s", found["dbt"])
            add("  CPU of it", "s", found["cpu"], "below 4")
        # The first cycle reads the now final transfers a second time. Cycles are short after one without a publication.
        for blocks in (_FINAL_BLOCKS, 1, 1):
            with writer_lock(lock, "the benchmark", _PATIENCE_SECONDS):
                for _ in range(blocks):
                    world.mine()
            _measure_warm(data, 0)
        for _ in range(repeat):
            world.mine()
            found = _measure_warm(data, 0)
            add("warm, nothing new: start of the run to its end", "s", found["total"])
            add("  CPU of one with nothing new", "s", found["cpu"], "below 1")


def _emit(world: World, token: Token, shape: tuple[int, int, int]) -> int:
    events, transactions, blocks = shape
    return world.emit_blocks(token, blocks=blocks, transactions=transactions, events=events, holders=_HOLDERS).first


def _expect(found: dict[str, Any], rows: int) -> None:
    if found["rows"] != rows or not found["is_new"]:
        raise RuntimeError(f"the cycle loaded {found['rows']} rows, not {rows}; published: {found['is_new']}")


def _measure(service: Service, folder: Path) -> dict[str, Any]:
    """Run `ledgermart cycle --json`; when its steps began and ended is in the run's own event log."""
    printed = folder / "printed"
    with printed.open("wb") as out, (folder / "complaints").open("wb") as err:
        begun, begun_at = time.perf_counter(), time.time()
        process = subprocess.Popen([LEDGERMART, "cycle", "--json"], env=service.environment, stdout=out, stderr=err)
        _, status, used = os.wait4(process.pid, 0)
        total = time.perf_counter() - begun
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode != 0:
        complaints = (folder / "complaints").read_text()[-4000:]
        raise ServiceError(f"`ledgermart cycle` exited with {process.returncode}:\n{complaints}")
    answer = json.loads(printed.read_text())
    steps = _steps(folder)
    return {
        "rows": sum(
            part["rows"] for part in answer["networks"]["local"]["collected"] if part["table"] == "token_transfers"
        ),
        "is_new": answer["published"]["isNew"],
        "total": total,
        "start": min(begin for begin, _ in steps.values()) - begun_at,
        "published": steps["serving__publication"][1] - begun_at,
        "extraction": _length(steps["collect_local"]),
        "dbt": _length(steps["transform"]),
        "publication": _length(steps["serving__publication"]),
        "cpu": used.ru_utime + used.ru_stime,
        "peak": used.ru_maxrss * 1024,
    }


@contextmanager
def _worker(service: Service, folder: Path) -> Iterator[None]:
    """A worker that begins a cycle in each second in which there is a reason."""
    environment = {
        **service.environment,
        "DAGSTER_HOME": str(Path(__file__).parents[2]),
        "LEDGERMART_DAGSTER_DIR": str(folder / "dagster"),
        "LEDGERMART_CYCLE_SECONDS": "1",
    }
    with (folder / "worker.log").open("wb") as log:
        process = subprocess.Popen([sys.executable, "-m", "pipelines.worker"], env=environment, stdout=log, stderr=log)
    try:
        _wait(lambda: "ready" in (folder / "worker.log").read_text())
        yield
    finally:
        process.terminate()
        process.wait()


def _wait(is_so: Callable[[], bool]) -> None:
    deadline = time.monotonic() + _PATIENCE_SECONDS
    while not is_so():
        if time.monotonic() > deadline:
            raise RuntimeError(f"not within {_PATIENCE_SECONDS:.0f} s")
        time.sleep(0.1)


def _measure_warm(folder: Path, rows: int) -> dict[str, float]:
    """Wait for the worker's next run; its length is Dagster's record, its processor time the worker's log."""
    before = read_progress(folder)
    assert before is not None
    _wait(lambda: (now := read_progress(folder)) is not None and now.batch_id > before.batch_id)
    progress = read_progress(folder)
    assert progress is not None
    loaded = sum(part.rows for part in progress.networks["local"].collected if part.table == "token_transfers")
    if loaded != rows:
        raise RuntimeError(f"the worker's cycle loaded {loaded} rows, not {rows}")
    told = re.compile(rf"run {progress.run_id} took ([0-9.]+) s")
    _wait(lambda: told.search((folder / "worker.log").read_text()) is not None)
    found = told.search((folder / "worker.log").read_text())
    assert found is not None
    with _records(folder) as instance:
        stats = instance.get_run_stats(progress.run_id)
    assert stats.start_time is not None
    assert stats.end_time is not None
    return {
        "total": stats.end_time - stats.start_time,
        "dbt": _length(_steps(folder).get("transform", (0.0, 0.0))),
        "cpu": float(found[1]),
    }


def _records(folder: Path) -> dg.DagsterInstance:
    os.environ["LEDGERMART_DAGSTER_DIR"] = str(folder / "dagster")
    return dg.DagsterInstance.from_config(str(Path(__file__).parents[2]))


def _length(step: tuple[float, float]) -> float:
    return step[1] - step[0]


def _steps(folder: Path) -> dict[str, tuple[float, float]]:
    """Begin and end of every step of the last run, Unix seconds, by step key."""
    progress = read_progress(folder)
    assert progress is not None
    with _records(folder) as instance:
        stats = instance.get_run_step_stats(progress.run_id)
    return {step.step_key: (step.start_time, step.end_time) for step in stats if step.start_time and step.end_time}
