"""Polls of heads: an endless response delays neither the worker nor other networks."""

import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from multiprocessing.connection import wait
from pathlib import Path
from typing import Any, cast

import msgspec
import pytest

from control.networks.definitions import Network, load_networks
from control.settings import load_settings
from pipelines.defs import decide, heads
from pipelines.defs.decide import due_networks
from pipelines.defs.heads import Heads, PolledHead, WaitingHeads, poll_head
from pipelines.deliver.progress import NetworkProgress, Progress
from pipelines.worker.heads import HeadPoller
from tests.chain.hostile_answers import NEVER_ENDING, Answer
from tests.chain.http_server import Reply
from tests.chain.scripted_node import ScriptedNode
from tests.waiting import PATIENCE_SECONDS, eventually


class DrippingNode(ScriptedNode):
    """A node that gives an endless response to each request."""

    def __init__(self, answer: Answer) -> None:
        super().__init__()
        self._hostile = answer
        self.met = threading.Event()

    def answer(self, body: bytes) -> Reply:
        """Answer one request."""
        self.met.set()
        return self._hostile([])


def numbers(polls: Heads) -> dict[str, int | None]:
    """Return the block numbers of the finished polls."""
    return {name: head and head.number for name, head in polls.answers().items()}


def network(name: str, url: str) -> Network:
    """Return a network at a node."""
    path = load_settings({}).networks_file
    return replace(load_networks(path, {"ETHEREUM_RPC_URL": url})["ethereum"], name=name)


@pytest.fixture
def good() -> Iterator[ScriptedNode]:
    with ScriptedNode(head=41) as node:
        yield node


