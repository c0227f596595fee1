"""Pairs in answers: configuration from the control store, markets and newest prices from the marts."""

from collections.abc import Collection, Mapping, Sequence
from datetime import datetime

from sqlalchemy.orm import Session

from api.engine.serving import Snapshot
from api.http.structs import filled
from api.prices.reading import latest_prices
from api.prices.rows import MarketListRow, MarketRow
from api.prices.schemas import pairs as price_pairs
from api.prices.schemas.prices import LatestPrice
from control.pricing.definitions import PriceSource
from control.pricing.matching import MarketIndex, Route
from control.pricing.pairs import PairRow
from control.pricing.price_types import PriceType
from control.pricing.routes import MarketsOf, SourceRoute, find_routes, worst_status


def markets_in(snapshot: Snapshot, tenant_id: str) -> MarketsOf:
    """Return a function that looks up markets in the lists that a published version has for a tenant."""

    def markets_of(asked: Mapping[str, Collection[str]]) -> dict[str, MarketIndex]:
        source_ids, codes = sorted(asked), sorted({code for texts in asked.values() for code in texts})
        lists = snapshot.rows("collected_market_lists", MarketListRow, source_ids=source_ids, tenant_id=tenant_id)
        markets: dict[str, list[MarketRow]] = {row.source_id: [] for row in lists}
        for row in snapshot.rows("price_markets", MarketRow, source_ids=list(markets), codes=codes):
            markets[row.source_id].append(row)
        return {source_id: MarketIndex(listed) for source_id, listed in markets.items()}

    return markets_of


def to_pairs(
    session: Session, snapshot: Snapshot, definitions: Mapping[str, PriceSource], rows: Sequence[PairRow], now: datetime
) -> list[price_pairs.Pair]:
    """Convert pairs of one tenant to structs of answers at an instant, in their order."""
    if not rows:
        return []
    tenant_id = rows[0].tenant_id
    markets_of = markets_in(snapshot, tenant_id)
    routes = find_routes(session, tenant_id, definitions, [row.question for row in rows], markets_of)
    latest = latest_prices(snapshot, tenant_id, [row.pair_key for row in rows], now)
    return [_to_pair(row, found, latest.get(row.pair_key)) for row, found in zip(rows, routes, strict=True)]


def _to_pair(pair: PairRow, routes: Sequence[SourceRoute], latest: LatestPrice | None) -> price_pairs.Pair:
    return filled(
        price_pairs.Pair,
        pair,
        mapping_status=worst_status(routes).value,
        mappings=[_to_mapping(route) for route in routes],
        latest_price=latest,
    )


def _to_mapping(route: SourceRoute) -> price_pairs.PairMapping:
    found = route.outcome if isinstance(route.outcome, Route) else None
    return price_pairs.PairMapping(
        price_source=route.source_id,
        status=route.outcome.status.value,
        derivation=None if found is None else found.derivation.value,
        markets=[]
        if found is None
        else [
            price_pairs.PairMarket(id=leg.market_id, price_type=PriceType(leg.price_type), is_inverted=leg.is_inverted)
            for leg in found.legs
        ],
        detail=route.detail,
    )
