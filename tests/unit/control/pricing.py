"""Shared data of tests of pairs: two preconfigured sources with market lists, and a tenant's items."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from control.access import Principal
from control.pricing import items, pairs, sources
from control.pricing.definitions import PriceSource
from control.pricing.items import MappingSymbolPut, MappingSymbolsPut, PricedItemCreate
from control.pricing.matching import MarketIndex
from control.pricing.pairs import PairCreate, PairPatch, PairRow
from control.pricing.sources import PriceSourceCreate
from tests.unit.control.conftest import World

NOON = datetime(2026, 5, 1, 12, tzinfo=UTC)


def source(name: str, types: tuple[str, ...], history: tuple[str, ...]) -> PriceSource:
    """Return a definition."""
    return PriceSource(
        id=f"src_{name}",
        name=name.title(),
        adapter="ccxt",
        exchange=name,
        network=None,
        price_types=types,
        history_types=history,
        granularities=("1m", "1d") if history else (),
        requests_per_second=1,
        timeout_seconds=1,
        max_attempts=1,
        poll_seconds=1,
        page_candles=None,
        history_candles=None,
    )


DEFINITIONS = {
    definition.id: definition
    for definition in (
        source("kraken", ("Ask", "Bid", "Trade"), ("Trade",)),
        source("gemini", ("Bid", "Trade"), ()),
        source("fresh", ("Trade",), ("Trade",)),
    )
}


@dataclass(frozen=True)
class Listed:
    """A market of a list."""

    market_id: str
    base: str
    quote: str
    base_code: str
    quote_code: str
    is_active: bool = True


MARKETS = {
    "src_kraken": [
        Listed("XXBTZUSD", "BTC", "USD", "XXBT", "ZUSD"),
        Listed("ZEURZUSD", "EUR", "USD", "ZEUR", "ZUSD"),
        Listed("LUNAUSD", "LUNA", "USD", "LUNA", "ZUSD"),
        Listed("LUNA2USD", "LUNA", "USD", "LUNA2", "ZUSD"),
        Listed("OLDUSD", "OLD", "USD", "OLD", "ZUSD", is_active=False),
    ],
    "src_gemini": [Listed("btcusd", "BTC", "USD", "btc", "usd"), Listed("btceur", "BTC", "EUR", "btc", "eur")],
}
"""Published lists; that of src_fresh is not collected."""


def markets_of(asked: Mapping[str, Collection[str]]) -> dict[str, MarketIndex]:
    """Return the lists, filtered by codes as the API does."""
    return {
        source_id: MarketIndex(
            market
            for market in MARKETS[source_id]
            if {market.base, market.base_code} & set(texts) and {market.quote, market.quote_code} & set(texts)
        )
        for source_id, texts in asked.items()
        if source_id in MARKETS
    }


def add_items(world: World, principal: Principal, *symbols: str) -> None:
    """Store items."""
    with world.store.write() as session:
        for symbol in symbols:
            items.create(session, principal, PricedItemCreate(symbol=symbol, name=symbol, class_="Other"), now=NOON)


def map_item(world: World, symbol: str, source_id: str, mapped: str) -> None:
    """Give an item its mapping symbol."""
    with world.store.write() as session:
        items.put_mappings(
            session,
            world.acme,
            DEFINITIONS,
            symbol,
            MappingSymbolsPut(mappings=[MappingSymbolPut(price_source=source_id, symbol=mapped)]),
            now=NOON,
        )


def add_manual(world: World, *, name: str = "Ours", enabled: bool = True) -> str:
    """Store a manual source and return its id."""
    with world.store.write() as session:
        made = sources.create(session, world.acme, PriceSourceCreate(name=name), now=NOON)
        if enabled:
            sources.set_enabled(session, world.acme, DEFINITIONS, made.id, enabled=True, now=NOON)
    return made.id


def make(world: World, pair: str = "BTC/USD", principal: Principal | None = None, **values: Any) -> PairRow:
    """Store a pair 'AS/IN'."""
    priced_as, priced_in = pair.split("/")
    given = {"price_type": "Trade", "price_sources": ["src_kraken"]} | values
    now = given.pop("now", NOON)
    request = PairCreate(priced_as=priced_as, priced_in=priced_in, **given)
    with world.store.write() as session:
        return pairs.create(session, principal or world.acme, DEFINITIONS, markets_of, request, now)


def change(world: World, pair: PairRow, principal: Principal | None = None, **values: Any) -> PairRow:
    """Change a pair."""
    now = values.pop("now", NOON)
    with world.store.write() as session:
        return pairs.update(
            session, principal or world.acme, DEFINITIONS, markets_of, pair.id, PairPatch(**values), now
        )
