"""Names of the assets, and which of them fills which raw table. One place, so that lineage cannot drift."""

from collections.abc import Iterable

import dagster as dg

from control.networks.definitions import Network
from pipelines.extract.families import family_of

SNAPSHOT = dg.AssetKey(["control", "snapshot"])
HISTORY = dg.AssetKey(["control", "history"])
OUTCOME = dg.AssetKey(["cycle", "outcome"])
BUILD = dg.AssetKey(["cycle", "build"])
PUBLICATION = dg.AssetKey(["serving", "publication"])
MARKETS = dg.AssetKey(["prices", "markets"])
MARKET_PRICES = dg.AssetKey(["prices", "market_prices"])
DISCOVERIES = dg.AssetKey(["prices", "discoveries"])

# What every cycle runs, whichever networks it covers. The step of BUILD builds the models and records which: Dagster
# writes several records for each asset that a run names, also where that is left as it is.
OF_EVERY_CYCLE = (SNAPSHOT, MARKETS, MARKET_PRICES, BUILD, PUBLICATION, DISCOVERIES, HISTORY, OUTCOME)

# What every run does after all else, in this order: the past takes the time that is left, the outcome tells of all.
# By priority and not by dependency: what hangs on a step in Dagster is left out where that step failed, or had nothing
# to do. Runs are in one process: of the steps that can begin, the one with the highest priority does.
DISCOVERIES_LAST, HISTORY_LAST, OUTCOME_LAST = ({"dagster/priority": str(-place)} for place in (1, 2, 3))

_OF_EVERY_NETWORK: dict[str, tuple[str, ...]] = {
    "blocks": (
        *("blocks", "view_ranges", "covered_ranges", "shown_ranges", "shown_heads"),
        *("network_states", "collection_failures", "reorganisations"),
    ),
    "token_metadata": ("token_metadata",),
    "balance_observations": ("balance_observations", "supply_observations"),
}
# Views of all tables that families' rows go to.
_VIEWS_OF_ROWS = ("movements", "movement_sides")

# The asset that fills each raw table of prices. Discoveries add to these once a cycle is published, for the next one.
_PRICE_TABLES: dict[str, dg.AssetKey] = {
    **dict.fromkeys(("markets", "market_lists", "pair_routes"), MARKETS),
    **dict.fromkeys(("prices", "pair_windows", "price_polls", "price_problems", "price_changes"), MARKET_PRICES),
}


def network_key(network: str, asset: str) -> dg.AssetKey:
    """The key of one asset of a network's instance."""
    return dg.AssetKey([network, asset])


def assets_of(network: Network) -> dict[str, tuple[str, ...]]:
    """The assets of a network, and the raw tables that each fills: those of every network, and its family's own."""
    own = {table.name: (table.name, *_VIEWS_OF_ROWS) for table in family_of(network).tables}
    return _OF_EVERY_NETWORK | own


def network_keys(networks: Iterable[Network]) -> list[dg.AssetKey]:
    """The keys of all assets of some networks."""
    return [network_key(network.name, asset) for network in networks for asset in assets_of(network)]


def filled_by(table: str, networks: Iterable[Network]) -> list[dg.AssetKey]:
    """The assets that fill a raw table: one per network, one of prices, or the control snapshot."""
    if table in _PRICE_TABLES:
        return [_PRICE_TABLES[table]]
    keys = [
        network_key(network.name, asset)
        for network in networks
        for asset, tables in assets_of(network).items()
        if table in tables
    ]
    return keys or [SNAPSHOT]
