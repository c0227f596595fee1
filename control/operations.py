"""Rules of operations: work that tenants ask for, which the pipeline does and reports on.

Their kinds are `History`, a past range of a token or a wallet, whose bounds are read by `control.history`;
`Attestation`, a past moment of one that is read against the chain, which is asked for in `control.attestations`; and
`PriceDiscovery`, past prices of a pair, which is asked for in `control.pricing.discovery`.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from dataclasses import fields as dataclass_fields
from datetime import datetime
from enum import StrEnum
from typing import Annotated, Any, Literal, NamedTuple

from msgspec import UNSET, Meta, Struct, UnsetType, field
from sqlalchemy import Select, func, select, update
from sqlalchemy.orm import Session

from control import access, audit, history, ids, subjects, tenants
from control.access import Principal, Role
from control.changes import lock_one, record_change
from control.clock import utc_now
from control.errors import Conflict, Invalid, NotFound
from control.inputs import Schema, described, given
from control.instants import pattern_of, write_instant
from control.models import Operation
from control.networks.definitions import NativeMode
from control.pages import After, Page, check_limit, cut_page
from control.subjects import Kind, SubjectRow

_PREFIX = "op_"


HISTORY_START = pattern_of("creation", blocks=True)
"""Pattern (JSON Schema) of the start of a history request."""

NativeModeName = Literal["full", "balance-only"]


class HistoryRequest(Schema, frozen=True, kw_only=True):
    """A past range to collect."""

    from_: Annotated[
        str,
        described(
            "Start, included: an instant, a day (its start), `block:N`, or `creation`, the first block of the contract "
            "(of a wallet: of the chain).",
            ["creation"],
            pattern=HISTORY_START,
        ),
    ] = field(name="from")
    to: Annotated[
        str,
        described(
            "End: an instant or a day, not included; `block:N`, included; or `now`. An end after the newest block is "
            "replaced by that block.",
            ["now"],
            pattern=pattern_of("now", blocks=True),
        ),
    ] = "now"
    native: Annotated[
        NativeModeName | None,
        Meta(
            description="Only for wallets: how native value is collected. `full` reads every block's transactions and "
            "internal transfers. `balance-only` books each unexplained change of the balance as one activity. If it is "
            "left out, a long range is collected as `balance-only`, and `note` states the cost of `full`."
        ),
    ] = None
    dry_run: Annotated[
        bool,
        Meta(
            description="Return an estimate of the requests to the node, with status 200. Nothing is stored, not even "
            "the answer for its `Idempotency-Key`."
        ),
    ] = False


class OperationKind(StrEnum):
    """The kinds of operations."""

    HISTORY = "History"
    PRICE_DISCOVERY = "PriceDiscovery"
    ATTESTATION = "Attestation"


class _Rules(NamedTuple):
    """Differences between kinds: the owner's column, the role that may cancel, and the audit's action for a cancel."""

    owner: Literal["subject_key", "pair_key"]
    role: Role
    cancel: audit.Action


_RULES = {
    OperationKind.HISTORY: _Rules("subject_key", Role.ADMIN, "history.cancel"),
    OperationKind.PRICE_DISCOVERY: _Rules("pair_key", Role.OPERATOR, "price-pair.discover-cancel"),
    OperationKind.ATTESTATION: _Rules("subject_key", Role.ADMIN, "attestation.cancel"),
}


class Status(StrEnum):
    """Where an operation stands; the last three are final."""

    PENDING = "Pending"
    RUNNING = "Running"
    SUCCEEDED = "Succeeded"
    FAILED = "Failed"
    CANCELLED = "Cancelled"


WAITING_FOR_BUDGET = "WaitingForBudget"
"""How an unfinished history request or attestation stands while its network's daily budget of requests is used up."""
WAITS_UNTIL = "waitsUntil"
"""Where `result` of such a request says until when."""
ATTESTATION_NUMBER = "attestationNumber"
"""Where `result` of an attestation says which record of its subject it is, once its block is known."""

_FINAL = frozenset({Status.SUCCEEDED, Status.FAILED, Status.CANCELLED})


