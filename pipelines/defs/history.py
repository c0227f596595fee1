"""The slice of history at the end of a cycle, and what the control store learns of it."""

import dagster as dg

from control.networks.in_force import networks_in_force
from control.store import open_store
from pipelines.collect.history import collect_history
from pipelines.defs.keys import HISTORY, HISTORY_LAST, SNAPSHOT
from pipelines.defs.resources import Warehouse
from pipelines.defs.slot import Slot, Throttle
from pipelines.deliver.operations import report_requests
from pipelines.load.checks import check_batch
from pipelines.load.control import batch_of_run, open_batch
from pipelines.load.history import has_open_history
from pipelines.load.state import finish_batch


def history_asset(networks: list[str]) -> dg.AssetsDefinition:
    """The asset that goes on with history requests in every run, after what a cycle has of live data is published."""

    @dg.asset(key=HISTORY, deps=[SNAPSHOT], group_name="control", kinds={"duckdb"}, op_tags=HISTORY_LAST)
    def history(context: dg.AssetExecutionContext, warehouse: Warehouse) -> dg.MaterializeResult[None]:
        """Past ranges that tenants asked for, collected until the next cycle is due."""
        settings = warehouse.settings
        definitions = networks_in_force(settings)
        store = open_store(settings)
        try:
            with warehouse.open() as connection:
                slot = Slot(connection, store, batch_of_run(connection, context.run_id), settings.cycle_seconds)
                report_requests(connection, store)
                if not has_open_history(connection):
                    return dg.MaterializeResult()
                batch_id = open_batch(connection, f"{context.run_id}/history")
                throttle = Throttle()

                def on_progress() -> None:
                    if throttle.is_due():
                        report_requests(connection, store)

                reports = collect_history(
                    connection,
                    {name: definitions[name] for name in networks},
                    batch_id,
                    slot.is_over,
                    on_progress,
                )
                finish_batch(connection, batch_id)
                report_requests(connection, store)
                findings = [
                    finding
                    for report in reports
                    for finding in check_batch(connection, report.network, batch_id)
                    if finding.count and not finding.check.is_warning
                ]
        finally:
            store.close()
        if findings:
            raise dg.Failure("; ".join(f"{f.check.name}: {f.count}, as {f.example}" for f in findings))
        rows = {f"{report.network}_{table}": count for report in reports for table, count in report.rows.items()}
        errors = {f"{report.network}_error": report.error for report in reports if report.error}
        return dg.MaterializeResult(metadata={**rows, **errors})

    return history
