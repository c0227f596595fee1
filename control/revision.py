"""The counter that every configuration write moves on, so that the pipeline sees cheaply that something changed."""

from sqlalchemy import select, update
from sqlalchemy.orm import Session

from control.models import ControlState


def bump(session: Session) -> None:
    """Count one configuration write; to be called after the write, so that writers wait for each other last."""
    session.flush()
    session.execute(update(ControlState).values(revision=ControlState.revision + 1))


def read_revision(session: Session) -> int:
    """Return the number of configuration writes so far."""
    return session.execute(select(ControlState.revision)).scalar_one()
