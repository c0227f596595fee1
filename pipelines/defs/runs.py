"""Mark of the runs that the worker executes."""

import dagster as dg

# "true" on runs that the worker executes, "false" on those that it did not take. A repeated run begins with the tags of
# the first.
WORKER_TAG = "ledgermart/worker"


def is_of_worker(run: dg.DagsterRun) -> bool:
    """Tell whether the worker executes the run, or executed it."""
    return run.tags.get(WORKER_TAG) == "true"
