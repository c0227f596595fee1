"""Cache warmer: recent requests are computed for each new version in advance."""

import math
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from litestar.testing import TestClient

from api.engine import cache_warmer
from api.engine.cache_warmer import CacheWarmer
from api.engine.serving import Snapshot
from api.examples import EXAMPLE_TOKEN_ID, EXAMPLE_WALLET_ID
from tests.api.marts import publish
from tests.api.world import World, marts_rows


class _Versions:
    """Version numbers as the cache warmer sees them."""

    def __init__(self) -> None:
        self.newest = 1
        self.looks = 0
        self.failing = 0
        self.changed = threading.Condition()
        self.made: list[tuple[str, int]] = []

    def find(self) -> int:
        """Return the newest version; fail for the configured number of first calls."""
        with self.changed:
            self.looks += 1
            self.changed.notify_all()
        if self.looks <= self.failing:
            raise FileNotFoundError("pruned meanwhile")
        return self.newest

    @contextmanager
    def open(self) -> Iterator[int]:
        yield self.newest

    def maker(self, name: str) -> Callable[[int], None]:
        def make(version: int) -> None:
            with self.changed:
                self.made.append((name, version))
                self.changed.notify_all()
            if name == "broken":
                raise RuntimeError("it cannot be made")

        return make

    def wait_for_looks(self, count: int) -> None:
        with self.changed:
            self.changed.wait_for(lambda: self.looks >= count)

    def wait_for(self, *made: tuple[str, int]) -> None:
        with self.changed:
            self.changed.wait_for(lambda: len(self.made) >= len(made))
        assert self.made == list(made)


@pytest.fixture
def versions(monkeypatch: pytest.MonkeyPatch) -> _Versions:
    monkeypatch.setattr(cache_warmer, "POLL_SECONDS", 0.01)
    return _Versions()


def test_latest_request_is_warmed_first_and_once_per_version(versions: _Versions) -> None:
    renewing = CacheWarmer(versions.find, versions.open)
    for name in ("a", "b", "a"):
        renewing.note(name, 1, versions.maker(name))
    versions.newest = 2
    versions.wait_for(("a", 2), ("b", 2))
    versions.newest = 3
    versions.wait_for(("a", 2), ("b", 2), ("a", 3), ("b", 3))
    renewing.close()


def test_failed_request_is_logged_and_others_are_warmed(versions: _Versions, caplog: pytest.LogCaptureFixture) -> None:
    renewing = CacheWarmer(versions.find, versions.open)
    renewing.note("a", 1, versions.maker("a"))
    renewing.note("broken", 1, versions.maker("broken"))
    versions.newest = 2
    versions.wait_for(("broken", 2), ("a", 2))
    renewing.close()
    assert "could not be warmed for version 2" in caplog.text


def test_failed_version_lookup_is_retried(versions: _Versions, caplog: pytest.LogCaptureFixture) -> None:
    versions.newest, versions.failing = 2, 1
    renewing = CacheWarmer(versions.find, versions.open)
    renewing.note("a", 1, versions.maker("a"))
    versions.wait_for(("a", 2))
    renewing.close()
    assert "could not be found" in caplog.text


def test_no_request_is_warmed_after_the_time_limit(versions: _Versions, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cache_warmer, "MAKING_SECONDS", 0.0)
    versions.newest = 2
    renewing = CacheWarmer(versions.find, versions.open)
    renewing.note("a", 1, versions.maker("a"))
    versions.wait_for_looks(2)
    renewing.close()
    assert versions.made == []


def test_old_requests_are_not_warmed_for_a_new_version(versions: _Versions) -> None:
    now = [0.0]
    renewing = CacheWarmer(versions.find, versions.open, lambda: now[0])
    renewing.note("a", 1, versions.maker("a"))
    now[0] = 601.0
    renewing.note("b", 1, versions.maker("b"))
    versions.newest = 2
    versions.wait_for(("b", 2))
    renewing.close()
    assert versions.made == [("b", 2)]


def test_cap_tables_and_reports_are_warmed_for_a_new_version(
    world: World, client: TestClient[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    made: list[tuple[int, str]] = []
    changed = threading.Condition()
    table = Snapshot.table

    def noted(self: Snapshot, key: tuple[Any, ...], tables: Any, query: str, **parameters: Any) -> Any:
        found = table(self, key, tables, query, **parameters)
        with changed:
            made.append((self.version, query))
            changed.notify_all()
        return found

    monkeypatch.setattr(Snapshot, "table", noted)
    monkeypatch.setattr(cache_warmer, "MAKING_SECONDS", math.inf)
    links = [
        client.get(f"/v1/reports/{name}", params=subject).json()["reportUrl"].partition("#t=")[2]
        for name, subject in (
            ("cap-table", {"tokenId": EXAMPLE_TOKEN_ID}),
            ("wallet-activity", {"walletId": EXAMPLE_WALLET_ID}),
        )
    ]
    for name, token in zip(("cap-table", "wallet-activity"), links, strict=True):
        answer = client.get(f"/embed/data/{name}/summary", headers={"Authorization": f"Bearer {token}"})
        assert answer.status_code == 200
    publish(world.settings.serving_dir, 2, marts_rows(world))
    world.clock.look_again()
    wanted = {(2, "holders_now"), (2, "report_places"), (2, "report_order_descending")}
    with changed:
        changed.wait_for(lambda: wanted <= set(made))
