"""Last steps of a cycle: publication of the marts, and the outcome."""

from contextlib import closing

import dagster as dg

from control import version_pins
from control.store import open_store
from pipelines.defs.keys import BUILD, OUTCOME, OUTCOME_LAST, PUBLICATION, SNAPSHOT
from pipelines.defs.moves import switch_arrived
from pipelines.defs.resources import Warehouse
from pipelines.defs.sharing import open_publisher
from pipelines.deliver.progress import write_progress
from pipelines.raw.builds import (
    finish_batch,
    newest_publication,
    record_publication,
    transformed_batch,
    transformed_revision,
)
from pipelines.tenants.configuration import batch_of_run
from warehouse.port import SharingError


@dg.asset(key=PUBLICATION, deps=[BUILD], group_name="serving", kinds={"duckdb"})
def publication(context: dg.AssetExecutionContext, warehouse: Warehouse) -> dg.MaterializeResult[None]:
    """Immutable copy of the marts under a new name, and the pointer to it; made if dbt built something."""
    with warehouse.open() as connection:
        batch_id, recorded = transformed_batch(connection), newest_publication(connection)
        revision = transformed_revision(connection)
    settings = warehouse.settings
    with closing(open_store(settings)) as store:
        publisher = open_publisher(settings, store)
        try:
            published = warehouse.port.publish(batch_id, recorded, revision, publisher)
        except SharingError as error:
            raise dg.Failure(f"{error}; the next cycle publishes again", allow_retries=False) from error
        with warehouse.open() as connection:
            record_publication(connection, published.version, batch_id)
            switched = switch_arrived(settings, store, connection, context.log)
        with store.write() as session:
            pinned = version_pins.pinned_while_removing(session, shard=settings.shard)
            removed = warehouse.port.remove_old_versions(pinned)
            outdated = publisher.forget_old_versions(session, pinned) if publisher else []
        if publisher:
            try:
                publisher.delete(outdated)
            except SharingError as error:
                context.log.warning(f"{error}; later cycles delete them")
    for tenant_id in switched:
        context.log.info(f"tenant {tenant_id} is served from shard {settings.shard} now")
    if missing := warehouse.port.megabytes_missing(pinned):
        context.log.warning(
            f"versions pinned by cursors need {missing} MB more than LEDGERMART_VERSION_DISK_BUDGET_MB; until they "
            "expire, no new paging through cap tables can begin"
        )
    return dg.MaterializeResult(metadata={"version": published.version, "removed": len(removed), "pinned": len(pinned)})


@dg.asset(key=OUTCOME, deps=[SNAPSHOT], group_name="control", op_tags=OUTCOME_LAST)
def outcome(context: dg.AssetExecutionContext, warehouse: Warehouse) -> dg.MaterializeResult[None]:
    """State of networks and price sources after a run, even if steps failed or had nothing to do.

    It fails the run if a network or a price source failed, after all others were processed.
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
