"""Attestations: the balances of a token or wallet at a past moment, compared with the chain.

The moment has an exclusive end: for an instant one microsecond after it, for a day the next midnight.
Which block that is, only the pipeline can tell.
"""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta

from sqlalchemy.orm import Session

from control import access, operations, subjects
from control.access import Principal, Role
from control.changes import record_change
from control.clock import utc_now
from control.errors import Conflict, Invalid
from control.instants import FORMS, is_day, read_block, read_instant_or_day, write_day, write_instant
from control.operations import OperationKind, OperationRow
from control.subjects import SubjectRow

FIELD = "asOf"
_INSTANT = timedelta(microseconds=1)


@dataclass(frozen=True, slots=True)
class AttestedMoment:
    """A block by number, or the last one before `end` (aware, UTC); `text` is canonical."""

    text: str
    block: int | None = None
    end: datetime | None = None


def read_moment(text: str) -> AttestedMoment:
    """Read a moment: an instant, a day (its end), or `block:N`.

    Raises:
        Invalid: on 'asOf'.
    """
    block = read_block(FIELD, text)
    if block is not None:
        return AttestedMoment(f"block:{block}", block=block)
    instant = read_instant_or_day(FIELD, text, f"{FORMS}, block:N, yesterday or last-month-end")
    try:
        end = instant + (timedelta(days=1) if is_day(text) else _INSTANT)
    except OverflowError as error:
        raise Invalid(
            FIELD, "out-of-range", f"{FIELD} is {text}, the last possible moment; name an earlier one"
        ) from error
    return AttestedMoment(text if is_day(text) else write_instant(instant), end=end)


def check(
    principal: Principal, as_of: str, *, is_fungible: bool | None = None, now: datetime | None = None
) -> AttestedMoment:
    """Read the moment of an attestation as `request`, which it would store; errors as there."""
    access.require(principal, Role.ADMIN)
    asked_at = now or utc_now()
    moment = read_moment(write_day(as_of, asked_at))
    if moment.end is not None and moment.end > asked_at:
        raise Invalid(FIELD, "in-future", f"{FIELD} is {moment.text}, which has not ended yet; name a past moment")
    if is_fungible is False:
        raise Conflict("not-fungible", "the contract is not a fungible token, so there are no balances to read")
    return moment


def request(
    session: Session,
    principal: Principal,
    subject: SubjectRow,
    *,
    as_of: str,
    stands: Callable[[int], bool],
    is_fungible: bool | None = None,
    now: datetime | None = None,
) -> OperationRow:
    """Request an attestation, or return the moment's newest one if it is unfinished or its record is still valid.

    Args:
        session: a write transaction.
        principal: who asks.
        subject: the subject, from `tokens.get` or `wallets.get`.
        as_of: the moment; forms as `read_moment`, and days as `write_day` names them.
        stands: whether the newest record of a block is not superseded.
        is_fungible: False when the contract is known to be no fungible token; None when that is not known.
        now: the moment of asking; None is the clock's.

    Raises:
        Denied: below admin.
        NotFound: the subject was removed meanwhile, or is another tenant's.
        Invalid: on 'asOf'.
        Conflict: the contract is not a fungible token.
    """
    moment = check(principal, as_of, is_fungible=is_fungible, now=now)
    subjects.lock(session, principal.tenant_id, subject)
    parameters = {FIELD: moment.text}
    owned = (OperationKind.ATTESTATION, subject.subject_key)
    known = operations.newest(session, principal.tenant_id, *owned, parameters)
    if known is not None and (not known.is_finished or (known.to_block is not None and stands(known.to_block))):
        return known
    operation = operations.queue(session, principal, *owned, parameters, now=now)
    asked = {"subjectId": subject.id, **parameters}
    record_change(session, principal, "attestation.request", "operation", operation.id, None, asked, now, is_new=True)
    return operation
