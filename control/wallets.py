"""Rules of wallets: addresses of a tenant's interest on one of its ledgers."""

from collections.abc import Mapping
from datetime import datetime

from sqlalchemy.orm import Session

from control import subjects
from control.access import Principal
from control.errors import Invalid
from control.networks.definitions import Network
from control.pages import After, Page
from control.subjects import Kind, SubjectFilters, SubjectRow, WalletCreate, WalletPatch


def create(
    session: Session,
    principal: Principal,
    networks: Mapping[str, Network],
    request: WalletCreate,
    now: datetime | None = None,
) -> SubjectRow:
    """Store a wallet, not tracked; arguments and errors as `subjects.create`."""
    return subjects.create(session, principal, networks, Kind.WALLET, request, now)


def get(session: Session, tenant_id: str, wallet_id: str) -> SubjectRow:
    """Return one wallet of the tenant.

    Raises:
        NotFound: the tenant has none with this id.
    """
    return subjects.get(session, tenant_id, Kind.WALLET, wallet_id)


def list_page(
    session: Session,
    tenant_id: str,
    networks: Mapping[str, Network],
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
    return subjects.list_page(session, tenant_id, networks, Kind.WALLET, filters, sort=sort, limit=limit, after=after)


def update(
    session: Session, principal: Principal, wallet: SubjectRow, request: WalletPatch, now: datetime | None = None
) -> SubjectRow:
    """Change name or external id of a wallet; arguments and errors as `subjects.update`."""
    return subjects.update(session, principal, wallet, request, now)
