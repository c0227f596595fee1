"""Coverage of a subject over the whole chain: tracking windows, history requests, covered ranges, gaps."""

from collections.abc import Sequence
from typing import cast

from sqlalchemy.orm import Session

from api.engine.rows import as_utc
from api.engine.serving import Snapshot
from api.schema import CollectedRange, HistoryRange, HistoryStatus, SubjectCoverage
from api.subjects.moments import View, all_gaps, resolve, to_as_of
from api.subjects.windows import to_windows
from control import operations
from control.operations import OperationKind, OperationRow
from control.pages import MAXIMUM_LIMIT
from control.subjects import SubjectRow


def read_history(session: Session, subject: SubjectRow) -> list[OperationRow]:
    """Return the history requests of a subject, oldest first."""
    found: list[OperationRow] = []
    after = None
    while True:
        page = operations.list_page(
            session, subject.tenant_id, OperationKind.HISTORY, subject.subject_key, MAXIMUM_LIMIT, after
        )
        found += page.rows
        after = page.after
        if after is None:
            return found[::-1]


def to_subject_coverage(snapshot: Snapshot, view: View, history: Sequence[OperationRow]) -> SubjectCoverage:
    """Return the collected ranges of a subject, and its gaps."""
    return SubjectCoverage(
        windows=to_windows(view.windows),
        history=[
            HistoryRange(
                operation_id=operation.id,
                from_=operation.from_text,
                to=operation.to_text,
                from_block=operation.from_block,
                to_block=operation.to_block,
                status=cast("HistoryStatus", operation.presented_status),
            )
            for operation in history
        ],
        collected=[
            CollectedRange(
                from_=as_utc(row.from_time),
                to=as_utc(row.to_time),
                from_block=row.from_block,
                to_block=row.to_block,
                verified=row.verified or "false",
                source=row.source or "node",
            )
            for row in view.ranges
            if row.is_covered and row.to_block is not None
        ],
        gaps=all_gaps(view),
        as_of=to_as_of(view, resolve(snapshot, view, None), snapshot),
    )
