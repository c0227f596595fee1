"""Which runs the worker executes, and which somebody else does."""

import dagster as dg

# On runs that the worker executes. One that it did not take goes to the code server, which leaves a tag of its own.
WORKER_TAG = "ledgermart/worker"
_GRPC_TAG = ".dagster/grpc_info"


def is_of_worker(run: dg.DagsterRun) -> bool:
    """Whether the worker executes the run, or did."""
    return WORKER_TAG in run.tags and _GRPC_TAG not in run.tags
