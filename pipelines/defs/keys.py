"""Names of the assets, and which of them fills which raw table. One place, so that lineage cannot drift."""

import dagster as dg

SNAPSHOT = dg.AssetKey(["control", "snapshot"])
HISTORY = dg.AssetKey(["control", "history"])
OUTCOME = dg.AssetKey(["cycle", "outcome"])
PUBLICATION = dg.AssetKey(["serving", "publication"])

# The asset of a network that fills each raw table.
NETWORK_ASSETS: dict[str, tuple[str, ...]] = {
    "blocks": ("blocks", "view_ranges", "covered_ranges", "network_states", "collection_failures", "reorganisations"),
    "token_transfers": ("token_transfers",),
    "transactions": ("transactions",),
    "internal_transfers": ("internal_transfers",),
    "token_metadata": ("token_metadata",),
    "balance_observations": ("balance_observations", "supply_observations"),
}


def network_key(network: str, asset: str) -> dg.AssetKey:
    """The key of one asset of a network's instance."""
    return dg.AssetKey([network, asset])


def filled_by(table: str, networks: list[str]) -> list[dg.AssetKey]:
    """The assets that fill a raw table: one per network, or the control snapshot."""
    for asset, tables in NETWORK_ASSETS.items():
        if table in tables:
            return [network_key(network, asset) for network in networks]
    return [SNAPSHOT]
