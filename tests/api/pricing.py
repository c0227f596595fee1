"""The pricing part of the example data: items, manual sources, supported pairs, and manual prices.

The market list of `src_kraken` has BTC (code XXBT) and ETH in USD, and a delisted market BTC in USDT. The list of
`src_coinbase` could not be collected.
"""

from datetime import UTC, datetime
from typing import Any

from sqlalchemy.orm import Session

from api.examples import (
    EXAMPLE_PAIR_ID,
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
    PairSource,
    PricedItem,
    PricePair,
    SourceSwitch,
    SupportedPair,
)
from tests.api.market_pair import MARKET_PAIR_KEY, SOURCE_ID

MADE_AT = datetime(2026, 1, 15, tzinfo=UTC)
NAV = "101.5"  # price of the linked pair in February 2026
LINKED_PAIR_KEY = 1  # key of EXAMPLE_PAIR_ID: FUND1 in USD, NAV, from the first manual source
LISTED_AT = datetime(2026, 2, 1, 0, 30, tzinfo=UTC).replace(tzinfo=None)  # as the marts store it


def add_pricing(session: Session, principal: Principal) -> None:
    """Store the example items, sources, supported pairs and manual prices of a tenant."""
    times = {"created_at": MADE_AT, "updated_at": MADE_AT}
    items: dict[str, PricedItem] = {}
    for number, (symbol, name, item_class) in enumerate(
        (
            ("USD", "US dollar", "Currency"),
            (EXAMPLE_SYMBOL, "Bitcoin", "Cryptocurrency"),
            ("FUND1", "First fund", "Fund"),
            (EXAMPLE_UNUSED_SYMBOL, "Gold", "Commodity"),
        )
    ):
        items[symbol] = PricedItem(
            id=f"item_01k9zr3m5e8v2c7q4w6t1x0y{number:02d}",
            tenant_id=principal.tenant_id,
            symbol=symbol,
            name=name,
            item_class=item_class,
            **times,
        )
        session.add(items[symbol])
    sources = [
        ManualSource(id=source_id, tenant_id=principal.tenant_id, name=name, **times)
        for source_id, name in ((EXAMPLE_SOURCE_ID, "Fund desk"), (EXAMPLE_UNUSED_SOURCE_ID, "Old desk"))
    ]
    session.add_all(sources)
    session.add(
        SourceSwitch(tenant_id=principal.tenant_id, source_id=EXAMPLE_SOURCE_ID, is_enabled=True, changed_at=MADE_AT)
    )
    session.flush()
    session.add(MappingSymbol(item_key=items[EXAMPLE_SYMBOL].item_key, source_id="src_kraken", symbol="XXBT"))
    pairs = [
        SupportedPair(
            id=pair_id,
            tenant_id=principal.tenant_id,
            source_key=sources[0].source_key,
            priced_as_key=items["FUND1"].item_key,
            priced_in_key=items["USD"].item_key,
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
    session.add(
        PricePair(
            pair_key=LINKED_PAIR_KEY,
            id=EXAMPLE_PAIR_ID,
            tenant_id=principal.tenant_id,
            priced_as_key=items["FUND1"].item_key,
            priced_in_key=items["USD"].item_key,
            price_type="NAV",
            max_age="P35D",
            max_age_seconds=35 * 86_400,
            allow_inverse=False,
            **times,
        )
    )
    session.flush()
    session.add(PairSource(pair_key=LINKED_PAIR_KEY, position=0, source_id=EXAMPLE_SOURCE_ID))


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
                keys
                | source
                | {
                    "valid_from": effective_from,
                    "valid_until": until,
                    "price": price,
                    "price_text": price,
                    "price_status": "Priced",
                    "is_fallback": False,
                    "effective_from": effective_from,
                    "is_partial": False,
                }
                for (effective_from, price, _), until in zip(entered, (february, april), strict=True)
            ),
            keys | {"valid_from": april, "price_status": "StalePrice"},
        ],
    }
