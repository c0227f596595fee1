"""The Dagster code location: loads the network definitions and assembles assets, job, sensor and schedule."""

from collections.abc import Mapping
from functools import cache

import dagster as dg

from control.networks.definitions import Network
from control.networks.in_force import networks_in_force
from control.pricing.definitions import price_sources_in_force
from control.settings import load_settings
from pipelines.defs.bulk import bulk_job
from pipelines.defs.control import control_snapshot
from pipelines.defs.cycle import cycle_jobs, cycle_sensor
from pipelines.defs.dbt import transform_assets
from pipelines.defs.history import history_asset
from pipelines.defs.maintenance import (
    lake_maintenance,
    lake_maintenance_schedule,
    maintenance,
    maintenance_schedule,
)
from pipelines.defs.networks import network_assets
from pipelines.defs.prices import price_assets, price_discoveries
from pipelines.defs.publish import outcome, publication
from pipelines.defs.resources import Warehouse


def build_definitions(networks: Mapping[str, Network]) -> dg.Definitions:
    """Return definitions over the given networks; the disabled ones have no assets."""
    enabled = [network for network in networks.values() if network.is_enabled]
    settings = load_settings()
    has_lake = settings.lake is not None
    return dg.Definitions(
        assets=[
            control_snapshot,
            *(network_assets(network) for network in enabled),
            price_assets,
            transform_assets(networks),
            publication,
            price_discoveries,
            history_asset([network.name for network in enabled]),
            outcome,
        ],
        jobs=[
            *cycle_jobs(settings),
            maintenance,
            *([lake_maintenance, bulk_job(settings, enabled)] if has_lake else []),
        ],
        sensors=[cycle_sensor(networks)],
        schedules=[maintenance_schedule, *([lake_maintenance_schedule] if has_lake else [])],
        resources={"warehouse": Warehouse()},
    )


@cache
def load_definitions() -> tuple[Mapping[str, Network], dg.Definitions]:
    """Return the networks in force, and the definitions over them; loaded once per process."""
    settings = load_settings()
    # Errors in the file of price sources are raised when the code is loaded, not in the middle of every cycle.
    price_sources_in_force(settings)
    networks = networks_in_force(settings)
    return networks, build_definitions(networks)


@dg.definitions
def definitions() -> dg.Definitions:
    """Return the definitions for Dagster."""
    return load_definitions()[1]
