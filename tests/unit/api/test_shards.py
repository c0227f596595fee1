"""The version of a shard that answers a tenant that moved there."""

from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import duckdb
import pytest

from api.engine import shards
from api.engine.shards import Shards
from api.errors import ApiError
from control.settings import load_settings
from tests.templates import open_migrated
from warehouse import shared
from warehouse.shared import ShardPublisher, SharedVersions
from warehouse.versions import publish


class Idle:
    """Follower without a thread."""

    def __init__(self, _: SharedVersions) -> None:
        pass

    def close(self) -> None:
        pass


def _publish_next(marts: Path, folder: Path, publisher: ShardPublisher) -> None:
    publish(marts, folder, batch_id=1, publisher=publisher)


@pytest.fixture
def node(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[Shards, Callable[[], None]]]:
    """An API node, and the pipeline of shard 1, which publishes once more at each call."""
    monkeypatch.setattr(shards, "Follower", Idle)
    monkeypatch.setattr(shared, "_CATCH_UP_SECONDS", 0)
    settings = replace(load_settings({"LEDGERMART_DATA_DIR": str(tmp_path)}), versions=str(tmp_path / "store"), shard=1)
    store, marts = open_migrated(settings), tmp_path / "build.duckdb"
    with duckdb.connect(str(marts)) as connection:
        connection.execute("create schema marts; create table marts.tenant_versions (tenant_id text, data_version int)")
    made = Shards(settings, settings.serving_dir, store, lambda: 0.0)
    yield made, lambda: _publish_next(marts, tmp_path / "built", ShardPublisher(settings, store))
    made.close()
    store.close()


def test_moved_tenant_waits_while_its_version_is_neither_fetched_nor_known(
    node: tuple[Shards, Callable[[], None]],
) -> None:
    made, publish_next = node
    assert made._shared is not None
    publish_next()
    made._shared.look()
    publish_next()
    # The follower still fetches a file of another shard, so this node has not read the new record.
    with pytest.raises(ApiError) as caught:
        made.of(1, since=2)
    assert (caught.value.status, caught.value.headers) == (503, {"Retry-After": "5"})
    assert made.of(1).in_force().version == 1
    made._shared.look()
    assert made.of(1, since=2).has_reached(2)
