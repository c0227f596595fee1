"""The audit: one event per configuration write, with the change and its author."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from sqlalchemy import select

from control import access, audit, ledgers, operations, subjects, tokens, wallets
from control.audit import AuditFilters
from control.errors import Conflict, ControlError, Invalid
from control.ledgers import LedgerPatch, LedgerPut
from control.models import AuditEvent
from control.operations import HistoryRequest, Report
from control.pages import After
from control.subjects import TokenCreate, TokenPatch, WalletCreate, WalletPatch
from tests.unit.control.conftest import World, on_both

NOON = datetime(2026, 5, 1, 12, tzinfo=UTC)
USDC = "0xA0b86991c6218b36c1d19D4a2e9Eb0cE3606eB48"


def events(world: World, **filters: Any) -> list[AuditEvent]:
    """Return Acme's events, newest first, by default without those of its keys."""
    with world.store.read() as session:
        rows = audit.list_page(session, world.acme.tenant_id, AuditFilters(**filters), 1000).rows
    return [row for row in rows if row.object_kind != "key" or filters]


def at(second: int) -> datetime:
    return NOON + timedelta(seconds=second)


def live_through(world: World) -> dict[str, str]:
    """Do every kind of configuration write once, a second apart; return the ids of the objects."""
    acme = world.acme
    with world.store.write() as session:
        ledger, _ = ledgers.put(
            session, acme, world.networks, "ethereum", LedgerPut(name="main", display_name="Main"), now=at(0)
        )
        ledgers.update(session, acme, "main", LedgerPatch(description="d"), now=at(1))
        token = tokens.create(
            session, acme, world.networks, TokenCreate(ledger="main", symbol="T", ledger_id=USDC, name="n"), now=at(2)
        )
        token = subjects.set_tracking(session, acme, token, True, at(3))
        operation = operations.request_history(
            session, acme, token, HistoryRequest(from_="creation", to="now", native=None), now=at(4)
        )
        operations.cancel(session, acme, operation, at(5))
        token = tokens.update(session, acme, token, TokenPatch(symbol="U", name=None), now=at(6))
        subjects.remove(session, acme, token, at(7))
        wallet = wallets.create(session, acme, world.networks, WalletCreate(ledger="main", ledger_id=USDC), now=at(8))
        wallet = wallets.update(session, acme, wallet, WalletPatch(external_id="x"), now=at(9))
        wallet = subjects.set_tracking(session, acme, wallet, True, at(10))
        subjects.remove(session, acme, wallet, at(11))
        ledgers.remove(session, acme, "main", at(12))
        key, _ = access.create_key(session, acme.tenant_id, "viewer", at(13))
        access.revoke_key(session, acme.tenant_id, key.id, at(14), actor=acme.key_id)
    return {"l": ledger.id, "t": token.id, "w": wallet.id, "o": operation.id, "k": key.id}


@on_both
def test_every_write_leaves_its_event(world: World) -> None:
    made = live_through(world)
    ledger = {"network": "ethereum", "name": "main", "displayName": "Main", "description": None}
    token = {
        "ledger": "main",
        "ledgerId": USDC,
        "symbol": "T",
        "name": "n",
        "externalId": None,
        "trackingStatus": "disabled",
    }
    wallet = {"ledger": "main", "ledgerId": USDC, "name": None, "externalId": None, "trackingStatus": "disabled"}
    enabled = {"trackingStatus": "enabled"}
    disabled = {"trackingStatus": "disabled"}
    revoked = {"role": "viewer", "revokedAt": "2026-05-01T12:00:14Z"}
    renamed = token | enabled | {"symbol": "U", "name": None}
    found = events(world, start=at(0), end=at(15))[::-1]
    assert [(event.action, event.object_kind, event.object_id, event.before, event.after) for event in found] == [
        ("ledger.create", "ledger", made["l"], None, ledger),
        ("ledger.update", "ledger", made["l"], ledger, ledger | {"description": "d"}),
        ("token.create", "token", made["t"], None, token),
        ("token.tracking", "token", made["t"], disabled, enabled),
        (
            "history.request",
            "operation",
            made["o"],
            None,
            {"subjectId": made["t"], "from": "creation", "to": "now", "native": None},
        ),
        (
            "history.cancel",
            "operation",
            made["o"],
            {"status": "Pending", "cancelRequestedAt": None},
            {"status": "Pending", "cancelRequestedAt": "2026-05-01T12:00:05Z"},
        ),
        ("token.update", "token", made["t"], token | enabled, renamed),
        ("token.remove", "token", made["t"], renamed, None),
        ("wallet.create", "wallet", made["w"], None, wallet),
        ("wallet.update", "wallet", made["w"], wallet, wallet | {"externalId": "x"}),
        ("wallet.tracking", "wallet", made["w"], disabled, enabled),
        ("wallet.remove", "wallet", made["w"], wallet | enabled | {"externalId": "x"}, None),
        ("ledger.remove", "ledger", made["l"], ledger | {"description": "d"}, None),
        ("key.create", "key", made["k"], None, {"role": "viewer", "revokedAt": None}),
        ("key.revoke", "key", made["k"], {"role": "viewer", "revokedAt": None}, revoked),
    ]
    assert [event.occurred_at for event in found] == [at(second) for second in range(15)]
    assert {event.actor for event in found} == {world.acme.key_id, audit.CLI}
    assert [event.actor for event in found if event.object_kind == "key"] == [audit.CLI, world.acme.key_id]
    assert all(event.id.startswith("aud_") for event in found)


