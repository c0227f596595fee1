"""Bulk history: a job that Dagster launches on request, on any machine, for the network of its partition."""

from collections.abc import Iterable

import dagster as dg

from control.errors import StoreUnavailable
from control.networks.definitions import Network
from control.networks.in_force import networks_in_force
from control.settings import Settings, load_settings
from pipelines.defs.runs import launched_tags
from pipelines.extract.errors import ExtractError
from pipelines.history.bulk import BulkHistoryError, collect_bulk
from pipelines.lake.tables import open_lakes
from warehouse.lakes import LakeError

BULK_JOB = "bulk_history"


# Without a pool. The lock of `Lake.bulk_run` lets one run at a time collect a network, and it ends with the run's
# process. A killed run that nothing marks as failed would fill its pool, and cycles that Dagster launches would wait.
@dg.op
def collect_past(context: dg.OpExecutionContext) -> None:
    """Collect the history requests of all shards on a network, and give the facts to its lake."""
    settings = load_settings()
    networks = {network.name: network for network in networks_in_force(settings).values() if network.is_enabled}
    lakes = open_lakes(settings, networks.values())
    name = context.partition_key if context.has_partition_key else ""
    if name not in lakes:
        raise dg.Failure(
            f"{name!r} is not a network with a lake; set the tag dagster/partition to one of: {', '.join(lakes)}",
            allow_retries=False,
        )
    try:
        collect_bulk(settings, networks[name], lakes[name], context.log.info)
    except (BulkHistoryError, LakeError, ExtractError, StoreUnavailable) as error:
        raise dg.Failure(str(error), allow_retries=False) from error


def bulk_job(settings: Settings, networks: Iterable[Network]) -> dg.JobDefinition:
    """Return the job, with a partition for each of the networks that has a lake."""

    @dg.job(
        name=BULK_JOB,
        description="Collects the history requests of all shards on a network, and gives the facts to its lake.",
        partitions_def=dg.StaticPartitionsDefinition(list(open_lakes(settings, networks))),
        executor_def=dg.in_process_executor,
        tags=launched_tags(settings),
    )
    def job() -> None:
        collect_past()

    return job
