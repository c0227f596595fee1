"""The published versions of shards: the one in force moves by compare-and-swap alone."""

from datetime import UTC, datetime

import pytest

from control.serving import PointerMovedError, Served, find_kept, forget, publish, read_kept, read_served, read_shards
from control.store import ControlStore
from tests.unit.control.conftest import on_both

NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)


def served(version: int) -> Served:
    return Served(version, f"serving/{version}", 10, "0" * 64, "{}", NOON)


@on_both
def test_the_version_in_force_follows_the_one_that_was_found(store: ControlStore) -> None:
    with store.write() as session:
        assert read_served(session, 1) is None
        publish(session, 1, None, served(1))
        publish(session, 2, None, served(7))
    with store.write() as session:
        publish(session, 1, 1, served(2))
    with store.read() as session:
        assert read_served(session, 1) == served(2)
        assert read_kept(session, 1) == [served(1), served(2)]
        shards = read_shards(session)
        assert {shard: (found.in_force, list(found.kept)) for shard, found in shards.items()} == {
            1: (2, [1, 2]),
            2: (7, [7]),
        }
        assert shards[1].served == find_kept(session, 1, 2) == served(2)
        assert find_kept(session, 2, 1) is None


@on_both
@pytest.mark.parametrize(("before", "number"), [(None, 9), (1, 9), (3, 9), (2, 2)])
def test_a_builder_that_comes_late_changes_nothing(store: ControlStore, before: int | None, number: int) -> None:
    with store.write() as session:
        publish(session, 1, None, served(1))
        publish(session, 1, 1, served(2))
    with store.write() as session, pytest.raises(PointerMovedError, match="shard 1 no longer serves"):
        publish(session, 1, before, served(number))
    with store.read() as session:
        assert read_served(session, 1) == served(2)
        assert read_kept(session, 1) == [served(1), served(2)]


@on_both
def test_records_of_removed_versions_go_and_the_one_in_force_stays(store: ControlStore) -> None:
    with store.write() as session:
        publish(session, 1, None, served(1))
        publish(session, 1, 1, served(2))
        publish(session, 2, None, served(1))
        forget(session, 1, [1, 2])
    with store.read() as session:
        assert read_kept(session, 1) == [served(2)]
        assert read_kept(session, 2) == [served(1)]