@dataclass(frozen=True, slots=True)
class OperationRow:
    """An operation as stored, of a subject or of a pair; blocks and mode are null until the pipeline resolved them."""

    operation_key: int
    id: str
    tenant_id: str
    kind: OperationKind
    subject_key: int | None
    pair_key: int | None
    parameters: Mapping[str, Any]
    result: Mapping[str, Any] | None
    status: Status
    progress_done: int
    progress_total: int | None
    from_block: int | None
    to_block: int | None
    native: str | None
    note: str | None
    rate: str | None
    estimated_end: datetime | None
    error: str | None
    cancel_requested_at: datetime | None
    created_by: str
    created_at: datetime
    started_at: datetime | None
    finished_at: datetime | None

    @property
    def from_text(self) -> str:
        """Start of the range asked for, canonical."""
        text: str = self.parameters["from"]
        return text

    @property
    def to_text(self) -> str:
        """End of the range asked for, canonical."""
        text: str = self.parameters["to"]
        return text

    @property
    def waits_until(self) -> datetime | None:
        """Until when it waits for its network's budget of requests; None: it does not."""
        text = (self.result or {}).get(WAITS_UNTIL)
        return None if self.is_finished or text is None else datetime.fromisoformat(text)

    @property
    def presented_status(self) -> str:
        """Where it stands, in the word that answers show."""
        return self.status.value if self.waits_until is None else WAITING_FOR_BUDGET

    @property
    def is_finished(self) -> bool:
        """True after the last change of its status."""
        return self.status in _FINAL


def request_history(
    session: Session,
    principal: Principal,
    subject: SubjectRow,
    request: HistoryRequest,
    *,
    is_fungible: bool | None = None,
    now: datetime | None = None,
) -> OperationRow:
    """Ask for the history of a token or wallet, whatever its tracking status.

    Args:
        session: a write transaction.
        principal: who asks.
        subject: the subject, from `tokens.get` or `wallets.get`.
        request: the range, in the forms of `history.parse_bound`, and the mode of a wallet's native value; None leaves
            the mode to the pipeline.
        is_fungible: False when the contract is known to be no fungible token; None when that is not known.
        now: the moment; None is the clock's.

    Raises:
        Denied: below admin.
        NotFound: the subject was removed meanwhile, or is another tenant's.
        Invalid: on 'from', 'to' or 'native'.
        Conflict: the contract is not a fungible token.
    """
    first, last = check_history(principal, subject, request, is_fungible=is_fungible)
    subjects.lock(session, principal.tenant_id, subject)
    return _store_request(session, principal, subject, first, last, request.native, now)


def check_history(
    principal: Principal, subject: SubjectRow, request: HistoryRequest, *, is_fungible: bool | None
) -> tuple[history.Bound, history.Bound]:
    """Read the range of a history request as `request_history`, which it would store; errors as there."""
    access.require(principal, Role.ADMIN)
    first, last = history.parse_range(request.from_, request.to)
    if request.native is not None:
        if subject.kind is Kind.TOKEN:
            raise Invalid("native", "not-for-tokens", "a token has no native value; leave native out")
        if request.native not in set(NativeMode):
            raise Invalid("native", "unknown-mode", f"native must be one of {', '.join(NativeMode)}")
    if is_fungible is False:
        raise Conflict("not-fungible", "the contract is not a fungible token, so there are no amounts to collect")
    return first, last


def known_creation(session: Session, subject: SubjectRow) -> int | None:
    """The first block of a subject's history, where a request from `creation` found it."""
    found = session.scalars(
        _select(subject.tenant_id, OperationKind.HISTORY, subject.subject_key)
        .where(Operation.from_block.is_not(None))
        .order_by(Operation.operation_key.desc())
    )
    return next((known.from_block for known in found if known.parameters["from"] == "creation"), None)


def request_history_before(
    session: Session,
    principal: Principal,
    subject: SubjectRow,
    *,
    start: str,
    end: datetime,
    field: str,
    now: datetime | None = None,
) -> OperationRow:
    """Ask for the history of a subject up to an instant, or return the newest request that has it already.

    That is one that begins no later and ends there, or at a `now` that was not before it, and was not cancelled and has
    not failed.

    Args:
        session: a write transaction.
        principal: who asks, an admin.
        subject: the subject, kept by the caller: of those who ask at once one stores a request.
        start: first moment or block, or `creation`.
        end: where it ends, in whole seconds.
        field: name of the start in the request.
        now: the moment; None is the clock's.

    Raises:
        Invalid: on the field.
    """
    first, last = history.parse_range(start, write_instant(end), (field, field))
    for known in session.scalars(
        _select(principal.tenant_id, OperationKind.HISTORY, subject.subject_key)
        .where(Operation.status.not_in((Status.FAILED, Status.CANCELLED)), Operation.cancel_requested_at.is_(None))
        .order_by(Operation.operation_key.desc())
    ):
        is_to_end = known.parameters["to"] == last.text or (known.parameters["to"] == "now" and known.created_at >= end)
        if is_to_end and history.is_no_later(history.parse_bound(known.parameters["from"]), first):
            return _to_row(known)
    return _store_request(session, principal, subject, first, last, None, now)


