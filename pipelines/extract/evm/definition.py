"""What a network's definition says that only the EVM's have."""

from control.networks.definitions import Network
from control.networks.evm import EvmDefinition


def own_definition(network: Network) -> EvmDefinition:
    """The family's own part of the definition."""
    assert isinstance(network.own, EvmDefinition), f"{network.name} is not of this family"
    return network.own
