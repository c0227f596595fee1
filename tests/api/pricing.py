"""The pricing part of the example data: items, manual sources, supported pairs, manual prices, and a market pair.

The market list of `src_kraken` has BTC (code XXBT) and ETH in USD, and a delisted market BTC in USDT. The list of
`src_coinbase` could not be collected.

The market pair is BTC/USD, Trade, from Kraken, with guards and a running discovery. Its price 9.9 was accepted.
Quarantined are 1000000.1, 0.5, and an inverse too large for a price.

Other worlds add items and pairs with `add_item` and `add_pair`, and rows of their prices with `step_row`.
"""

from collections.abc import Iterable
from datetime import UTC, datetime
from typing import Any

from sqlalchemy import select
from sqlalchemy.orm import Session

from api.examples import (
    EXAMPLE_MARKET_PAIR_ID,
    EXAMPLE_PAIR_ID,
    EXAMPLE_PAIR_OPERATION_ID,
    EXAMPLE_PRICE_ID,
    EXAMPLE_SOURCE_ID,
    EXAMPLE_SUPPORTED_PAIR_ID,
    EXAMPLE_SYMBOL,
    EXAMPLE_UNUSED_SOURCE_ID,
    EXAMPLE_UNUSED_SUPPORTED_PAIR_ID,
    EXAMPLE_UNUSED_SYMBOL,
)
from control.access import Principal
from control.models import (
    ManualPrice,
    ManualSource,
    MappingSymbol,
    Operation,
    PairSource,
    PricedItem,
    PricePair,
    PriceReview,
    SourceSwitch,
    SupportedPair,
)

MADE_AT = datetime(2026, 1, 15, tzinfo=UTC)
NAV = "101.5"  # price of the linked pair in February 2026
LINKED_PAIR_KEY = 1  # key of EXAMPLE_PAIR_ID: FUND1 in USD, NAV, from the first manual source
LISTED_AT = datetime(2026, 2, 1, 0, 30, tzinfo=UTC).replace(tzinfo=None)  # as the marts store it


MARKET_PAIR_KEY = 2
SOURCE_ID = "src_kraken"
ACCEPTED_PRICE_ID, SMALL_PRICE_ID, VAST_PRICE_ID, USED_PRICE_ID = ("price_" + letter * 32 for letter in "abcd")


def add_item(
    session: Session, tenant_id: str, symbol: str, name: str, item_class: str, *, suffix: str, made_at: datetime
) -> int:
    """Store an item with an id that ends with `suffix`; return its key."""
    item = PricedItem(
        id=f"item_01k9zr3m5e8v2c7q4w6t1x0{suffix}",
        tenant_id=tenant_id,
        symbol=symbol,
        name=name,
        item_class=item_class,
        created_at=made_at,
        updated_at=made_at,
    )
    session.add(item)
    session.flush()
    return item.item_key


def item_key(session: Session, tenant_id: str, symbol: str) -> int:
    """Return the key of a tenant's item."""
    query = select(PricedItem.item_key).where(PricedItem.tenant_id == tenant_id, PricedItem.symbol == symbol)
    return session.scalars(query).one()


def add_pair(
    session: Session,
    tenant_id: str,
    pair_key: int,
    pair_id: str,
    priced_as_key: int,
    sources: Iterable[str],
    *,
    max_age: str,
    max_age_seconds: int,
    made_at: datetime,
    price_type: str = "Trade",
    max_jump: str | None = None,
) -> None:
    """Store a pair in USD with its sources."""
    session.add(
        PricePair(
            pair_key=pair_key,
            id=pair_id,
            tenant_id=tenant_id,
            priced_as_key=priced_as_key,
            priced_in_key=item_key(session, tenant_id, "USD"),
            price_type=price_type,
            max_age=max_age,
            max_age_seconds=max_age_seconds,
            allow_inverse=False,
            max_jump=max_jump,
            created_at=made_at,
            updated_at=made_at,
        )
    )
    session.flush()
    session.add_all(
        PairSource(pair_key=pair_key, position=position, source_id=source) for position, source in enumerate(sources)
    )


