"""History and attestations at the end of a cycle, and the report of their progress to the control store."""

import dagster as dg
import duckdb

from control.networks.in_force import networks_in_force
from control.store import ControlStore, open_store
from pipelines.attestations.collecting import Periods, collect_attestations, has_due_periods
from pipelines.attestations.records import has_open_attestations
from pipelines.chain.checks import check_batch
from pipelines.data_sets.collecting import list_due_data_sets
from pipelines.defs.keys import HISTORY, HISTORY_LAST, SNAPSHOT
from pipelines.defs.resources import Warehouse
from pipelines.defs.time_budget import HistoryTimeBudget, Throttle
from pipelines.deliver.operations import report_attestations, report_requests
from pipelines.extract.budget import Budget
from pipelines.history.collecting import collect_history
from pipelines.history.requests import has_open_history
from pipelines.lake.tables import open_lakes
from pipelines.raw.builds import finish_batch
from pipelines.tenants.configuration import batch_of_run, open_batch


def history_asset(networks: list[str]) -> dg.AssetsDefinition:
    """Return the asset that continues history requests in every run, after the cycle's live data is published."""

    @dg.asset(key=HISTORY, deps=[SNAPSHOT], group_name="control", kinds={"duckdb"}, op_tags=HISTORY_LAST)
    def history(context: dg.AssetExecutionContext, warehouse: Warehouse) -> dg.MaterializeResult[None]:
        """Past moments and ranges that tenants requested, collected until the next cycle is due."""
        settings = warehouse.settings
        periods = None if settings.attest == "off" else Periods(settings.attest, settings.attest_max_holders)
        definitions = networks_in_force(settings)
        store = open_store(settings)
        try:
            with warehouse.open() as connection:
                batch_before = batch_of_run(connection, context.run_id)
                _report(connection, store, settings.shard)
                chosen = {name: definitions[name] for name in networks}
                list_due_data_sets(connection, chosen.values(), settings.staging_path, batch_before)
                has_history = has_open_history(connection)
                has_attestations = has_open_attestations(connection) or has_due_periods(connection, chosen, periods)
                if not has_history and not has_attestations:
                    return dg.MaterializeResult()
                batch_id = open_batch(connection, f"{context.run_id}/history")
                throttle = Throttle()

                def on_progress() -> None:
                    if throttle.is_due():
                        _report(connection, store, settings.shard)

                def make_budget() -> Budget:
                    return Budget(settings.network_seconds, settings.network_answer_mb)

                reports = []
                slot = HistoryTimeBudget(connection, store, batch_before, settings.cycle_seconds)
                if has_attestations:
                    first = HistoryTimeBudget(connection, store, batch_before, settings.cycle_seconds)
                    if has_history:
                        first.halve()
                    reports += collect_attestations(
                        connection, chosen, periods, batch_id, first.is_over, on_progress, make_budget
                    )
                if has_history:
                    lakes = open_lakes(settings, chosen.values())
                    reports += collect_history(
                        connection,
                        chosen,
                        batch_id,
                        slot.is_over,
                        on_progress,
                        make_budget,
                        settings.staging_path,
                        lakes,
                    )
                finish_batch(connection, batch_id)
                _report(connection, store, settings.shard)
                findings = [
                    finding
                    for report in reports
                    for finding in check_batch(connection, report.network, batch_id)
                    if finding.count and not finding.check.is_warning
                ]
        finally:
            store.close()
        if findings:
            raise dg.Failure("; ".join(f"{f.check.name}: {f.count}, for example {f.example}" for f in findings))
        rows = {f"{report.network}_{table}": count for report in reports for table, count in report.rows.items()}
        errors = {f"{report.network}_error": report.error for report in reports if report.error}
        return dg.MaterializeResult(metadata={**rows, **errors})

    return history


def _report(connection: duckdb.DuckDBPyConnection, store: ControlStore, shard: int) -> None:
    report_requests(connection, store, shard)
    report_attestations(connection, store, shard)
