"""One consistent picture of the configuration, in plain rows, for the pipeline."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import datetime

from sqlalchemy import select
from sqlalchemy.orm import Session

from control.models import Ledger, Operation, Subject, Tenant, TrackingWindow
from control.operations import OperationKind, Status
from control.pricing.snapshot import PricingSnapshot, read_pricing, to_rows
from control.revision import read_revision


@dataclass(frozen=True, slots=True)
class SnapshotTenant:
    """A tenant."""

    tenant_id: str
    tenant_name: str
    revision: int = 0


@dataclass(frozen=True, slots=True)
class SnapshotLedger:
    """A ledger of a tenant on a network."""

    ledger_id: str
    tenant_id: str
    network: str
    ledger_name: str
    display_name: str | None


@dataclass(frozen=True, slots=True)
class SnapshotSubject:
    """A token or wallet, tracked or not; `address` in stored form."""

    subject_key: int
    subject_id: str
    kind: str
    tenant_id: str
    ledger_id: str
    network: str
    address: str
    symbol: str | None
    name: str | None
    external_id: str | None
    pair_key: int | None
    created_at: datetime


@dataclass(frozen=True, slots=True)
class SnapshotWindow:
    """A tracking window [opened_at, closed_at), in whole seconds of UTC."""

    window_key: int
    subject_key: int
    opened_at: datetime
    closed_at: datetime | None


@dataclass(frozen=True, slots=True)
class SnapshotMetadataRequest:
    """The latest requests to read a token's contract again, and to accept a change."""

    subject_key: int
    requested_at: datetime
    accepted_at: datetime | None


@dataclass(frozen=True, slots=True)
class SnapshotHistoryRequest:
    """A history request, finished or not; bounds as `control.history.parse_bound` reads them.

    `native` is the mode as resolved, or as asked for until then; None leaves it open.
    """

    operation_key: int
    subject_key: int
    from_text: str
    to_text: str
    native: str | None
    status: str
    is_cancelled: bool
    created_at: datetime


@dataclass(frozen=True, slots=True)
class SnapshotAttestationRequest:
    """An attestation that was asked for, finished or not; the moment as `control.attestations.read_moment` reads it."""

    operation_key: int
    subject_key: int
    as_of_text: str
    status: str
    is_cancelled: bool
    created_at: datetime


@dataclass(frozen=True, slots=True)
class ControlSnapshot:
    """The configuration at one revision, without what was removed; each part ordered by its key."""

    revision: int
    tenants: tuple[SnapshotTenant, ...]
    ledgers: tuple[SnapshotLedger, ...]
    subjects: tuple[SnapshotSubject, ...]
    windows: tuple[SnapshotWindow, ...]
    history_requests: tuple[SnapshotHistoryRequest, ...]
    attestation_requests: tuple[SnapshotAttestationRequest, ...] = ()
    metadata_requests: tuple[SnapshotMetadataRequest, ...] = ()
    pricing: PricingSnapshot = field(default_factory=PricingSnapshot)


