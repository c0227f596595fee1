"""Routes of every pair at each of its sources, resolved by `control.pricing.matching` from the warehouse's data."""

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import replace
from typing import NamedTuple

import duckdb

from control.pricing.definitions import PriceSource
from control.pricing.matching import MappingStatus, Route, Unresolved, resolve
from control.pricing.offers import manual_offers, preconfigured_offer, undefined_offer, wanted_of
from pipelines.extract.prices.protocol import Market
from pipelines.prices.store import RouteRow, replace_routes


class _Pair(NamedTuple):
    pair_key: int
    tenant_id: str
    priced_as: str
    priced_in: str
    bridge: str | None
    price_type: str
    allow_inverse: bool


def update_routes(connection: duckdb.DuckDBPyConnection, sources: Mapping[str, PriceSource], batch_id: int) -> int:
    """Resolve the route of every pair at each of its sources; return the number of pairs with a changed route.

    Args:
        connection: the open warehouse, after the control snapshot and the market lists.
        sources: the definitions in force, by id.
        batch_id: the cycle's batch.
    """
    asked = connection.execute(
        """
        select
            pairs.pair_key, pairs.tenant_id, pairs.priced_as, pairs.priced_in, pairs.bridge, pairs.price_type,
            pairs.allow_inverse, asked.source_id, asked.position
        from raw.control_pair_sources as asked
        inner join raw.control_price_pairs as pairs on asked.pair_key = pairs.pair_key
        order by pairs.pair_key, asked.position
        """
    ).fetchall()
    if not asked:
        return replace_routes(connection, [], batch_id)
    offers = _Offers(connection, sources)
    rows = [row for *pair, source_id, position in asked for row in offers.route(_Pair(*pair), source_id, position)]
    return replace_routes(connection, rows, batch_id)


class _Offers:
    """The offer of every source, with the tenants' own symbols for it."""

    def __init__(self, connection: duckdb.DuckDBPyConnection, sources: Mapping[str, PriceSource]) -> None:
        self._mapped: defaultdict[str, dict[tuple[str, str], str]] = defaultdict(dict)
        for tenant_id, symbol, source_id, mapped in connection.execute(
            """
            select items.tenant_id, items.symbol, mappings.source_id, mappings.symbol
            from raw.control_mapping_symbols as mappings
            inner join raw.control_priced_items as items on mappings.item_key = items.item_key
            """
        ).fetchall():
            self._mapped[tenant_id][source_id, symbol] = mapped
        supported = connection.execute(
            "select source_id, supported_pair_key, priced_as, priced_in, price_type from raw.control_supported_pairs"
        ).fetchall()
        manual = connection.execute("select source_id, name from raw.control_price_sources where kind = 'Manual'")
        self._offers = manual_offers(manual.fetchall(), supported)
        markets: defaultdict[str, list[Market]] = defaultdict(list)
        for source_id, *market in connection.execute(
            """
            select source_id, market_id, base, quote, base_code, quote_code, is_active
            from raw.markets
            where source_id in (select source_id from raw.control_pair_sources)
            """
        ).fetchall():
            markets[source_id].append(Market(*market))
        self._offers |= {id_: preconfigured_offer(source, markets.get(id_)) for id_, source in sources.items()}
        # If only inactive markets are left, their former routes still apply to stored prices.
        self._former = {
            id_: preconfigured_offer(sources[id_], [replace(market, is_active=True) for market in listed])
            for id_, listed in markets.items()
            if id_ in sources
        }

    def route(self, pair: _Pair, source_id: str, position: int) -> list[RouteRow]:
        """Return the route rows of one pair at one of its sources."""
        offer = self._offers.get(source_id) or undefined_offer(source_id)
        wanted = wanted_of(pair, source_id, self._mapped[pair.tenant_id])
        found = resolve(wanted, offer)
        if isinstance(found, Route):
            return _route_rows(pair, source_id, position, found, found.status, None)
        if found.status is MappingStatus.MARKET_GONE:
            former = resolve(wanted, self._former[source_id])
            if isinstance(former, Route):
                return _route_rows(pair, source_id, position, former, found.status, found.detail)
        return [_unresolved_row(pair, source_id, position, found)]


def _route_rows(
    pair: _Pair,
    source_id: str,
    position: int,
    route: Route,
    status: MappingStatus,
    detail: str | None,
) -> list[RouteRow]:
    common = (pair.pair_key, source_id, position)
    if route.supported_pair_key is not None:
        return [RouteRow(*common, status, route.derivation, detail, 1, None, None, False, route.supported_pair_key)]
    return [
        RouteRow(
            *common, status, route.derivation, detail, number, leg.market_id, leg.price_type, leg.is_inverted, None
        )
        for number, leg in enumerate(route.legs, start=1)
    ]


def _unresolved_row(pair: _Pair, source_id: str, position: int, found: Unresolved) -> RouteRow:
    return RouteRow(pair.pair_key, source_id, position, found.status, None, found.detail, 0, None, None, False, None)
