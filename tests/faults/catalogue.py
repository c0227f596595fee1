"""The faults. Each one begins and ends its cause; the campaign then waits until the service has recovered."""

import json
import random
import shutil
import sqlite3
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TypeAlias

import psutil

from tests.chain.fault_proxy import ActionFault, Fault, HostileFault, LostLogsFault
from tests.chain.hostile_answers import NEVER_ENDING
from tests.damages import Damage, cut, removed
from tests.faults.service import LoadedService
from tests.unit.control.postgres import restart_postgres
from warehouse.lock import is_locked

Act: TypeAlias = Callable[[LoadedService, random.Random], None]

# A cycle takes some seconds, so a moment in this range meets any stage of one.
_MOMENT_SECONDS = 6.0
_OUTAGE_SECONDS = 15.0
_RUN_SECONDS = 30.0
_SLOW_SECONDS = 0.5
_DISK_MB = 500
_PATIENCE_SECONDS = 90.0
# A damaged file that nothing repairs by itself is found by each cycle; the wait for it need not be long.
_FILE_SECONDS = 60.0
# The second reading finds the missing log once 64 later blocks have made its block final.
_SECOND_READING_SECONDS = 240.0


@dataclass(frozen=True)
class NamedFault:
    """One row of the table.

    Attributes:
        act: does it; None: not done here.
        reason: why not.
        patience_seconds: for a recovery by itself.
        needs_postgres: the control store is a database of a PostgreSQL server.
        needs_disk: the service's folder lies on a small disk, which needs a mount namespace.
    """

    name: str
    act: Act | None
    reason: str = ""
    patience_seconds: float = _PATIENCE_SECONDS
    needs_postgres: bool = False
    needs_disk: bool = False


# Processes


def _moment(chance: random.Random) -> None:
    time.sleep(chance.uniform(0, _MOMENT_SECONDS))


def _kill(role: str, loaded: LoadedService, chance: random.Random) -> None:
    _moment(chance)
    loaded.service.processes()[role][0].kill()


def _kill_up(loaded: LoadedService, chance: random.Random) -> None:
    _kill("ledgermart up", loaded, chance)
    loaded.start()


def _run_of(loaded: LoadedService) -> psutil.Process | None:
    """Return the run in progress, which holds the warehouse's lock."""
    lock = loaded.data / "warehouse.lock"
    if not is_locked(lock):
        return None
    with suppress(ValueError):  # it is being written
        pid = json.loads(lock.read_text())["pid"]
        for process in loaded.service.processes().get("worker", [])[1:]:
            if process.pid == pid:
                return process
    return None


def _kill_run(loaded: LoadedService, chance: random.Random) -> None:
    deadline = time.monotonic() + _RUN_SECONDS
    while time.monotonic() < deadline:
        run = _run_of(loaded)
        if run is not None:
            time.sleep(chance.uniform(0, 2))
            if run.is_running():
                run.kill()
                return
        time.sleep(0.02)
    raise RuntimeError(f"no run could be killed in {_RUN_SECONDS:.0f} s")


# Nodes, price sources, control store


def _faulty_node(fault: Fault, loaded: LoadedService, chance: random.Random) -> None:
    _moment(chance)
    loaded.proxy.inject(fault)
    time.sleep(_OUTAGE_SECONDS)
    loaded.proxy.clear()


def _stopped_node(loaded: LoadedService, chance: random.Random) -> None:
    _moment(chance)
    loaded.proxy.stop()
    time.sleep(_OUTAGE_SECONDS)
    loaded.proxy.start()


def _stopped_price_source(loaded: LoadedService, chance: random.Random) -> None:
    _moment(chance)
    loaded.exchange.stop()
    time.sleep(_OUTAGE_SECONDS)
    loaded.exchange.start()


def _locked_control_store(loaded: LoadedService, chance: random.Random) -> None:
    _moment(chance)
    connection = sqlite3.connect(loaded.data / "control.db", isolation_level=None, timeout=_RUN_SECONDS)
    try:
        connection.execute("begin immediate")
        time.sleep(_OUTAGE_SECONDS)
        connection.execute("rollback")
    finally:
        connection.close()


def _restarted_postgres(loaded: LoadedService, chance: random.Random) -> None:
    _moment(chance)
    assert loaded.server is not None
    restart_postgres(loaded.server)


# Disk


def _full_disk(loaded: LoadedService, chance: random.Random) -> None:
    """Move the data folder to a small disk, fill that for a while, and make room again."""
    loaded.service.stop()
    beside = loaded.folder / "beside"
    # Set-aside data of earlier faults would fill the disk.
    shutil.copytree(loaded.data, beside, ignore=shutil.ignore_patterns("*.sock", "*.aside*", "aside-*", "*.damaged"))
    mount = ["mount", "-t", "tmpfs", "-o", f"size={_DISK_MB}m", "tmpfs", str(loaded.data)]
    subprocess.run(mount, check=True)
    shutil.copytree(beside, loaded.data, dirs_exist_ok=True)
    loaded.data.chmod(beside.stat().st_mode & 0o777)
    loaded.start()
    _moment(chance)
    with _filled(loaded.data):
        time.sleep(_OUTAGE_SECONDS)


