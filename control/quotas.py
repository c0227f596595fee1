"""Quotas of a tenant: how much configuration it may store.

Each quota is checked in the transaction of the write that could exceed it, after the revision was counted. Counting
locks the tenant's row, so the second of two writers sees the rows of the first one. Rates of requests do not go here.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, NamedTuple

from sqlalchemy import Select, case, func, select, union_all, update
from sqlalchemy.orm import Session

from control import audit
from control.errors import Conflict
from control.models import (
    Ledger,
    ManualSource,
    Operation,
    PricedItem,
    PricePair,
    Subject,
    SupportedPair,
    Tenant,
)
from control.networks.families import SCAN_RANGE


class QuotaName(StrEnum):
    """Kinds of quotas.

    `storedPrices` counts manual prices with all their revisions. `objects` counts ledgers, tokens, wallets, priced
    items, manual price sources with their pairs, and pairs, each until it is removed. It also counts unfinished
    operations. `scripts` counts the output scripts of wallets of keys when their tracking begins: `SCAN_RANGE` for each
    branch, or one for a branch without `*`. The number of keys in a script does not matter.
    """

    STORED_PRICES = "storedPrices"
    OBJECTS = "objects"
    SCRIPTS = "scripts"


@dataclass(frozen=True, slots=True)
class Defaults:
    """The limits of the installation, for tenants without one of their own."""

    stored_prices: int
    objects: int
    scripts: int


class Quota(NamedTuple):
    """A quota of a tenant: its usage, its limit, and the setting of the limit, a variable or a command."""

    name: QuotaName
    used: int
    limit: int
    setting: str


_SESSION_KEY = "ledgermart_quotas"


def session_info(defaults: Defaults) -> dict[str, Any]:
    """Return entries for `Session.info`, from which rules read the installation's limits."""
    return {_SESSION_KEY: defaults}


def read(session: Session, tenant_id: str) -> list[Quota]:
    """Return the quotas of a tenant."""
    return [_stored_prices(session, tenant_id), _objects(session, tenant_id), _scripts(session, tenant_id)]


def admit_object(session: Session, tenant_id: str) -> None:
    """Refuse an object that was stored in this transaction, and that exceeds the quota.

    Raises:
        Conflict: names quota, limit and setting; the transaction must not be committed.
    """
    _check(_objects(session, tenant_id))


def admit_scripts(session: Session, tenant_id: str) -> None:
    """Refuse a wallet of keys that was stored in this transaction, if its scripts exceed the quota.

    Raises:
        Conflict: on 'ledgerId'; names quota, limit and setting; the transaction must not be committed.
    """
    _check(_scripts(session, tenant_id), ["ledgerId"])


def admit_prices(session: Session, tenant_id: str, count: int) -> None:
    """Count prices that this transaction stores, and refuse them if they exceed the quota.

    Raises:
        Conflict: names quota, limit and setting; the transaction must not be committed.
    """
    counted = update(Tenant).where(Tenant.id == tenant_id).values(stored_prices=Tenant.stored_prices + count)
    session.execute(counted.execution_options(synchronize_session=False))
    _check(_stored_prices(session, tenant_id))


def set_limits(session: Session, tenant_id: str, limits: dict[QuotaName, int | None]) -> None:
    """Set limits of a tenant; None takes the installation's. A lower limit deletes nothing.

    Scripts have the limit of the installation alone.

    Args:
        session: a write transaction.
        tenant_id: an existing tenant.
        limits: the new ones, from 0 to `control.settings.HIGHEST_QUOTA`; a quota that is left out keeps its limit.
    """
    before = {quota.name.value: quota.limit for quota in read(session, tenant_id)}
    columns = {_COLUMNS[name].key: limit for name, limit in limits.items()}
    session.execute(update(Tenant).where(Tenant.id == tenant_id).values(columns))
    after = {quota.name.value: quota.limit for quota in read(session, tenant_id)}
    audit.record(session, tenant_id, audit.CLI, "tenant.quotas", "tenant", tenant_id, before, after)


_FIXES = {QuotaName.OBJECTS: "remove some, or have", QuotaName.SCRIPTS: "remove wallets of keys, or have"}
_COLUMNS = {QuotaName.STORED_PRICES: Tenant.max_stored_prices, QuotaName.OBJECTS: Tenant.max_objects}


def _stored_prices(session: Session, tenant_id: str) -> Quota:
    used, own = session.execute(
        select(Tenant.stored_prices, Tenant.max_stored_prices).where(Tenant.id == tenant_id)
    ).one()
    default = session.info[_SESSION_KEY].stored_prices
    return _quota(QuotaName.STORED_PRICES, used, own, default, "LEDGERMART_MAX_STORED_PRICES", "--stored-prices")


def _objects(session: Session, tenant_id: str) -> Quota:
    kinds: list[Select[Any]] = [
        select(func.count().label("number")).where(table.tenant_id == tenant_id, table.removed_at.is_(None))
        for table in (Ledger, Subject, PricedItem, ManualSource, SupportedPair, PricePair)
    ]
    kinds.append(
        select(func.count().label("number")).where(Operation.tenant_id == tenant_id, Operation.finished_at.is_(None))
    )
    counts = union_all(*kinds).subquery()
    used: int = session.execute(select(func.sum(counts.c.number))).scalar_one()
    own = session.execute(select(Tenant.max_objects).where(Tenant.id == tenant_id)).scalar_one()
    default = session.info[_SESSION_KEY].objects
    return _quota(QuotaName.OBJECTS, int(used), own, default, "LEDGERMART_MAX_OBJECTS", "--objects")


def _scripts(session: Session, tenant_id: str) -> Quota:
    # Canonical descriptors have these characters in paths alone.
    branches = case((Subject.descriptor.contains("<"), 2), else_=1)
    indices = case((Subject.descriptor.contains("*"), SCAN_RANGE), else_=1)
    used: int = session.execute(
        select(func.coalesce(func.sum(branches * indices), 0)).where(
            Subject.tenant_id == tenant_id, Subject.removed_at.is_(None), Subject.descriptor.is_not(None)
        )
    ).scalar_one()
    return _quota(QuotaName.SCRIPTS, int(used), None, session.info[_SESSION_KEY].scripts, "LEDGERMART_MAX_SCRIPTS", "")


def _quota(name: QuotaName, used: int, own: int | None, default: int, variable: str, option: str) -> Quota:
    if own is None:
        return Quota(name, used, default, variable)
    return Quota(name, used, own, f"ledgermart tenant quotas {option}")


def _check(quota: Quota, fields: Sequence[str] = ()) -> None:
    if quota.used <= quota.limit:
        return
    fix = _FIXES.get(quota.name, "have")
    detail = f"the quota {quota.name} allows {quota.limit}, and this request would make {quota.used}"
    raise Conflict("quota-exceeded", f"{detail}; {fix} the administrator raise it with {quota.setting}", fields=fields)
