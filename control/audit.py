"""The audit: every configuration write leaves one event in its own transaction; events are never changed.

Reads of requests and reports of the pipeline are not recorded here.
"""

from collections.abc import Mapping
from contextvars import ContextVar
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal, get_args

from sqlalchemy import and_, or_, select
from sqlalchemy.orm import Session

from control import fields, ids
from control.clock import utc_now
from control.errors import Invalid
from control.models import AuditEvent
from control.pages import After, Page, check_limit, cut_page

Action = Literal[
    "attestation.cancel",
    "attestation.request",
    "embedding.origins",
    "embedding.revoke",
    "history.cancel",
    "history.request",
    "key.create",
    "key.revoke",
    "ledger.create",
    "ledger.remove",
    "ledger.update",
    "manual-price.create",
    "price-pair.create",
    "price-pair.discover",
    "price-pair.discover-cancel",
    "price-pair.remove",
    "price-pair.review",
    "price-pair.update",
    "price-source.create",
    "price-source.disable",
    "price-source.enable",
    "price-source.remove",
    "price-source.update",
    "priced-item.create",
    "priced-item.mapping",
    "priced-item.remove",
    "priced-item.update",
    "supported-pair.create",
    "supported-pair.remove",
    "tenant.quotas",
    "token.create",
    "token.link",
    "token.metadata",
    "token.remove",
    "token.tracking",
    "token.unlink",
    "token.update",
    "wallet.create",
    "wallet.remove",
    "wallet.tracking",
    "wallet.update",
]
ObjectKind = Literal[
    "embedding",
    "key",
    "ledger",
    "operation",
    "price-pair",
    "price-source",
    "priced-item",
    "supported-pair",
    "tenant",
    "token",
    "wallet",
]

CLI = "cli"
"""The actor for changes by the operator of the service, which have no key."""

REQUEST_ID: ContextVar[str | None] = ContextVar("request_id", default=None)
"""Id of the present request; the receiver of requests sets it."""

CLIENT_ADDRESS: ContextVar[str | None] = ContextVar("client_address", default=None)
"""IP address of the client of the present request."""

_PREFIX = "aud_"


@dataclass(frozen=True, slots=True)
class AuditFilters:
    """Conditions of a list, all of which must hold; None is no condition. `start` <= occurred_at < `end`."""

    start: datetime | None = None
    end: datetime | None = None
    action: str | None = None
    object_id: str | None = None


def record(
    session: Session,
    tenant_id: str,
    actor: str,
    action: Action,
    object_kind: ObjectKind,
    object_id: str,
    before: Mapping[str, Any] | None,
    after: Mapping[str, Any] | None,
    now: datetime | None = None,
) -> None:
    """Record one configuration write.

    Args:
        session: the write transaction that holds the write itself.
        tenant_id: the tenant of the configuration.
        actor: id of the key, or `CLI`.
        action: the kind of change.
        object_kind: kind of the object.
        object_id: its public id.
        before: its public fields before, of JSON types; None when it was made.
        after: its public fields after; None when it was removed.
        now: the moment; None is the clock's.
    """
    session.add(
        AuditEvent(
            id=ids.new_id(_PREFIX),
            tenant_id=tenant_id,
            actor=actor,
            action=action,
            object_kind=object_kind,
            object_id=object_id,
            before=None if before is None else dict(before),
            after=None if after is None else dict(after),
            request_id=REQUEST_ID.get(),
            client_address=CLIENT_ADDRESS.get(),
            occurred_at=now or utc_now(),
        )
    )
    session.flush()


def list_page(
    session: Session, tenant_id: str, filters: AuditFilters, limit: int = 50, after: After | None = None
) -> Page[AuditEvent]:
    """Return one page of the tenant's events, newest first.

    Raises:
        Invalid: on 'limit', 'cursor', 'action' or 'objectId'.
    """
    query = select(AuditEvent).where(AuditEvent.tenant_id == tenant_id)
    if filters.start is not None:
        query = query.where(AuditEvent.occurred_at >= filters.start)
    if filters.end is not None:
        query = query.where(AuditEvent.occurred_at < filters.end)
    if filters.action is not None:
        if filters.action not in get_args(Action):
            raise Invalid("action", "unknown-action", f"action must be one of {', '.join(get_args(Action))}")
        query = query.where(AuditEvent.action == filters.action)
    if filters.object_id is not None:
        query = query.where(AuditEvent.object_id == fields.check_filter("objectId", filters.object_id))
    if after is not None:
        moment = _read_moment(after.value)
        query = query.where(
            or_(AuditEvent.occurred_at < moment, and_(AuditEvent.occurred_at == moment, AuditEvent.id < after.id))
        )
    rows = session.scalars(
        query.order_by(AuditEvent.occurred_at.desc(), AuditEvent.id.desc()).limit(check_limit(limit) + 1)
    )
    return cut_page([(event, After(event.occurred_at.isoformat(), event.id)) for event in rows], limit)


def newest_id(session: Session, tenant_id: str) -> str | None:
    """Return the id of the tenant's newest event, which tells one state of its audit from another."""
    query = select(AuditEvent.id).where(AuditEvent.tenant_id == tenant_id)
    return session.scalars(query.order_by(AuditEvent.occurred_at.desc(), AuditEvent.id.desc()).limit(1)).one_or_none()


def _read_moment(text: str) -> datetime:
    try:
        return datetime.fromisoformat(text)
    except ValueError as error:
        raise Invalid(
            "cursor", "malformed", "the cursor belongs to another list; start again without a cursor"
        ) from error
