"""Stored answers to POSTs with an Idempotency-Key."""

from datetime import UTC, datetime, timedelta

import pytest

from control import idempotency
from control.errors import Invalid
from tests.unit.control.conftest import World, on_both
from tests.unit.control.second_writer import start_waiting

NOON = datetime(2024, 5, 1, 12, tzinfo=UTC)


def keep(world: World, key: str, body: bytes, now: datetime, tenant_id: str | None = None) -> None:
    with world.store.write() as session:
        idempotency.store(
            session,
            tenant_id or world.acme.tenant_id,
            key,
            method="POST",
            path="/v1/tokens",
            body_hash="0" * 64,
            status=201,
            response_body=body,
            now=now,
        )


@on_both
def test_an_answer_is_found_for_a_day_by_its_tenant(world: World) -> None:
    keep(world, "k", b'{"a": 1}\x00', NOON)
    keep(world, "k", b"theirs", NOON, world.other.tenant_id)
    with world.store.read() as session:
        record = idempotency.find(session, world.acme.tenant_id, "k", NOON + timedelta(hours=23, minutes=59))
        assert record is not None
        assert (record.method, record.path, record.body_hash, record.status, record.response_body) == (
            "POST",
            "/v1/tokens",
            "0" * 64,
            201,
            b'{"a": 1}\x00',
        )
        assert idempotency.find(session, world.acme.tenant_id, "other", NOON) is None
        assert idempotency.find(session, world.acme.tenant_id, "k", NOON + timedelta(hours=24)) is None


@on_both
def test_an_expired_answer_is_replaced(world: World) -> None:
    keep(world, "k", b"first", NOON)
    later = NOON + timedelta(hours=25)
    with world.store.write() as session:
        assert idempotency.find(session, world.acme.tenant_id, "k", later) is None
        idempotency.store(
            session,
            world.acme.tenant_id,
            "k",
            method="POST",
            path="/v1/wallets",
            body_hash="1" * 64,
            status=201,
            response_body=b"second",
            now=later,
        )
    with world.store.read() as session:
        record = idempotency.find(session, world.acme.tenant_id, "k", later)
        assert record is not None
        assert (record.path, record.response_body, record.created_at) == ("/v1/wallets", b"second", later)


@on_both
def test_purge_deletes_expired_answers(world: World) -> None:
    for number in range(3):
        keep(world, f"k{number}", b"", NOON + timedelta(hours=number))
    with world.store.write() as session:
        assert idempotency.purge(session, NOON + timedelta(hours=25)) == 2
        assert idempotency.purge(session, NOON + timedelta(hours=25)) == 0
    with world.store.read() as session:
        assert idempotency.find(session, world.acme.tenant_id, "k2", NOON) is not None


def test_a_malformed_key_is_refused(world: World) -> None:
    for key in ("", "a b", "a\n", "ä", "x" * 256, "\x00"):
        with pytest.raises(Invalid) as caught, world.store.read() as session:
            idempotency.find(session, world.acme.tenant_id, key)
        assert (key, caught.value.field) == (key, "Idempotency-Key")


@on_both
def test_a_second_request_with_the_key_waits_for_the_first_answer(world: World) -> None:
    def find() -> bytes | None:
        with world.store.write() as session:
            record = idempotency.find(session, world.acme.tenant_id, "k", NOON)
            return None if record is None else record.response_body

    with world.store.write() as session:
        assert idempotency.find(session, world.acme.tenant_id, "k", NOON) is None
        second = start_waiting(world.settings, find)
        idempotency.store(
            session,
            world.acme.tenant_id,
            "k",
            method="POST",
            path="/v1/tokens",
            body_hash="0" * 64,
            status=201,
            response_body=b"first",
            now=NOON,
        )
    assert second.result() == b"first"


@on_both
def test_answers_of_a_clock_that_was_ahead_are_neither_replayed_nor_kept(world: World) -> None:
    keep(world, "k", b"", NOON + timedelta(days=1826))
    keep(world, "another node's", b"", NOON + timedelta(minutes=1))
    with world.store.write() as session:
        assert idempotency.find(session, world.acme.tenant_id, "k", NOON) is None
        assert idempotency.purge(session, NOON) == 1
