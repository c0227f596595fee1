"""Warnings in the answer to a write: the network of the stored object is disabled."""

from collections.abc import Mapping

from api.schema import WriteWarning
from control.networks.definitions import Network


def network_warnings(networks: Mapping[str, Network], name: str) -> list[WriteWarning]:
    """Return a warning if the network is disabled.

    Args:
        networks: the definitions, by name.
        name: name of the stored object's network; the rules refuse one that is undefined or changed.
    """
    network = networks[name]
    if network.is_enabled:
        return []
    detail = (
        f"network {name!r} is disabled, so nothing is collected on it: {network.disabled_reason}; "
        "then restart the service"
    )
    return [WriteWarning(code="network-disabled", detail=detail)]