def test_write_without_a_change_leaves_no_event(world: World) -> None:
    acme = world.acme
    with world.store.write() as session:
        ledgers.put(session, acme, world.networks, "ethereum", LedgerPut(name="main"))
        token = tokens.create(session, acme, world.networks, TokenCreate(ledger="main", symbol="T", ledger_id=USDC))
        key, _ = access.create_key(session, acme.tenant_id, "viewer")
        access.revoke_key(session, acme.tenant_id, key.id)
        operation = operations.request_history(
            session, acme, token, HistoryRequest(from_="creation", to="now", native=None)
        )
        operations.cancel(session, acme, operation)
    with world.store.read() as session:
        before = session.scalars(select(AuditEvent.id)).all()
    with world.store.write() as session:
        ledgers.put(session, acme, world.networks, "ethereum", LedgerPut(name="main"))
        ledgers.update(session, acme, "main", LedgerPatch(display_name=None))
        subjects.set_tracking(session, acme, token, False)
        tokens.update(session, acme, token, TokenPatch())
        tokens.update(session, acme, token, TokenPatch(symbol="T", name=None))
        access.revoke_key(session, acme.tenant_id, key.id)
        operations.cancel(session, acme, operation)
        operations.report(session, 0, operation.operation_key, Report(progress_done=3))
    with world.store.read() as session:
        assert session.scalars(select(AuditEvent.id)).all() == before


@on_both
def test_failed_write_leaves_no_event(world: World) -> None:
    acme = world.acme
    with world.store.write() as session:
        ledgers.put(session, acme, world.networks, "ethereum", LedgerPut(name="main"))
        tokens.create(session, acme, world.networks, TokenCreate(ledger="main", symbol="T", ledger_id=USDC))
    before = len(events(world))
    for error, work in (
        (
            Conflict,
            lambda session: tokens.create(
                session, acme, world.networks, TokenCreate(ledger="main", symbol="T", ledger_id=USDC)
            ),
        ),
        (Conflict, lambda session: ledgers.remove(session, acme, "main")),
        (Invalid, lambda session: ledgers.update(session, acme, "main", LedgerPatch(display_name=""))),
    ):
        with pytest.raises(ControlError) as caught, world.store.write() as session:
            work(session)
        assert type(caught.value) is error
    assert len(events(world)) == before


def test_no_secret_is_recorded(world: World) -> None:
    with world.store.write() as session:
        key, bearer = access.create_key(session, world.acme.tenant_id, "viewer")
    (event,) = events(world, object_id=key.id)
    recorded = str([getattr(event, column.name) for column in AuditEvent.__table__.columns])
    assert bearer.rpartition("_")[2] not in recorded
    assert key.secret_hash not in recorded


def test_event_names_its_request_if_there_is_one(world: World) -> None:
    token = audit.REQUEST_ID.set("req-1")
    try:
        with world.store.write() as session:
            ledgers.put(session, world.acme, world.networks, "ethereum", LedgerPut(name="one"))
    finally:
        audit.REQUEST_ID.reset(token)
    with world.store.write() as session:
        ledgers.put(session, world.acme, world.networks, "ethereum", LedgerPut(name="two"))
    assert [event.request_id for event in events(world)] == [None, "req-1"]


@on_both
def test_filters(world: World) -> None:
    made = live_through(world)
    assert [event.action for event in events(world, object_id=made["w"])] == [
        "wallet.remove",
        "wallet.tracking",
        "wallet.update",
        "wallet.create",
    ]
    assert [event.object_id for event in events(world, action="token.remove")] == [made["t"]]
    assert [event.action for event in events(world, start=at(3), end=at(5))] == ["history.request", "token.tracking"]
    assert [event.action for event in events(world, start=at(3), object_id=made["l"])] == ["ledger.remove"]
    assert events(world, object_id="tok_none") == []
    for filters, field in (({"action": "token.drop"}, "action"), ({"object_id": "a\x00"}, "objectId")):
        with pytest.raises(Invalid) as caught:
            events(world, **filters)
        assert caught.value.field == field


@on_both
def test_pages_hold_every_event_once_also_when_one_is_added(world: World) -> None:
    live_through(world)
    with world.store.write() as session:
        for name in ("a", "b", "c"):  # at one moment
            ledgers.put(session, world.acme, world.networks, "ethereum", LedgerPut(name=name), now=at(20))
    whole = [event.id for event in events(world, end=at(30))]
    for limit in (1, 2, 5):
        seen: list[str] = []
        after: After | None = None
        while True:
            with world.store.read() as session:
                page = audit.list_page(session, world.acme.tenant_id, AuditFilters(end=at(30)), limit, after)
            seen += [event.id for event in page.rows]
            if len(seen) == limit:
                with world.store.write() as session:
                    ledgers.put(
                        session, world.acme, world.networks, "ethereum", LedgerPut(name=f"later-{limit}"), now=at(25)
                    )
            after = page.after
            if after is None:
                break
        assert seen == whole
        whole = [event.id for event in events(world, end=at(30))]


def test_another_tenants_events_do_not_exist(world: World) -> None:
    made = live_through(world)
    with world.store.read() as session:
        other = world.other.tenant_id
        assert [event.action for event in audit.list_page(session, other, AuditFilters()).rows] == ["key.create"]
        assert audit.list_page(session, other, AuditFilters(object_id=made["t"])).rows == ()
        assert audit.newest_id(session, other) != audit.newest_id(session, world.acme.tenant_id)


@on_both
def test_the_newest_id_moves_with_every_event(world: World) -> None:
    seen = set()
    for name in ("a", "b"):
        with world.store.write() as session:
            ledgers.put(session, world.acme, world.networks, "ethereum", LedgerPut(name=name))
        with world.store.read() as session:
            seen.add(audit.newest_id(session, world.acme.tenant_id))
    assert len(seen) == 2
    with world.store.read() as session:
        assert audit.newest_id(session, "ten_none") is None
