"""Conversion of stored operations to structs of answers."""

from typing import cast

from api.operations.schemas import HistoryOperation, Progress
from api.schema import HistoryStatus
from control.operations import NativeModeName, OperationRow


def to_history_operation(operation: OperationRow) -> HistoryOperation:
    """Return a history request; its native mode is the resolved one, or the requested one until it is resolved."""
    return HistoryOperation(
        id=operation.id,
        status=cast("HistoryStatus", operation.presented_status),
        progress=Progress(done=operation.progress_done, total=operation.progress_total),
        rate=operation.rate,
        estimated_end=operation.estimated_end,
        resumes_at=operation.waits_until,
        from_=operation.from_text,
        to=operation.to_text,
        from_block=operation.from_block,
        to_block=operation.to_block,
        native=cast("NativeModeName | None", operation.native or operation.parameters["native"]),
        note=operation.note,
        error=operation.error,
        created_at=operation.created_at,
        started_at=operation.started_at,
        cancel_requested_at=operation.cancel_requested_at,
        finished_at=operation.finished_at,
    )
