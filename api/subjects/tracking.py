"""Tracking of tokens and wallets as answers show it."""

from collections.abc import Sequence

from sqlalchemy import select
from sqlalchemy.orm import Session

from api import schema as common
from control.models import TrackingWindow
from control.subjects import SubjectRow, Window


def ever_tracked(session: Session, subjects: Sequence[SubjectRow]) -> set[int]:
    """Return the keys of those subjects whose tracking was ever enabled."""
    keys = [subject.subject_key for subject in subjects]
    query = select(TrackingWindow.subject_key).where(TrackingWindow.subject_key.in_(keys)).distinct()
    return set(session.scalars(query))


def to_windows(windows: Sequence[Window]) -> list[common.Window]:
    """Return tracking windows as answers show them, without those that were closed within the second they opened in."""
    return [
        common.Window(from_=window.opened_at, to=window.closed_at)
        for window in windows
        if window.closed_at != window.opened_at
    ]


def to_tracking_status(subject: SubjectRow) -> common.TrackingStatus:
    """Return whether a subject's tracking is enabled."""
    return "enabled" if subject.is_tracked else "disabled"