@contextmanager
def _filled(disk: Path) -> Iterator[None]:
    filler = disk / "filler"
    try:
        with filler.open("wb", buffering=0) as file, suppress(OSError):
            while file.write(bytes(1_000_000)):
                pass
        yield
    finally:
        filler.unlink()


# Files

_STOPPED, _RUNNING = "while stopped", "while running"
# Patterns in the data folder, of which the newest file is taken. The second field: also while the service runs.
FILES: dict[str, tuple[str, bool]] = {
    "control.db": ("control.db", True),
    "warehouse.duckdb": ("warehouse.duckdb", True),
    "marts_build.duckdb": ("marts_build.duckdb", True),
    "serving/current.json": ("serving/current.json", True),
    "serving/current.duckdb": ("serving/current.duckdb", False),
    "serving/marts-*.duckdb": ("serving/marts-*.duckdb", True),
    "dagster/runs.db": ("dagster/**/runs.db", False),
    "dagster/event_log.db": ("dagster/**/event_log.db", False),
    "dagster/schedules.db": ("dagster/**/schedules.db", False),
    "dbt manifest": ("dbt/target/manifest.json", False),
    "progress.json": ("progress.json", False),
    "worker.json": ("worker.json", False),
    "logs/worker.log": ("logs/worker.log", False),
}
# A restore takes back later writes, so nothing is written between backup and damage. After the damage of the control
# store, the API must refuse writes. After that of the warehouse it accepts them, so the writers rest until the restore.
_RESTORED = ("control.db", "warehouse.duckdb")


def _damaged_file(name: str, damage: Damage, is_running: bool, loaded: LoadedService, chance: random.Random) -> None:
    if name in _RESTORED:
        loaded.rest_writers()
    if not is_running:
        loaded.service.stop()
    loaded.back_up()
    if is_running:
        _moment(chance)
    damage(_newest(loaded.data, FILES[name][0]))
    if name != "warehouse.duckdb":
        loaded.load.writing.set()
    if not is_running:
        loaded.start()


def _newest(folder: Path, pattern: str) -> Path:
    found = sorted(folder.glob(pattern), key=lambda path: path.stat().st_mtime)
    if not found:
        raise RuntimeError(f"{pattern} is not there")
    return found[-1]


def _files() -> Iterator[NamedFault]:
    for name, (_, also_running) in FILES.items():
        for damage, words in ((removed, "removed"), (cut, "cut in half")):
            for is_running in (False, True) if also_running else (False,):
                yield NamedFault(
                    f"{name} {words} {_RUNNING if is_running else _STOPPED}",
                    partial(_damaged_file, name, damage, is_running),
                    patience_seconds=_FILE_SECONDS,
                )


_CLOCK = (
    "the machine's clock belongs to all processes, time namespaces do not cover it, and libfaketime is not "
    "installed; tests hand in clocks (`tests/integration/test_lying_nodes.py`)"
)


def catalogue() -> list[NamedFault]:
    """Return all faults, in the order in which they are done."""
    return [
        NamedFault("SIGKILL of the API", partial(_kill, "API")),
        NamedFault("SIGKILL of the worker", partial(_kill, "worker")),
        NamedFault("SIGKILL of a run in progress", _kill_run),
        NamedFault("SIGKILL of the code server", partial(_kill, "code server")),
        NamedFault("SIGKILL of the daemon", partial(_kill, "daemon")),
        NamedFault("SIGKILL of Dagster's pages", partial(_kill, "web server")),
        NamedFault("SIGKILL of `up`, started again as by systemd", _kill_up),
        NamedFault("node stopped for 15 s", _stopped_node),
        NamedFault("node slow for 15 s", partial(_faulty_node, ActionFault(action=partial(time.sleep, _SLOW_SECONDS)))),
        NamedFault(
            "node with endless answers for 15 s",
            partial(_faulty_node, HostileFault(answer=NEVER_ENDING["drip_body"])),
        ),
        NamedFault(
            "node leaves out the last log of each answer, for 15 s",
            partial(_faulty_node, LostLogsFault()),
            patience_seconds=_SECOND_READING_SECONDS,
        ),
        NamedFault("price source stopped for 15 s", _stopped_price_source),
        NamedFault("control store locked for 15 s", _locked_control_store),
        *_files(),
        NamedFault("disk full for 15 s", _full_disk, needs_disk=True),
        NamedFault("PostgreSQL of the control store restarted", _restarted_postgres, needs_postgres=True),
        NamedFault("clock of the machine jumps", None, _CLOCK),
    ]
