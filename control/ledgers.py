"""Rules of ledgers: a tenant's names for networks."""

import re
from collections.abc import Mapping
from datetime import datetime

from sqlalchemy import or_, select
from sqlalchemy.exc import IntegrityError
from sqlalchemy.orm import Session

from control import access, fields, ids, revision
from control.access import Principal, Role
from control.clock import utc_now
from control.errors import Conflict, Invalid, NotFound
from control.models import Ledger
from control.networks import pins
from control.networks.definitions import Network
from control.pages import After, Page, check_limit, cut_page

_NAME = re.compile(r"[a-z0-9][a-z0-9-]{0,62}")
_PREFIX = "led_"


def put(
    session: Session,
    principal: Principal,
    networks: Mapping[str, Network],
    network_name: str,
    name: str,
    display_name: str | None = None,
    description: str | None = None,
    now: datetime | None = None,
) -> tuple[Ledger, bool]:
    """Create a ledger under a network, or replace display name and description of the one with this name.

    A network that is disabled (no node address) is accepted: what is configured now is collected once it is reachable.

    Returns:
        The ledger, and whether it was created. Putting what is stored already changes nothing.

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
    if _NAME.fullmatch(name) is None:
        raise Invalid(
            "name",
            "malformed",
            "name must be 1 to 63 lower-case letters, digits and hyphens, and begin with a letter or digit",
        )
    fields.check_optional_text("displayName", display_name, fields.NAME_LENGTH)
    fields.check_optional_text("description", description, fields.DESCRIPTION_LENGTH, is_multiline=True)
    moment = now or utc_now()
    pins.pin(session, network, moment)
    ledger = _lock_by_name(session, principal.tenant_id, name)
    if ledger is None:
        ledger = Ledger(
            id=ids.new_id(_PREFIX),
            tenant_id=principal.tenant_id,
            network=network_name,
            name=name,
            display_name=display_name,
            description=description,
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
            revision.bump(session)
            return ledger, True
    if ledger.network != network_name:
        raise Conflict(
            "ledger-on-other-network",
            f"ledger {name!r} exists under network {ledger.network!r}; choose another name",
            ledger.id,
        )
    if (ledger.display_name, ledger.description) != (display_name, description):
        ledger.display_name, ledger.description, ledger.updated_at = display_name, description, moment
        revision.bump(session)
    return ledger, False


def get(session: Session, tenant_id: str, name_or_id: str) -> Ledger:
    """Return a ledger of the tenant by name or by id.

    Raises:
        NotFound: the tenant has none such.
    """
    ledger = find(session, tenant_id, name_or_id)
    if ledger is None:
        raise NotFound("ledger", name_or_id)
    return ledger


def find(session: Session, tenant_id: str, name_or_id: str) -> Ledger | None:
    """Return a ledger of the tenant by name or by id, or None. A name has no underscore, an id always has one."""
    if _NAME.fullmatch(name_or_id) is None and not ids.is_id(_PREFIX, name_or_id):
        return None
    return session.scalars(
        select(Ledger).where(
            Ledger.tenant_id == tenant_id,
            Ledger.removed_at.is_(None),
            or_(Ledger.name == name_or_id, Ledger.id == name_or_id),
        )
    ).one_or_none()


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


def _lock_by_name(session: Session, tenant_id: str, name: str) -> Ledger | None:
    query = select(Ledger).where(Ledger.tenant_id == tenant_id, Ledger.name == name, Ledger.removed_at.is_(None))
    return session.scalars(query.with_for_update()).one_or_none()
