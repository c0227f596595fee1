"""The slice of history at the end of a cycle, and what the control store learns of it."""

import time
from datetime import timedelta

import dagster as dg
import duckdb

from control.networks.in_force import networks_in_force
from control.store import open_store
from pipelines.collect.history import collect_history
from pipelines.defs.keys import HISTORY, PUBLICATION
from pipelines.defs.resources import Warehouse
from pipelines.load.checks import check_batch
from pipelines.load.control import batch_of_run, open_batch
from pipelines.load.state import finish_batch
from pipelines.load.warehouse import utc_now
from pipelines.operations import report_requests

# A cycle that takes longer than the time between cycles still gives history so much.
_LEAST_SECONDS = 5.0
# The control store hears of progress about this often.
_REPORT_SECONDS = 1.0


def history_asset(networks: list[str], network_keys: list[dg.AssetKey]) -> dg.AssetsDefinition:
    """The asset that goes on with history requests, once a cycle's live data is published."""

    @dg.asset(key=HISTORY, deps=[PUBLICATION, *network_keys], group_name="control", kinds={"duckdb"})
    def history(context: dg.AssetExecutionContext, warehouse: Warehouse) -> dg.MaterializeResult[None]:
        """Past ranges that tenants asked for, collected until the next cycle is due."""
        settings = warehouse.settings
        definitions = networks_in_force(settings)
        store = open_store(settings)
        try:
            with warehouse.open() as connection:
                until = _next_cycle(connection, batch_of_run(connection, context.run_id), settings.cycle_seconds)
                report_requests(connection, store)
                batch_id = open_batch(connection, f"{context.run_id}/history")
                throttle = _Throttle()

                def on_progress() -> None:
                    if throttle.is_due():
                        report_requests(connection, store)

                reports = collect_history(
                    connection,
                    {name: definitions[name] for name in networks},
                    batch_id,
                    lambda: time.monotonic() >= until,
                    on_progress,
                )
                finish_batch(connection, batch_id)
                report_requests(connection, store)
                findings = [
                    finding
                    for report in reports
                    for finding in check_batch(connection, report.network, batch_id)
                    if finding.count
                ]
        finally:
            store.close()
        if findings:
            raise dg.Failure("; ".join(f"{f.check.name}: {f.count}, as {f.example}" for f in findings))
        rows = {f"{report.network}_{table}": count for report in reports for table, count in report.rows.items()}
        errors = {f"{report.network}_error": report.error for report in reports if report.error}
        return dg.MaterializeResult(metadata={**rows, **errors})

    return history


class _Throttle:
    """Lets something happen at once, and then not more often than every `_REPORT_SECONDS`."""

    def __init__(self) -> None:
        self._last = float("-inf")

    def is_due(self) -> bool:
        now = time.monotonic()
        if now - self._last < _REPORT_SECONDS:
            return False
        self._last = now
        return True


def _next_cycle(connection: duckdb.DuckDBPyConnection, batch_id: int, cycle_seconds: int) -> float:
    """When the next cycle is due, by the monotonic clock; never earlier than in a few seconds."""
    row = connection.execute("select started_at from raw.batches where batch_id = ?", [batch_id]).fetchone()
    assert row is not None
    left: timedelta = row[0] + timedelta(seconds=cycle_seconds) - utc_now()
    return time.monotonic() + max(left.total_seconds(), _LEAST_SECONDS)
