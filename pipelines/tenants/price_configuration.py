"""The warehouse's copy of the tenants' pricing and of the definitions of sources, for one cycle."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import duckdb
import polars as pl

from control.pricing.definitions import PriceSource
from control.pricing.snapshot import PricingSnapshot, SnapshotManualPrice
from control.snapshot import SnapshotTenant
from pipelines.raw.database import sql
from pipelines.raw.frames import registered, to_frame
from pipelines.tables.sources import TABLES

MANUAL, PRECONFIGURED = "Manual", "Preconfigured"

_APPENDED = "control_manual_prices"


def newest_manual_price(connection: duckdb.DuckDBPyConnection) -> int:
    """Return the key of the newest manual price in the warehouse; 0 before the first."""
    row = connection.execute("select coalesce(max(manual_price_key), 0) from raw.control_manual_prices").fetchone()
    assert row is not None
    return int(row[0])


def replace_pricing(
    connection: duckdb.DuckDBPyConnection,
    tenants: Sequence[SnapshotTenant],
    pricing: PricingSnapshot,
    manual_prices: Sequence[SnapshotManualPrice],
    sources: Mapping[str, PriceSource],
    batch_id: int,
) -> dict[str, int]:
    """Replace the pricing set-up, append new manual prices, and mark the changed pairs in `raw.price_changes`.

    A pair that is new, deleted, or has other rules, sources or reviews is marked from its first price on. A pair with
    new manual prices is marked from the earliest of their instants on. Enabling or disabling a source marks nothing,
    because stored prices still apply.

    Args:
        connection: inside the transaction of the whole control snapshot.
        tenants: all tenants, in the same snapshot.
        pricing: configuration of the tenants.
        manual_prices: those with keys after `newest_manual_price`.
        sources: the definitions in force, by id.
        batch_id: the cycle's batch.

    Returns:
        Row count by table; for manual prices, the number of appended rows.
    """
    records: dict[str, Iterable[object]] = {
        "control_priced_items": pricing.items,
        "control_mapping_symbols": pricing.mapping_symbols,
        "control_price_pairs": pricing.pairs,
        "control_pair_sources": pricing.pair_sources,
        "control_supported_pairs": pricing.supported_pairs,
        "control_price_reviews": pricing.reviews,
        "control_price_discoveries": pricing.discoveries,
        _APPENDED: manual_prices,
    }
    rows = {
        "price_sources": [
            (source.id, source.name, source.adapter, list(source.price_types), list(source.granularities))
            for source in sources.values()
        ],
        "control_price_sources": _tenants_sources(tenants, pricing, sources),
    }
    frames = {name: to_frame(values, TABLES[name].schema()) for name, values in records.items()} | {
        name: pl.DataFrame(values, schema=TABLES[name].schema(), orient="row") for name, values in rows.items()
    }
    with registered(connection, **{f"incoming_{name}": frame for name, frame in frames.items()}):
        connection.execute(sql("mark_pricing"), {"batch": batch_id})
        for name in frames:
            if name != _APPENDED:
                connection.execute(f"delete from raw.{name}")
            connection.execute(f"insert into raw.{name} by name select * from incoming_{name}")
    return {name: frame.height for name, frame in frames.items()}


def _tenants_sources(
    tenants: Sequence[SnapshotTenant], pricing: PricingSnapshot, sources: Mapping[str, PriceSource]
) -> list[tuple[Any, ...]]:
    """Return each tenant's sources: its own, disabled by default, and the preconfigured ones, enabled by default."""
    switches = {(switch.tenant_id, switch.source_id): switch.is_enabled for switch in pricing.source_switches}
    own = [
        (s.tenant_id, s.source_id, s.name, MANUAL, switches.get((s.tenant_id, s.source_id), False))
        for s in pricing.manual_sources
    ]
    preconfigured = [
        (t.tenant_id, s.id, s.name, PRECONFIGURED, switches.get((t.tenant_id, s.id), True))
        for t in tenants
        for s in sources.values()
    ]
    return own + preconfigured
