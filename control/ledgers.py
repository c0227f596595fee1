"""Rules of ledgers: a tenant's names for networks."""

from collections.abc import Mapping
from datetime import datetime
from typing import Annotated

from msgspec import UNSET, UnsetType
from sqlalchemy import Select, func, or_, select
from sqlalchemy.exc import IntegrityError
from sqlalchemy.orm import Session

from control import access, fields, ids
from control.access import Principal, Role
from control.changes import lock_one, record_change
from control.clock import utc_now
from control.errors import Conflict, Invalid, NotFound
from control.fields import DESCRIPTION_LENGTH, NAME_LENGTH
from control.inputs import NETWORK, Schema, described, given, line, text
from control.models import Ledger, Subject
from control.networks import pins
from control.networks.definitions import Network
from control.pages import After, Page, check_limit, cut_page

_PREFIX = "led_"


class LedgerPut(Schema, frozen=True, kw_only=True):
    """A ledger to create or to change."""

    name: Annotated[str, described("Unique for the tenant.", ["ethereum-main"], **NETWORK)]
    display_name: Annotated[str | None, line(NAME_LENGTH, "Display name.")] = None
    description: Annotated[str | None, text(DESCRIPTION_LENGTH, "Free text.")] = None


class LedgerPatch(Schema, frozen=True, kw_only=True):
    """Changes to a ledger.

    A field that is left out stays the same; null deletes its value. Network and name are fixed.
    """

    display_name: Annotated[str | None, line(NAME_LENGTH, "Display name.")] | UnsetType = UNSET
    description: Annotated[str | None, text(DESCRIPTION_LENGTH, "Free text.")] | UnsetType = UNSET


def put(
    session: Session,
    principal: Principal,
    networks: Mapping[str, Network],
    network_name: str,
    request: LedgerPut,
    now: datetime | None = None,
) -> tuple[Ledger, bool]:
    """Create a ledger under a network, or replace display name and description of the one with this name.

    A disabled network (without a node address) is accepted; its data is collected once it is reachable.

    Returns:
        The ledger, and whether it was created. Stored values change nothing.

    Raises:
        Denied: below operator.
        NotFound: no such network.
        Invalid: on 'name', 'displayName' or 'description'.
        Conflict: the tenant has this name under another network (names its id), or the network's chain changed.
    """
    access.require(principal, Role.OPERATOR)
    network = networks.get(network_name)
    if network is None:
        raise NotFound("network", network_name)
    name = request.name
    if fields.LEDGER_NAME.fullmatch(name) is None:
        raise Invalid(
            "name",
            "malformed",
            "name must be 1 to 63 lower-case letters, digits and hyphens, and begin with a letter or digit",
        )
    _check_texts(request.display_name, request.description)
    moment = now or utc_now()
    pins.pin(session, network, moment)
    ledger = _lock_by_name(session, principal.tenant_id, name)
    if ledger is None:
        ledger = Ledger(
            id=ids.new_id(_PREFIX),
            tenant_id=principal.tenant_id,
            network=network_name,
            name=name,
            display_name=request.display_name,
            description=request.description,
            created_at=moment,
            updated_at=moment,
        )
        try:
            with session.begin_nested():
                session.add(ledger)
        except IntegrityError:
            # Another writer was quicker: then this is an update of theirs.
            winner = _lock_by_name(session, principal.tenant_id, name)
            if winner is None:
                raise
            ledger = winner
        else:
            after = _audited(ledger)
            record_change(session, principal, "ledger.create", "ledger", ledger.id, None, after, now, is_new=True)
            return ledger, True
    if ledger.network != network_name:
        raise Conflict(
            "ledger-on-other-network",
            f"ledger {name!r} exists under network {ledger.network!r}; choose another name",
            ledger.id,
            fields=["name"],
        )
    _change(session, principal, ledger, request.display_name, request.description, now)
    return ledger, False


def update(
    session: Session,
    principal: Principal,
    name_or_id: str,
    request: LedgerPatch,
    now: datetime | None = None,
) -> Ledger:
    """Change display name or description of a ledger. Unset fields stay, and None deletes a value.

    Raises:
        Denied: below operator.
        NotFound: the tenant has none such.
        Invalid: on 'displayName' or 'description'.
    """
    access.require(principal, Role.OPERATOR)
    ledger = _lock(session, principal.tenant_id, name_or_id)
    new = given(request)
    # Check only new texts: a stored text may be from a release that allowed other characters.
    _check_texts(new.get("display_name"), new.get("description"))
    texts = {"display_name": ledger.display_name, "description": ledger.description} | new
    _change(session, principal, ledger, texts["display_name"], texts["description"], now)
    return ledger


