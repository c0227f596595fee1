"""Rules of reviews: an operator's word on prices that a pair's guards stopped.

The marts have these prices; the caller has read them there.
"""

from collections.abc import Sequence
from datetime import datetime
from enum import StrEnum

from sqlalchemy import select
from sqlalchemy.orm import Session

from control import access
from control.access import Principal, Role
from control.changes import record_change
from control.clock import utc_now
from control.models import PriceReview
from control.pricing import pairs


class Decision(StrEnum):
    """A decision: accepted prices count in spite of the guards, rejected ones never."""

    ACCEPTED = "Accepted"
    REJECTED = "Rejected"


def decide(
    session: Session,
    principal: Principal,
    pair_id: str,
    price_id: str,
    decision: Decision,
    now: datetime | None = None,
) -> None:
    """Accept or reject a price of a pair; again changes nothing, and another word later replaces the first.

    Args:
        session: a write transaction.
        principal: who decides.
        pair_id: the pair.
        price_id: the marts' id of a price of this pair that is or was quarantined.
        decision: the word.
        now: the moment; None is the clock's.

    Raises:
        Denied: below operator.
        NotFound: the tenant has no such pair.
    """
    access.require(principal, Role.OPERATOR)
    # Locked for change, so that two first words on one price follow each other.
    pair = pairs.lock(session, principal.tenant_id, pair_id)
    review = session.get(PriceReview, (pair.pair_key, price_id), populate_existing=True)
    before = None if review is None else review.decision
    if before == decision:
        return
    moment = now or utc_now()
    if review is None:
        review = PriceReview(pair_key=pair.pair_key, price_id=price_id)
        session.add(review)
    review.decision, review.decided_by, review.decided_at = decision, principal.key_id, moment
    old, new = ({"priceId": price_id, "decision": word} for word in (before, decision.value))
    record_change(session, principal, "price-pair.review", "price-pair", pair_id, old, new, now)


def decisions(session: Session, pair_key: int, price_ids: Sequence[str]) -> dict[str, Decision]:
    """Return the decisions on prices of a pair; prices without one are missing."""
    found = session.execute(
        select(PriceReview.price_id, PriceReview.decision).where(
            PriceReview.pair_key == pair_key, PriceReview.price_id.in_(price_ids)
        )
    )
    return {price_id: Decision(decision) for price_id, decision in found}
