"""Names of the assets, and which of them fills which raw table. One place, so that lineage cannot drift."""

import dagster as dg

SNAPSHOT = dg.AssetKey(["control", "snapshot"])
HISTORY = dg.AssetKey(["control", "history"])
OUTCOME = dg.AssetKey(["cycle", "outcome"])
PUBLICATION = dg.AssetKey(["serving", "publication"])
MARKETS = dg.AssetKey(["prices", "markets"])
MARKET_PRICES = dg.AssetKey(["prices", "market_prices"])
DISCOVERIES = dg.AssetKey(["prices", "discoveries"])

# What every run does after all else, in this order: the past takes the time that is left, the outcome tells of all.
# By priority and not by dependency: what hangs on a step in Dagster is left out where that step failed, or had nothing
# to do. Runs are in one process: of the steps that can begin, the one with the highest priority does.
DISCOVERIES_LAST, HISTORY_LAST, OUTCOME_LAST = ({"dagster/priority": str(-place)} for place in (1, 2, 3))

# The asset of a network that fills each raw table; movements are a view of several.
NETWORK_ASSETS: dict[str, tuple[str, ...]] = {
    "blocks": ("blocks", "view_ranges", "covered_ranges", "network_states", "collection_failures", "reorganisations"),
    "token_transfers": ("token_transfers", "movements", "movement_sides"),
    "transactions": ("transactions", "movements", "movement_sides"),
    "internal_transfers": ("internal_transfers", "movements", "movement_sides"),
    "token_metadata": ("token_metadata",),
    "balance_observations": ("balance_observations", "supply_observations"),
}

# The asset that fills each raw table of prices. Discoveries add to these once a cycle is published, for the next one.
_PRICE_TABLES: dict[str, dg.AssetKey] = {
    **dict.fromkeys(("markets", "market_lists", "pair_routes"), MARKETS),
    **dict.fromkeys(("prices", "pair_windows", "price_polls", "price_problems", "price_changes"), MARKET_PRICES),
}


def network_key(network: str, asset: str) -> dg.AssetKey:
    """The key of one asset of a network's instance."""
    return dg.AssetKey([network, asset])


def filled_by(table: str, networks: list[str]) -> list[dg.AssetKey]:
    """The assets that fill a raw table: one per network, one of prices, or the control snapshot."""
    if table in _PRICE_TABLES:
        return [_PRICE_TABLES[table]]
    assets = [asset for asset, tables in NETWORK_ASSETS.items() if table in tables]
    return [network_key(network, asset) for network in networks for asset in assets] or [SNAPSHOT]
