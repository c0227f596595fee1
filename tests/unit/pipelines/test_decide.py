"""Start of cycles: full ones, and short ones over new blocks only."""

from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import duckdb
import msgspec
import pytest

from control.settings import load_settings
from pipelines.defs import decide as decisions
from pipelines.defs import time_budget
from pipelines.defs.decide import Cycle, Memory, decide
from pipelines.defs.time_budget import HistoryTimeBudget
from pipelines.deliver.progress import NetworkProgress, Progress, SourceProgress
from pipelines.raw.database import create_tables
from warehouse.versions import Publication

_CYCLE_SECONDS = 30
_NETWORK = NetworkProgress("Healthy", None, 9, 5, 9, False, False, 0, None, True, None, ())
_SOURCE = SourceProgress(None, 1, 0, None, "2999-01-01T00:00:00+00:00", True, None)
_PROGRESS = Progress(
    1, "a run", 7, "2026-01-01T00:00:00Z", {"one": _NETWORK}, {"a source": _SOURCE}, False, False, False
)

# Only `is_enabled` of their definitions matters here.
_NETWORKS = cast(Any, {name: SimpleNamespace(is_enabled=True) for name in ("one", "two", "bad", "worse")})
_NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)


class Scene:
    """Decisions for a state set by a test."""

    def __init__(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.settings = load_settings(
            {"LEDGERMART_DATA_DIR": str(tmp_path), "LEDGERMART_CYCLE_SECONDS": str(_CYCLE_SECONDS)}
        )
        self.memory = Memory()
        self.progress, self.revision, self.now = _PROGRESS, 7, 0.0
        self.due: Sequence[str] = ["one"]
        self.published = Publication(1, "marts-1.duckdb", _NOON)
        warehouse = {
            "is_written": lambda _: False,
            "published": lambda _: self.published,
            "is_newest_readable": lambda _: True,
        }
        monkeypatch.setattr(decisions, "Warehouse", lambda _: type("Warehouse", (), warehouse)())
        monkeypatch.setattr(decisions, "read_progress", lambda _: self.progress)
        monkeypatch.setattr(decisions, "read_revision", lambda _: self.revision)
        monkeypatch.setattr(
            decisions, "due_networks", lambda *_: (list(self.due), self.revision != self.progress.control_revision)
        )
        monkeypatch.setattr(decisions, "utc_now", lambda: _NOON + timedelta(minutes=4, seconds=59))

    def look(self, *, after: float = _CYCLE_SECONDS, **progress: Any) -> Cycle | None:
        """Decide again some seconds later, with this state left by the last cycle."""
        self.now += after
        self.progress = msgspec.structs.replace(self.progress, **progress)
        store = SimpleNamespace(read=nullcontext)
        # As the sensor stores it.
        self.memory = msgspec.json.decode(msgspec.json.encode(self.memory), type=Memory)
        return decide(self.settings, cast(Any, store), _NETWORKS, cast(Any, None), self.memory, self.now)

    def end(self, **progress: Any) -> None:
        """End the running cycle."""
        self.progress = msgspec.structs.replace(self.progress, batch_id=self.progress.batch_id + 1, **progress)


@pytest.fixture
def scene(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Scene:
    """One cycle has run, without a publication."""
    made = Scene(tmp_path, monkeypatch)
    # Earlier publications are unknown, so the first cycle is a full one.
    assert made.look() == Cycle(["one"])
    made.end()
    return made


def test_new_blocks_alone_start_a_short_cycle(scene: Scene) -> None:
    assert scene.look(after=_CYCLE_SECONDS - 1) is None
    assert scene.look(after=1) == Cycle(["one"], is_short=True)
    scene.due = []
    scene.end()
    assert scene.look() is None


def test_rows_of_a_short_cycle_are_built_at_once_and_only_once(scene: Scene) -> None:
    assert scene.look() == Cycle(["one"], is_short=True)
    scene.end(is_behind=True)
    scene.due = []
    assert scene.look(after=1) == Cycle([])
    # The build failed.
    scene.end()
    assert scene.look(after=1) is None
    assert scene.look() == Cycle([])


def test_cycle_after_a_publication_is_a_full_one(scene: Scene) -> None:
    scene.published = replace(scene.published, version=2)
    assert scene.look() == Cycle(["one"])
    scene.end()
    assert scene.look() == Cycle(["one"], is_short=True)


def unfinished_history(scene: Scene) -> None:
    network = msgspec.structs.replace(_NETWORK, has_unfinished_history=True)
    scene.progress = msgspec.structs.replace(scene.progress, networks={"one": _NETWORK, "two": network})


def history_that_may_go_on_again(scene: Scene) -> None:
    network = msgspec.structs.replace(_NETWORK, has_unfinished_history=True, waits_until=_NOON)
    scene.progress = msgspec.structs.replace(scene.progress, networks={"one": network})


def test_history_waiting_for_budget_does_not_cause_a_full_cycle(scene: Scene) -> None:
    tomorrow = _NOON + timedelta(days=1)
    network = msgspec.structs.replace(_NETWORK, has_unfinished_history=True, waits_until=tomorrow)
    scene.progress = msgspec.structs.replace(scene.progress, networks={"one": network})
    assert scene.look() == Cycle(["one"], is_short=True)


def unfinished_discovery(scene: Scene) -> None:
    scene.progress = msgspec.structs.replace(scene.progress, has_unfinished_discoveries=True)


def due_price_source(scene: Scene) -> None:
    source = msgspec.structs.replace(_SOURCE, due_at="2026-01-01T00:00:00+00:00")
    scene.progress = msgspec.structs.replace(scene.progress, price_sources={"a source": source})


def something_behind(scene: Scene) -> None:
    scene.progress = msgspec.structs.replace(scene.progress, is_behind=True)


def changed_configuration(scene: Scene) -> None:
    scene.revision = 8


def old_version(scene: Scene) -> None:
    scene.published = replace(scene.published, published_at=_NOON - timedelta(minutes=5))


@pytest.mark.parametrize(
    "arrange",
    [
        unfinished_history,
        history_that_may_go_on_again,
        unfinished_discovery,
        due_price_source,
        something_behind,
        changed_configuration,
        old_version,
    ],
)
def test_other_pending_work_makes_the_cycle_a_full_one(scene: Scene, arrange: Any) -> None:
    arrange(scene)
    assert scene.look() == Cycle(["one"])


def failing(name: str) -> NetworkProgress:
    """Return a network that failed in the last cycle."""
    return msgspec.structs.replace(_NETWORK, status="Unreachable", failures_in_a_row=2, error=f"{name}: no answer")


def test_failed_networks_get_a_separate_cycle_after_the_others(scene: Scene) -> None:
    """The publication of the healthy ones must not wait for the budget of a failing one."""
    networks = {"bad": failing("bad"), "one": _NETWORK, "worse": failing("worse")}
    scene.due = ["one", "bad", "worse"]
    assert scene.look(networks=networks) == Cycle(["one"], is_short=True)
    scene.due = []
    scene.end()
    assert scene.look(after=1) == Cycle(["bad", "worse"], is_short=True)
    scene.end()
    assert scene.look(after=1) is None
    scene.due = ["bad"]
    assert scene.look() == Cycle(["bad"], is_short=True)


def test_found_rows_are_built_before_failed_networks_are_retried(scene: Scene) -> None:
    scene.due = ["one", "bad"]
    assert scene.look(networks={"bad": failing("bad"), "one": _NETWORK}) == Cycle(["one"], is_short=True)
    scene.end(is_behind=True)
    scene.due = []
    assert scene.look(after=1) == Cycle([])
    scene.end(is_behind=False)
    assert scene.look(after=1) == Cycle(["bad"], is_short=True)


def test_failed_networks_get_a_cycle_despite_endless_other_work(scene: Scene) -> None:
    scene.due = ["one", "bad"]
    begun = [
        scene.look(networks={"bad": failing("bad"), "one": _NETWORK}, has_unfinished_discoveries=True) for _ in range(4)
    ]
    assert [cycle.networks for cycle in begun if cycle is not None] == [["one"], ["bad"], ["one"], ["bad"]]


def test_removed_networks_are_not_retried(scene: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    scene.due = ["one", "bad", "worse"]
    networks = {"bad": failing("bad"), "one": _NETWORK, "worse": failing("worse")}
    assert scene.look(networks=networks) == Cycle(["one"], is_short=True)
    monkeypatch.delitem(_NETWORKS, "bad")
    monkeypatch.setattr(_NETWORKS["worse"], "is_enabled", False)
    scene.due = []
    scene.end()
    assert scene.look(after=1) is None


def test_sensor_begins_cycles_after_its_clock_was_set_back(scene: Scene) -> None:
    assert scene.look(after=1e9) == Cycle(["one"], is_short=True)
    scene.end()
    assert scene.look(after=-1e9) == Cycle(["one"], is_short=True)


@pytest.mark.parametrize("days", [-1826, 0, 1826])
def test_past_data_gets_at_most_the_time_between_cycles(days: int, monkeypatch: pytest.MonkeyPatch) -> None:
    with duckdb.connect() as connection:
        create_tables(connection)
        began = _NOON.replace(tzinfo=None)
        connection.execute("insert into raw.batches values (1, 'a run', ?, null)", [began])
        monkeypatch.setattr(time_budget, "stored_now", lambda: began + timedelta(days=days))
        monkeypatch.setattr(time_budget, "time", SimpleNamespace(monotonic=lambda: passed[-1]))
        store = SimpleNamespace(read=nullcontext)
        monkeypatch.setattr(time_budget, "read_revision", lambda _: None)
        passed = [100.0]
        budget = HistoryTimeBudget(connection, cast(Any, store), 1, 60)
        lasts = 2 if days > 0 else 60
        for seconds, is_over in ((lasts - 0.1, False), (lasts, True)):
            passed.append(100.0 + seconds)
            assert budget.is_over() == is_over
