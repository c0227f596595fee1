"""Tags of runs: the executing process, and special permissions."""

import dagster as dg

# "true" on runs that the worker executes, "false" on those that it did not take. A repeated run begins with the tags of
# the first.
WORKER_TAG = "ledgermart/worker"
# "true" on a run that builds all marts again from the raw tables.
REBUILD_TAG = "ledgermart/rebuild"
# "true" on a run that may begin an empty warehouse in place of one that is lost or damaged.
NEW_WAREHOUSE_TAG = "ledgermart/new-warehouse"


def is_of_worker(run: dg.DagsterRun) -> bool:
    """Tell whether the worker executes the run, or executed it."""
    return has_tag(run, WORKER_TAG)


def has_tag(run: dg.DagsterRun | None, tag: str) -> bool:
    """Return whether a tag of this module is "true" on a run."""
    return run is not None and run.tags.get(tag) == "true"
