"""The example market pair: BTC/USD, Trade, from Kraken, with guards and a running discovery.

Price 9.9 was accepted. Quarantined are 1000000.1, 0.5, and an inverse too large for a price.
"""

from datetime import UTC, datetime
from typing import Any

from sqlalchemy import select
from sqlalchemy.orm import Session

from api.examples import EXAMPLE_MARKET_PAIR_ID, EXAMPLE_PAIR_OPERATION_ID, EXAMPLE_PRICE_ID, EXAMPLE_SYMBOL
from control.access import Principal
from control.models import Operation, PairSource, PricedItem, PricePair, PriceReview

MARKET_PAIR_KEY = 2
SOURCE_ID = "src_kraken"
ACCEPTED_PRICE_ID = "price_" + "a" * 32
SMALL_PRICE_ID = "price_" + "b" * 32
VAST_PRICE_ID = "price_" + "c" * 32
USED_PRICE_ID = "price_" + "d" * 32

_MADE_AT = datetime(2026, 1, 15, tzinfo=UTC)


def add_market_pair(session: Session, principal: Principal) -> None:
    """Store the pair, its discovery, and the review of one of its prices."""
    found = session.execute(
        select(PricedItem.symbol, PricedItem.item_key).where(PricedItem.tenant_id == principal.tenant_id)
    )
    items = dict(found.all())
    session.add(
        PricePair(
            pair_key=MARKET_PAIR_KEY,
            id=EXAMPLE_MARKET_PAIR_ID,
            tenant_id=principal.tenant_id,
            priced_as_key=items[EXAMPLE_SYMBOL],
            priced_in_key=items["USD"],
            price_type="Trade",
            max_age="P1D",
            max_age_seconds=86_400,
            allow_inverse=False,
            max_jump="25",
            created_at=_MADE_AT,
            updated_at=_MADE_AT,
        )
    )
    session.flush()
    session.add(PairSource(pair_key=MARKET_PAIR_KEY, position=0, source_id=SOURCE_ID))
    session.add(
        PriceReview(
            pair_key=MARKET_PAIR_KEY,
            price_id=ACCEPTED_PRICE_ID,
            decision="Accepted",
            decided_by=principal.key_id,
            decided_at=_MADE_AT,
        )
    )
    session.add(
        Operation(
            id=EXAMPLE_PAIR_OPERATION_ID,
            tenant_id=principal.tenant_id,
            kind="PriceDiscovery",
            pair_key=MARKET_PAIR_KEY,
            parameters={
                "from": "2026-01-01T00:00:00Z",
                "to": "2026-01-11T00:00:00Z",
                "windowSize": "day",
                "multiplier": "1",
            },
            result={
                "pricesStored": 3,
                "missing": [
                    {"from": "2026-01-02T00:00:00Z", "to": "2026-01-04T00:00:00Z", "priceSource": SOURCE_ID},
                ],
            },
            status="Running",
            progress_done=5,
            progress_total=10,
            created_by=principal.key_id,
            created_at=_MADE_AT,
            started_at=_MADE_AT,
            reported_at=_MADE_AT,
        )
    )


def stopped_rows(tenant_id: str) -> list[dict[str, Any]]:
    """Return rows of the mart of source prices: quarantined ones, an accepted one, and one that passed the guards."""
    base = {
        "tenant_id": tenant_id,
        "pair_key": MARKET_PAIR_KEY,
        "source_id": SOURCE_ID,
        "position": 0,
        "window_start": None,
        "is_partial": False,
        "derivation": "Direct",
        "fresh_until": None,
    }
    vast = "123456789012345678901234567890.5"
    rows = (
        (USED_PRICE_ID, "2026-01-20 00:00:00", "10", "Used", None),
        (ACCEPTED_PRICE_ID, "2026-01-21 00:00:00", "9.9", "Accepted", "Deviation"),
        (EXAMPLE_PRICE_ID, "2026-01-22 00:00:00", "1000000.1", "Quarantined", "Jump"),
        (SMALL_PRICE_ID, "2026-01-22 00:00:00", "0.5", "Quarantined", "Jump, Deviation"),
        (VAST_PRICE_ID, "2026-01-23 12:30:00", vast, "Quarantined", "OutOfRange"),
    )
    return [
        base
        | {
            "price_id": price_id,
            "effective_from": effective_from,
            "price": None if price == vast else price,
            "price_text": price,
            "state": state,
            "reason": reason,
        }
        for price_id, effective_from, price, state, reason in rows
    ]
