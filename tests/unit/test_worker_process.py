"""The worker's own decisions: what it does with runs at its start and at its end, and what counts as a change."""

import logging
import os
import signal
import uuid
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import dagster as dg
import pytest
from dagster import DagsterRunStatus as Status

from control.errors import ControlError
from control.settings import Settings, load_settings
from pipelines.defs.cycle import SENSOR
from pipelines.defs.decide import Cycle
from pipelines.defs.runs import WORKER_TAG
from pipelines.deliver.worker_state import read_worker_state
from pipelines.worker import fingerprint, process
from pipelines.worker.fingerprint import loaded_fingerprint
from pipelines.worker.fit import UnfitToForkError
from pipelines.worker.process import Worker


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    networks = tmp_path / "networks.toml"
    networks.write_text("")
    return load_settings({"LEDGERMART_DATA_DIR": str(tmp_path / "data"), "LEDGERMART_NETWORKS": str(networks)})


class _Enough(Exception):
    """The test has seen what it wanted to."""


def test_a_file_that_is_gone_is_a_change_and_no_failure(settings: Settings) -> None:
    before = loaded_fingerprint(settings)
    assert loaded_fingerprint(settings) == before
    settings.networks_file.unlink()
    assert loaded_fingerprint(settings) != before


def test_what_dbt_writes_beside_the_project_is_no_change(
    settings: Settings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    project = tmp_path / "dbt_project"
    (project / "target" / "compiled").mkdir(parents=True)
    monkeypatch.setattr(fingerprint, "CHECKOUT", tmp_path)
    before = loaded_fingerprint(settings)
    (project / "target" / "compiled" / "model.sql").write_text("select 1")
    assert loaded_fingerprint(settings) == before
    (project / "model.sql").write_text("select 1")
    os.utime(project / "model.sql", (1, 1))
    assert loaded_fingerprint(settings) != before


def test_cycles_that_an_earlier_worker_took_with_it_are_recorded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with dg.DagsterInstance.local_temp(str(tmp_path)) as instance:
        job = dg.JobDefinition(name="a_job", graph_def=dg.GraphDefinition(name="a_job"))
        # A run without the worker, a repeated run with the tags of the first one, and two of the worker.
        first, repeated, lost, cancelled = (str(uuid.uuid4()) for _ in range(4))
        begun: list[tuple[str, Status, dict[str, str]]] = [
            (first, Status.STARTED, {}),
            (repeated, Status.STARTED, {WORKER_TAG: lost}),
            (lost, Status.STARTED, {WORKER_TAG: lost}),
            (cancelled, Status.CANCELING, {WORKER_TAG: cancelled}),
        ]
        for run_id, status, tags in begun:
            instance.create_run_for_job(job, run_id=run_id, status=status, tags=tags)
        monkeypatch.setattr(dg.DagsterInstance, "get", lambda: dg.DagsterInstance.local_temp(str(tmp_path)))
        Worker.__new__(Worker)._mark_lost()
        found = [instance.get_run_by_id(run_id) for run_id, _, _ in begun]
        ended = [Status.STARTED, Status.STARTED, Status.FAILURE, Status.CANCELED]
        assert [run and run.status for run in found] == ended


def test_no_cycle_begins_while_the_sensor_is_stopped() -> None:
    worker = Worker.__new__(Worker)
    state = SimpleNamespace(instigator_name=SENSOR, status=SimpleNamespace(value="STOPPED"))
    worker.__dict__["_instance"] = SimpleNamespace(all_instigator_state=lambda: [state])
    # Without the state it would need a job.
    worker._cycle(str(uuid.uuid4()), Cycle([]))
    state.instigator_name = "another sensor"
    with pytest.raises(AttributeError, match="_job"):
        worker._cycle(str(uuid.uuid4()), Cycle([]))


def test_a_killed_cycle_is_recorded(settings: Settings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Worker, "_prepare_fork", lambda _: None)
    worker = Worker.__new__(Worker)
    heads = {"leave": lambda _: None, "fileno": lambda _: None}
    worker.settings, worker._heads = settings, cast(Any, type("Heads", (), heads)())
    with dg.DagsterInstance.local_temp(str(tmp_path)) as instance:
        worker.__dict__["_instance"] = instance
        job = dg.JobDefinition(name="a_job", graph_def=dg.GraphDefinition(name="a_job"))
        run_id = instance.create_run_for_job(job, status=Status.STARTED).run_id
        worker._fork(run_id, signal.pause)
        assert worker._run is not None
        os.kill(worker._run.pid, signal.SIGKILL)
        while worker._run is not None:
            worker._wait()
        found = instance.get_run_by_id(run_id)
        assert found is not None
        assert found.status is Status.FAILURE


def unfit() -> None:
    raise UnfitToForkError("the worker has a thread, 'late'")


def test_a_worker_that_cannot_work_says_so_once_and_ends(
    settings: Settings, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    class Unfit:
        def __init__(self, _: Settings) -> None:
            unfit()

    settings.data_dir.mkdir()
    monkeypatch.setattr(process, "Worker", Unfit)
    monkeypatch.setattr(process, "load_settings", lambda: settings)
    before = os.umask(0o077)
    try:
        with pytest.raises(SystemExit) as ended:
            process.main()
    finally:
        os.umask(before)
    assert ended.value.code == 1
    (told,) = [record for record in caplog.records if record.name == process.__name__]
    assert (told.getMessage(), told.exc_info) == ("the worker stops: the worker has a thread, 'late'", None)
    state = read_worker_state(settings.data_dir)
    assert state is not None
    assert state.trouble == "it stopped: the worker has a thread, 'late'"


def test_a_control_store_that_is_away_is_told_once(
    settings: Settings, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    settings.data_dir.mkdir()
    answers = [ControlError("away"), ControlError("away"), None, None, ControlError("away")]
    troubles = []

    def decide(*_: object) -> None:
        if (answer := answers.pop(0)) is not None:
            raise answer

    monkeypatch.setattr(process, "decide", decide)
    worker = Worker.__new__(Worker)
    worker.settings, worker._run = settings, None
    worker._memory = worker._store = worker._networks = worker._heads = cast(Any, None)
    worker._trouble, worker._told_at = None, float("-inf")
    with caplog.at_level(logging.WARNING, process.__name__):
        while answers:
            worker._begin()
            state = read_worker_state(settings.data_dir)
            assert state is not None
            troubles.append(state.trouble)
    assert troubles == ["away", "away", None, None, "away"]
    assert [record.getMessage() for record in caplog.records] == [
        "away",
        "checking for work again",
        "away",
    ]


def test_the_rehearsal_leaves_nothing_behind(settings: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    left = settings.data_dir / "rehearsal" / "of a killed one"
    left.mkdir(parents=True)

    def run_dbt(elsewhere: Settings, _: list[str]) -> None:
        assert elsewhere.data_dir == left.parent
        assert (elsewhere.warehouse_path.exists(), left.exists()) == (True, False)
        raise _Enough

    monkeypatch.setattr(process, "run_dbt", run_dbt)
    with pytest.raises(_Enough):
        process._rehearse(settings)
    assert list(settings.data_dir.iterdir()) == []