@pytest.mark.parametrize("mode", ["drip_header", "continue_flood", "trailers", "drip_body", "silent"])
def test_late_poll_has_no_result(mode: str, good: ScriptedNode, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(heads, "POLL_SECONDS", 0.3)
    with DrippingNode(NEVER_ENDING[mode]) as node:
        assert poll_head(network("evil", node.url)) is None


def test_defect_at_one_network_gives_no_result(monkeypatch: pytest.MonkeyPatch, good: ScriptedNode) -> None:
    def spoilt(chosen: Network, **options: Any) -> Any:
        if chosen.name == "spoilt":
            raise ValueError("a defect")
        return truly(chosen, **options)

    truly = heads.open_node
    monkeypatch.setattr(heads, "open_node", spoilt)
    polls = WaitingHeads()
    polls.ask([network("spoilt", good.url), network("good", good.url)])
    assert numbers(polls) == {"spoilt": None, "good": 41}
    assert numbers(polls) == {}


def test_worker_takes_results_as_they_arrive(monkeypatch: pytest.MonkeyPatch, good: ScriptedNode) -> None:
    """The response of the dripping node never ends; meanwhile, the worker takes the other node's result."""
    monkeypatch.setattr(heads, "POLL_SECONDS", PATIENCE_SECONDS)
    poller = HeadPoller()
    found: dict[str, int | None] = {}

    def has_answer(name: str) -> bool:
        found.update(numbers(poller))
        return name in found

    with DrippingNode(NEVER_ENDING["drip_header"]) as evil:
        networks = [network("evil", evil.url), network("good", good.url)]
        assert numbers(poller) == {}
        poller.ask(networks)
        eventually(lambda: has_answer("good"), "the honest node's head is there")
        assert found == {"good": 41}
        assert evil.met.wait(PATIENCE_SECONDS)
        # A network with a running poll is not polled again.
        found.clear()
        poller.ask(networks)
        assert wait([poller.answered], PATIENCE_SECONDS)
        eventually(lambda: has_answer("good"), "the honest node's head is there again")
        assert found == {"good": 41}
    eventually(lambda: has_answer("evil"), "the end of the connection is seen")
    assert found == {"good": 41, "evil": None}


class _Known:
    """Polls with results set by a test."""

    def __init__(self, answers: Mapping[str, int | None]) -> None:
        self.asked: list[str] = []
        self._answers = {name: None if head is None else PolledHead(head, 0) for name, head in answers.items()}

    def ask(self, networks: Sequence[Network]) -> None:
        """Record the polled networks."""
        self.asked += [network.name for network in networks]

    def answers(self) -> Mapping[str, PolledHead | None]:
        """Return the results set by the test."""
        return self._answers


def state(**fields: Any) -> NetworkProgress:
    """Return the state of a network at block 9, with replaced fields."""
    known = NetworkProgress("Healthy", None, 9, 5, 9, False, False, 0, None, True, None, ())
    return msgspec.structs.replace(known, **fields)


def due(
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    states: Mapping[str, NetworkProgress],
    answers: Mapping[str, int | None],
    *,
    is_changed: bool = False,
    tracked: Sequence[str] | None = None,
    polled_at: Mapping[str, float] | None = None,
) -> tuple[list[str], list[str]]:
    """Return the due networks in order, and the polled networks."""
    settings = load_settings({"LEDGERMART_DATA_DIR": str(tmp_path), "LEDGERMART_CYCLE_SECONDS": "30"})
    networks = {name: network(name, "http://127.0.0.1:1") for name in states}
    progress = Progress(1, "a run", 7, "2026-01-01T00:00:00Z", dict(states), {}, False, False, False)
    monkeypatch.setattr(decide, "read_revision", lambda _: 8 if is_changed else 7)
    monkeypatch.setattr(decide, "networks_with_subjects", lambda *_: set(networks))
    monkeypatch.setattr(decide, "networks_with_open_windows", lambda *_: set(networks if tracked is None else tracked))
    polls = _Known(answers)
    store = type("Store", (), {"read": lambda _: nullcontext()})()
    found, changed = due_networks(cast(Any, store), networks, progress, settings, dict(polled_at or {}), polls, 0.0)
    assert changed == is_changed
    return found, sorted(polls.asked)


def tried(seconds_ago: int) -> str:
    """Return a past moment."""
    return (datetime.now(UTC) - timedelta(seconds=seconds_ago)).isoformat()


def test_new_heads_and_first_failed_polls_make_networks_due(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    states = {"late": state(), "new": state(), "old": state(), "pending": state()}
    found, asked = due(monkeypatch, tmp_path, states, {"late": None, "new": 10, "old": 9, "gone": 99})
    assert found == ["late", "new"]
    assert asked == ["late", "new", "old", "pending"]


def test_heads_are_polled_at_most_every_poll_seconds(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    polled_at = {"early": -network("one", "").poll_seconds + 1.0, "late": -network("one", "").poll_seconds}
    found, asked = due(monkeypatch, tmp_path, {"early": state(), "late": state()}, {}, polled_at=polled_at)
    assert (found, asked) == ([], ["late"])


def test_untracked_networks_with_unfinished_work_are_due(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    states = {
        "done": state(),
        "ending": state(has_ending_windows=True),
        "failed": state(failures_in_a_row=1, tried_at=tried(60)),
        "history": state(has_unfinished_history=True),
    }
    found, asked = due(monkeypatch, tmp_path, states, {}, tracked=[])
    assert (found, asked) == (["history", "failed"], ["ending"])


@pytest.mark.parametrize(
    ("failures", "seconds", "is_due"),
    [(1, 20, False), (1, 40, True), (3, 110, False), (3, 130, True), (9, 950, False), (9, 970, True)],
)
@pytest.mark.parametrize("is_changed", [False, True])
def test_failed_network_waits_and_comes_last(
    failures: int, seconds: int, is_due: bool, is_changed: bool, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """It waits 1, 2, 4, ... cycles of 30 s, at most 32, even if tenants write all the time."""
    states = {"a-bad": state(failures_in_a_row=failures, tried_at=tried(seconds)), "good": state()}
    found, asked = due(monkeypatch, tmp_path, states, {"good": 10}, is_changed=is_changed)
    assert found == (["good", "a-bad"] if is_due else ["good"])
    assert asked == ["good"]


def test_times_ahead_of_the_clock_delay_no_network(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    bad = state(failures_in_a_row=1, tried_at=tried(-5 * 365 * 86_400))
    waiting = state(has_unfinished_history=True, waits_until=datetime.now(UTC) + timedelta(days=2))
    found, _ = due(monkeypatch, tmp_path, {"a-bad": bad, "waiting": waiting}, {}, polled_at={"a-bad": 1e9})
    assert found == ["waiting", "a-bad"]
