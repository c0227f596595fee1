"""Rules of tokens: assets of a tenant, named by the address of their contract on one of its ledgers."""

from datetime import datetime

from msgspec import UNSET, UnsetType
from sqlalchemy.orm import Session

from control import access, audit, fields, revision, subjects
from control.access import Principal, Role
from control.clock import utc_now
from control.pages import After, Page
from control.subjects import Kind, SubjectFilters, SubjectRow


def create(
    session: Session,
    principal: Principal,
    *,
    ledger: str,
    symbol: str,
    ledger_id: str,
    external_id: str | None = None,
    name: str | None = None,
    now: datetime | None = None,
) -> SubjectRow:
    """Store a token, not tracked; arguments and errors as `subjects.create`.

    Raises:
        Invalid: on 'symbol' too.
    """
    fields.check_text("symbol", symbol, fields.SYMBOL_LENGTH)
    return subjects.create(
        session,
        principal,
        Kind.TOKEN,
        ledger=ledger,
        ledger_id=ledger_id,
        symbol=symbol,
        external_id=external_id,
        name=name,
        now=now,
    )


def get(session: Session, tenant_id: str, token_id: str) -> SubjectRow:
    """Return one token of the tenant.

    Raises:
        NotFound: the tenant has none with this id.
    """
    return subjects.get(session, tenant_id, Kind.TOKEN, token_id)


def list_page(
    session: Session,
    tenant_id: str,
    filters: SubjectFilters,
    sort: str = "createdAt",
    limit: int = 50,
    after: After | None = None,
) -> Page[SubjectRow]:
    """Return one page of the tenant's tokens; sorts, filters and errors as `subjects.list_page`."""
    return subjects.list_page(session, tenant_id, Kind.TOKEN, filters, sort=sort, limit=limit, after=after)


def update(
    session: Session,
    principal: Principal,
    token: SubjectRow,
    *,
    symbol: str | UnsetType = UNSET,
    name: str | UnsetType | None = UNSET,
    external_id: str | UnsetType | None = UNSET,
    now: datetime | None = None,
) -> SubjectRow:
    """Change symbol, name or external id of a token; arguments and errors as `subjects.update`.

    Raises:
        Invalid: on 'symbol' too.
    """
    if symbol is not UNSET:
        fields.check_text("symbol", symbol, fields.SYMBOL_LENGTH)
    return subjects.update(session, principal, token, symbol=symbol, name=name, external_id=external_id, now=now)


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
    audit.record(
        session,
        principal.tenant_id,
        principal.key_id,
        "token.metadata",
        token.kind.value,
        token.id,
        None,
        {"requestedAt": moment.isoformat(), "accept": accept},
        now,
    )
    revision.bump(session, principal.tenant_id)
    return moment
