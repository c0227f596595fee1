"""Moves of tenants between shards: built in the new shard, then switched.

1. `begin`: the pipeline of the present shard pauses the tenant's requests from its next cycle on.
2. `record`: the tenant's rows are in the store of versions; the new shard imports, builds and publishes them.
3. `finish`: API nodes read the new shard from now on.
4. `forget_left`: the previous shard has deleted the tenant's rows; the tenant can move again.

Each step is one statement that compares, so two processes cannot both take it.
"""

from typing import NamedTuple, cast

from sqlalchemy import CursorResult, Update, func, select, update
from sqlalchemy.orm import InstrumentedAttribute, Session

from control import revision
from control.errors import Conflict, Invalid
from control.models import Operation, PricePair, Subject, SupportedPair, Tenant
from control.settings import HIGHEST_SHARD


class Bundle(NamedTuple):
    """A moving tenant and the object with its rows in the store of versions.

    Attributes:
        object_name, byte_count, sha256: as `warehouse.objects.StoredObject`.
    """

    tenant_id: str
    object_name: str
    byte_count: int
    sha256: str


class TenantKeys(NamedTuple):
    """The integer keys that a tenant's rows in a warehouse have, also those of removed objects."""

    tenant_id: str
    subjects: list[int]
    operations: list[int]
    pairs: list[int]
    supported_pairs: list[int]


_NOTHING_MOVES = {"next_shard": None, "move_object": None, "move_bytes": None, "move_sha256": None}
_BUNDLE = (Tenant.id, Tenant.move_object, Tenant.move_bytes, Tenant.move_sha256)


def begin(session: Session, tenant: Tenant, here: int, to: int) -> None:
    """Begin a move; a move to the same shard that was begun before continues.

    Args:
        session: of a write transaction.
        tenant: the tenant.
        here: shard of the warehouse with its rows.
        to: the new shard.

    Raises:
        Invalid: on 'shard'.
        Conflict: the tenant is in another shard than `here`, is moving to another one, or has rows in the shard that it
            left before.
    """
    if not 0 <= to <= HIGHEST_SHARD or to == here:
        raise Invalid("shard", "out-of-range", f"the new shard must be 0 to {HIGHEST_SHARD}, and not {here}")
    if tenant.shard != here:
        raise Conflict(
            "other-shard",
            f"tenant {tenant.name} is in shard {tenant.shard}; run the command on the machine of that shard, with "
            f"LEDGERMART_SHARD={tenant.shard}",
        )
    if tenant.previous_shard is not None:
        raise Conflict(
            "rows-left",
            f"shard {tenant.previous_shard} still has rows of tenant {tenant.name}; its pipeline deletes them in its "
            "next cycle",
        )
    free = update(Tenant).where(Tenant.id == tenant.id, Tenant.shard == here)
    free = free.where(Tenant.next_shard.is_(None) | (Tenant.next_shard == to))
    if not _changed(session, free.values(next_shard=to)):
        raise Conflict("moving", f"tenant {tenant.name} is moving to another shard; cancel that move first")
    revision.bump(session, tenant.id)


def record(session: Session, bundle: Bundle, here: int, to: int) -> str | None:
    """Record the stored rows of a tenant; the pipeline of the new shard imports them.

    Returns:
        The name of the object that was recorded before; None without one.

    Raises:
        Conflict: the move was cancelled or finished meanwhile.
    """
    before = session.scalar(select(Tenant.move_object).where(Tenant.id == bundle.tenant_id).with_for_update())
    moving = update(Tenant).where(Tenant.id == bundle.tenant_id, Tenant.shard == here, Tenant.next_shard == to)
    stored = {"move_object": bundle.object_name, "move_bytes": bundle.byte_count, "move_sha256": bundle.sha256}
    if not _changed(session, moving.values(stored)):
        raise Conflict("not-moving", "the move was cancelled or finished meanwhile; nothing was recorded")
    revision.bump(session, bundle.tenant_id)
    return before


