"""Tracking that is switched together with a request for earlier history: both are stored, or neither."""

from datetime import datetime
from typing import Annotated, ClassVar, NamedTuple

from msgspec import Meta
from msgspec.structs import replace
from sqlalchemy.orm import Session

from control import operations, subjects
from control.access import Principal
from control.errors import Invalid
from control.inputs import Keywords, Schema, TrackingStatus, described
from control.operations import HISTORY_START, OperationRow
from control.subjects import SubjectRow, Window

_HISTORY = "history"


class TrackingPut(Schema, frozen=True, kw_only=True):
    """Tracking on or off, and optionally the start of earlier history to collect."""

    rules: ClassVar[Keywords] = {
        "anyOf": [
            {"properties": {"history": {"type": "null"}, "dryRun": {"const": False}}},
            {
                "properties": {"history": {"type": "string"}, "trackingStatus": {"const": "enabled"}},
                "required": ["history"],
            },
        ]
    }

    tracking_status: TrackingStatus
    history: Annotated[
        str | None,
        described(
            "Only with `enabled`: requests the history from this moment to the start of the open window. "
            "The moment is an instant, a day (its start), `block:N`, or `creation`. If an existing request already "
            "includes this history, the answer has that request instead of a new one.",
            ["creation"],
            pattern=HISTORY_START,
        ),
    ] = None
    dry_run: Annotated[
        bool,
        Meta(description="Only with `history`: returns an estimate of the requests to the node, and changes nothing."),
    ] = False


class Tracking(NamedTuple):
    """The tracking of a subject: its windows, oldest first, and the request for the history before the open one.

    After a dry run, subject and windows are unchanged, and the request is a preview.
    """

    subject: SubjectRow
    windows: list[Window]
    history: OperationRow | None
    is_dry_run: bool = False


def set_tracking(
    session: Session,
    principal: Principal,
    subject: SubjectRow,
    request: TrackingPut,
    *,
    is_fungible: bool | None = None,
    now: datetime | None = None,
) -> Tracking:
    """Open or close the tracking window of a subject, and ask for its history up to the start of the open one.

    Asking again returns the request that is there, as `operations.request_history_before` says.

    Args:
        session: a write transaction.
        principal: who asks.
        subject: the subject, from `tokens.get` or `wallets.get`.
        request: the wanted state, and the start of the history; a dry run needs a history and stores nothing.
        is_fungible: False when the contract is known to be no fungible token; None when that is not known.
        now: the moment; None is the clock's.

    Raises:
        Denied, NotFound, Invalid: as `subjects.set_tracking`.
        Invalid: on 'history' and 'dryRun' too.
    """
    history, is_enabled = request.history, request.tracking_status == "enabled"
    if request.dry_run and history is None:
        raise Invalid("dryRun", "without-history", "a dry run estimates the cost of a history; set history too")
    if history is not None and not is_enabled:
        raise Invalid(_HISTORY, "not-enabled", "history is only for a request that enables tracking; leave it out")
    if request.dry_run:
        attempt = session.begin_nested()
        try:
            wanted = replace(request, dry_run=False)
            asked = set_tracking(session, principal, subject, wanted, is_fungible=is_fungible, now=now)
        finally:
            attempt.rollback()
        current = subjects.get(session, principal.tenant_id, subject.kind, subject.id)
        return Tracking(current, subjects.windows(session, current.subject_key), asked.history, is_dry_run=True)
    tracked = subjects.set_tracking(session, principal, subject, is_enabled, now, is_fungible)
    windows = subjects.windows(session, tracked.subject_key)
    if history is None:
        return Tracking(tracked, windows, None)
    if is_fungible is False:
        detail = "the contract is not a fungible token, so there are no amounts to collect; leave history out"
        raise Invalid(_HISTORY, "not-fungible", detail)
    asked_history = operations.request_history_before(
        session, principal, tracked, start=history, end=windows[-1].opened_at, field=_HISTORY, now=now
    )
    return Tracking(tracked, windows, asked_history)
