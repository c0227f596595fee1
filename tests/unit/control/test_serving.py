"""Pointers to served versions: they move by compare-and-swap alone."""

from datetime import UTC, datetime

import pytest

from control.serving import PointerMovedError, Served, move_pointer, read_served, served_objects
from control.store import ControlStore
from tests.unit.control.conftest import on_both

NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)


def served(version: int) -> Served:
    return Served(version, f"serving/{version}", 10, "0" * 64, "{}", NOON)


@on_both
def test_a_pointer_moves_from_the_version_that_was_found(store: ControlStore) -> None:
    with store.write() as session:
        assert read_served(session, 1) is None
        move_pointer(session, 1, None, served(1))
        move_pointer(session, 2, None, served(7))
    with store.write() as session:
        move_pointer(session, 1, 1, served(2))
    with store.read() as session:
        assert read_served(session, 1) == served(2)
        assert served_objects(session) == {"serving/2", "serving/7"}


@on_both
@pytest.mark.parametrize("before", [None, 1, 3])
def test_a_builder_that_comes_late_changes_nothing(store: ControlStore, before: int | None) -> None:
    with store.write() as session:
        move_pointer(session, 1, None, served(1))
        move_pointer(session, 1, 1, served(2))
    with store.write() as session, pytest.raises(PointerMovedError, match="shard 1 no longer serves"):
        move_pointer(session, 1, before, served(9))
    with store.read() as session:
        assert read_served(session, 1) == served(2)
