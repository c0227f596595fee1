"""Part of a network's definition that only chains of outputs have."""

from control.networks.definitions import Network
from control.networks.utxo import UtxoDefinition


def own_definition(network: Network) -> UtxoDefinition:
    """Return the family's own part of the definition."""
    assert isinstance(network.own, UtxoDefinition), f"{network.name} is not of this family"
    return network.own
