"""Rules of operations: history requests made and cancelled by tenants, and reports of the pipeline."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from control import ledgers, operations, revision, subjects, tokens, wallets
from control.access import Principal, Role
from control.errors import Conflict, Denied, Invalid, NotFound
from control.ledgers import LedgerPut
from control.operations import HistoryRequest, OperationKind, OperationRow, Report, Status
from control.pages import After
from control.snapshot import read_snapshot
from control.subjects import SubjectRow, TokenCreate, WalletCreate
from tests.unit.control.conftest import World, on_both, on_postgres
from tests.unit.control.second_writer import start_waiting

NOON = datetime(2026, 5, 1, 12, tzinfo=UTC)
USDC = "0xA0b86991c6218b36c1d19D4a2e9Eb0cE3606eB48"


@pytest.fixture
def token(world: World) -> SubjectRow:
    with world.store.write() as session:
        ledgers.put(session, world.acme, world.networks, "ethereum", LedgerPut(name="main"))
        ledgers.put(session, world.other, world.networks, "ethereum", LedgerPut(name="main"))
        return tokens.create(
            session, world.acme, world.networks, TokenCreate(ledger="main", symbol="USDC", ledger_id=USDC)
        )


@pytest.fixture
def wallet(world: World, token: SubjectRow) -> SubjectRow:
    with world.store.write() as session:
        return wallets.create(session, world.acme, world.networks, WalletCreate(ledger="main", ledger_id=USDC))


def ask(world: World, subject: SubjectRow, principal: Principal | None = None, **values: Any) -> OperationRow:
    given = {"start": "creation"} | values
    now, is_fungible = given.pop("now", NOON), given.pop("is_fungible", None)
    asked = HistoryRequest(from_=given["start"], to=given.get("end", "now"), native=given.get("native"))
    with world.store.write() as session:
        return operations.request_history(
            session, principal or world.acme, subject, asked, is_fungible=is_fungible, now=now
        )


def read(world: World, subject: SubjectRow, operation_id: str) -> OperationRow:
    with world.store.read() as session:
        return operations.get(session, subject.tenant_id, operation_id, OperationKind.HISTORY, subject.subject_key)


def tell(world: World, operation: OperationRow, **values: Any) -> bool:
    now = values.pop("now", None)
    with world.store.write() as session:
        return operations.report(session, 0, operation.operation_key, Report(**values), now)


def cancel(world: World, operation: OperationRow, now: datetime = NOON) -> OperationRow:
    with world.store.write() as session:
        return operations.cancel(session, world.acme, operation, now)


def count_of_writes(world: World) -> int:
    with world.store.read() as session:
        return revision.read_revision(session)


@on_both
def test_a_request_is_stored_canonical_and_moves_the_revision(world: World, wallet: SubjectRow) -> None:
    before = count_of_writes(world)
    made = ask(world, wallet, start="block:007", end="2026-01-31T14:00:00+02:00", native="balance-only")
    assert count_of_writes(world) == before + 1
    assert made == OperationRow(
        operation_key=made.operation_key,
        id=made.id,
        tenant_id=world.acme.tenant_id,
        kind=OperationKind.HISTORY,
        subject_key=wallet.subject_key,
        pair_key=None,
        parameters={"from": "block:7", "to": "2026-01-31T12:00:00Z", "native": "balance-only"},
        result=None,
        status=Status.PENDING,
        progress_done=0,
        progress_total=None,
        from_block=None,
        to_block=None,
        native=None,
        note=None,
        rate=None,
        estimated_end=None,
        error=None,
        cancel_requested_at=None,
        created_by=world.acme.key_id,
        created_at=NOON,
        started_at=None,
        finished_at=None,
    )
    assert (made.id[:3], made.from_text, made.to_text) == ("op_", "block:7", "2026-01-31T12:00:00Z")
    assert read(world, wallet, made.id) == made


@pytest.mark.parametrize(
    ("values", "field"),
    [
        ({"start": "now"}, "from"),
        ({"end": "creation"}, "to"),
        ({"native": "some"}, "native"),
    ],
)
def test_a_malformed_request_is_named_and_stores_nothing(
    world: World, wallet: SubjectRow, values: dict[str, Any], field: str
) -> None:
    before = count_of_writes(world)
    with pytest.raises(Invalid) as caught:
        ask(world, wallet, **values)
    assert caught.value.field == field
    assert count_of_writes(world) == before


def test_only_wallets_have_native_value(world: World, token: SubjectRow) -> None:
    with pytest.raises(Invalid) as caught:
        ask(world, token, native="full")
    assert caught.value.field == "native"


def test_non_fungible_contract_has_no_history(world: World, token: SubjectRow) -> None:
    with pytest.raises(Conflict) as caught:
        ask(world, token, is_fungible=False)
    assert caught.value.code == "not-fungible"
    assert ask(world, token, is_fungible=True).status is Status.PENDING


def test_roles_below_admin_and_other_tenants_are_denied(world: World, token: SubjectRow) -> None:
    operation = ask(world, token)
    for role in (Role.VIEWER, Role.OPERATOR):
        weak = Principal(world.acme.tenant_id, world.acme.key_id, role)
        with pytest.raises(Denied):
            ask(world, token, weak)
        with pytest.raises(Denied), world.store.write() as session:
            operations.cancel(session, weak, operation)
    with pytest.raises(NotFound):
        ask(world, token, world.other)
    with pytest.raises(NotFound), world.store.write() as session:
        operations.cancel(session, world.other, operation)
    assert read(world, token, operation.id) == operation


def test_an_operation_is_found_under_its_own_subject_alone(world: World, token: SubjectRow, wallet: SubjectRow) -> None:
    operation = ask(world, token)
    with world.store.read() as session:
        for tenant_id, operation_id, subject_key in (
            (world.other.tenant_id, operation.id, token.subject_key),
            (world.acme.tenant_id, operation.id, wallet.subject_key),
            (world.acme.tenant_id, "op_" + "0" * 26, token.subject_key),
            (world.acme.tenant_id, "op_\x00", token.subject_key),
        ):
            with pytest.raises(NotFound):
                operations.get(session, tenant_id, operation_id, OperationKind.HISTORY, subject_key)
        listed = (world.acme.tenant_id, OperationKind.HISTORY)
        assert operations.list_page(session, *listed, wallet.subject_key).rows == ()
        assert operations.list_page(session, world.other.tenant_id, listed[1], token.subject_key).rows == ()


@on_both
def test_pages_are_newest_first_and_hold_each_once(world: World, token: SubjectRow, wallet: SubjectRow) -> None:
    made = [ask(world, token, start=f"block:{number}").id for number in range(5)]
    ask(world, wallet)
    for limit in (1, 2, 5):
        seen: list[str] = []
        after: After | None = None
        while True:
            with world.store.read() as session:
                asked = (world.acme.tenant_id, OperationKind.HISTORY, token.subject_key)
                page = operations.list_page(session, *asked, limit, after)
            seen += [operation.id for operation in page.rows]
            after = page.after
            if after is None:
                break
        assert seen == made[::-1]


@on_both
def test_report_stores_its_fields_and_keeps_the_others(world: World, wallet: SubjectRow) -> None:
    operation = ask(world, wallet)
    before = count_of_writes(world)
    started, later, ended = (NOON + timedelta(minutes=minute) for minute in (1, 2, 3))
    assert tell(world, operation, status=Status.RUNNING, progress_total=40, from_block=20, to_block=59, now=started)
    assert tell(
        world,
        operation,
        status=Status.RUNNING,
        progress_done=10,
        native="balance-only",
        note="full would take 3 days",
        rate="2.5",
        estimated_end=ended,
        error="the node refused eth_getLogs",
        now=later,
    )
    running = read(world, wallet, operation.id)
    assert (running.status, running.progress_done, running.progress_total) == (Status.RUNNING, 10, 40)
    assert (running.from_block, running.to_block, running.native) == (20, 59, "balance-only")
    assert (running.note, running.rate) == ("full would take 3 days", "2.5")
    assert (running.estimated_end, running.error) == (ended, "the node refused eth_getLogs")
    assert (running.started_at, running.finished_at) == (started, None)
    assert tell(world, operation, status=Status.SUCCEEDED, progress_done=40, error=None, now=ended)
    finished = read(world, wallet, operation.id)
    assert (finished.status, finished.progress_done, finished.error) == (Status.SUCCEEDED, 40, None)
    assert (finished.started_at, finished.finished_at, finished.estimated_end) == (started, ended, None)
    assert finished.is_finished
    assert count_of_writes(world) == before


@pytest.mark.parametrize("status", [Status.SUCCEEDED, Status.FAILED, Status.CANCELLED])
def test_a_finished_operation_never_moves_again(world: World, token: SubjectRow, status: Status) -> None:
    operation = ask(world, token)
    assert tell(world, operation, status=status, now=NOON)
    finished = read(world, token, operation.id)
    for values in ({"status": Status.RUNNING}, {"progress_done": 7}, {"status": Status.FAILED, "error": "late"}):
        assert not tell(world, operation, **values)
    with pytest.raises(Conflict) as caught:
        cancel(world, operation)
    assert caught.value.code == "operation-finished"
    assert read(world, token, operation.id) == finished


def test_report_on_an_unknown_operation_is_refused(world: World) -> None:
    with world.store.write() as session:
        assert not operations.report(session, 0, 999, Report(status=Status.RUNNING))


def test_cancel_is_requested_once_and_done_by_the_pipeline(world: World, token: SubjectRow) -> None:
    operation = ask(world, token)
    before = count_of_writes(world)
    asked = cancel(world, operation)
    assert (asked.status, asked.cancel_requested_at) == (Status.PENDING, NOON)
    assert cancel(world, operation, NOON + timedelta(hours=1)) == asked
    assert count_of_writes(world) == before + 1
    assert tell(world, operation, status=Status.CANCELLED, now=NOON)
    assert read(world, token, operation.id).status is Status.CANCELLED


@on_both
def test_pipeline_sees_unfinished_operations(world: World, token: SubjectRow, wallet: SubjectRow) -> None:
    first, second, third = ask(world, token), ask(world, wallet), ask(world, token)
    failed = ask(world, wallet)
    tell(world, failed, status=Status.FAILED, error="no archive")
    tell(world, third, status=Status.RUNNING)
    with world.store.write() as session:
        subjects.remove(session, world.acme, token, NOON)
    with world.store.read() as session:
        found = operations.unfinished(session, 0)
    assert [operation.id for operation in found] == [second.id]
    assert [read(world, token, operation.id).status for operation in (first, third)] == [Status.CANCELLED] * 2


def test_removal_of_the_subject_keeps_an_earlier_cancel_time(world: World, token: SubjectRow) -> None:
    operation = ask(world, token)
    cancel(world, operation)
    with world.store.write() as session:
        subjects.remove(session, world.acme, token, NOON + timedelta(hours=1))
    ended = read(world, token, operation.id)
    assert (ended.status, ended.cancel_requested_at) == (Status.CANCELLED, NOON)


def test_request_for_a_removed_subject_is_refused(world: World, token: SubjectRow) -> None:
    with world.store.write() as session:
        subjects.remove(session, world.acme, token)
    with pytest.raises(NotFound):
        ask(world, token)


def test_newest_report_identifies_the_state(world: World, token: SubjectRow, wallet: SubjectRow) -> None:
    def newest() -> datetime | None:
        with world.store.read() as session:
            asked = (world.acme.tenant_id, OperationKind.HISTORY, token.subject_key)
            return operations.newest_report(session, *asked)

    assert newest() is None
    operation = ask(world, token)
    ask(world, wallet, now=NOON + timedelta(days=1))
    assert newest() == NOON
    tell(world, operation, progress_done=1, now=NOON + timedelta(seconds=1))
    assert newest() == NOON + timedelta(seconds=1)
    cancel(world, operation, NOON + timedelta(seconds=2))
    assert newest() == NOON + timedelta(seconds=2)


@on_both
def test_snapshot_has_requests_of_existing_subjects(world: World, token: SubjectRow, wallet: SubjectRow) -> None:
    ask(world, token)
    with world.store.write() as session:
        subjects.remove(session, world.acme, token)
    first = ask(world, wallet, start="block:1", end="block:2", native="full")
    second = ask(world, wallet, start="2026-01-01")
    cancel(world, second)
    third = ask(world, wallet)
    tell(world, third, native="balance-only", status=Status.CANCELLED)
    with world.store.read() as session:
        found = read_snapshot(session, 0).tables["control_history_requests"]
    key = wallet.subject_key
    columns = ("operation_key", "subject_key", "from_text", "to_text", "native", "status", "is_cancelled", "created_at")
    assert [tuple(getattr(row, name) for name in columns) for row in found] == [
        (first.operation_key, key, "block:1", "block:2", "full", "Pending", False, NOON),
        (second.operation_key, key, "2026-01-01", "now", None, "Pending", True, NOON),
        (third.operation_key, key, "creation", "now", "balance-only", "Cancelled", True, NOON),
    ]


@on_postgres
def test_concurrent_report_and_cancel_lose_nothing(world: World, token: SubjectRow) -> None:
    operation = ask(world, token)
    with world.store.write() as session:
        assert operations.report(session, 0, operation.operation_key, Report(status=Status.SUCCEEDED))
        second = start_waiting(world.settings, lambda: cancel(world, operation))
    assert isinstance(second.exception(), Conflict)
    assert read(world, token, operation.id).cancel_requested_at is None
