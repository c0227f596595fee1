"""Which runs the worker executes, and which somebody else does."""

import dagster as dg

# "true" on runs that the worker executes, "false" on those that it did not take: a run that is executed again begins
# with the tags of the first.
WORKER_TAG = "ledgermart/worker"


def is_of_worker(run: dg.DagsterRun) -> bool:
    """Whether the worker executes the run, or did."""
    return run.tags.get(WORKER_TAG) == "true"
