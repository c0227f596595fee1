"""The worker's own decisions: what it does with runs at its start and at its end, and what counts as a change."""

import logging
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any, cast

import dagster as dg
import pytest
from dagster import DagsterRunStatus as Status

from control.errors import ControlError
from control.settings import Settings, load_settings
from pipelines.defs.runs import WORKER_TAG
from pipelines.deliver.worker_state import read_worker_state
from pipelines.worker import fingerprint, launcher, process
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


def test_what_is_handed_over_while_the_worker_starts_is_not_lost(
    settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    order = []

    def load() -> None:
        raise _Enough

    settings.data_dir.mkdir()
    monkeypatch.setattr(Worker, "_take_over", lambda _: order.append("marked"))
    monkeypatch.setattr(process, "listen", lambda _: order.append("listening"))
    monkeypatch.setattr(process, "load_definitions", load)
    with pytest.raises(_Enough):
        Worker(settings)
    assert order == ["marked", "listening"]


def test_a_stale_worker_does_what_it_has_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    worker = Worker.__new__(Worker)
    begun = []

    def begin(worker: Worker, run_id: str, _: Callable[[], None]) -> None:
        begun.append(run_id)
        worker._run = process._Run(run_id, 0, 0)

    def end(worker: Worker) -> None:
        worker._run = None

    monkeypatch.setattr(Worker, "_fork", begin)
    monkeypatch.setattr(Worker, "_wait", end)
    monkeypatch.setattr(Worker, "_is_stale", lambda _: True)
    worker._run, worker._waiting = None, ["one", "two"]
    worker.work()
    assert begun == ["one", "two"]


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


def test_runs_that_an_earlier_worker_had_not_begun_are_taken_over(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with dg.DagsterInstance.local_temp(str(tmp_path)) as instance:
        job = dg.JobDefinition(name="a_job", graph_def=dg.GraphDefinition(name="a_job"))

        def made(status: Status, worker: str) -> str:
            return instance.create_run_for_job(job, status=status, tags={WORKER_TAG: worker}).run_id

        first, begun, others = (
            made(Status.STARTING, "true"),
            made(Status.STARTED, "true"),
            made(Status.STARTED, "false"),
        )
        own, second = made(Status.NOT_STARTED, "true"), made(Status.STARTING, "true")
        monkeypatch.setattr(dg.DagsterInstance, "get", lambda: dg.DagsterInstance.local_temp(str(tmp_path)))
        assert Worker.__new__(Worker)._take_over() == [first, second]

        def status(run_id: str) -> Status:
            run = instance.get_run_by_id(run_id)
            assert run is not None
            return run.status

        assert [status(run_id) for run_id in (first, begun, others, own, second)] == [
            Status.STARTING,
            Status.FAILURE,
            Status.STARTED,
            Status.FAILURE,
            Status.STARTING,
        ]


def unfit() -> None:
    raise UnfitToForkError("the worker has a thread, 'late'")


def test_a_run_that_could_not_be_forked_waits_on(monkeypatch: pytest.MonkeyPatch, settings: Settings) -> None:
    monkeypatch.setattr(process, "check_fit_to_fork", unfit)
    worker = Worker.__new__(Worker)
    worker._store = process.open_store(settings)
    worker._run, worker._waiting = None, ["one", "two"]
    with pytest.raises(UnfitToForkError):
        worker._begin()
    assert worker._waiting == ["one", "two"]


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

    class Watch:
        def look(self, _: object) -> None:
            if (answer := answers.pop(0)) is not None:
                raise answer

    worker = Worker.__new__(Worker)
    worker.settings, worker._waiting, worker._run = settings, [], None
    worker._watch, worker._store = cast(Any, Watch()), cast(Any, None)
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


@pytest.mark.parametrize(("answer", "tag"), [("taken", "true"), ("stale", "false"), (None, "false")])
def test_a_run_says_who_executes_it_whatever_tags_it_was_copied_with(
    settings: Settings, monkeypatch: pytest.MonkeyPatch, answer: str | None, tag: str
) -> None:
    launched = []
    monkeypatch.setattr(launcher, "load_settings", lambda: settings)
    monkeypatch.setattr(launcher, "tell", lambda *_: answer)
    monkeypatch.setattr(dg.DefaultRunLauncher, "launch_run", lambda _, context: launched.append(context))
    with dg.DagsterInstance.ephemeral() as instance:
        job = dg.JobDefinition(name="a_job", graph_def=dg.GraphDefinition(name="a_job"))
        # As of a run that the code server executed, and of one of the worker.
        for copied in ({WORKER_TAG: "false", ".dagster/grpc_info": "{}"}, {WORKER_TAG: "true"}):
            run = instance.create_run_for_job(job, tags=copied)
            warm = launcher.WarmRunLauncher()
            warm.register_instance(instance)
            warm.launch_run(cast(Any, type("Context", (), {"dagster_run": run})))
            found = instance.get_run_by_id(run.run_id)
            assert found is not None
            assert found.tags[WORKER_TAG] == tag
            assert launcher.is_of_worker(found) is (tag == "true")
    assert len(launched) == (0 if tag == "true" else 2)


def test_a_run_that_was_given_up_or_launched_another_way_is_not_executed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with dg.DagsterInstance.local_temp(str(tmp_path)) as instance:
        job = dg.JobDefinition(name="a_job", graph_def=dg.GraphDefinition(name="a_job"))
        monkeypatch.setattr(dg.DagsterInstance, "get", lambda: dg.DagsterInstance.local_temp(str(tmp_path)))
        for status, worker in ((Status.FAILURE, "true"), (Status.STARTING, "false")):
            run = instance.create_run_for_job(job, status=status, tags={WORKER_TAG: worker})
            launcher.execute_run(run.run_id)
            found = instance.get_run_by_id(run.run_id)
            assert found is not None
            assert found.status is status
