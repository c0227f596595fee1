"""The pricing that tenants configured and the definitions of sources, as the warehouse keeps them for the cycle."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import astuple
from datetime import datetime
from decimal import Decimal
from typing import Any

import duckdb
import polars as pl

from control.pricing.definitions import PriceSource
from control.pricing.snapshot import PricingSnapshot, SnapshotManualPrice
from control.snapshot import SnapshotTenant
from pipelines.load.warehouse import sql

MANUAL, PRECONFIGURED = "Manual", "Preconfigured"

_TEXT, _KEY, _TIME, _FLAG = pl.String(), pl.Int64(), pl.Datetime("us"), pl.Boolean()
PRICE = pl.Decimal(38, 18)
"""A price, exact: 20 digits before the point and 18 behind it."""

_REPLACED: dict[str, dict[str, pl.DataType]] = {
    "price_sources": {
        **dict.fromkeys(("source_id", "name", "adapter"), _TEXT),
        **dict.fromkeys(("price_types", "granularities"), pl.List(_TEXT)),
    },
    "control_priced_items": {"item_key": _KEY, **dict.fromkeys(("tenant_id", "symbol", "name", "item_class"), _TEXT)},
    "control_mapping_symbols": {"item_key": _KEY, "source_id": _TEXT, "symbol": _TEXT},
    "control_price_sources": {
        **dict.fromkeys(("tenant_id", "source_id", "name", "kind"), _TEXT),
        "is_enabled": _FLAG,
    },
    "control_price_pairs": {
        "pair_key": _KEY,
        **dict.fromkeys(("pair_id", "tenant_id", "priced_as", "priced_in", "price_type"), _TEXT),
        "max_age_seconds": _KEY,
        "allow_inverse": _FLAG,
        "bridge": _TEXT,
        **dict.fromkeys(("max_jump", "max_deviation"), PRICE),
        "created_at": _TIME,
    },
    "control_pair_sources": {"pair_key": _KEY, "position": pl.Int32(), "source_id": _TEXT},
    "control_supported_pairs": {
        "supported_pair_key": _KEY,
        **dict.fromkeys(("supported_pair_id", "source_id", "tenant_id", "priced_as", "priced_in", "price_type"), _TEXT),
    },
    "control_price_reviews": {"pair_key": _KEY, "price_id": _TEXT, "decision": _TEXT},
    "control_price_discoveries": {
        "operation_key": _KEY,
        "pair_key": _KEY,
        **dict.fromkeys(("from_text", "to_text", "window_size", "multiplier", "status"), _TEXT),
        "is_cancelled": _FLAG,
        "created_at": _TIME,
    },
}
_MANUAL_PRICES: dict[str, pl.DataType] = {
    "manual_price_key": _KEY,
    "price_id": _TEXT,
    "supported_pair_key": _KEY,
    "price": PRICE,
    "effective_from": _TIME,
    "revision": pl.Int32(),
    "note": _TEXT,
    "created_at": _TIME,
}


def newest_manual_price(connection: duckdb.DuckDBPyConnection) -> int:
    """Key of the newest manual price that the warehouse holds; 0 before the first."""
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
    """Replace the pricing set-up, append the new manual prices, and mark in `raw.price_changes` what that changes.

    Marked are pairs that are new, gone, or have other rules, sources or reviews now, from their first price on, and
    pairs with new manual prices, from the least instant of these on. Whether a source is enabled is no change: what is
    stored goes on valuing.

    Args:
        connection: inside a transaction, that of the whole control snapshot.
        tenants: all tenants, in the same snapshot.
        pricing: what they configured.
        manual_prices: those with keys after `newest_manual_price`.
        sources: the definitions in force, by id.
        batch_id: the cycle's batch.

    Returns:
        Row count by table; of manual prices those appended.
    """
    rows = _rows(tenants, pricing, sources)
    frames = {name: pl.DataFrame(rows[name], schema=schema, orient="row") for name, schema in _REPLACED.items()}
    prices = [_plain(price, decimals=(3,)) for price in manual_prices]
    frames["control_manual_prices"] = pl.DataFrame(prices, schema=_MANUAL_PRICES, orient="row")
    for name, frame in frames.items():
        connection.register(f"incoming_{name}", frame)
    connection.execute(sql("mark_pricing"), {"batch": batch_id})
    for name in frames:
        if name != "control_manual_prices":
            connection.execute(f"delete from raw.{name}")
        connection.execute(f"insert into raw.{name} by name select * from incoming_{name}")
        connection.unregister(f"incoming_{name}")
    return {name: frame.height for name, frame in frames.items()}


def _rows(
    tenants: Sequence[SnapshotTenant], pricing: PricingSnapshot, sources: Mapping[str, PriceSource]
) -> dict[str, list[tuple[Any, ...]]]:
    return {
        "price_sources": [
            (source.id, source.name, source.adapter, list(source.price_types), list(source.granularities))
            for source in sources.values()
        ],
        "control_priced_items": _all(pricing.items),
        "control_mapping_symbols": _all(pricing.mapping_symbols),
        "control_price_sources": _tenants_sources(tenants, pricing, sources),
        "control_price_pairs": [
            (
                *(pair.pair_key, pair.pair_id, pair.tenant_id, pair.priced_as, pair.priced_in, pair.price_type),
                *(pair.max_age_seconds, pair.allow_inverse, pair.bridge),
                *(None if guard is None else Decimal(guard) for guard in (pair.max_jump, pair.max_deviation)),
                _naive(pair.created_at),
            )
            for pair in pricing.pairs
        ],
        "control_pair_sources": _all(pricing.pair_sources),
        "control_supported_pairs": _all(pricing.supported_pairs),
        "control_price_reviews": _all(pricing.reviews),
        "control_price_discoveries": _all(pricing.discoveries),
    }


def _tenants_sources(
    tenants: Sequence[SnapshotTenant], pricing: PricingSnapshot, sources: Mapping[str, PriceSource]
) -> list[tuple[Any, ...]]:
    """What each tenant has: own sources, disabled until it enables them, and the preconfigured, enabled at first."""
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


def _all(records: Iterable[Any]) -> list[tuple[Any, ...]]:
    return [_plain(record) for record in records]


def _plain(record: Any, decimals: tuple[int, ...] = ()) -> tuple[Any, ...]:
    """The record's fields as the frames take them; `decimals` are positions of decimal text."""
    return tuple(
        Decimal(value) if position in decimals else _naive(value) if isinstance(value, datetime) else value
        for position, value in enumerate(astuple(record))
    )


def _naive(instant: datetime) -> datetime:
    return instant.replace(tzinfo=None)
