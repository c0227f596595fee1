"""Two API nodes with folders of their own, versions in a real S3 server, and records of them in PostgreSQL."""

import json
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass, replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from litestar.testing import TestClient

from api.engine import shards
from api.examples import EXAMPLE_TOKEN_ID
from cli.doctor import check_shared_versions
from control import serving, version_pins
from control.clock import utc_now
from control.models import Tenant
from control.settings import Settings
from tests.api.marts import publish
from tests.api.test_errors import problem
from tests.api.world import FOREIGN_TOKEN_ID, World, make_world, marts_rows
from tests.datasets.object_store import ObjectStore
from tests.unit.control.postgres import new_database, unique_name
from tests.waiting import eventually
from warehouse import shared
from warehouse.shared import ORPHAN_AGE, ShardPublisher
from warehouse.versions import Publication, SharingError, path_of, published_versions

pytestmark = pytest.mark.ci

TOKEN = f"/v1/tokens/{EXAMPLE_TOKEN_ID}"
FOREIGN = f"/v1/tokens/{FOREIGN_TOKEN_ID}"


@pytest.fixture(scope="module")
def objects() -> Iterator[ObjectStore]:
    with ObjectStore() as running:
        running.make_bucket("versions")
        yield running


def pointer_of(path: Path, shard: int) -> str:
    """Return the pointer to a version's file."""
    return json.dumps(json.loads((path.parent / "current.json").read_text()) | {"epoch": f"of-shard-{shard}"})


@dataclass
class Builders:
    """The pipelines of all shards, each with a folder of its own."""

    world: World
    folder: Path

    def settings(self, shard: int) -> Settings:
        return replace(self.world.settings, data_dir=self.folder / f"builder-{shard}", shard=shard)

    def publisher(self, shard: int = 0) -> ShardPublisher:
        return ShardPublisher(self.settings(shard), self.world.store)

    def publish(self, version: int, activities: int = 9, shard: int = 0) -> str:
        """Publish a version with the first activities of the first token; return the name of its object."""
        rows = marts_rows(self.world)
        own = [row for row in rows["token_activities"] if row["token_id"] == EXAMPLE_TOKEN_ID]
        rows["token_activities"] = own[:activities]
        path = publish(self.settings(shard).serving_dir, version, rows, epoch=f"of-shard-{shard}")
        publisher = self.publisher(shard)
        newest = publisher.newest()
        publication = Publication(version, path.name, utc_now())
        publisher.put_in_force(path, publication, pointer_of(path, shard), None if newest is None else newest[0])
        with self.world.store.read() as session:
            found = serving.find_kept(session, shard, version)
        assert found is not None
        return found.object_name

    def remove(self, after: timedelta) -> list[int]:
        """Remove old versions as a publication does after this time; return them."""
        publisher, now = self.publisher(), utc_now() + after
        with self.world.store.write() as session:
            pinned = version_pins.pinned_while_removing(session, now, shard=0)
            removed = publisher.forget_old_versions(session, pinned, now)
        publisher.delete(removed, now)
        return [served.version for served in removed]


@dataclass
class Node:
    """An API node."""

    client: TestClient[Any]
    folder: Path
    world: World

    def activities(self) -> int:
        """Return the number of activities that the node shows of the first token; 0 without a version."""
        self.world.clock.look_again()
        answer = self.client.get(f"{TOKEN}/activities")
        return len(answer.json()["data"]) if answer.status_code == 200 else 0

    def waits_for(self, activities: int) -> None:
        eventually(lambda: self.activities() == activities, f"the node shows {activities} activities")

    def health(self) -> dict[str, Any]:
        self.world.clock.look_again()
        answer = self.client.get("/health/ready")
        assert answer.status_code == 200, answer.text
        found: dict[str, Any] = answer.json()
        return found

    def path_of(self, version: int) -> Path:
        """Return the file of a version of shard 0."""
        return path_of(self.folder / "serving" / "shard-0", version)

    def versions(self, shard: int = 0) -> list[int]:
        return sorted(published_versions(self.folder / "serving" / f"shard-{shard}"))


