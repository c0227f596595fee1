"""Steps that all configuration writes share: the lock of the stored object, the audit, the revision and the quota."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any, TypeVar

from sqlalchemy import Select
from sqlalchemy.orm import Session

from control import audit, quotas, revision
from control.access import Principal
from control.errors import NotFound

Stored = TypeVar("Stored")


def lock_one(session: Session, query: Select[Stored], kind: str, identifier: str, *, is_shared: bool = False) -> Stored:
    """Return the one object of a query for change; other writers of it wait until the transaction ends.

    Args:
        session: a write transaction.
        query: selects at most one object.
        kind: kind of the object, for the error.
        identifier: its id or name in the request, for the error.
        is_shared: others may lock it in the same way, but not change or remove it.

    Raises:
        NotFound: there is no such object.
    """
    locking = query.with_for_update(read=is_shared).execution_options(populate_existing=True)
    found = session.scalars(locking).one_or_none()
    if found is None:
        raise NotFound(kind, identifier)
    return found


def record_change(
    session: Session,
    principal: Principal,
    action: audit.Action,
    kind: audit.ObjectKind,
    object_id: str,
    before: Mapping[str, Any] | None,
    after: Mapping[str, Any] | None,
    now: datetime | None,
    *,
    is_new: bool = False,
) -> None:
    """Audit a configuration write that is already in the session, and count it in the revision.

    Args:
        session: the write transaction.
        principal: the key that asks.
        action: the action for the audit.
        kind: kind of the object.
        object_id: its public id.
        before: its public fields before, of JSON types; None if it is new.
        after: its public fields after; None if it was removed.
        now: the moment; None is the clock's.
        is_new: the write adds an object, which must fit the tenant's quota.

    Raises:
        Conflict: the quota is exceeded.
    """
    audit.record(session, principal.tenant_id, principal.key_id, action, kind, object_id, before, after, now)
    revision.bump(session, principal.tenant_id)
    if is_new:
        quotas.admit_object(session, principal.tenant_id)
