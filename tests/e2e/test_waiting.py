"""The wait of the demo for operations: it lasts while they make progress."""

from types import SimpleNamespace
from typing import Any, cast

import pytest

from tests.e2e import prices
from tests.e2e.client import ApiClient
from tests.waiting import Naps

_LIMIT = 10.0


def answers_of(*steps: tuple[str, int]) -> tuple[ApiClient, list[int]]:
    """Return a client that shows an operation in these states, the last one for ever, and a list with each call."""
    asked: list[int] = []

    def get(_: str) -> dict[str, Any]:
        status, done = steps[min(len(asked), len(steps) - 1)]
        asked.append(done)
        return {"id": "op_1", "status": status, "progress": {"done": done, "total": 40}, "error": None}

    return cast(ApiClient, SimpleNamespace(get=get)), asked


@pytest.fixture(autouse=True)
def naps(monkeypatch: pytest.MonkeyPatch) -> Naps:
    taken = Naps()
    monkeypatch.setattr(prices, "time", SimpleNamespace(monotonic=taken.clock, sleep=taken.sleep))
    return taken


def test_progress_is_waited_for_beyond_the_limit(naps: Naps) -> None:
    client, _ = answers_of(*(("Running", done // 5) for done in range(200)), ("Succeeded", 40))
    shown: list[tuple[int, int]] = []
    assert prices.wait_for(client, ["one"], _LIMIT, lambda done, total: shown.append((done, total))) == []
    assert sum(naps.taken) > 10 * _LIMIT
    assert (shown[0], shown[-1]) == ((0, 1), (1, 1))


def test_an_operation_without_progress_ends_the_wait_at_the_limit(naps: Naps) -> None:
    client, _ = answers_of(("Running", 1), ("Running", 2))
    (left,) = prices.wait_for(client, ["one"], _LIMIT, lambda *_: None)
    assert left["progress"]["done"] == 2
    assert _LIMIT <= sum(naps.taken) <= _LIMIT + 3


def test_a_failed_operation_ends_the_wait_at_once(naps: Naps) -> None:
    client, asked = answers_of(("Failed", 1))
    (left,) = prices.wait_for(client, ["one"], _LIMIT, lambda *_: None)
    assert (left["status"], len(asked), naps.taken) == ("Failed", 1, [])