@pytest.fixture
def world(
    postgres_server: str, objects: ObjectStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[World]:
    """The example world on PostgreSQL; the foreign tenant is in shard 1."""
    for name, value in objects.variables.items():
        monkeypatch.setenv(name, value)
    # Looks are frequent.
    monkeypatch.setattr(shards, "POLL_SECONDS", 0.05)
    monkeypatch.setattr(shared, "_RETRY_SECONDS", 0.5)
    with new_database(postgres_server, unique_name()) as url:
        store = {"LEDGERMART_CONTROL_URL": url, "LEDGERMART_VERSIONS": f"s3://versions/{tmp_path.name}"}
        (tmp_path / "world").mkdir()
        made = make_world(tmp_path / "world", store)
        with made.store.write() as session:
            session.get_one(Tenant, made.foreign_tenant_id).shard = 1
        yield made
        made.store.close()


@pytest.fixture
def builders(world: World, tmp_path: Path) -> Builders:
    return Builders(world, tmp_path)


StartNode = Callable[..., Node]


@pytest.fixture
def start(world: World, tmp_path: Path) -> Iterator[StartNode]:
    """Start an API node with an empty folder."""
    with ExitStack() as stack:

        def start_node(name: str) -> Node:
            folder = tmp_path / name
            folder.mkdir()
            client = stack.enter_context(world.client(settings=replace(world.settings, data_dir=folder)))
            return Node(client, folder, world)

        yield start_node


def test_nodes_without_a_shared_disk_give_the_same_answers(builders: Builders, start: StartNode) -> None:
    first, second = start("a"), start("b")
    problem(first.client.get(TOKEN), 503, "not-published")
    problem(first.client.get("/health/ready"), 503, "not-published")
    builders.publish(1)
    for node in (first, second):
        node.waits_for(5)
    paths = (TOKEN, f"{TOKEN}/cap-table", f"{TOKEN}/activities?limit=2", "/v1/tokens", "/v1/networks")
    for path in paths:
        answers = [node.client.get(path) for node in (first, second)]
        assert answers[0].status_code == 200
        assert answers[0].content == answers[1].content
        assert answers[0].headers.get("etag") == answers[1].headers.get("etag")
    builders.publish(2, activities=3)
    for node in (first, second):
        node.waits_for(3)
        assert node.health()["shards"] == [
            {
                "shard": 0,
                "publishedAt": "2026-03-01T00:00:00Z",
                "newestPublishedAt": node.health()["shards"][0]["newestPublishedAt"],
                "secondsBehind": 0,
                "trouble": None,
            }
        ]


def test_a_cursor_continues_on_another_node(builders: Builders, start: StartNode) -> None:
    builders.publish(1)
    first, second = start("a"), start("b")
    for node in (first, second):
        node.waits_for(5)
    whole = first.client.get(f"{TOKEN}/cap-table").json()["data"]
    url = first.client.get(f"{TOKEN}/cap-table?limit=1").links["next"]["url"]
    for version in (2, 3, 4):
        builders.publish(version, activities=version - 1)
    # Version 2 is not pinned; 3 and 4 stay for running requests.
    assert builders.remove(timedelta(minutes=20)) == [2]
    third = start("c")
    third.waits_for(3)
    assert third.versions() == [4]
    rest = third.client.get(url)
    assert rest.json()["asOf"]["dataVersion"] == 1
    assert rest.json()["data"] == whole[1:2]
    assert third.versions() == [1, 4]
    # The pin ends an hour after its last use.
    assert builders.remove(timedelta(hours=2)) == [1]
    problem(start("d").client.get(url), 410, "cursor-expired")


def test_a_node_catches_up_with_the_node_of_a_cursor(
    builders: Builders, start: StartNode, monkeypatch: pytest.MonkeyPatch
) -> None:
    builders.publish(1, activities=2)
    monkeypatch.setattr(shards, "POLL_SECONDS", 3600.0)
    slow = start("slow")
    slow.waits_for(2)
    builders.publish(2, activities=5)
    monkeypatch.setattr(shards, "POLL_SECONDS", 0.05)
    quick = start("quick")
    quick.waits_for(5)
    assert slow.activities() == 2
    url = quick.client.get(f"{TOKEN}/activities?limit=2").links["next"]["url"]
    assert slow.client.get(url).json() == quick.client.get(url).json()


def test_a_changed_object_is_refused_and_named(builders: Builders, start: StartNode, objects: ObjectStore) -> None:
    builders.publish(1, activities=2)
    node = start("a")
    node.waits_for(2)
    place = builders.world.settings.versions
    assert place is not None
    # The object is changed before any node has seen its record.
    settings = builders.settings(0)
    path = publish(settings.serving_dir, 2, marts_rows(builders.world))
    publisher = _Falsifying(settings, builders.world.store, objects, place.removeprefix("s3://versions/"))
    published = Publication(2, path.name, utc_now() - timedelta(seconds=30))
    publisher.put_in_force(path, published, pointer_of(path, 0), 1)
    eventually(lambda: node.health()["status"] == "degraded", "the node refuses the object")
    health = node.health()
    (shard,) = health["shards"]
    assert "its content differs from the stored object" in shard["trouble"]
    assert health["detail"] == f"shard 0: {shard['trouble']}"
    assert 30 <= shard["secondsBehind"] < 600
    assert node.activities() == 2
    assert node.versions() == [1]
    # The next version ends the trouble.
    builders.publish(3, activities=4)
    node.waits_for(4)
    assert node.health()["status"] == "ready"


class _Falsifying(ShardPublisher):
    """Publisher that replaces its object by one of the same size before the record is made."""

    def __init__(self, settings: Settings, store: Any, objects: ObjectStore, prefix: str) -> None:
        super().__init__(settings, store)
        self.objects, self.prefix = objects, prefix

    def record(self, *arguments: Any) -> None:
        stored = arguments[0]
        self.objects.put("versions", f"{self.prefix}/{stored.object_name}", b"x" * stored.byte_count)
        super().record(*arguments)


def test_cached_versions_stay_served_while_the_store_is_down(
    builders: Builders, objects: ObjectStore, start: StartNode
) -> None:
    builders.publish(1, activities=2)
    node = start("a")
    node.waits_for(2)
    cursor = node.client.get(f"{TOKEN}/cap-table?limit=1").links["next"]["url"]
    builders.publish(2, activities=3)
    node.waits_for(3)
    objects.stop()
    try:
        with pytest.raises(SharingError, match=r"version 3 is not served: shard-0/.*does not answer"):
            builders.publish(3)
        assert node.activities() == 3
        assert node.client.get(cursor).status_code == 200
        assert node.health()["status"] == "ready"
        # A version that the node does not have can be fetched later.
        node.path_of(1).unlink()
        problem(node.client.get(cursor), 503, "not-published")
    finally:
        objects.start()
    assert node.client.get(cursor).status_code == 200
    # A lost file of the version in force is fetched again.
    node.path_of(2).unlink()
    node.waits_for(3)


def test_each_shard_has_versions_of_its_own(builders: Builders, start: StartNode) -> None:
    builders.publish(1, activities=5)
    node = start("a")
    node.waits_for(5)
    world = builders.world
    foreign = world.headers("foreign")
    problem(node.client.get(FOREIGN, headers=foreign), 503, "not-published")
    for version in (1, 2, 3):
        builders.publish(version, shard=1)
    eventually(lambda: node.versions(1)[-1:] == [3], "the node has the version of shard 1")
    world.clock.look_again()
    assert node.client.get(FOREIGN, headers=foreign).json()["asOf"]["dataVersion"] == 3
    assert node.client.get(TOKEN).json()["asOf"]["dataVersion"] == 1
    assert [shard["shard"] for shard in node.health()["shards"]] == [0, 1]
    assert node.versions(0) == [1]
    # A tenant that moves to another shard must start its pages again.
    url = node.client.get(f"{TOKEN}/activities?limit=2").links["next"]["url"]
    with world.store.write() as session:
        session.get_one(Tenant, world.tenant_id).shard = 1
    problem(node.client.get(url), 410, "cursor-expired")
    problem(node.client.get(url, headers=foreign), 404, "token-not-found")


def test_moved_tenant_is_not_answered_from_a_version_before_its_move(
    builders: Builders, start: StartNode, objects: ObjectStore
) -> None:
    for shard in (0, 1):
        builders.publish(1, shard=shard)
    node = start("a")
    node.waits_for(5)
    eventually(lambda: node.versions(1) == [1], "the node has the version of shard 1")
    world, place = builders.world, builders.world.settings.versions
    assert place is not None
    # The node cannot fetch the version with the tenant.
    settings = builders.settings(1)
    path = publish(settings.serving_dir, 2, marts_rows(world), epoch="of-shard-1")
    publisher = _Falsifying(settings, world.store, objects, place.removeprefix("s3://versions/"))
    publisher.put_in_force(path, Publication(2, path.name, utc_now()), pointer_of(path, 1), 1)
    with world.store.write() as session:
        tenant = session.get_one(Tenant, world.tenant_id)
        tenant.shard, tenant.shard_version = 1, 2
    world.clock.look_again()
    problem(node.client.get(TOKEN), 503, "not-published")
    assert node.client.get(FOREIGN, headers=world.headers("foreign")).status_code == 200
    builders.publish(3, shard=1)
    node.waits_for(5)
    assert node.client.get(TOKEN).json()["asOf"]["dataVersion"] == 3


def test_objects_without_a_record_are_deleted_by_age(builders: Builders, objects: ObjectStore, tmp_path: Path) -> None:
    kept = builders.publish(1)
    orphan = tmp_path / "orphan.duckdb"
    orphan.write_bytes(b"of a killed builder")
    publisher = builders.publisher()
    store = shared.open_objects(builders.settings(0))
    store.put(orphan, "shard-0/of-shard-0")
    of_copy = store.put(orphan, "shard-0/of-a-copy")
    publisher.delete([], utc_now())
    assert len(store.list("shard-0")) == 3
    publisher.delete([], utc_now() + ORPHAN_AGE + timedelta(minutes=1))
    assert {found.name for found in store.list("shard-0")} == {kept, of_copy.name}


def test_doctor_tries_the_store_of_versions(builders: Builders, monkeypatch: pytest.MonkeyPatch) -> None:
    builders.publish(4)
    check = check_shared_versions(builders.world.settings)
    assert (check.verdict, check.detail) == ("ok", "an object was stored, fetched and deleted; shard 0: version 4")
    assert shared.open_objects(builders.world.settings).list("probe") == []
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "wrong-key")
    check = check_shared_versions(builders.world.settings)
    assert check.verdict == "wrong"
    assert "check LEDGERMART_VERSIONS, AWS_ENDPOINT_URL" in check.detail
    assert "wrong-key" not in check.detail
