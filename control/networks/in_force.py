"""The network definitions as every process uses them: the file's, with those disabled that changed while in use."""

from collections.abc import Collection

from control.networks.definitions import Network, load_networks
from control.networks.pins import enforce_pins, undefined_networks
from control.settings import Settings
from control.store import open_store


def networks_in_force(settings: Settings) -> dict[str, Network]:
    """Load the definitions and hold them against the networks in use.

    Raises:
        NetworksError: the file is wrong; names file, network and field.
        StoreUnavailable: the control store is not reachable. One that is not made yet pins nothing.
    """
    networks = load_networks(settings.networks_file)
    store = open_store(settings)
    try:
        if not store.is_current():
            return networks
        with store.read() as session:
            return enforce_pins(session, networks)
    finally:
        store.close()


def networks_missing(settings: Settings, networks: Collection[str]) -> list[str]:
    """Return the names of networks that ledgers use and that are not among the defined ones.

    Raises:
        StoreUnavailable: as `networks_in_force`.
    """
    store = open_store(settings)
    try:
        if not store.is_current():
            return []
        with store.read() as session:
            return undefined_networks(session, networks)
    finally:
        store.close()
