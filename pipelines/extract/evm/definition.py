"""Part of a network's definition that only EVM networks have."""

from control.networks.definitions import Network
from control.networks.evm import EvmDefinition


def own_definition(network: Network) -> EvmDefinition:
    """Return the family's own part of the definition."""
    assert isinstance(network.own, EvmDefinition), f"{network.name} is not of this family"
    return network.own
