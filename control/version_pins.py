"""Pins of published versions: one from which a cursor was handed out stays readable until an hour after its last use.

Which versions there are, and which of them go, is the warehouse's affair.
"""

from datetime import datetime, timedelta

from sqlalchemy import delete, select, update
from sqlalchemy.orm import Session

from control.clock import utc_now
from control.models import ControlState, Tenant, VersionPin

HELD_FOR = timedelta(hours=1)
RESOLUTION = timedelta(minutes=1)
"""A use less than this after a recorded one need not be recorded, to save writes; a pin lasts longer by as much."""


def pin(session: Session, version: int, tenant_id: str, now: datetime | None = None) -> None:
    """Record a use of a tenant's cursor that goes on in a version."""
    _wait_for_others(session)
    until = (now or utc_now()) + HELD_FOR + RESOLUTION
    found = session.get(VersionPin, (version, tenant_id))
    if found is None:
        session.add(VersionPin(version=version, tenant_id=tenant_id, pinned_until=until))
    elif found.pinned_until < until:
        found.pinned_until = until


def pinned(
    session: Session, now: datetime | None = None, tenant_id: str | None = None, *, shard: int | None = None
) -> set[int]:
    """Return the versions that are pinned: by one tenant, by the tenants of one shard, or by any tenant."""
    query = select(VersionPin.version).where(VersionPin.pinned_until > (now or utc_now()))
    if tenant_id is not None:
        query = query.where(VersionPin.tenant_id == tenant_id)
    if shard is not None:
        query = query.join(Tenant, Tenant.id == VersionPin.tenant_id).where(Tenant.shard == shard)
    return set(session.scalars(query))


def pinned_while_removing(session: Session, now: datetime | None = None, *, shard: int | None = None) -> set[int]:
    """Return the versions that are pinned; delete expired pins, and shorten those longer than a pin of now.

    No further pin is recorded before the transaction ends.

    Args:
        now: the present instant.
        shard: return only pins of its tenants; None for all tenants.
    """
    _wait_for_others(session)
    now = now or utc_now()
    session.execute(delete(VersionPin).where(VersionPin.pinned_until <= now))
    # Later ends were recorded while a clock was ahead.
    until = now + HELD_FOR + RESOLUTION
    session.execute(update(VersionPin).where(VersionPin.pinned_until > until).values(pinned_until=until))
    return pinned(session, now, shard=shard)


def _wait_for_others(session: Session) -> None:
    # Postgres locks row by row, and a version without a pin has no row.
    session.execute(select(ControlState.id).with_for_update())