def step_row(price: str, effective_from: object, source: str = SOURCE_ID, position: int = 0) -> dict[str, Any]:
    """Return the columns of a step of the system price that a price of a source has."""
    return {
        "price": price,
        "price_text": price,
        "price_status": "Priced",
        "source_id": source,
        "position": position,
        "is_fallback": position > 0,
        "effective_from": effective_from,
        "is_partial": False,
        "derivation": "Direct",
    }


def add_pricing(session: Session, principal: Principal) -> None:
    """Store the example items, sources, supported pairs and manual prices of a tenant."""
    times = {"created_at": MADE_AT, "updated_at": MADE_AT}
    items = {
        symbol: add_item(
            session, principal.tenant_id, symbol, name, item_class, suffix=f"y{number:02d}", made_at=MADE_AT
        )
        for number, (symbol, name, item_class) in enumerate(
            (
                ("USD", "US dollar", "Currency"),
                (EXAMPLE_SYMBOL, "Bitcoin", "Cryptocurrency"),
                ("FUND1", "First fund", "Fund"),
                (EXAMPLE_UNUSED_SYMBOL, "Gold", "Commodity"),
            )
        )
    }
    sources = [
        ManualSource(id=source_id, tenant_id=principal.tenant_id, name=name, **times)
        for source_id, name in ((EXAMPLE_SOURCE_ID, "Fund desk"), (EXAMPLE_UNUSED_SOURCE_ID, "Old desk"))
    ]
    session.add_all(sources)
    session.add(
        SourceSwitch(tenant_id=principal.tenant_id, source_id=EXAMPLE_SOURCE_ID, is_enabled=True, changed_at=MADE_AT)
    )
    session.flush()
    session.add(MappingSymbol(item_key=items[EXAMPLE_SYMBOL], source_id="src_kraken", symbol="XXBT"))
    pairs = [
        SupportedPair(
            id=pair_id,
            tenant_id=principal.tenant_id,
            source_key=sources[0].source_key,
            priced_as_key=items["FUND1"],
            priced_in_key=items["USD"],
            price_type=price_type,
            created_at=MADE_AT,
        )
        for pair_id, price_type in ((EXAMPLE_SUPPORTED_PAIR_ID, "NAV"), (EXAMPLE_UNUSED_SUPPORTED_PAIR_ID, "Trade"))
    ]
    session.add_all(pairs)
    session.flush()
    session.add_all(
        ManualPrice(
            id=f"price_01k9zr3m5e8v2c7q4w6t1x0y{number:02d}",
            supported_pair_key=pairs[0].supported_pair_key,
            price=price,
            effective_from=effective_from,
            revision=revision,
            note=note,
            created_by=principal.key_id,
            created_at=MADE_AT,
        )
        for number, (price, effective_from, revision, note) in enumerate(
            (
                ("101.25", datetime(2026, 1, 31, tzinfo=UTC), 1, None),
                ("101.5", datetime(2026, 1, 31, tzinfo=UTC), 2, "Audited"),
                ("102", datetime(2026, 2, 28, tzinfo=UTC), 1, None),
            )
        )
    )
    add_pair(
        session,
        principal.tenant_id,
        LINKED_PAIR_KEY,
        EXAMPLE_PAIR_ID,
        items["FUND1"],
        [EXAMPLE_SOURCE_ID],
        price_type="NAV",
        max_age="P35D",
        max_age_seconds=35 * 86_400,
        made_at=MADE_AT,
    )
    _add_market_pair(session, principal, items[EXAMPLE_SYMBOL])