def _store_request(
    session: Session,
    principal: Principal,
    subject: SubjectRow,
    first: history.Bound,
    last: history.Bound,
    native: str | None,
    now: datetime | None,
) -> OperationRow:
    parameters = {"from": first.text, "to": last.text, "native": native}
    operation = queue(session, principal, OperationKind.HISTORY, subject.subject_key, parameters, now=now)
    asked = {"subjectId": subject.id, **parameters}
    record_change(session, principal, "history.request", "operation", operation.id, None, asked, now, is_new=True)
    return operation


def queue(
    session: Session,
    principal: Principal,
    kind: OperationKind,
    owner_key: int,
    parameters: Mapping[str, Any],
    *,
    note: str | None = None,
    now: datetime | None = None,
) -> OperationRow:
    """Store an operation, Pending; rights, audit and revision are its kind's affair.

    Args:
        session: a write transaction.
        principal: who asks.
        kind: kind of the work.
        owner_key: key of the subject or pair that it is about, kept by the caller.
        parameters: of JSON types, as `control.models.Operation` describes them.
        note: a sentence for people.
        now: the moment; None is the clock's.
    """
    moment = now or utc_now()
    owner: dict[str, int] = {_RULES[kind].owner: owner_key}
    operation = Operation(
        **owner,
        id=ids.new_id(_PREFIX),
        tenant_id=principal.tenant_id,
        kind=kind,
        parameters=dict(parameters),
        status=Status.PENDING,
        progress_done=0,
        note=note,
        created_by=principal.key_id,
        created_at=moment,
        reported_at=moment,
    )
    session.add(operation)
    session.flush()
    return _to_row(operation)


def newest(
    session: Session, tenant_id: str, kind: OperationKind, owner_key: int, parameters: Mapping[str, Any]
) -> OperationRow | None:
    """Return the newest operation of a kind with these parameters that was not cancelled and has not failed."""
    known = session.scalars(
        _select(tenant_id, kind, owner_key)
        .where(Operation.status.not_in((Status.FAILED, Status.CANCELLED)), Operation.cancel_requested_at.is_(None))
        .order_by(Operation.operation_key.desc())
    )
    return next((_to_row(operation) for operation in known if operation.parameters == parameters), None)


def get(session: Session, tenant_id: str, operation_id: str, kind: OperationKind, owner_key: int) -> OperationRow:
    """Return one operation of a kind on a subject or pair of the tenant.

    Raises:
        NotFound: there is none with this id.
    """
    if not ids.is_id(_PREFIX, operation_id):
        raise NotFound("operation", operation_id)
    query = _select(tenant_id, kind, owner_key).where(Operation.id == operation_id)
    operation = session.scalars(query).one_or_none()
    if operation is None:
        raise NotFound("operation", operation_id)
    return _to_row(operation)


def list_page(
    session: Session,
    tenant_id: str,
    kind: OperationKind,
    owner_key: int,
    limit: int = 50,
    after: After | None = None,
) -> Page[OperationRow]:
    """Return one page of the operations of a kind on a subject or pair, newest first (ids sort by creation).

    Raises:
        Invalid: on 'limit'.
    """
    query = _select(tenant_id, kind, owner_key)
    if after is not None:
        query = query.where(Operation.id < after.id)
    rows = session.scalars(query.order_by(Operation.id.desc()).limit(check_limit(limit) + 1))
    return cut_page([(_to_row(operation), After(operation.id, operation.id)) for operation in rows], limit)


def newest_report(session: Session, tenant_id: str, kind: OperationKind, owner_key: int) -> datetime | None:
    """Return when any operation that `list_page` lists last changed."""
    listed = _select(tenant_id, kind, owner_key).subquery()
    return session.execute(select(func.max(listed.c.reported_at))).scalar_one()


