"""Decisions of the worker: handling of runs at its start and end, and detection of changes."""

import logging
import multiprocessing
import os
import signal
import subprocess
import sys
import uuid
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any, NoReturn

import dagster as dg
import psutil
import pytest
from dagster import DagsterRunStatus as Status

from control.errors import ControlError
from control.settings import Settings, load_settings
from pipelines import definitions
from pipelines.defs import fingerprints, project
from pipelines.defs.cycle import SENSOR
from pipelines.defs.decide import Cycle
from pipelines.defs.fingerprints import loaded_fingerprint
from pipelines.defs.project import DbtError
from pipelines.defs.runs import WORKER_TAG
from pipelines.deliver.worker_state import read_worker_state
from pipelines.worker import cycles, process
from pipelines.worker.process import Worker, WorkerError
from tests import CHECKOUT
from tests.waiting import eventually


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    networks = tmp_path / "networks.toml"
    networks.write_text("network = []")
    return load_settings({"LEDGERMART_DATA_DIR": str(tmp_path / "data"), "LEDGERMART_NETWORKS": str(networks)})


class _Enough(Exception):
    """Raised to end the worker's loop."""


def test_deleted_file_is_a_change_and_not_a_failure(settings: Settings) -> None:
    before = loaded_fingerprint(settings)
    assert loaded_fingerprint(settings) == before
    settings.networks_file.unlink()
    assert loaded_fingerprint(settings) != before


