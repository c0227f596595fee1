"""Pins of published versions: how long each lasts, and that none is recorded while versions are removed."""

from datetime import UTC, datetime, timedelta

from control import revision, version_pins
from control.settings import Settings
from control.store import ControlStore
from tests.unit.control.conftest import on_both
from tests.unit.control.second_writer import start_waiting

NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)
HOUR, MINUTE, SECOND = timedelta(hours=1), timedelta(minutes=1), timedelta(seconds=1)


@on_both
def test_a_pin_lasts_an_hour_after_the_last_use(store: ControlStore) -> None:
    with store.write() as session:
        version_pins.pin(session, 7, NOON)
        version_pins.pin(session, 8, NOON)
        version_pins.pin(session, 7, NOON + 30 * MINUTE)
        # Another process's clock may be behind.
        version_pins.pin(session, 7, NOON - HOUR)
    with store.read() as session:
        assert version_pins.pinned(session, NOON + HOUR) == {7, 8}
        # A use less than a minute after the recorded one is not recorded, so the pin lasts a minute longer.
        assert version_pins.pinned(session, NOON + HOUR + MINUTE) == {7}
        assert version_pins.pinned(session, NOON + 90 * MINUTE + MINUTE - SECOND) == {7}
        assert version_pins.pinned(session, NOON + 90 * MINUTE + MINUTE) == set()
        # It is no change of configuration: no cycle begins for it.
        assert revision.read_revision(session) == 0


@on_both
def test_old_pins_are_forgotten(store: ControlStore) -> None:
    with store.write() as session:
        version_pins.pin(session, 7, NOON)
        version_pins.pin(session, 8, NOON + HOUR)
    with store.write() as session:
        assert version_pins.pinned_while_removing(session, NOON + 90 * MINUTE) == {8}
    with store.read() as session:
        assert version_pins.pinned(session, NOON) == {8}


@on_both
def test_no_pin_is_recorded_while_versions_are_removed(store: ControlStore, settings: Settings) -> None:
    """Else a version could go between a pin's being looked for and its being recorded."""

    def record() -> None:
        with store.write() as session:
            version_pins.pin(session, 7, NOON)

    with store.write() as session:
        assert version_pins.pinned_while_removing(session, NOON) == set()
        second = start_waiting(settings, record)
        assert version_pins.pinned(session, NOON) == set()
    second.result()
    with store.read() as session:
        assert version_pins.pinned(session, NOON) == {7}
