"""Snapshot of the control store, the first step of every cycle."""

import dagster as dg

from control.networks.in_force import networks_in_force
from control.pricing.definitions import price_sources_in_force
from control.snapshot import read_snapshot
from control.store import open_store
from pipelines.defs.keys import SNAPSHOT
from pipelines.defs.moves import settle_moves
from pipelines.defs.resources import Warehouse
from pipelines.tenants.configuration import open_batch, replace_control
from pipelines.tenants.price_configuration import read_manual_prices_to_copy


@dg.asset(key=SNAPSHOT, group_name="control", kinds={"duckdb"})
def control_snapshot(context: dg.AssetExecutionContext, warehouse: Warehouse) -> dg.MaterializeResult[None]:
    """Copy of the tenants' configuration and the definitions in the warehouse; opens the cycle's batch."""
    settings = warehouse.settings
    networks, sources = networks_in_force(settings), price_sources_in_force(settings)
    store = open_store(settings)
    try:
        with warehouse.open() as connection:
            arrived = settle_moves(settings, store, connection, context.run_id, context.log)
            with store.read() as session:
                snapshot = read_snapshot(session, settings.shard, arrived)
                manual_prices = read_manual_prices_to_copy(connection, session, snapshot, settings.shard, arrived)
            batch_id = open_batch(connection, context.run_id)
            counts = replace_control(connection, snapshot, networks, batch_id, sources, manual_prices)
    finally:
        store.close()
    return dg.MaterializeResult(metadata={"batch": batch_id, "revision": snapshot.revision, **counts})