def test_output_of_dbt_is_not_a_change(settings: Settings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "dbt_project"
    (folder / "target" / "compiled").mkdir(parents=True)
    monkeypatch.setattr(fingerprints, "DBT_PROJECT", folder)
    before = loaded_fingerprint(settings)
    (folder / "target" / "compiled" / "model.sql").write_text("select 1")
    assert loaded_fingerprint(settings) == before
    (folder / "model.sql").write_text("select 1")
    os.utime(folder / "model.sql", (1, 1))
    assert loaded_fingerprint(settings) != before


@pytest.fixture
def instance(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[dg.DagsterInstance]:
    """Dagster's records, as used by the functions of `cycles`."""
    with dg.DagsterInstance.local_temp(str(tmp_path)) as made:
        monkeypatch.setattr(cycles, "instance", lambda: made)
        yield made


def _begin(instance: dg.DagsterInstance, run_id: str, status: Status, tags: Mapping[str, str]) -> None:
    job = dg.JobDefinition(name="a_job", graph_def=dg.GraphDefinition(name="a_job"))
    instance.create_run_for_job(job, run_id=run_id, status=status, tags=tags)


def _status(instance: dg.DagsterInstance, run_id: str) -> Status | None:
    found = instance.get_run_by_id(run_id)
    return found and found.status


def test_cycles_that_ended_with_an_earlier_worker_are_recorded(instance: dg.DagsterInstance) -> None:
    # A run without a worker, its repetition with the same tags, and two runs of the worker.
    first, repeated, lost, cancelled = (str(uuid.uuid4()) for _ in range(4))
    _begin(instance, first, Status.STARTED, {})
    _begin(instance, repeated, Status.STARTED, {WORKER_TAG: lost})
    _begin(instance, lost, Status.STARTED, {WORKER_TAG: lost})
    _begin(instance, cancelled, Status.CANCELING, {WORKER_TAG: cancelled})
    cycles.mark_lost()
    ended = [Status.STARTED, Status.STARTED, Status.FAILURE, Status.CANCELED]
    assert [_status(instance, run_id) for run_id in (first, repeated, lost, cancelled)] == ended


def test_no_cycle_starts_while_the_sensor_is_stopped(monkeypatch: pytest.MonkeyPatch) -> None:
    state = SimpleNamespace(instigator_name=SENSOR, status=SimpleNamespace(value="STOPPED"))
    monkeypatch.setattr(cycles, "instance", lambda: SimpleNamespace(all_instigator_state=lambda: [state]))
    monkeypatch.setattr(cycles, "trouble", None)
    monkeypatch.setattr(cycles, "end_with_worker", lambda: None)
    monkeypatch.setattr(definitions, "load_definitions", enough)
    cycles.run_cycle(str(uuid.uuid4()), Cycle([]))
    state.instigator_name = "another sensor"
    with pytest.raises(_Enough):
        cycles.run_cycle(str(uuid.uuid4()), Cycle([]))


def enough(*_: object) -> NoReturn:
    raise _Enough


def test_no_cycle_starts_in_a_process_without_loaded_code() -> None:
    with pytest.raises(SystemExit, match="has loaded nothing"):
        cycles.run_cycle(str(uuid.uuid4()), Cycle([]))


_WORKER = """
import multiprocessing
import signal

from pipelines.worker import cycles

process = multiprocessing.get_context("forkserver").Process(target=cycles.end_with_worker)
process.start()
print(process.pid, flush=True)
signal.pause()
"""


@pytest.mark.ci
def test_a_cycle_ends_with_a_killed_worker() -> None:
    with subprocess.Popen([sys.executable, "-c", _WORKER], cwd=CHECKOUT, stdout=subprocess.PIPE, text=True) as worker:
        assert worker.stdout is not None
        cycle = psutil.Process(int(worker.stdout.readline()))
        assert cycle.is_running()
        worker.kill()
    eventually(lambda: not cycle.is_running(), "the cycle has ended")


@pytest.mark.parametrize(
    ("error", "told"),
    [(DbtError("dbt could not parse"), "dbt could not parse"), (KeyError("x"), "a rehearsal of a cycle failed: 'x'")],
)
def test_a_failure_to_load_is_reported(error: Exception, told: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def load(_: Settings) -> None:
        raise error

    monkeypatch.setattr(cycles, "load", load)
    monkeypatch.setattr(cycles, "trouble", None)
    cycles.warm_up()
    receiver, sender = multiprocessing.Pipe(duplex=False)
    with receiver, sender:
        cycles.report(sender)
        assert receiver.recv() == told


class _Processes:
    """The worker's processes: a cycle is a process that is killed, and this process calls all other functions."""

    Pipe = staticmethod(multiprocessing.Pipe)

    def __init__(self, instance: dg.DagsterInstance) -> None:
        self.instance = instance
        self.cycles: list[str] = []
        # It starts without the open files of pytest.
        self.killed = multiprocessing.get_context("spawn").Process(target=signal.raise_signal, args=(signal.SIGKILL,))

    def set_forkserver_preload(self, modules: list[str]) -> None:
        """Load nothing."""

    def Process(self, target: Callable[..., None], args: tuple[Any, ...]) -> Any:
        if target is not cycles.run_cycle:
            return SimpleNamespace(start=lambda: target(*args), join=lambda: None, exitcode=0)
        self.cycles.append(args[0])
        _begin(self.instance, args[0], Status.STARTED, {WORKER_TAG: args[0]})
        return self.killed


@pytest.fixture
def processes(instance: dg.DagsterInstance, monkeypatch: pytest.MonkeyPatch) -> _Processes:
    made = _Processes(instance)
    monkeypatch.setattr(multiprocessing, "get_context", lambda _: made)
    monkeypatch.setattr(cycles, "trouble", None)
    return made


def test_a_killed_cycle_is_recorded(
    settings: Settings, processes: _Processes, instance: dg.DagsterInstance, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings.data_dir.mkdir()

    def decide(*_: object) -> Cycle:
        if processes.cycles:
            raise _Enough
        return Cycle([])

    monkeypatch.setattr(process, "decide", decide)
    with pytest.raises(_Enough):
        Worker(settings).work()
    (run_id,) = processes.cycles
    assert _status(instance, run_id) is Status.FAILURE


def test_worker_that_cannot_work_reports_it_once_and_ends(
    settings: Settings, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    class Cold:
        def __init__(self, _: Settings) -> None:
            raise WorkerError("dbt could not parse the project")

    settings.data_dir.mkdir()
    monkeypatch.setattr(process, "Worker", Cold)
    monkeypatch.setattr(process, "load_settings", lambda: settings)
    before = os.umask(0o077)
    try:
        with pytest.raises(SystemExit) as ended:
            process.main()
    finally:
        os.umask(before)
    assert ended.value.code == 1
    (told,) = [record for record in caplog.records if record.name == process.__name__]
    assert (told.getMessage(), told.exc_info) == ("the worker stops: dbt could not parse the project", None)
    state = read_worker_state(settings.data_dir)
    assert state is not None
    assert state.trouble == "it stopped: dbt could not parse the project"


@pytest.mark.release
def test_a_project_that_cannot_be_loaded_ends_the_worker(settings: Settings, tmp_path: Path) -> None:
    sources = tmp_path / "sources.toml"
    sources.write_text("nothing = 1")
    environment = {
        **os.environ,
        "DAGSTER_HOME": str(CHECKOUT),
        "LEDGERMART_DAGSTER_DIR": str(tmp_path / "dagster"),
        "LEDGERMART_DATA_DIR": str(settings.data_dir),
        "LEDGERMART_PRICE_SOURCES": str(sources),
    }
    settings.data_dir.mkdir()
    done = subprocess.run(
        [sys.executable, "-m", "pipelines.worker"],
        cwd=CHECKOUT,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 1
    (told,) = [line for line in done.stderr.splitlines() if "the worker stops" in line]
    assert str(sources) in told


def test_unavailable_control_store_is_reported_once(
    settings: Settings, processes: _Processes, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    settings.data_dir.mkdir()
    answers = [ControlError("away"), ControlError("away"), None, None, ControlError("away")]
    troubles = []

    def decide(*_: object) -> None:
        if (answer := answers.pop(0)) is not None:
            raise answer

    def wait(*_: object) -> None:
        state = read_worker_state(settings.data_dir)
        assert state is not None
        troubles.append(state.trouble)
        if not answers:
            raise _Enough

    monkeypatch.setattr(process, "decide", decide)
    monkeypatch.setattr(process, "wait", wait)
    with caplog.at_level(logging.WARNING, process.__name__), pytest.raises(_Enough):
        Worker(settings).work()
    assert troubles == ["away", "away", None, None, "away"]
    assert [record.getMessage() for record in caplog.records] == [
        "away",
        "checking for work again",
        "away",
    ]


def test_rehearsal_leaves_nothing_behind(settings: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    left = settings.data_dir / "rehearsal" / "of a killed one"
    left.mkdir(parents=True)

    def run_dbt(elsewhere: Settings, _: list[str]) -> None:
        assert elsewhere.data_dir == left.parent
        assert (elsewhere.warehouse_path.exists(), left.exists()) == (True, False)
        raise _Enough

    monkeypatch.setattr(project, "run_dbt", run_dbt)
    with pytest.raises(_Enough):
        cycles.rehearse(settings)
    assert list(settings.data_dir.iterdir()) == []
