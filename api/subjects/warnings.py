"""Warnings in the answer to a write: the network of the stored object is disabled."""

from collections.abc import Mapping

from sqlalchemy.orm import Session

from api.schema import WriteWarning
from control.networks.definitions import Network
from control.networks.pins import enforce_pins


def network_warnings(session: Session, networks: Mapping[str, Network], name: str) -> list[WriteWarning]:
    """Return a warning if the network is disabled or no longer defined.

    Args:
        networks: the definitions, by name.
        name: name of the stored object's network.
    """
    network = enforce_pins(session, dict(networks)).get(name)
    if network is not None and network.is_enabled:
        return []
    reason = "LEDGERMART_NETWORKS does not define it" if network is None else network.disabled_reason
    detail = f"network {name!r} is disabled, so nothing is collected on it: {reason}; then restart the service"
    return [WriteWarning(code="network-disabled", detail=detail)]
