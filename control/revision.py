"""The counters that every configuration write moves on, so that a reader sees cheaply that something changed.

One is the whole store's, for the pipeline; one is each tenant's, which tells nothing of the others.
"""

from sqlalchemy import select, update
from sqlalchemy.orm import Session

from control.models import ControlState, Tenant


def bump(session: Session, tenant_id: str) -> None:
    """Count one configuration write of a tenant; called after the write, so that writers wait for each other last."""
    session.flush()
    session.execute(update(Tenant).where(Tenant.id == tenant_id).values(revision=Tenant.revision + 1))
    session.execute(update(ControlState).values(revision=ControlState.revision + 1))


def read_revision(session: Session) -> int:
    """Return the number of configuration writes so far."""
    return session.execute(select(ControlState.revision)).scalar_one()
