"""How each raw table takes part in the move of a tenant to another shard."""

from enum import StrEnum
from typing import Final

from pipelines.tables.families import DERIVED_TABLES, ROW_TABLES


class Rule(StrEnum):
    """How the rows of a table move.

    The first four are keys of the tenant: rows with such a key belong to the tenant alone. They are deleted from the
    shard that the tenant leaves. Rows of the other rules are facts, and stay there too.
    """

    TENANT = "tenant_id"
    SUBJECT = "subject_key"
    OPERATION = "operation_key"
    PAIR = "pair_key"
    RANGES = "rows, headers and ranges of the tenant's addresses; the new shard takes those that it lacks"
    READINGS = "readings that the tenant may see; the new shard adds the tenant to those that it has"
    NETWORKS = "records of the tenant's networks; the new shard takes them if it lacks the network"
    MARKETS = "markets and prices that the tenant's pairs use"
    COPIED = "copied from the control store or the definitions in each cycle, or computed from such copies"
    SHARD = "records of this shard's own cycles and requests; the new shard makes its own"


OWNED: Final = (Rule.TENANT, Rule.SUBJECT, Rule.OPERATION, Rule.PAIR)

RULES: dict[str, Rule] = {
    # Facts of networks.
    **dict.fromkeys(ROW_TABLES, Rule.RANGES),
    "blocks": Rule.RANGES,
    "coverage": Rule.RANGES,
    "verified_ranges": Rule.RANGES,
    # Blocks without traces alone: all others are no part of coverage, so the new shard reads them.
    "unread_units": Rule.RANGES,
    "balance_observations": Rule.READINGS,
    "supply_observations": Rule.READINGS,
    "network_states": Rule.NETWORKS,
    "known_chains": Rule.NETWORKS,
    "observed_batches": Rule.NETWORKS,
    "period_ends": Rule.NETWORKS,
    # Contracts, and findings from the readings of a tenant.
    "token_metadata": Rule.TENANT,
    "metadata_checks": Rule.TENANT,
    "token_creations": Rule.TENANT,
    "lost_readings": Rule.TENANT,
    "sample_turns": Rule.TENANT,
    "suspected_tokens": Rule.TENANT,
    "tenant_versions": Rule.TENANT,
    "tenant_horizons": Rule.TENANT,
    "found_holders": Rule.SUBJECT,
    "searched_remainders": Rule.SUBJECT,
    "opened_ranges": Rule.SUBJECT,
    "closed_ranges": Rule.SUBJECT,
    # Views and requests.
    "view_ranges": Rule.SUBJECT,
    "history_requests": Rule.SUBJECT,
    "attestation_requests": Rule.SUBJECT,
    "attestations": Rule.SUBJECT,
    # Prices.
    "markets": Rule.MARKETS,
    "prices": Rule.MARKETS,
    "pair_windows": Rule.PAIR,
    "price_discoveries": Rule.OPERATION,
    "discovery_readings": Rule.OPERATION,
    "discovery_gaps": Rule.OPERATION,
    # Definitions and configuration.
    "networks": Rule.COPIED,
    "common_tokens": Rule.COPIED,
    "price_sources": Rule.COPIED,
    "pair_routes": Rule.COPIED,
    "control_revisions": Rule.COPIED,
    "control_tenants": Rule.COPIED,
    "control_held_tenants": Rule.COPIED,
    "control_ledgers": Rule.COPIED,
    "control_subjects": Rule.COPIED,
    "control_metadata_requests": Rule.COPIED,
    "control_windows": Rule.COPIED,
    "control_history_requests": Rule.COPIED,
    "control_attestation_requests": Rule.COPIED,
    "control_priced_items": Rule.COPIED,
    "control_mapping_symbols": Rule.COPIED,
    "control_price_sources": Rule.COPIED,
    "control_price_pairs": Rule.COPIED,
    "control_pair_sources": Rule.COPIED,
    "control_supported_pairs": Rule.COPIED,
    "control_manual_prices": Rule.COPIED,
    "control_price_reviews": Rule.COPIED,
    "control_price_discoveries": Rule.COPIED,
    **dict.fromkeys(DERIVED_TABLES, Rule.COPIED),
    # Records of cycles.
    "batches": Rule.SHARD,
    "transforms": Rule.SHARD,
    "publications": Rule.SHARD,
    "tenant_moves": Rule.SHARD,
    "changes": Rule.SHARD,
    "price_changes": Rule.SHARD,
    "collections": Rule.SHARD,
    "collection_failures": Rule.SHARD,
    "requests_spent": Rule.SHARD,
    "reorganisations": Rule.SHARD,
    "checked_times": Rule.SHARD,
    "history_turns": Rule.SHARD,
    "verifications": Rule.SHARD,
    # The new shard reads these blocks again, since no second reading of them is recorded.
    "disputed_answers": Rule.SHARD,
    "sample_seeds": Rule.SHARD,
    "lake_states": Rule.SHARD,
    "data_sets": Rule.SHARD,
    "data_files": Rule.SHARD,
    "market_lists": Rule.SHARD,
    "price_polls": Rule.SHARD,
    "price_turns": Rule.SHARD,
    "price_problems": Rule.SHARD,
}
"""The rule of each raw table."""


def tables_of(*rules: Rule) -> list[str]:
    """Return the names of the tables with one of these rules."""
    return [name for name, rule in RULES.items() if rule in rules]
