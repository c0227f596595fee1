"""Tags of runs: the executing process, special permissions, memory. Concurrency pools of steps."""

from typing import Any

import dagster as dg

from control.settings import Settings

# The run's own id, on runs that the worker executes. A repeated run begins with the tags of the first one.
WORKER_TAG = "ledgermart/worker"
# "true" on a run that builds all marts again from the raw tables.
REBUILD_TAG = "ledgermart/rebuild"
# "true" on a run that may begin an empty warehouse in place of one that is lost or damaged.
NEW_WAREHOUSE_TAG = "ledgermart/new-warehouse"

# The shard of a run that Dagster launches, as text. Runs without it belong to shard 0, which has no tag.
SHARD_TAG = "ledgermart/shard"


def launched_tags(settings: Settings) -> dict[str, Any]:
    """Return the tags of runs that the instance's launcher starts: the shard, and memory for Kubernetes.

    Each limit is LEDGERMART_PROCESS_MEMORY_MB, as for the processes of `ledgermart up`. Docker reads no tag: there, the
    code location sets the limit (`deploy/docker`).
    """
    memory = {"memory": f"{settings.process_memory_mb}M"}
    resources = {"requests": memory, "limits": memory}
    return shard_tags(settings) | {"dagster-k8s/config": {"container_config": {"resources": resources}}}


def shard_tags(settings: Settings) -> dict[str, str]:
    """Return the tag with the shard of these settings; none for shard 0, the only one on one machine."""
    return {SHARD_TAG: str(settings.shard)} if settings.shard else {}


def is_of_shard(run: dg.DagsterRun, settings: Settings) -> bool:
    """Return whether a run belongs to the shard of these settings."""
    return run.tags.get(SHARD_TAG, "0") == str(settings.shard)


def network_pool(network: str) -> str:
    """Return the pool of the step that collects a network.

    Pools have no limit unless the instance sets one, as in `deploy/`.
    """
    return f"network_{network}"


def shard_pool(settings: Settings) -> str:
    """Return the pool of the step that builds the marts of this shard."""
    return f"shard_{settings.shard}"


def is_of_worker(run: dg.DagsterRun) -> bool:
    """Tell whether the worker executes the run, or executed it."""
    return run.tags.get(WORKER_TAG) == run.run_id


def has_tag(run: dg.DagsterRun | None, tag: str) -> bool:
    """Return whether a tag of this module is "true" on a run."""
    return run is not None and run.tags.get(tag) == "true"
