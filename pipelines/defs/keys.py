"""Names of the assets, and the raw tables that each fills. One place, so that lineage cannot drift."""

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

# Assets of every cycle, independent of its networks. The step of BUILD builds the models and records the built ones,
# because Dagster writes several records for each asset that a run selects, even if it does not change.
OF_EVERY_CYCLE = (SNAPSHOT, MARKETS, MARKET_PRICES, BUILD, PUBLICATION, DISCOVERIES, HISTORY, OUTCOME)

# The last steps of every run, in this order: past data takes the time that is left, the outcome reports everything.
# They are ordered by priority, because Dagster skips dependents of a step that failed or had nothing to do. Runs are in
# one process: of the steps that can begin, the one with the highest priority does.
DISCOVERIES_LAST, HISTORY_LAST, OUTCOME_LAST = ({"dagster/priority": str(-place)} for place in (1, 2, 3))

_OF_EVERY_NETWORK: dict[str, tuple[str, ...]] = {
    "blocks": (
        *("blocks", "view_ranges", "coverage", "data_files", "covered_ranges", "visible_ranges"),
        *("visible_heads", "network_states", "collection_failures", "reorganisations"),
    ),
    "token_metadata": ("token_metadata",),
    "balance_observations": ("balance_observations", "supply_observations"),
}
# Views over the row tables of all families.
_VIEWS_OF_ROWS = ("movements", "movement_sides")

# The asset that fills each raw table of prices. Discoveries add rows after publication, for the next cycle.
_PRICE_TABLES: dict[str, dg.AssetKey] = {
    **dict.fromkeys(("markets", "market_lists", "pair_routes"), MARKETS),
    **dict.fromkeys(("prices", "pair_windows", "price_polls", "price_problems", "price_changes"), MARKET_PRICES),
}


def network_key(network: str, asset: str) -> dg.AssetKey:
    """Return the key of one asset of a network."""
    return dg.AssetKey([network, asset])


def assets_of(network: Network) -> dict[str, tuple[str, ...]]:
    """Return the assets of a network, shared ones and its family's own, with the raw tables that each fills."""
    own = {table.name: (table.name, *_VIEWS_OF_ROWS) for table in family_of(network).tables}
    return _OF_EVERY_NETWORK | own


def network_keys(networks: Iterable[Network]) -> list[dg.AssetKey]:
    """Return the keys of all assets of some networks."""
    return [network_key(network.name, asset) for network in networks for asset in assets_of(network)]


def filled_by(table: str, networks: Iterable[Network]) -> list[dg.AssetKey]:
    """Return the assets that fill a raw table: one per network, one of prices, or the control snapshot."""
    if table in _PRICE_TABLES:
        return [_PRICE_TABLES[table]]
    keys = [
        network_key(network.name, asset)
        for network in networks
        for asset, tables in assets_of(network).items()
        if table in tables
    ]
    return keys or [SNAPSHOT]
