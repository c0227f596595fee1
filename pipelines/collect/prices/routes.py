"""How every pair is priced by each of its sources: what `control.pricing.matching` says of what the warehouse knows."""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import NamedTuple

import duckdb

from control.pricing.definitions import PriceSource
from control.pricing.matching import (
    ItemName,
    MappingStatus,
    MarketIndex,
    Offer,
    Route,
    Unresolved,
    Wanted,
    resolve,
)
from pipelines.load.prices import RouteRow, replace_routes


@dataclass(frozen=True, slots=True)
class _Listed:
    market_id: str
    base: str
    quote: str
    base_code: str
    quote_code: str
    is_active: bool


class _Pair(NamedTuple):
    pair_key: int
    tenant_id: str
    priced_as: str
    priced_in: str
    bridge: str | None
    price_type: str
    allow_inverse: bool


def update_routes(connection: duckdb.DuckDBPyConnection, sources: Mapping[str, PriceSource], batch_id: int) -> int:
    """Decide the route of every pair at each of its sources; return for how many pairs it is another one now.

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
    """What every source has, and what tenants call it there."""

    def __init__(self, connection: duckdb.DuckDBPyConnection, sources: Mapping[str, PriceSource]) -> None:
        self._sources = sources
        self._mapped = {
            (tenant_id, symbol, source_id): mapped
            for tenant_id, symbol, source_id, mapped in connection.execute(
                """
                select items.tenant_id, items.symbol, mappings.source_id, mappings.symbol
                from raw.control_mapping_symbols as mappings
                inner join raw.control_priced_items as items on mappings.item_key = items.item_key
                """
            ).fetchall()
        }
        self._manual = self._manual_offers(connection)
        markets: defaultdict[str, list[_Listed]] = defaultdict(list)
        for source_id, *market in connection.execute(
            """
            select source_id, market_id, base, quote, base_code, quote_code, is_active
            from raw.markets
            where source_id in (select source_id from raw.control_pair_sources)
            """
        ).fetchall():
            markets[source_id].append(_Listed(*market))
        self._offers = {id_: self._offer(source, markets.get(id_)) for id_, source in sources.items()}
        # Where only markets are left that trade no more, what they were goes on counting for what is stored.
        self._former = {
            id_: self._offer(sources[id_], [replace(market, is_active=True) for market in listed])
            for id_, listed in markets.items()
            if id_ in sources
        }

    @staticmethod
    def _manual_offers(connection: duckdb.DuckDBPyConnection) -> dict[str, Offer]:
        supported: defaultdict[str, dict[tuple[str, str, str], int]] = defaultdict(dict)
        for key, source_id, *pair in connection.execute(
            "select supported_pair_key, source_id, priced_as, priced_in, price_type from raw.control_supported_pairs"
        ).fetchall():
            supported[source_id][pair[0], pair[1], pair[2]] = key
        names = connection.execute("select source_id, name from raw.control_price_sources where kind = 'Manual'")
        return {id_: Offer(name, True, supported_pairs=supported.get(id_, {})) for id_, name in names.fetchall()}

    @staticmethod
    def _offer(source: PriceSource, markets: Iterable[_Listed] | None) -> Offer:
        types = frozenset((*source.price_types, *source.history_types))
        return Offer(source.name, False, types, None if markets is None else MarketIndex(markets))

    def route(self, pair: _Pair, source_id: str, position: int) -> list[RouteRow]:
        """The rows of one pair at one of its sources."""
        offer = self._manual.get(source_id) or self._offers.get(source_id) or Offer(source_id, False)
        wanted = Wanted(
            self._name(pair, pair.priced_as, source_id),
            self._name(pair, pair.priced_in, source_id),
            pair.price_type,
            pair.allow_inverse,
            None if pair.bridge is None else self._name(pair, pair.bridge, source_id),
        )
        found = resolve(wanted, offer)
        if isinstance(found, Route):
            return _route_rows(pair, source_id, position, found, found.status, None)
        if found.status is MappingStatus.MARKET_GONE:
            former = resolve(wanted, self._former[source_id])
            if isinstance(former, Route):
                return _route_rows(pair, source_id, position, former, found.status, found.detail)
        return [_unresolved_row(pair, source_id, position, found)]

    def _name(self, pair: _Pair, symbol: str, source_id: str) -> ItemName:
        return ItemName(symbol, self._mapped.get((pair.tenant_id, symbol, source_id)))


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
