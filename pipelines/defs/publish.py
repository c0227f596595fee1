"""The last steps of a cycle: publishing the marts, and its outcome."""

from contextlib import closing

import dagster as dg

from control import version_pins
from control.store import open_store
from pipelines.defs.keys import BUILD, OUTCOME, OUTCOME_LAST, PUBLICATION, SNAPSHOT
from pipelines.defs.resources import Warehouse
from pipelines.deliver.progress import write_progress
from pipelines.load.control import batch_of_run
from pipelines.load.state import (
    finish_batch,
    newest_publication,
    record_publication,
    transformed_batch,
    transformed_revision,
)


@dg.asset(key=PUBLICATION, deps=[BUILD], group_name="serving", kinds={"duckdb"})
def publication(context: dg.AssetExecutionContext, warehouse: Warehouse) -> dg.MaterializeResult[None]:
    """An immutable copy of the marts under a new name, and the pointer to it; made when dbt built something."""
    with warehouse.open() as connection:
        batch_id, recorded = transformed_batch(connection), newest_publication(connection)
        revision = transformed_revision(connection)
    published = warehouse.port.publish(batch_id, recorded, revision)
    with warehouse.open() as connection:
        record_publication(connection, published.version, batch_id)
    with closing(open_store(warehouse.settings)) as store, store.write() as session:
        pinned = version_pins.pinned_while_removing(session)
        removed = warehouse.port.remove_old_versions(pinned)
    if missing := warehouse.port.megabytes_missing(pinned):
        context.log.warning(
            f"pinned versions need {missing} MB more than LEDGERMART_VERSION_DISK_BUDGET_MB; until they go, cap "
            "tables begin no new pages"
        )
    return dg.MaterializeResult(metadata={"version": published.version, "removed": len(removed), "pinned": len(pinned)})


@dg.asset(key=OUTCOME, deps=[SNAPSHOT], group_name="control", op_tags=OUTCOME_LAST)
def outcome(context: dg.AssetExecutionContext, warehouse: Warehouse) -> dg.MaterializeResult[None]:
    """Where networks and price sources stand after a run, whatever of it failed or had nothing to do.

    Fails the run when a network or a price source did, after all others went on.
    """
    with warehouse.open() as connection:
        batch_id = batch_of_run(connection, context.run_id)
        finish_batch(connection, batch_id)
        progress = write_progress(connection, warehouse.settings.data_dir, batch_id)
    if progress.errors:
        raise dg.Failure("; ".join(progress.errors), allow_retries=False)
    ran = [name for name, network in progress.networks.items() if network.in_last_cycle]
    asked = [source for source, state in progress.price_sources.items() if state.in_last_cycle]
    return dg.MaterializeResult(metadata={"networks": ", ".join(ran), "price_sources": ", ".join(asked)})
