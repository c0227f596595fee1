"""Tracking of tokens and wallets, in the form of answers."""

from collections.abc import Sequence

from sqlalchemy import select
from sqlalchemy.orm import Session

from api import schema as common
from control.models import TrackingWindow
from control.subjects import SubjectRow, Window


def ever_tracked(session: Session, subjects: Sequence[SubjectRow]) -> set[int]:
    """Return the keys of those subjects that were ever tracked."""
    keys = [subject.subject_key for subject in subjects]
    query = select(TrackingWindow.subject_key).where(TrackingWindow.subject_key.in_(keys)).distinct()
    return set(session.scalars(query))


def to_windows(windows: Sequence[Window]) -> list[common.Window]:
    """Convert tracking windows to structs of answers, without windows that opened and closed in the same second."""
    return [
        common.Window(from_=window.opened_at, to=window.closed_at)
        for window in windows
        if window.closed_at != window.opened_at
    ]


def to_tracking_status(subject: SubjectRow) -> common.TrackingStatus:
    """Return whether a subject's tracking is enabled."""
    return "enabled" if subject.is_tracked else "disabled"
