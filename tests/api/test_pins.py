"""Versions pinned by cursors of a cap table: pinned at creation and at each use, for one hour."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from litestar.testing import TestClient
from sqlalchemy import text

from api.engine.pins import Pins
from api.engine.serving import Serving
from api.errors import ApiError
from api.examples import EXAMPLE_TOKEN_ID
from control import version_pins
from tests.api.test_errors import problem
from tests.api.test_serving import publish_next
from tests.api.world import World
from warehouse.versions import published_versions, remove_old_versions

pytestmark = pytest.mark.release

TOKEN = f"/v1/tokens/{EXAMPLE_TOKEN_ID}"
RANKED = (f"{TOKEN}/cap-table?limit=1", f"{TOKEN}/cap-table/changes?from=block:260&limit=1")
NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)
MINUTE = timedelta(minutes=1)


def pinned(world: World, after: timedelta = timedelta()) -> set[int]:
    with world.store.read() as session:
        return version_pins.pinned(session, datetime.now(UTC) + after)


def remove(world: World, after: timedelta) -> list[int]:
    """Remove versions like a publication after this time."""
    now = datetime.now(UTC) + after
    with world.store.write() as session:
        held = version_pins.pinned_while_removing(session, now)
        return remove_old_versions(world.settings.serving_dir, 900, 10**12, held, now)


@pytest.mark.parametrize("url", RANKED)
def test_cursor_over_ranks_keeps_its_version_for_an_hour(world: World, client: TestClient[Any], url: str) -> None:
    answer = client.get(url)
    following = answer.links["next"]["url"]
    assert pinned(world) == {1}
    for version in (2, 3, 4):
        publish_next(world, version, 5)
    # Versions 1 and 2 were superseded an hour ago.
    assert remove(world, timedelta(minutes=59)) == [2]
    second = client.get(following)
    assert second.status_code == 200
    assert second.json()["data"] != answer.json()["data"]
    assert remove(world, timedelta(minutes=62)) == [1]
    problem(client.get(following), 410, "cursor-expired")


@pytest.mark.parametrize(
    "url",
    [
        TOKEN,
        f"{TOKEN}/cap-table?limit=1000",
        f"{TOKEN}/activities?limit=1",
        "/v1/tokens?limit=1",
    ],
)
def test_response_without_ranked_cursor_pins_no_version(world: World, client: TestClient[Any], url: str) -> None:
    assert client.get(url).status_code == 200
    assert pinned(world) == set()


def test_file_pins_no_version(world: World, client: TestClient[Any]) -> None:
    assert client.get(f"{TOKEN}/cap-table", headers={"Accept": "text/csv"}).status_code == 200
    assert pinned(world) == set()


def test_disk_budget_refuses_new_pins_but_keeps_old_ones(world: World) -> None:
    small = replace(world.settings, version_disk_budget_mb=1)
    with world.client() as client:
        following = client.get(RANKED[0]).links["next"]["url"]
    for version in (2, 3):
        publish_next(world, version, 5)
    with world.client(settings=small) as client:
        for url in RANKED:
            answer = client.get(url)
            found = problem(answer, 503, "version-budget")
            assert "LEDGERMART_VERSION_DISK_BUDGET_MB is 1" in found["detail"]
            assert answer.headers["retry-after"] == "60"
        assert client.get(following).status_code == 200
        assert client.get(f"{TOKEN}/cap-table?limit=1000").status_code == 200
        assert client.get(f"{TOKEN}/cap-table", headers={"Accept": "text/csv"}).status_code == 200
        assert client.get(f"{TOKEN}/activities?limit=1").status_code == 200
    with world.client() as client:
        assert client.get(RANKED[0]).status_code == 200


@pytest.fixture
def serving(world: World) -> Any:
    opened = Serving(world.settings.serving_dir, 256, 900, world.clock)
    yield opened
    opened.close()


def hold(pins: Pins, version: int, tenant_id: str, *, is_new: bool) -> None:
    record = pins.hold(version, tenant_id, is_new=is_new)
    if record is not None:
        record()


def test_pin_uses_are_recorded_per_minute(world: World, serving: Serving) -> None:
    now = NOON
    pins = Pins(world.store, serving, 100, lambda: now)

    def held_at(moment: datetime) -> bool:
        with world.store.read() as session:
            return 1 in version_pins.pinned(session, moment)

    for minutes, held_to in ((0, 0), (0.9, 0), (1, 1), (50, 50)):
        now = NOON + minutes * MINUTE
        hold(pins, 1, world.tenant_id, is_new=False)
        assert held_at(now + 60 * MINUTE)
        until = NOON + (held_to + 61) * MINUTE
        assert held_at(until - timedelta(seconds=1))
        assert not held_at(until)


def test_version_removed_during_a_request_is_not_pinned(world: World, serving: Serving) -> None:
    pins = Pins(world.store, serving, 100)
    with pytest.raises(ApiError) as found:
        hold(pins, 9, world.tenant_id, is_new=True)
    assert (found.value.status, found.value.code, found.value.headers) == (503, "version-removed", {"Retry-After": "1"})
    with pytest.raises(ApiError):
        hold(pins, 9, world.tenant_id, is_new=False)


def test_disk_budget_counts_pins_of_other_processes(world: World, serving: Serving) -> None:
    for version in (2, 3):
        publish_next(world, version, 5)
    just_started = Pins(world.store, serving, 1)
    hold(Pins(world.store, serving, 100), 1, world.tenant_id, is_new=True)
    with pytest.raises(ApiError, match="versions that cursors hold need"):
        hold(just_started, 3, world.tenant_id, is_new=True)


def test_one_tenant_cannot_use_the_whole_disk_budget(world: World, serving: Serving) -> None:
    other = world.principals["foreign"].tenant_id
    megabytes = -(-next(iter(published_versions(world.settings.serving_dir).values())).stat().st_size // 1_000_000)
    now, refused = NOON, []
    pins = Pins(world.store, serving, 6 * megabytes, lambda: now)
    for version in range(1, 8):
        if version > 1:
            publish_next(world, version, 5)
        now += timedelta(seconds=2)
        try:
            hold(pins, version, world.tenant_id, is_new=True)
        except ApiError as error:
            refused.append((version, "more than its share" in error.detail))
    assert refused == [(5, True), (6, True), (7, True)]
    # The tenant's pages continue, and another tenant can start paging.
    hold(pins, 1, world.tenant_id, is_new=False)
    hold(pins, 7, other, is_new=True)
    with world.store.read() as session:
        assert version_pins.pinned(session, now, other) == {7}
        assert version_pins.pinned(session, now, world.tenant_id) == {1, 2, 3, 4}


def test_pin_of_a_new_cursor_does_not_wait_for_a_writer(world: World, serving: Serving) -> None:
    with world.store.write() as session:
        session.execute(text("select 1"))
        assert Pins(world.store, serving, 100).hold(1, world.tenant_id, is_new=True) is not None