def remove(session: Session, principal: Principal, name_or_id: str, now: datetime | None = None) -> None:
    """Remove a ledger that no token or wallet uses; its name is free again.

    Raises:
        Denied: below admin.
        NotFound: the tenant has none such.
        Conflict: tokens or wallets use it; says how many.
    """
    access.require(principal, Role.ADMIN)
    ledger = _lock(session, principal.tenant_id, name_or_id)
    used = select(Subject.kind, func.count()).where(Subject.ledger_id == ledger.id, Subject.removed_at.is_(None))
    counts = dict(session.execute(used.group_by(Subject.kind)).all())
    if counts:
        users = " and ".join(
            f"{counts[kind]} {kind}{'' if counts[kind] == 1 else 's'}" for kind in ("token", "wallet") if kind in counts
        )
        raise Conflict("ledger-in-use", f"ledger {ledger.name!r} is used by {users}; remove them first", ledger.id)
    ledger.removed_at = ledger.updated_at = now or utc_now()
    record_change(session, principal, "ledger.remove", "ledger", ledger.id, _audited(ledger), None, now)


def get(session: Session, tenant_id: str, name_or_id: str) -> Ledger:
    """Return a ledger of the tenant by name or by id.

    Raises:
        NotFound: the tenant has none such.
    """
    ledger = find(session, tenant_id, name_or_id)
    if ledger is None:
        raise NotFound("ledger", name_or_id)
    return ledger


def find(session: Session, tenant_id: str, name_or_id: str, *, is_kept: bool = False) -> Ledger | None:
    """Return a ledger of the tenant by name or by id, or None. A name has no underscore, an id always has one.

    With `is_kept` it cannot be removed until the transaction ends.
    """
    if fields.LEDGER_NAME.fullmatch(name_or_id) is None and not ids.is_id(_PREFIX, name_or_id):
        return None
    query = _select(tenant_id, name_or_id)
    return session.scalars(query.with_for_update(read=True) if is_kept else query).one_or_none()


def list_page(session: Session, tenant_id: str, limit: int, after: After | None = None) -> Page[Ledger]:
    """Return one page of the tenant's ledgers, oldest first (ids sort by creation).

    Raises:
        Invalid: on 'limit'.
    """
    query = select(Ledger).where(Ledger.tenant_id == tenant_id, Ledger.removed_at.is_(None))
    if after is not None:
        query = query.where(Ledger.id > after.id)
    rows = session.scalars(query.order_by(Ledger.id).limit(check_limit(limit) + 1))
    return cut_page([(ledger, After(ledger.id, ledger.id)) for ledger in rows], limit)


def _select(tenant_id: str, name_or_id: str) -> Select[Ledger]:
    return select(Ledger).where(
        Ledger.tenant_id == tenant_id,
        Ledger.removed_at.is_(None),
        or_(Ledger.name == name_or_id, Ledger.id == name_or_id),
    )


def _lock(session: Session, tenant_id: str, name_or_id: str) -> Ledger:
    query = _select(tenant_id, get(session, tenant_id, name_or_id).id)
    return lock_one(session, query, "ledger", name_or_id)


def _check_texts(display_name: str | None, description: str | None) -> None:
    fields.check_optional_text("displayName", display_name, NAME_LENGTH)
    fields.check_optional_text("description", description, DESCRIPTION_LENGTH, is_multiline=True)


def _change(
    session: Session,
    principal: Principal,
    ledger: Ledger,
    display_name: str | None,
    description: str | None,
    now: datetime | None,
) -> None:
    if (ledger.display_name, ledger.description) == (display_name, description):
        return
    before = _audited(ledger)
    ledger.display_name, ledger.description, ledger.updated_at = display_name, description, now or utc_now()
    record_change(session, principal, "ledger.update", "ledger", ledger.id, before, _audited(ledger), now)


def _audited(ledger: Ledger) -> dict[str, str | None]:
    return {
        "network": ledger.network,
        "name": ledger.name,
        "displayName": ledger.display_name,
        "description": ledger.description,
    }


def _lock_by_name(session: Session, tenant_id: str, name: str) -> Ledger | None:
    query = select(Ledger).where(Ledger.tenant_id == tenant_id, Ledger.name == name, Ledger.removed_at.is_(None))
    return session.scalars(query.with_for_update()).one_or_none()