def read_snapshot(session: Session) -> ControlSnapshot:
    """Read the configuration of all tenants, in the session's one transaction.

    Windows that were opened and closed within one second are left out: no block can lie in them.
    """
    return ControlSnapshot(
        revision=read_revision(session),
        tenants=to_rows(
            SnapshotTenant, session.execute(select(Tenant.id, Tenant.name, Tenant.revision).order_by(Tenant.id))
        ),
        ledgers=to_rows(
            SnapshotLedger,
            session.execute(
                select(Ledger.id, Ledger.tenant_id, Ledger.network, Ledger.name, Ledger.display_name)
                .where(Ledger.removed_at.is_(None))
                .order_by(Ledger.id)
            ),
        ),
        subjects=to_rows(
            SnapshotSubject,
            session.execute(
                select(
                    Subject.subject_key,
                    Subject.id,
                    Subject.kind,
                    Subject.tenant_id,
                    Subject.ledger_id,
                    Ledger.network,
                    Subject.address,
                    Subject.symbol,
                    Subject.name,
                    Subject.external_id,
                    Subject.pair_key,
                    Subject.created_at,
                )
                .join(Ledger, Ledger.id == Subject.ledger_id)
                .where(Subject.removed_at.is_(None), Ledger.removed_at.is_(None))
                .order_by(Subject.subject_key)
            ),
        ),
        windows=to_rows(
            SnapshotWindow,
            session.execute(
                select(
                    TrackingWindow.window_key,
                    TrackingWindow.subject_key,
                    TrackingWindow.opened_at,
                    TrackingWindow.closed_at,
                )
                .join(Subject, Subject.subject_key == TrackingWindow.subject_key)
                .join(Ledger, Ledger.id == Subject.ledger_id)
                .where(
                    Subject.removed_at.is_(None),
                    Ledger.removed_at.is_(None),
                    TrackingWindow.closed_at.is_(None) | (TrackingWindow.closed_at > TrackingWindow.opened_at),
                )
                .order_by(TrackingWindow.window_key)
            ),
        ),
        history_requests=_read_history_requests(session),
        attestation_requests=_read_attestation_requests(session),
        metadata_requests=to_rows(
            SnapshotMetadataRequest,
            session.execute(
                select(Subject.subject_key, Subject.metadata_requested_at, Subject.metadata_accepted_at)
                .join(Ledger, Ledger.id == Subject.ledger_id)
                .where(
                    Subject.metadata_requested_at.is_not(None),
                    Subject.removed_at.is_(None),
                    Ledger.removed_at.is_(None),
                )
                .order_by(Subject.subject_key)
            ),
        ),
        pricing=read_pricing(session),
    )


def _read_operations(session: Session, kind: OperationKind) -> Iterator[tuple[int, Operation]]:
    found = session.execute(
        select(Subject.subject_key, Operation)
        .join(Operation, Operation.subject_key == Subject.subject_key)
        .join(Ledger, Ledger.id == Subject.ledger_id)
        .where(Operation.kind == kind, Subject.removed_at.is_(None), Ledger.removed_at.is_(None))
        .order_by(Operation.operation_key)
    )
    return ((subject_key, operation) for subject_key, operation in found)


def _is_cancelled(operation: Operation) -> bool:
    return operation.cancel_requested_at is not None or operation.status == Status.CANCELLED


def _read_attestation_requests(session: Session) -> tuple[SnapshotAttestationRequest, ...]:
    return tuple(
        SnapshotAttestationRequest(
            operation_key=operation.operation_key,
            subject_key=subject_key,
            as_of_text=operation.parameters["asOf"],
            status=operation.status,
            is_cancelled=_is_cancelled(operation),
            created_at=operation.created_at,
        )
        for subject_key, operation in _read_operations(session, OperationKind.ATTESTATION)
    )


def _read_history_requests(session: Session) -> tuple[SnapshotHistoryRequest, ...]:
    return tuple(
        SnapshotHistoryRequest(
            operation_key=operation.operation_key,
            subject_key=subject_key,
            from_text=operation.parameters["from"],
            to_text=operation.parameters["to"],
            native=operation.native or operation.parameters["native"],
            status=operation.status,
            is_cancelled=_is_cancelled(operation),
            created_at=operation.created_at,
        )
        for subject_key, operation in _read_operations(session, OperationKind.HISTORY)
    )


def networks_with_subjects(session: Session) -> set[str]:
    """Networks on which some tenant has a token or wallet, tracked or not."""
    return set(
        session.scalars(
            select(Ledger.network)
            .join(Subject, Subject.ledger_id == Ledger.id)
            .where(Subject.removed_at.is_(None), Ledger.removed_at.is_(None))
            .distinct()
        )
    )


def networks_with_open_windows(session: Session) -> set[str]:
    """Networks on which some tenant tracks something now."""
    return set(
        session.scalars(
            select(Ledger.network)
            .join(Subject, Subject.ledger_id == Ledger.id)
            .join(TrackingWindow, TrackingWindow.subject_key == Subject.subject_key)
            .where(Subject.removed_at.is_(None), Ledger.removed_at.is_(None), TrackingWindow.closed_at.is_(None))
            .distinct()
        )
    )
