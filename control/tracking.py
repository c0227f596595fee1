"""Tracking that is switched together with a request for what was before it: both are stored, or neither."""

from datetime import datetime
from typing import NamedTuple

from sqlalchemy.orm import Session

from control import operations, subjects
from control.access import Principal
from control.errors import Invalid
from control.operations import OperationRow
from control.subjects import SubjectRow, Window

_HISTORY = "history"


class Tracking(NamedTuple):
    """The tracking of a subject: its windows, oldest first, and the request for what was before the open one.

    Of a dry run subject and windows are as they are, and the request is the one that would be made.
    """

    subject: SubjectRow
    windows: list[Window]
    history: OperationRow | None
    is_dry_run: bool = False


def set_tracking(
    session: Session,
    principal: Principal,
    subject: SubjectRow,
    *,
    enabled: bool,
    history: str | None,
    is_fungible: bool | None = None,
    is_dry_run: bool = False,
    now: datetime | None = None,
) -> Tracking:
    """Open or close the tracking window of a subject, and ask for its history up to the start of the open one.

    Asking again returns the request that is there, as `operations.request_history_before` says.

    Args:
        session: a write transaction.
        principal: who asks.
        subject: the subject, from `tokens.get` or `wallets.get`.
        enabled: the state asked for.
        history: where the history begins, as `from` of a history request; None asks for none.
        is_fungible: False when the contract is known to be no fungible token; None when that is not known.
        is_dry_run: store nothing; needs a history.
        now: the moment; None is the clock's.

    Raises:
        Denied, NotFound, Invalid: as `subjects.set_tracking`.
        Invalid: on 'history' and 'dryRun' too.
    """
    if is_dry_run and history is None:
        raise Invalid("dryRun", "without-history", "a dry run estimates the cost of a history; set history too")
    if history is not None and not enabled:
        raise Invalid(_HISTORY, "not-enabled", "history is only for a request that enables tracking; leave it out")
    if is_dry_run:
        attempt = session.begin_nested()
        try:
            asked = set_tracking(
                session, principal, subject, enabled=enabled, history=history, is_fungible=is_fungible, now=now
            )
        finally:
            attempt.rollback()
        current = subjects.get(session, principal.tenant_id, subject.kind, subject.id)
        return Tracking(current, subjects.windows(session, current.subject_key), asked.history, is_dry_run=True)
    tracked = subjects.set_tracking(session, principal, subject, enabled, now, is_fungible)
    windows = subjects.windows(session, tracked.subject_key)
    if history is None:
        return Tracking(tracked, windows, None)
    if is_fungible is False:
        detail = "the contract is not a fungible token, so there are no amounts to collect; leave history out"
        raise Invalid(_HISTORY, "not-fungible", detail)
    request = operations.request_history_before(
        session, principal, tracked, start=history, end=windows[-1].opened_at, field=_HISTORY, now=now
    )
    return Tracking(tracked, windows, request)
