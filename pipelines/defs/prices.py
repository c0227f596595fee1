"""Assets of prices: market lists and newest prices before the marts are built, discoveries after publication."""

from collections.abc import Iterator

import dagster as dg
import duckdb

from control.networks.in_force import networks_in_force
from control.pricing.definitions import price_sources_in_force
from control.settings import Settings
from control.store import ControlStore, open_store
from pipelines.chain.states import record_failure
from pipelines.defs.keys import DISCOVERIES, DISCOVERIES_LAST, MARKET_PRICES, MARKETS, SNAPSHOT
from pipelines.defs.resources import Warehouse
from pipelines.defs.time_budget import HistoryTimeBudget, Throttle
from pipelines.deliver.operations import cancelled_discoveries, report_discoveries
from pipelines.history.requests import has_open_history
from pipelines.prices.asking import opener
from pipelines.prices.discovery import DiscoveryReport, collect_discoveries
from pipelines.prices.discovery_store import has_unfinished_discoveries
from pipelines.prices.polling import PriceReport, collect_prices
from pipelines.raw.builds import finish_batch
from pipelines.tenants.configuration import batch_of_run, open_batch

_Results = Iterator[dg.MaterializeResult[None] | dg.AssetCheckResult]


@dg.multi_asset(
    name="collect_prices",
    specs=[
        dg.AssetSpec(
            MARKETS,
            deps=[SNAPSHOT],
            group_name="prices",
            description="Markets that the price sources list, and the routes of each pair.",
            kinds={"duckdb"},
        ),
        dg.AssetSpec(
            MARKET_PRICES,
            deps=[SNAPSHOT, MARKETS],
            group_name="prices",
            description="Newest prices of the markets that pairs use, polled source by source.",
            kinds={"duckdb"},
        ),
    ],
    check_specs=[
        dg.AssetCheckSpec("listed", asset=MARKETS, description="Every market list that was due was read."),
        dg.AssetCheckSpec("polled", asset=MARKET_PRICES, description="Every source that was due was polled."),
    ],
)
def price_assets(context: dg.AssetExecutionContext, warehouse: Warehouse) -> _Results:
    """Poll the price sources that are due; a failed source fails its check and stops nothing."""
    settings = warehouse.settings
    sources, open_client = price_sources_in_force(settings), opener(lambda: networks_in_force(settings))
    with warehouse.open() as connection:
        batch_id = batch_of_run(connection, context.run_id)
        report = collect_prices(connection, sources, open_client, settings.price_poll_seconds, batch_id)
    for defect in report.defects:
        context.log.error("reading a price source failed", exc_info=defect)
    yield from _results(report)


def _results(report: PriceReport) -> _Results:
    yield dg.MaterializeResult(MARKETS, metadata={"changed_routes": report.changed_routes, **report.markets})
    yield dg.MaterializeResult(MARKET_PRICES, metadata={**report.new_prices})
    yield dg.AssetCheckResult(
        check_name="listed",
        asset_key=MARKETS,
        passed=not report.list_errors,
        description="; ".join(report.list_errors.values()) or f"{len(report.markets)} lists were read",
        metadata={**report.list_errors},
    )
    problems = {
        source_id: f"{len(found)}, for example {found[0].market_id} {found[0].price_type}: {found[0].detail}"
        for source_id, found in report.problems.items()
        if found
    }
    yield dg.AssetCheckResult(
        check_name="polled",
        asset_key=MARKET_PRICES,
        passed=not report.poll_errors,
        description="; ".join(report.poll_errors.values()) or f"{len(report.prices)} sources were polled",
        metadata={**report.poll_errors, **{f"{source_id}_problems": words for source_id, words in problems.items()}},
    )


@dg.asset(
    key=DISCOVERIES,
    deps=[SNAPSHOT],
    group_name="prices",
    kinds={"duckdb"},
    op_tags=DISCOVERIES_LAST,
    check_specs=[dg.AssetCheckSpec("read", asset=DISCOVERIES, description="Every requested source responded.")],
)
def price_discoveries(context: dg.AssetExecutionContext, warehouse: Warehouse) -> _Results:
    """Past prices that tenants requested, read until the next cycle is due; half that time if history waits."""
    report = DiscoveryReport()
    store = open_store(warehouse.settings)
    try:
        with warehouse.open() as connection:
            report_discoveries(connection, store, warehouse.settings.shard)
            if has_unfinished_discoveries(connection):
                cycle_batch = batch_of_run(connection, context.run_id)
                batch_id = open_batch(connection, f"{context.run_id}/discoveries")
                report = _read(connection, store, warehouse.settings, cycle_batch, batch_id)
                finish_batch(connection, batch_id)
                report_discoveries(connection, store, warehouse.settings.shard)
                for source_id, defect in report.defects.items():
                    context.log.error("reading %s failed", source_id, exc_info=defect)
                    record_failure(
                        connection, source_id, "history", (None, None), report.errors[source_id], cycle_batch
                    )
    finally:
        store.close()
    yield dg.MaterializeResult(DISCOVERIES, metadata={**report.windows})
    yield dg.AssetCheckResult(
        check_name="read",
        asset_key=DISCOVERIES,
        passed=not report.errors,
        description="; ".join(report.errors.values()) or f"{sum(report.windows.values())} windows were read",
        metadata={**report.errors},
    )


def _read(
    connection: duckdb.DuckDBPyConnection, store: ControlStore, settings: Settings, cycle_batch: int, batch_id: int
) -> DiscoveryReport:
    """Read discoveries until the next cycle is due, without those that tenants cancel meanwhile."""
    slot = HistoryTimeBudget(connection, store, cycle_batch, settings.cycle_seconds)
    if has_open_history(connection):
        slot.halve()
    throttle = Throttle()
    cancelled: set[int] = set()

    def on_progress() -> None:
        if throttle.is_due():
            report_discoveries(connection, store, settings.shard)
            cancelled.update(cancelled_discoveries(store, settings.shard))

    return collect_discoveries(
        connection,
        price_sources_in_force(settings),
        opener(lambda: networks_in_force(settings)),
        batch_id,
        slot.is_over,
        lambda: cancelled,
        on_progress,
    )
