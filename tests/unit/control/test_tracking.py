"""Tracking enabled together with earlier history: one transaction, and one request despite repeated calls."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from sqlalchemy.orm import Session

from control import ledgers, operations, revision, subjects, tokens, tracking, wallets
from control.access import Role
from control.errors import Denied, Invalid
from control.ledgers import LedgerPut
from control.operations import HistoryRequest, OperationKind, OperationRow, Report, Status
from control.subjects import SubjectRow, TokenCreate, WalletCreate
from control.tracking import Tracking, TrackingPut
from tests.unit.control.conftest import World, on_both

NOON = datetime(2026, 5, 1, 12, tzinfo=UTC)
MINUTE = timedelta(minutes=1)
USDC = "0xA0b86991c6218b36c1d19D4a2e9Eb0cE3606eB48"


@pytest.fixture
def token(world: World) -> SubjectRow:
    with world.store.write() as session:
        ledgers.put(session, world.acme, world.networks, "ethereum", LedgerPut(name="main"))
        return tokens.create(
            session, world.acme, world.networks, TokenCreate(ledger="main", symbol="USDC", ledger_id=USDC)
        )


@pytest.fixture
def wallet(world: World, token: SubjectRow) -> SubjectRow:
    with world.store.write() as session:
        return wallets.create(session, world.acme, world.networks, WalletCreate(ledger="main", ledger_id=USDC))


def track(world: World, subject: SubjectRow, history: str | None, **values: Any) -> Tracking:
    given = {"now": NOON} | values
    wanted = "enabled" if given.pop("enabled", True) else "disabled"
    request = TrackingPut(tracking_status=wanted, history=history, dry_run=given.pop("is_dry_run", False))
    with world.store.write() as session:
        return tracking.set_tracking(session, world.acme, subject, request, **given)


def known_request(session: Session, world: World, token: SubjectRow, known: dict[str, Any]) -> OperationRow:
    asked = HistoryRequest(from_=known["start"], to=known["end"])
    return operations.request_history(session, world.acme, token, asked, now=known.get("now", NOON))


def requests(world: World, subject: SubjectRow) -> list[OperationRow]:
    with world.store.read() as session:
        found = operations.list_page(session, subject.tenant_id, OperationKind.HISTORY, subject.subject_key)
    return list(found.rows)


def stored(world: World, subject: SubjectRow) -> tuple[int, list[subjects.Window], list[OperationRow]]:
    with world.store.read() as session:
        writes, windows = revision.read_revision(session), subjects.windows(session, subject.subject_key)
    return writes, windows, requests(world, subject)


def tell(world: World, operation: OperationRow | None, status: Status) -> None:
    assert operation is not None
    with world.store.write() as session:
        assert operations.report(session, 0, operation.operation_key, Report(status=status))


def test_history_ends_at_the_start_of_the_window(world: World, token: SubjectRow, wallet: SubjectRow) -> None:
    for subject in (token, wallet):
        made = track(world, subject, "creation", now=NOON + timedelta(milliseconds=700))
        assert made.history is not None
        assert made.subject.is_tracked
        assert [window.opened_at for window in made.windows] == [NOON]
        assert made.history.parameters == {"from": "creation", "to": "2026-05-01T12:00:00Z", "native": None}
        assert requests(world, subject) == [made.history]


def test_no_history_is_requested_by_default(world: World, token: SubjectRow) -> None:
    assert track(world, token, None).history is None
    assert track(world, token, None, enabled=False, now=NOON + MINUTE).history is None
    assert requests(world, token) == []


@pytest.mark.parametrize(
    ("history", "values"),
    [
        ("creation", {"enabled": False}),
        ("creation", {"is_fungible": False}),
        ("now", {}),
        ("yesterday", {}),
        ("2026-05-01T12:00:00Z", {}),
        ("2026-06-01", {}),
    ],
)
def test_invalid_combination_stores_nothing(
    world: World, token: SubjectRow, history: str, values: dict[str, Any]
) -> None:
    before = stored(world, token)
    with pytest.raises(Invalid) as caught:
        track(world, token, history, **values)
    assert caught.value.field == ("trackingStatus" if "is_fungible" in values else "history")
    assert stored(world, token) == before


def test_contract_found_to_be_non_fungible_has_no_history(world: World, token: SubjectRow) -> None:
    track(world, token, None)
    before = stored(world, token)
    with pytest.raises(Invalid) as caught:
        track(world, token, "creation", is_fungible=False)
    assert caught.value.field == "history"
    assert stored(world, token) == before


def test_roles_below_admin_store_nothing(world: World, token: SubjectRow) -> None:
    before = stored(world, token)
    operator = replace(world.acme, role=Role.OPERATOR)
    request = TrackingPut(tracking_status="enabled", history="creation")
    with pytest.raises(Denied), world.store.write() as session:
        tracking.set_tracking(session, operator, token, request, now=NOON)
    assert stored(world, token) == before


@pytest.mark.parametrize("status", [Status.PENDING, Status.RUNNING, Status.SUCCEEDED])
def test_repeated_call_returns_the_existing_request(world: World, token: SubjectRow, status: Status) -> None:
    made = track(world, token, "2026-01-01")
    if status is not Status.PENDING:
        tell(world, made.history, status)
    before = stored(world, token)
    for history in ("2026-01-01", "2026-01-01T00:00:00Z", "2026-03-01"):
        again = track(world, token, history, now=NOON + MINUTE)
        assert again.history is not None
        assert made.history is not None
        assert again.history.id == made.history.id
    assert stored(world, token) == before


@pytest.mark.parametrize(
    ("known", "asked"),
    [
        ({"start": "2026-01-01", "end": "2026-05-01T12:00:00Z"}, "creation"),
        ({"start": "2026-01-01", "end": "2026-05-01T12:00:00Z"}, "2025-12-31"),
        ({"start": "block:10", "end": "2026-05-01T12:00:00Z"}, "block:9"),
        ({"start": "block:10", "end": "2026-05-01T12:00:00Z"}, "2026-01-01"),
        ({"start": "creation", "end": "2026-05-01T11:59:59Z"}, "creation"),
        ({"start": "creation", "end": "block:10"}, "creation"),
        ({"start": "creation", "end": "now", "now": NOON - MINUTE}, "creation"),
    ],
)
def test_request_with_less_history_is_not_reused(
    world: World, token: SubjectRow, known: dict[str, Any], asked: str
) -> None:
    with world.store.write() as session:
        other = known_request(session, world, token, known)
    made = track(world, token, asked)
    assert made.history is not None
    assert requests(world, token) == [made.history, other]


@pytest.mark.parametrize(
    ("known", "asked"),
    [
        ({"start": "creation", "end": "now", "now": NOON + MINUTE}, "2026-01-01"),
        ({"start": "block:10", "end": "2026-05-01T12:00:00Z"}, "block:11"),
    ],
)
def test_request_with_more_history_is_reused(
    world: World, token: SubjectRow, known: dict[str, Any], asked: str
) -> None:
    track(world, token, None)
    with world.store.write() as session:
        other = known_request(session, world, token, known)
    assert track(world, token, asked, now=NOON + 2 * MINUTE).history == other


@pytest.mark.parametrize("ended", ["Failed", "Cancelled", "to be cancelled"])
def test_failed_or_cancelled_history_is_requested_again(world: World, token: SubjectRow, ended: str) -> None:
    first = track(world, token, "creation").history
    assert first is not None
    if ended == "to be cancelled":
        with world.store.write() as session:
            operations.cancel(session, world.acme, first, NOON)
    else:
        tell(world, first, Status(ended))
    second = track(world, token, "creation", now=NOON + MINUTE).history
    assert second is not None
    assert second.id != first.id
    assert second.parameters == first.parameters


@on_both
def test_a_new_window_has_a_history_of_its_own(world: World, token: SubjectRow) -> None:
    first = track(world, token, "creation").history
    track(world, token, None, enabled=False, now=NOON + MINUTE)
    second = track(world, token, "creation", now=NOON + 2 * MINUTE).history
    assert first is not None
    assert second is not None
    assert (first.to_text, second.to_text) == ("2026-05-01T12:00:00Z", "2026-05-01T12:02:00Z")