def cancel(
    session: Session, principal: Principal, operation: OperationRow, now: datetime | None = None
) -> OperationRow:
    """Ask for an operation to stop, which the pipeline then does; asking again changes nothing.

    Raises:
        Denied: below admin; of a price discovery, below operator.
        NotFound: another tenant's.
        Conflict: it is finished.
    """
    rules = _RULES[operation.kind]
    access.require(principal, rules.role)
    query = select(Operation).where(
        Operation.operation_key == operation.operation_key, Operation.tenant_id == principal.tenant_id
    )
    locked = lock_one(session, query, "operation", operation.id)
    if locked.finished_at is not None:
        raise Conflict("operation-finished", f"{operation.id} is already {locked.status}; it cannot be cancelled")
    if locked.cancel_requested_at is None:
        moment = now or utc_now()
        locked.cancel_requested_at = locked.reported_at = moment
        times = (None, write_instant(moment))
        before, after = ({"status": locked.status, "cancelRequestedAt": time} for time in times)
        record_change(session, principal, rules.cancel, "operation", locked.id, before, after, now)
    return _to_row(locked)


def unfinished(session: Session, shard: int) -> list[OperationRow]:
    """Return the operations of a shard's tenants that are Pending or Running, oldest first."""
    query = (
        select(Operation)
        .where(Operation.finished_at.is_(None), Operation.tenant_id.in_(tenants.ids_in_shard(shard)))
        .order_by(Operation.operation_key)
    )
    return [_to_row(operation) for operation in session.scalars(query)]


class Report(Struct, frozen=True, kw_only=True):
    """A report of the pipeline on an operation; unset values stay as they are.

    Attributes:
        progress_done: blocks collected so far; windows of a price discovery, counted once per source; balances of an
            attestation.
        progress_total: the same number for the whole range.
        from_block: first block of the resolved range.
        to_block: last block of the resolved range, included.
        native: how native value is collected.
        note: a sentence for people.
        rate: blocks per second, decimal text.
        estimated_end: estimated time of its end.
        error: the reason of a failure or of missing progress, a sentence for people.
        result: the result so far, of JSON types, as `control.models.Operation` describes it.
    """

    status: Status | UnsetType = UNSET
    progress_done: int | UnsetType = UNSET
    progress_total: int | UnsetType | None = UNSET
    from_block: int | UnsetType | None = UNSET
    to_block: int | UnsetType | None = UNSET
    native: str | UnsetType | None = UNSET
    note: str | UnsetType | None = UNSET
    rate: str | UnsetType | None = UNSET
    estimated_end: datetime | UnsetType | None = UNSET
    error: str | UnsetType | None = UNSET
    result: Mapping[str, Any] | UnsetType | None = UNSET


def report(session: Session, shard: int, operation_key: int, reported: Report, now: datetime | None = None) -> bool:
    """Store a report of a shard's pipeline on an operation of its tenants, in a write transaction.

    Running sets `started_at` the first time, a final status `finished_at`. The revision stays, because no configuration
    changes.

    Returns:
        False when the operation was finished before, does not exist, or belongs to a tenant of another shard: then
        nothing is stored.
    """
    moment = now or utc_now()
    changes = given(reported)
    status = reported.status
    if status is Status.RUNNING:
        changes["started_at"] = func.coalesce(Operation.started_at, moment)
    elif status in _FINAL:
        changes |= {"finished_at": moment, "estimated_end": None}
    stored = session.scalars(
        update(Operation)
        .where(
            Operation.operation_key == operation_key,
            Operation.finished_at.is_(None),
            Operation.tenant_id.in_(tenants.ids_in_shard(shard)),
        )
        .values(**changes, reported_at=moment)
        .returning(Operation.operation_key)
    )
    return stored.one_or_none() is not None


def _select(tenant_id: str, kind: OperationKind, owner_key: int) -> Select[Operation]:
    owner = getattr(Operation, _RULES[kind].owner)
    return select(Operation).where(Operation.tenant_id == tenant_id, Operation.kind == kind, owner == owner_key)


def _to_row(operation: Operation) -> OperationRow:
    values = {field.name: getattr(operation, field.name) for field in dataclass_fields(OperationRow)}
    return OperationRow(**values | {"kind": OperationKind(operation.kind), "status": Status(operation.status)})