def _add_market_pair(session: Session, principal: Principal, priced_as_key: int) -> None:
    """Store the pair, its discovery, and the review of one of its prices."""
    add_pair(
        session,
        principal.tenant_id,
        MARKET_PAIR_KEY,
        EXAMPLE_MARKET_PAIR_ID,
        priced_as_key,
        [SOURCE_ID],
        max_age="P1D",
        max_age_seconds=86_400,
        made_at=MADE_AT,
        max_jump="25",
    )
    session.add(
        PriceReview(
            pair_key=MARKET_PAIR_KEY,
            price_id=ACCEPTED_PRICE_ID,
            decision="Accepted",
            decided_by=principal.key_id,
            decided_at=MADE_AT,
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
            created_at=MADE_AT,
            started_at=MADE_AT,
            reported_at=MADE_AT,
        )
    )


def source_rows(tenant_id: str) -> dict[str, list[dict[str, Any]]]:
    """Return the rows of the marts about sources and their markets."""
    markets = (("XXBTZUSD", "BTC", "USD", True), ("XETHZUSD", "ETH", "USD", True), ("XBTUSDT", "BTC", "USDT", False))
    codes = {"BTC": "XXBT", "ETH": "XETH", "USD": "ZUSD", "USDT": "USDT"}
    return {
        "price_sources": [
            {
                "tenant_id": tenant_id,
                "source_id": source_id,
                "name": name,
                "kind": kind,
                "is_enabled": True,
                "polled_at": polled_at,
                "poll_error": error,
            }
            for source_id, name, kind, polled_at, error in (
                (EXAMPLE_SOURCE_ID, "Fund desk", "Manual", None, None),
                ("src_coinbase", "Coinbase", "Preconfigured", LISTED_AT, "it answered 503 four times"),
                ("src_gemini", "Gemini", "Preconfigured", None, None),
                ("src_kraken", "Kraken", "Preconfigured", LISTED_AT, None),
            )
        ],
        "price_markets": [
            {
                "source_id": "src_kraken",
                "market_id": market_id,
                "base": base,
                "quote": quote,
                "base_code": codes[base],
                "quote_code": codes[quote],
                "is_active": is_active,
                "last_listed_at": LISTED_AT,
            }
            for market_id, base, quote, is_active in markets
        ],
        "price_market_lists": [
            {"source_id": "src_kraken", "collected_at": LISTED_AT, "market_count": 2, "error": None},
            {"source_id": "src_coinbase", "collected_at": None, "market_count": 0, "error": "it answered 503"},
        ],
    }


def pair_rows(tenant_id: str) -> dict[str, list[dict[str, Any]]]:
    """Return the rows of the marts about the example pair and its prices, the manual ones."""
    keys = {"tenant_id": tenant_id, "pair_key": LINKED_PAIR_KEY}
    source = {"source_id": EXAMPLE_SOURCE_ID, "position": 0, "derivation": "Manual"}
    january, february, april = "2026-01-31", "2026-02-28", "2026-04-04 00:00:00.000001"
    entered = [(january, NAV, "2026-03-07 00:00:00.000001"), (february, "102", april)]
    return {
        "price_pairs": [
            keys
            | {
                "pair_id": EXAMPLE_PAIR_ID,
                "priced_as": "FUND1",
                "priced_in": "USD",
                "price_type": "NAV",
                "max_age_seconds": 35 * 86_400,
            }
        ],
        "price_routes": [
            keys | source | {"status": "Resolved"},
            keys
            | {"pair_key": MARKET_PAIR_KEY, "source_id": SOURCE_ID, "position": 0}
            | {"status": "Resolved", "derivation": "Direct"},
        ],
        "source_prices": [
            keys
            | source
            | {
                "effective_from": effective_from,
                "price": price,
                "price_text": price,
                "is_partial": False,
                "fresh_until": fresh_until,
                "state": "Used",
                "price_id": f"price_{number}",
            }
            for number, (effective_from, price, fresh_until) in enumerate(entered)
        ],
        "system_prices": [
            *(
                keys | step_row(price, effective_from) | source | {"valid_from": effective_from, "valid_until": until}
                for (effective_from, price, _), until in zip(entered, (february, april), strict=True)
            ),
            keys | {"valid_from": april, "price_status": "StalePrice"},
        ],
    }


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
