"""Rules of tenants: the operator of the service makes them and finds them by name."""

from datetime import datetime

from sqlalchemy import BindParameter, Select, and_, or_, select
from sqlalchemy.exc import IntegrityError
from sqlalchemy.orm import Session

from control import fields, ids, revision
from control.clock import utc_now
from control.errors import Conflict, Invalid, NotFound
from control.models import Tenant
from control.settings import HIGHEST_SHARD


def create(session: Session, name: str, shard: int = 0, now: datetime | None = None) -> Tenant:
    """Create a tenant in a shard; the pipeline of that shard builds its marts.

    Raises:
        Invalid: on 'name' or 'shard'.
        Conflict: a tenant has this name; names its id.
    """
    fields.check_text("name", name, fields.NAME_LENGTH)
    if not 0 <= shard <= HIGHEST_SHARD:
        raise Invalid("shard", "out-of-range", f"shard must be 0 to {HIGHEST_SHARD}")
    tenant = Tenant(id=ids.new_id("ten_"), name=name, created_at=now or utc_now(), shard=shard)
    try:
        with session.begin_nested():
            session.add(tenant)
    except IntegrityError as error:
        existing = find_by_name(session, name)
        if existing is None:
            raise
        raise Conflict("duplicate-tenant", f"tenant {name!r} already exists", existing.id) from error
    revision.bump(session, tenant.id)
    return tenant


def get(session: Session, tenant_id: str) -> Tenant:
    """Return a tenant.

    Raises:
        NotFound: there is none.
    """
    tenant = session.get(Tenant, tenant_id)
    if tenant is None:
        raise NotFound("tenant", tenant_id)
    return tenant


def find_by_name(session: Session, name: str) -> Tenant | None:
    """Return the tenant of this name, or None."""
    return session.scalars(select(Tenant).where(Tenant.name == name)).one_or_none()


def list_all(session: Session) -> list[Tenant]:
    """Return the tenants of all shards, ordered by name."""
    return list(session.scalars(select(Tenant).order_by(Tenant.name)))


def ids_in_shard(shard: int | BindParameter[int]) -> Select[str]:
    """Select the ids of a shard's tenants, for the conditions of other queries."""
    return select(Tenant.id).where(Tenant.shard == shard)


def ids_collected_in(shard: int | BindParameter[int]) -> Select[str]:
    """Select the ids of tenants that the pipeline of a shard collects: its own, and those that are moving there."""
    is_moving_in = and_(Tenant.next_shard == shard, Tenant.move_object.is_not(None))
    return select(Tenant.id).where(or_(Tenant.shard == shard, is_moving_in))


def exists(session: Session) -> bool:
    """Tell whether there is any tenant."""
    return session.scalars(select(Tenant.id).limit(1)).first() is not None


def get_by_name(session: Session, name: str) -> Tenant:
    """Return the tenant of this name.

    Raises:
        NotFound: there is none.
    """
    tenant = find_by_name(session, name)
    if tenant is None:
        raise NotFound("tenant", name)
    return tenant
