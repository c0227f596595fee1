"""What the control store learns of operations: computed from the warehouse each time, so that a kill loses nothing."""

from datetime import UTC

import duckdb

from control import operations
from control.operations import Status
from control.store import ControlStore
from pipelines.load.history import request_states


def report_requests(connection: duckdb.DuckDBPyConnection, store: ControlStore) -> None:
    """Bring the control store up to date on every history request that it holds for unfinished."""
    states = request_states(connection)
    if not states:
        return
    with store.write() as session:
        for state in states:
            ends_at = state.estimated_end
            operations.report(
                session,
                state.operation_key,
                status=Status(state.status),
                progress_done=state.done,
                progress_total=state.total,
                from_block=state.from_block,
                to_block=state.to_block,
                native=state.native,
                note=state.note,
                rate=state.rate,
                estimated_end=None if ends_at is None else ends_at.replace(tzinfo=UTC),
                error=state.error,
            )
