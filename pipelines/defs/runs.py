"""Tags of runs: the executing process, and special permissions."""

import dagster as dg

# The run's own id, on runs that the worker executes. A repeated run begins with the tags of the first one.
WORKER_TAG = "ledgermart/worker"
# "true" on a run that builds all marts again from the raw tables.
REBUILD_TAG = "ledgermart/rebuild"
# "true" on a run that may begin an empty warehouse in place of one that is lost or damaged.
NEW_WAREHOUSE_TAG = "ledgermart/new-warehouse"


def is_of_worker(run: dg.DagsterRun) -> bool:
    """Tell whether the worker executes the run, or executed it."""
    return run.tags.get(WORKER_TAG) == run.run_id


def has_tag(run: dg.DagsterRun | None, tag: str) -> bool:
    """Return whether a tag of this module is "true" on a run."""
    return run is not None and run.tags.get(tag) == "true"
