"""Rules of tokens: assets of a tenant, named by the address of their contract on one of its ledgers."""

from collections.abc import Mapping
from datetime import datetime

from sqlalchemy.orm import Session

from control import access, subjects
from control.access import Principal, Role
from control.changes import record_change
from control.clock import utc_now
from control.networks.definitions import Network
from control.pages import After, Page
from control.subjects import Kind, SubjectFilters, SubjectRow, TokenCreate, TokenPatch


def create(
    session: Session,
    principal: Principal,
    networks: Mapping[str, Network],
    request: TokenCreate,
    now: datetime | None = None,
) -> SubjectRow:
    """Store a token, not tracked; arguments and errors as `subjects.create`."""
    return subjects.create(session, principal, networks, Kind.TOKEN, request, now)


def get(session: Session, tenant_id: str, token_id: str) -> SubjectRow:
    """Return one token of the tenant.

    Raises:
        NotFound: the tenant has none with this id.
    """
    return subjects.get(session, tenant_id, Kind.TOKEN, token_id)


def list_page(
    session: Session,
    tenant_id: str,
    networks: Mapping[str, Network],
    filters: SubjectFilters,
    sort: str = "createdAt",
    limit: int = 50,
    after: After | None = None,
) -> Page[SubjectRow]:
    """Return one page of the tenant's tokens; sorts, filters and errors as `subjects.list_page`."""
    return subjects.list_page(session, tenant_id, networks, Kind.TOKEN, filters, sort=sort, limit=limit, after=after)


def update(
    session: Session, principal: Principal, token: SubjectRow, request: TokenPatch, now: datetime | None = None
) -> SubjectRow:
    """Change symbol, name or external id of a token; arguments and errors as `subjects.update`."""
    return subjects.update(session, principal, token, request, now)


def request_metadata(
    session: Session, principal: Principal, token: SubjectRow, *, accept: bool, now: datetime | None = None
) -> datetime:
    """Request that the next cycle reads the token's contract again, and return the time of the request.

    Args:
        session: a write transaction.
        principal: who asks.
        token: the token, from `get`.
        accept: also accept the change that was found, if the contract returns it once more.
        now: the moment; None is the clock's.

    Raises:
        Denied: below operator.
        NotFound: removed meanwhile, or another tenant's.
    """
    access.require(principal, Role.OPERATOR)
    locked = subjects.lock(session, principal.tenant_id, token)
    moment = now or utc_now()
    locked.metadata_requested_at = moment
    if accept:
        locked.metadata_accepted_at = moment
    asked = {"requestedAt": moment.isoformat(), "accept": accept}
    record_change(session, principal, "token.metadata", token.kind.value, token.id, None, asked, now)
    return moment
