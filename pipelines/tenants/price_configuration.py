"""The pricing that the warehouse holds for the cycle: manual prices, definitions of sources, sources of tenants."""

from collections.abc import Mapping, Sequence
from typing import Any

import duckdb
import polars as pl

from control.pricing.definitions import PriceSource
from control.pricing.sources import SourceKind
from control.snapshot import ControlSnapshot
from pipelines.raw.frames import copied
from pipelines.tables.sources import TABLES

APPENDED = "control_manual_prices"
"""The only table that is not replaced whole."""


def newest_manual_price(connection: duckdb.DuckDBPyConnection) -> int:
    """Return the key of the newest manual price in the warehouse; 0 before the first."""
    row = connection.execute("select coalesce(max(manual_price_key), 0) from raw.control_manual_prices").fetchone()
    assert row is not None
    return int(row[0])


def price_frames(
    snapshot: ControlSnapshot, manual_prices: Sequence[Any], sources: Mapping[str, PriceSource]
) -> dict[str, pl.DataFrame]:
    """Return the frames of pricing that are no plain copy, by table.

    Args:
        snapshot: the configuration.
        manual_prices: those with keys after `newest_manual_price`.
        sources: the definitions in force, by id.
    """
    rows = {
        "price_sources": [
            (source.id, source.name, source.adapter, list(source.price_types), list(source.granularities))
            for source in sources.values()
        ],
        "control_price_sources": _tenants_sources(snapshot, sources),
    }
    return {APPENDED: copied(TABLES[APPENDED], manual_prices)} | {
        name: pl.DataFrame(values, schema=TABLES[name].schema(), orient="row") for name, values in rows.items()
    }


def _tenants_sources(snapshot: ControlSnapshot, sources: Mapping[str, PriceSource]) -> list[tuple[Any, ...]]:
    """Return each tenant's own sources, disabled at first, and the preconfigured ones, enabled at first."""
    switches = {(switch.tenant_id, switch.source_id): switch.is_enabled for switch in snapshot.source_switches}
    own = [
        (s.tenant_id, s.id, s.name, SourceKind.MANUAL.value, switches.get((s.tenant_id, s.id), False))
        for s in snapshot.manual_sources
    ]
    preconfigured = [
        (t.tenant_id, s.id, s.name, SourceKind.PRECONFIGURED.value, switches.get((t.tenant_id, s.id), True))
        for t in snapshot.tables["control_tenants"]
        for s in sources.values()
    ]
    return own + preconfigured
