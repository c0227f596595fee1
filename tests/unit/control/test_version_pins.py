"""Pins of published versions: their duration, and no new pins while versions are removed."""

from datetime import UTC, datetime, timedelta

from sqlalchemy import select
from sqlalchemy.orm import Session

from control import revision, tenants, version_pins
from control.models import Tenant
from control.settings import Settings
from control.store import ControlStore
from tests.unit.control.conftest import on_both
from tests.unit.control.second_writer import start_waiting

NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)
HOUR, MINUTE, SECOND = timedelta(hours=1), timedelta(minutes=1), timedelta(seconds=1)


def tenant(session: Session, name: str = "acme") -> str:
    found = session.scalars(select(Tenant.id).where(Tenant.name == name)).one_or_none()
    return found or tenants.create(session, name).id


@on_both
def test_a_pin_lasts_an_hour_after_the_last_use(store: ControlStore) -> None:
    with store.write() as session:
        tenant(session)
        before = revision.read_revision(session)
    with store.write() as session:
        version_pins.pin(session, 7, tenant(session), NOON)
        version_pins.pin(session, 8, tenant(session), NOON)
        version_pins.pin(session, 7, tenant(session), NOON + 30 * MINUTE)
        # The clock of another process may be behind.
        version_pins.pin(session, 7, tenant(session), NOON - HOUR)
    with store.read() as session:
        assert version_pins.pinned(session, NOON + HOUR) == {7, 8}
        # Uses within a minute of the recorded one are not recorded, so the pin lasts a minute longer.
        assert version_pins.pinned(session, NOON + HOUR + MINUTE) == {7}
        assert version_pins.pinned(session, NOON + 90 * MINUTE + MINUTE - SECOND) == {7}
        assert version_pins.pinned(session, NOON + 90 * MINUTE + MINUTE) == set()
        # A pin is no configuration change and starts no cycle.
        assert revision.read_revision(session) == before


@on_both
def test_old_pins_are_deleted(store: ControlStore) -> None:
    with store.write() as session:
        version_pins.pin(session, 7, tenant(session), NOON)
        version_pins.pin(session, 8, tenant(session), NOON + HOUR)
    with store.write() as session:
        assert version_pins.pinned_while_removing(session, NOON + 90 * MINUTE) == {8}
    with store.read() as session:
        assert version_pins.pinned(session, NOON) == {8}


@on_both
def test_no_pin_is_recorded_while_versions_are_removed(store: ControlStore, settings: Settings) -> None:
    """Otherwise a version could be removed between the check for pins and the recording of one."""

    def record() -> None:
        with store.write() as session:
            version_pins.pin(session, 7, tenant(session), NOON)

    with store.write() as session:
        assert version_pins.pinned_while_removing(session, NOON) == set()
        second = start_waiting(settings, record)
        assert version_pins.pinned(session, NOON) == set()
    second.result()
    with store.read() as session:
        assert version_pins.pinned(session, NOON) == {7}


@on_both
def test_each_tenant_pins_versions_separately(store: ControlStore) -> None:
    with store.write() as session:
        first, second = tenant(session), tenant(session, "other")
        version_pins.pin(session, 7, first, NOON)
        version_pins.pin(session, 7, second, NOON + 30 * MINUTE)
        version_pins.pin(session, 8, second, NOON)
        assert version_pins.pinned(session, NOON, first) == {7}
        assert version_pins.pinned(session, NOON, second) == {7, 8}
        assert version_pins.pinned(session, NOON + 70 * MINUTE) == {7}


@on_both
def test_pins_belong_to_the_shard_of_their_tenant(store: ControlStore) -> None:
    with store.write() as session:
        first, second = tenant(session), tenant(session, "other")
        session.get_one(Tenant, second).shard = 1
        version_pins.pin(session, 7, first, NOON)
        version_pins.pin(session, 8, second, NOON)
        assert version_pins.pinned(session, NOON, shard=0) == {7}
        assert version_pins.pinned_while_removing(session, NOON, shard=1) == {8}
        assert version_pins.pinned_while_removing(session, NOON) == {7, 8}


@on_both
def test_a_pin_of_a_clock_that_was_ahead_ends_an_hour_after_the_next_removal(store: ControlStore) -> None:
    with store.write() as session:
        version_pins.pin(session, 7, tenant(session), NOON + 1826 * 24 * HOUR)
    with store.write() as session:
        assert version_pins.pinned_while_removing(session, NOON) == {7}
    with store.write() as session:
        assert version_pins.pinned_while_removing(session, NOON + HOUR) == {7}
        assert version_pins.pinned_while_removing(session, NOON + HOUR + MINUTE) == set()