def cancel(session: Session, tenant: Tenant) -> None:
    """End a move before the switch; the tenant stays in its shard.

    Raises:
        Conflict: the tenant is not moving, or not any more.
    """
    moving = update(Tenant).where(Tenant.id == tenant.id, Tenant.next_shard.is_not(None))
    if not _changed(session, moving.values(_NOTHING_MOVES)):
        raise Conflict("not-moving", f"tenant {tenant.name} is not moving; it is in shard {tenant.shard}")
    revision.bump(session, tenant.id)


def find_arriving(session: Session, shard: int) -> list[Bundle]:
    """Return the tenants that are moving to a shard, with their stored rows, by id."""
    query = select(*_BUNDLE).where(Tenant.next_shard == shard, Tenant.move_object.is_not(None)).order_by(Tenant.id)
    return [Bundle._make(row) for row in session.execute(query)]


def find_residents(session: Session, shard: int) -> set[str]:
    """Return the ids of the tenants in a shard."""
    return set(session.scalars(select(Tenant.id).where(Tenant.shard == shard)))


def find_leaving(session: Session, shard: int) -> dict[str, str]:
    """Return the names of the tenants that are moving out of a shard, by id. Their requests wait for the new shard."""
    query = select(Tenant.id, Tenant.name).where(Tenant.shard == shard, Tenant.next_shard.is_not(None))
    return {row.id: row.name for row in session.execute(query)}


def find_left(session: Session, shard: int) -> set[str]:
    """Return the ids of tenants that left a shard and may have rows there."""
    return set(session.scalars(select(Tenant.id).where(Tenant.previous_shard == shard)))


def forget_left(session: Session, tenant_id: str, shard: int) -> None:
    """Record that a shard has no rows of a tenant that left it; the tenant can move again."""
    left = update(Tenant).where(Tenant.id == tenant_id, Tenant.previous_shard == shard)
    session.execute(left.values(previous_shard=None))


def finish(session: Session, tenant_id: str, shard: int, object_name: str, version: int) -> bool:
    """Switch a tenant to the shard to which it is moving.

    Args:
        session: of a write transaction.
        tenant_id: the tenant.
        shard: the new shard.
        object_name: object that the shard imported.
        version: version in force of the shard; it contains the tenant.

    Returns:
        False if the tenant is not moving there any more, or with other stored rows; then nothing changes.
    """
    moving = update(Tenant).where(Tenant.id == tenant_id, Tenant.next_shard == shard, Tenant.move_object == object_name)
    switched = {"previous_shard": Tenant.shard, "shard": shard, "shard_version": version, **_NOTHING_MOVES}
    if not _changed(session, moving.values(switched)):
        return False
    revision.bump(session, tenant_id)
    return True


def newest_switch(session: Session, shard: int) -> int:
    """Return the newest version of a shard that is the first one with a tenant that moved there; 0 without one."""
    return session.scalar(select(func.max(Tenant.shard_version)).where(Tenant.shard == shard)) or 0


def read_keys(session: Session, tenant_id: str) -> TenantKeys:
    """Return the keys of a tenant's rows, each list in order."""

    def keys(key: InstrumentedAttribute[int], owner: InstrumentedAttribute[str]) -> list[int]:
        return list(session.scalars(select(key).where(owner == tenant_id).order_by(key)))

    return TenantKeys(
        tenant_id,
        keys(Subject.subject_key, Subject.tenant_id),
        keys(Operation.operation_key, Operation.tenant_id),
        keys(PricePair.pair_key, PricePair.tenant_id),
        keys(SupportedPair.supported_pair_key, SupportedPair.tenant_id),
    )


def _changed(session: Session, statement: Update) -> bool:
    """Run an update of one row; return whether it found the row."""
    session.flush()
    return cast("CursorResult[tuple[()]]", session.execute(statement)).rowcount == 1
