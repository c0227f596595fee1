"""Rules of wallets: addresses of a tenant's interest on one of its ledgers."""

from datetime import datetime

from msgspec import UNSET, UnsetType
from sqlalchemy.orm import Session

from control import subjects
from control.access import Principal
from control.errors import Invalid
from control.pages import After, Page
from control.subjects import Kind, SubjectFilters, SubjectRow


def create(
    session: Session,
    principal: Principal,
    *,
    ledger: str,
    ledger_id: str,
    external_id: str | None = None,
    name: str | None = None,
    now: datetime | None = None,
) -> SubjectRow:
    """Store a wallet, not tracked; arguments and errors as `subjects.create`."""
    return subjects.create(
        session,
        principal,
        Kind.WALLET,
        ledger=ledger,
        ledger_id=ledger_id,
        symbol=None,
        external_id=external_id,
        name=name,
        now=now,
    )


def get(session: Session, tenant_id: str, wallet_id: str) -> SubjectRow:
    """Return one wallet of the tenant.

    Raises:
        NotFound: the tenant has none with this id.
    """
    return subjects.get(session, tenant_id, Kind.WALLET, wallet_id)


def list_page(
    session: Session,
    tenant_id: str,
    filters: SubjectFilters,
    sort: str = "createdAt",
    limit: int = 50,
    after: After | None = None,
) -> Page[SubjectRow]:
    """Return one page of the tenant's wallets; sorts, filters and errors as `subjects.list_page`.

    Raises:
        Invalid: on 'symbol', which wallets do not have.
    """
    if filters.symbol is not None:
        raise Invalid("symbol", "unknown-filter", "wallets have no symbol; leave the filter out")
    return subjects.list_page(session, tenant_id, Kind.WALLET, filters, sort=sort, limit=limit, after=after)


def update(
    session: Session,
    principal: Principal,
    wallet: SubjectRow,
    *,
    name: str | UnsetType | None = UNSET,
    external_id: str | UnsetType | None = UNSET,
    now: datetime | None = None,
) -> SubjectRow:
    """Change name or external id of a wallet; arguments and errors as `subjects.update`."""
    return subjects.update(session, principal, wallet, symbol=UNSET, name=name, external_id=external_id, now=now)
