"""The control store's snapshot, with which every cycle begins."""

import dagster as dg

from control.networks.in_force import networks_in_force
from control.snapshot import read_snapshot
from control.store import open_store
from pipelines.defs.keys import SNAPSHOT
from pipelines.defs.resources import Warehouse
from pipelines.load.control import open_batch, replace_control


@dg.asset(key=SNAPSHOT, group_name="control", kinds={"duckdb"})
def control_snapshot(context: dg.AssetExecutionContext, warehouse: Warehouse) -> dg.MaterializeResult[None]:
    """What tenants configured and the network definitions, copied into the warehouse; opens the cycle's batch."""
    settings = warehouse.settings
    store = open_store(settings)
    try:
        with store.read() as session:
            snapshot = read_snapshot(session)
    finally:
        store.close()
    networks = networks_in_force(settings)
    with warehouse.open() as connection:
        batch_id = open_batch(connection, context.run_id)
        counts = replace_control(connection, snapshot, networks, batch_id)
    return dg.MaterializeResult(metadata={"batch": batch_id, "revision": snapshot.revision, **counts})
