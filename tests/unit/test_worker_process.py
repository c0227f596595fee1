"""The worker's own decisions: what it does with runs at its start and at its end, and what counts as a change."""

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from control.settings import Settings, load_settings
from pipelines.worker import fingerprint, process
from pipelines.worker.fingerprint import loaded_fingerprint
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

    monkeypatch.setattr(Worker, "_mark_lost_runs", lambda _: order.append("marked"))
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
