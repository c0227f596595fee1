"""States of operations for the control store, computed from the warehouse each time, so that a kill loses nothing."""

from datetime import UTC, datetime

import duckdb

from control import operations
from control.instants import write_instant
from control.operations import ATTESTATION_NUMBER, WAITS_UNTIL, OperationKind, Report, Status
from control.store import ControlStore
from pipelines.attestations.records import attestation_states
from pipelines.history.requests import request_states
from pipelines.prices.discovery_store import discovery_states


def report_requests(connection: duckdb.DuckDBPyConnection, store: ControlStore, shard: int) -> None:
    """Update the control store for every history request of the shard that it holds as unfinished."""
    states = request_states(connection)
    if not states:
        return
    with store.write() as session:
        for state in states:
            ends_at = state.estimated_end
            operations.report(
                session,
                shard,
                state.operation_key,
                Report(
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
                    result=None if state.waits_until is None else {WAITS_UNTIL: _utc_text(state.waits_until)},
                ),
            )


def report_attestations(connection: duckdb.DuckDBPyConnection, store: ControlStore, shard: int) -> None:
    """Update the control store for every attestation of the shard that it holds as unfinished."""
    states = attestation_states(connection)
    if not states:
        return
    with store.write() as session:
        for state in states:
            waits = {} if state.waits_until is None else {WAITS_UNTIL: _utc_text(state.waits_until)}
            number = {} if state.number is None else {ATTESTATION_NUMBER: state.number}
            operations.report(
                session,
                shard,
                state.operation_key,
                Report(
                    status=Status(state.status),
                    progress_done=state.done,
                    progress_total=state.total,
                    to_block=state.block_number,
                    error=state.error,
                    result={**waits, **number} or None,
                ),
            )


def _utc_text(instant: datetime) -> str:
    return write_instant(instant.replace(tzinfo=UTC))


def report_discoveries(connection: duckdb.DuckDBPyConnection, store: ControlStore, shard: int) -> None:
    """Update the control store for every price discovery of the shard that it holds as unfinished."""
    states = discovery_states(connection)
    if not states:
        return
    with store.write() as session:
        for state in states:
            missing = [
                {"from": write_instant(span.start), "to": write_instant(span.end), "priceSource": span.source_id}
                for span in state.missing
            ]
            operations.report(
                session,
                shard,
                state.operation_key,
                Report(
                    status=Status(state.status),
                    progress_done=state.done,
                    progress_total=state.total,
                    result={"pricesStored": state.prices_stored, "missing": missing},
                    error=state.error,
                ),
            )


def cancelled_discoveries(store: ControlStore, shard: int) -> set[int]:
    """Return the keys of the shard's unfinished price discoveries that their tenants have cancelled."""
    with store.read() as session:
        return {
            operation.operation_key
            for operation in operations.unfinished(session, shard)
            if operation.kind is OperationKind.PRICE_DISCOVERY and operation.cancel_requested_at is not None
        }
