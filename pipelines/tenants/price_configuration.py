"""The pricing that the warehouse holds for the cycle: manual prices, definitions of sources, sources of tenants."""

from collections.abc import Collection, Mapping, Sequence
from typing import Any

import duckdb
import polars as pl
from sqlalchemy.orm import Session

from control.pricing.definitions import PriceSource
from control.pricing.sources import SourceKind
from control.snapshot import ControlSnapshot, read_manual_prices
from pipelines.raw.frames import copied
from pipelines.tables.sources import TABLES

APPENDED = "control_manual_prices"
"""The only table that is not replaced whole."""


def read_manual_prices_to_copy(
    connection: duckdb.DuckDBPyConnection,
    session: Session,
    snapshot: ControlSnapshot,
    shard: int,
    arrived: Collection[str] = (),
) -> Sequence[Any]:
    """Return the manual prices of a snapshot's tenants that are not copied yet.

    A tenant that moved here has prices with older keys than the newest copied one. So all prices of a tenant that is
    not copied yet are returned.

    Args:
        connection: the open warehouse, before the snapshot is copied.
        session: of the snapshot.
        snapshot: the configuration to copy.
        shard, arrived: as of `read_snapshot`.
    """
    newest_key = "select coalesce(max(manual_price_key), 0) from raw.control_manual_prices"
    ((newest,),) = connection.execute(newest_key).fetchall()
    known = {tenant for (tenant,) in connection.execute("select tenant_id from raw.control_tenants").fetchall()}
    new = {row.tenant_id for row in snapshot.tables["control_tenants"]} - known
    return read_manual_prices(session, shard, newest, arrived, new)


def polled_since_moves(connection: duckdb.DuckDBPyConnection, pairs: pl.DataFrame) -> pl.DataFrame:
    """Return price pairs with `created_at` not before their tenant's move to this shard."""
    moves = connection.execute("select tenant_id, moved_at from raw.tenant_moves where moved_at is not null").pl()
    if moves.is_empty():
        return pairs
    joined = pairs.join(moves, on="tenant_id", how="left", maintain_order="left")
    return joined.with_columns(pl.max_horizontal("created_at", "moved_at").alias("created_at")).drop("moved_at")


def price_frames(
    snapshot: ControlSnapshot, manual_prices: Sequence[Any], sources: Mapping[str, PriceSource]
) -> dict[str, pl.DataFrame]:
    """Return the frames of pricing that are no plain copy, by table.

    Args:
        snapshot: the configuration.
        manual_prices: those that are not copied yet.
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
