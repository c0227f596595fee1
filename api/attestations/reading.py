"""Attestations: check of the requested moment, estimate of the cost, and records."""

from typing import Any, cast

from api.attestations.rows import AttestationRow, StandingAttestationRow, UnconfirmedBalancesRow
from api.attestations.schemas import (
    AttestationEstimate,
    AttestationOperation,
    AttestationProgress,
    TokenAttestation,
    WalletAttestation,
)
from api.engine.rows import as_utc
from api.engine.serving import Snapshot
from api.errors import ApiError
from api.http.calls import Call, Fetched
from api.http.paging import Key
from api.http.parameters import Moment
from api.networks.rows import NetworkRow
from api.operations.estimates import cost_of
from api.schema import FieldError, HistoryStatus
from api.subjects.moments import State, View, read_view, resolve_covered
from control import subjects
from control.attestations import FIELD, AttestedMoment
from control.operations import ATTESTATION_NUMBER, OperationRow
from control.subjects import Kind, SubjectRow

# Key before the first row.
_START = (2**63 - 1, 0)


def check_moment(call: Call, snapshot: Snapshot, subject: SubjectRow, moment: AttestedMoment) -> State:
    """Return the state at a moment to attest: that of the newest stored block before it.

    Raises:
        ApiError: 422 `no-archive`, the network's node has no past states; 409 `not-covered`.
    """
    networks = snapshot.get_or_compute(("networks",), lambda: snapshot.rows("networks", NetworkRow))
    if any(row.network == subject.network and row.has_archive is False for row in networks):
        detail = f"the node of {subject.network} is no archive node, so past balances cannot be read from it"
        raise ApiError(
            422, "no-archive", detail, errors=[FieldError(pointer=f"/{FIELD}", code="no-archive", detail=detail)]
        )
    with call.store.read() as session:
        windows = subjects.windows(session, subject.subject_key)
    view: View = read_view(snapshot, subject, windows)
    asked = Moment(FIELD, moment.text, moment.block, moment.end, is_in_body=True)
    return resolve_covered(snapshot, view, asked)


def read_page(subject: SubjectRow, snapshot: Snapshot, after: Key | None, count: int) -> Fetched[Any]:
    """Return the records of a subject after a key (block and number), the newest block first."""
    before_block, before_number = after or _START
    rows = snapshot.rows(
        "attestations",
        AttestationRow,
        subject_key=subject.subject_key,
        tenant_id=subject.tenant_id,
        before_block=before_block,
        before_number=before_number,
        row_count=count + 1,
    )
    kept = rows[:count]
    last = (kept[-1].block_number, kept[-1].attestation_number) if len(rows) > count else None
    return Fetched([_to_record(row, subject.kind) for row in kept], last)


def standing_blocks(snapshot: Snapshot, subject: SubjectRow) -> set[int]:
    """Return the blocks of a subject with an attestation that is not superseded."""
    keys = {"subject_key": subject.subject_key, "tenant_id": subject.tenant_id}
    return {row.block_number for row in snapshot.rows("standing_attestations", StandingAttestationRow, **keys)}


def estimate(call: Call, snapshot: Snapshot, subject: SubjectRow, state: State) -> AttestationEstimate:
    """Estimate the requests to the node for the attestation of a state."""
    found = snapshot.row(
        "unconfirmed_balances",
        UnconfirmedBalancesRow,
        subject_key=subject.subject_key,
        tenant_id=subject.tenant_id,
        first_block=state.first_block,
        block_number=state.block_number,
    )
    assert found is not None
    is_supply_owed = subject.kind is Kind.TOKEN and not found.is_supply_read
    readings = found.balance_count + (1 if is_supply_owed else 0)
    cost = cost_of(snapshot, subject.network, {"balances": readings})
    network = call.services.networks.get(subject.network)
    return AttestationEstimate(
        status="NothingObserved" if cost is None else "Estimated",
        detail=f"no past balances were read from the node of {subject.network} yet" if cost is None else None,
        readings=readings,
        requests=None if cost is None else cost.requests,
        bytes=None if cost is None else cost.answer_bytes,
        seconds=None if cost is None else cost.seconds,
        max_requests_per_day=None if network is None else network.max_requests_per_day,
    )


def to_attestation_operation(operation: OperationRow) -> AttestationOperation:
    """Convert a stored attestation request to the struct of answers."""
    return AttestationOperation(
        id=operation.id,
        status=cast("HistoryStatus", operation.presented_status),
        progress=AttestationProgress(done=operation.progress_done, total=operation.progress_total),
        resumes_at=operation.waits_until,
        as_of=operation.parameters[FIELD],
        block_number=operation.to_block,
        attestation_number=(operation.result or {}).get(ATTESTATION_NUMBER),
        error=operation.error,
        created_at=operation.created_at,
        started_at=operation.started_at,
        cancel_requested_at=operation.cancel_requested_at,
        finished_at=operation.finished_at,
    )


def _to_record(row: AttestationRow, kind: Kind) -> TokenAttestation | WalletAttestation:
    attested_at = as_utc(row.attested_at)
    assert attested_at is not None
    known: dict[str, Any] = {
        "number": row.attestation_number,
        "block_number": row.block_number,
        "block_hash": row.block_hash,
        "block_time": as_utc(row.block_time),
        "status": row.status,
        "differences": row.difference_count,
        "unconfirmed": row.unconfirmed_count,
        "automatic": row.is_automatic,
        "attested_at": attested_at,
        "superseded": row.superseded_by is not None,
        "superseded_by": row.superseded_by,
    }
    if kind is Kind.WALLET:
        return WalletAttestation(**known, assets=row.balance_count, assets_read=row.read_count)
    assert row.balances_raw is not None
    return TokenAttestation(
        **known,
        holders=row.balance_count,
        holders_read=row.read_count,
        sum_of_balances=row.balances,
        sum_of_balances_raw=row.balances_raw,
        total_supply=row.total_supply,
        total_supply_raw=row.total_supply_raw,
        supply_difference=row.supply_difference,
        supply_difference_raw=row.supply_difference_raw,
    )
