"""The end of the unfinished operations of something that is removed; how one is cancelled alone: `operations`."""

from datetime import datetime
from typing import Literal

from sqlalchemy import func, update
from sqlalchemy.orm import Session

from control.models import Operation


def cancel_unfinished(
    session: Session, owner: Literal["subject_key", "pair_key"], owner_key: int, moment: datetime
) -> None:
    """Cancel the unfinished operations of a subject or pair, in the transaction that removes it."""
    session.execute(
        update(Operation)
        .where(getattr(Operation, owner) == owner_key, Operation.finished_at.is_(None))
        .values(
            status="Cancelled",
            cancel_requested_at=func.coalesce(Operation.cancel_requested_at, moment),
            finished_at=moment,
            estimated_end=None,
            reported_at=moment,
        )
    )
