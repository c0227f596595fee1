"""All families of networks. Only this module of the pipeline names them; a new family is one line here."""

from control.networks.definitions import Network
from pipelines.extract.budget import Budget
from pipelines.extract.evm.family import EvmFamily
from pipelines.extract.family import Family, Node
from pipelines.extract.utxo.family import UtxoFamily

FAMILIES: dict[str, Family] = {"evm": EvmFamily(), "utxo": UtxoFamily()}


def family_of(network: Network) -> Family:
    """Return the family of a network; loading definitions checks that it is known."""
    return FAMILIES[network.family]


def open_node(
    network: Network,
    *,
    timeout: tuple[float, float] = (5.0, 30.0),
    max_attempts: int = 6,
    budget: Budget | None = None,
) -> Node:
    """Open a network's node, as `Family.open`."""
    return family_of(network).open(network, timeout=timeout, max_attempts=max_attempts, budget=budget)
