"""Assets of one network, made by one factory for every enabled network."""

from collections.abc import Iterator
from contextlib import closing

import dagster as dg

from control.networks.definitions import Network
from pipelines.chain.checks import RAW_CHECKS, Finding, RawCheck, check_batch
from pipelines.chain.segments import NetworkReport
from pipelines.defs.keys import SNAPSHOT, assets_of, network_key
from pipelines.defs.resources import Warehouse
from pipelines.defs.runs import network_pool
from pipelines.extract.budget import Budget
from pipelines.extract.families import family_of, open_node
from pipelines.lake.tables import open_lake
from pipelines.network_cycle import collect_network
from pipelines.tenants.configuration import batch_of_run

_DESCRIPTIONS = {
    "blocks": "Headers of the unfinalised tail and of every block with rows; also the network's state and coverage.",
    "token_metadata": "Data that token contracts return about themselves: kind, symbol, name, decimals.",
    "balance_observations": "Balances and supplies read from the node at stated blocks.",
}


def network_assets(network: Network) -> dg.AssetsDefinition:
    """Return the assets and checks of one network.

    They are one step, because they share one head and fail together. A failure is not an exception, so that the other
    networks, dbt and publishing continue: the check `collected` fails, and names call and range.
    """
    blocks = network_key(network.name, "blocks")
    descriptions = _DESCRIPTIONS | {table.name: table.description for table in family_of(network).tables}

    @dg.multi_asset(
        name=f"collect_{network.name}".replace("-", "_"),
        pool=network_pool(network.name),
        specs=[
            dg.AssetSpec(
                network_key(network.name, asset),
                deps=[SNAPSHOT],
                group_name=network.name.replace("-", "_"),
                description=descriptions[asset],
                kinds={"duckdb", network.family},
            )
            for asset in assets_of(network)
        ],
        check_specs=[
            dg.AssetCheckSpec("collected", asset=blocks, description="All requested data was collected."),
            *(
                dg.AssetCheckSpec(check.name, asset=_checked(network, check), description=check.description)
                for check in RAW_CHECKS
            ),
        ],
    )
    def collect(
        context: dg.AssetExecutionContext, warehouse: Warehouse
    ) -> Iterator[dg.MaterializeResult[None] | dg.AssetCheckResult]:
        with warehouse.open() as connection:
            batch_id = batch_of_run(connection, context.run_id)
            settings = warehouse.settings
            budget = Budget(settings.network_seconds, settings.network_answer_mb)
            with closing(open_node(network, budget=budget)) as node:
                report = collect_network(connection, node, batch_id, open_lake(settings, network))
            if report.defect is not None:
                context.log.error("collecting %s failed", network.name, exc_info=report.defect)
            findings = check_batch(connection, network.name, batch_id)
        yield from _results(network, report, findings)

    return collect


def _checked(network: Network, check: RawCheck) -> dg.AssetKey:
    return network_key(network.name, check.asset or family_of(network).tables[0].name)


def _results(
    network: Network, report: NetworkReport, findings: list[Finding]
) -> Iterator[dg.MaterializeResult[None] | dg.AssetCheckResult]:
    for asset in assets_of(network):
        metadata: dict[str, int] = {"rows": report.rows.get(asset, 0)}
        if report.ranges:
            metadata["first_block"] = min(covered.first for covered in report.ranges)
            metadata["last_block"] = max(covered.last for covered in report.ranges)
        yield dg.MaterializeResult(network_key(network.name, asset), metadata=metadata)
    yield dg.AssetCheckResult(
        check_name="collected",
        asset_key=network_key(network.name, "blocks"),
        passed=report.error is None,
        description=report.error or f"collected up to block {report.head}",
        metadata={
            "reorganised_after": dg.MetadataValue.text(str(report.reorganised_after)),
            "readings_without_state": report.unavailable_readings,
            "corrected_ranges": report.corrected_ranges,
        },
    )
    for finding in findings:
        yield dg.AssetCheckResult(
            check_name=finding.check.name,
            asset_key=_checked(network, finding.check),
            passed=finding.count == 0,
            severity=dg.AssetCheckSeverity.WARN if finding.check.is_warning else dg.AssetCheckSeverity.ERROR,
            description=finding.example,
            metadata={"count": finding.count},
        )
