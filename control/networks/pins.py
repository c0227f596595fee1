"""Pins of networks in use: a name, once some ledger refers to it, means one family and one chain for good.

Otherwise an edited definition would mix two chains under one name. Extraction checks the reports of a node.
"""

from collections.abc import Collection, Mapping
from dataclasses import replace
from datetime import datetime

from sqlalchemy import select
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.orm import Session

from control.errors import Conflict
from control.models import Ledger, NetworkInUse
from control.networks.definitions import Network


def pin(session: Session, network: Network, now: datetime) -> None:
    """Record that a network is in use, or check that it still is the one first used.

    Raises:
        Conflict: its family or chain has changed since.
    """
    insert = postgresql.insert if session.get_bind().dialect.name == "postgresql" else sqlite.insert
    session.execute(
        insert(NetworkInUse)
        .values(name=network.name, family=network.family, identity=network.own.identity, first_used_at=now)
        .on_conflict_do_nothing()
    )
    problem = _changed(session.get_one(NetworkInUse, network.name), network)
    if problem:
        raise Conflict("network-changed", problem)


def definition_in_use(session: Session, networks: Mapping[str, Network], name: str) -> Network:
    """Return the definition of a network that a ledger uses.

    Args:
        session: a transaction.
        networks: the definitions, by name.
        name: name of the network.

    Raises:
        Conflict: the network is no longer defined, or its family or chain has changed.
    """
    network = networks.get(name)
    if network is None:
        raise Conflict("network-undefined", undefined_reason(name))
    problem = _changed(session.get_one(NetworkInUse, name), network)
    if problem:
        raise Conflict("network-changed", problem)
    return network


def enforce_pins(session: Session, networks: dict[str, Network]) -> dict[str, Network]:
    """Return the definitions with every changed network disabled, with a reason that names both meanings."""
    pinned = {row.name: row for row in session.scalars(select(NetworkInUse))}
    enforced = {}
    for name, network in networks.items():
        problem = _changed(pinned[name], network) if name in pinned else None
        enforced[name] = replace(network, is_enabled=False, disabled_reason=problem) if problem else network
    return enforced


def undefined_networks(session: Session, networks: Collection[str], tenant_id: str | None = None) -> list[str]:
    """Return the names of networks that ledgers use and that are not defined any more.

    Args:
        networks: names of those that are defined.
        tenant_id: only the ledgers of this tenant count; None: those of all tenants.
    """
    used = select(Ledger.network).where(Ledger.removed_at.is_(None), Ledger.network.not_in(networks))
    if tenant_id is not None:
        used = used.where(Ledger.tenant_id == tenant_id)
    return list(session.scalars(used.distinct().order_by(Ledger.network)))


def undefined_reason(name: str) -> str:
    """Return the problem of a network that is not defined any more, and its solution."""
    return (
        f"ledgers use network {name!r}, but LEDGERMART_NETWORKS no longer defines it, so nothing is collected on it; "
        "restore its definition, and restart the service"
    )


def _changed(used: NetworkInUse, network: Network) -> str | None:
    if (used.family, used.identity) == (network.family, network.own.identity):
        return None
    return (
        f"network {network.name!r} is in use as {used.family} chain {used.identity}, but its definition now says "
        f"{network.family} chain {network.own.identity}; restore the definition, or give the other chain another name"
    )
