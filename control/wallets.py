"""Rules of wallets: addresses of a tenant's interest on one of its ledgers."""

from collections.abc import Mapping
from datetime import datetime

from sqlalchemy import select
from sqlalchemy.orm import Session

from control import access, subjects
from control.access import Principal, Role
from control.errors import Conflict, Invalid
from control.models import Subject
from control.networks.definitions import Network
from control.networks.families import WalletKeys
from control.networks.pins import definition_in_use
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


def read_keys(
    session: Session, principal: Principal, networks: Mapping[str, Network], wallet: SubjectRow
) -> WalletKeys:
    """Return the keys of a wallet, with its whole descriptor.

    Raises:
        Denied: below admin.
        Conflict: the wallet is a single address, or its network is no longer defined or has changed.
    """
    access.require(principal, Role.ADMIN)
    stored = select(Subject.descriptor).where(
        Subject.subject_key == wallet.subject_key, Subject.tenant_id == principal.tenant_id
    )
    descriptor = session.scalars(stored).one()
    if descriptor is None:
        raise Conflict("single-address", "the wallet is a single address, so it has no keys; `ledgerId` is its address")
    keys = definition_in_use(session, networks, wallet.network).parse_keys(descriptor)
    assert keys is not None, "a stored descriptor means keys"
    return keys


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
