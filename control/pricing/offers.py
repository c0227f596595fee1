"""What `matching` is asked, put together from plain rows, which the control store and the warehouse both have."""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from typing import Protocol

from control.pricing.definitions import PriceSource
from control.pricing.matching import ItemName, Market, MarketIndex, Offer, Wanted


class PairRules(Protocol):
    """The part of a pair that decides its routes; symbols of the tenant's items."""

    @property
    def priced_as(self) -> str: ...
    @property
    def priced_in(self) -> str: ...
    @property
    def price_type(self) -> str: ...
    @property
    def allow_inverse(self) -> bool: ...
    @property
    def bridge(self) -> str | None: ...


def wanted_of(pair: PairRules, source_id: str, mapped: Mapping[tuple[str, str], str]) -> Wanted:
    """The search of a pair at one source; `mapped` are the mapping symbols of its tenant by source and item."""

    def name(symbol: str) -> ItemName:
        return ItemName(symbol, mapped.get((source_id, symbol)))

    return Wanted(
        name(pair.priced_as),
        name(pair.priced_in),
        pair.price_type,
        pair.allow_inverse,
        None if pair.bridge is None else name(pair.bridge),
    )


def preconfigured_offer(source: PriceSource, markets: MarketIndex | Iterable[Market] | None) -> Offer:
    """The offer of a preconfigured source; without markets while its list is not collected."""
    index = markets if isinstance(markets, MarketIndex | None) else MarketIndex(markets)
    return Offer(source.name, False, frozenset((*source.price_types, *source.history_types)), index)


def undefined_offer(source_id: str) -> Offer:
    """The empty offer of a source that is not defined any more."""
    return Offer(source_id, False)


def manual_offers(
    sources: Iterable[tuple[str, str]], supported: Iterable[tuple[str, int, str, str, str]]
) -> dict[str, Offer]:
    """The offers of manual sources, by id.

    Args:
        sources: id and name of each.
        supported: source, key, symbols and price type of their supported pairs.
    """
    pairs: defaultdict[str, dict[tuple[str, str, str], int]] = defaultdict(dict)
    for source_id, key, priced_as, priced_in, price_type in supported:
        pairs[source_id][priced_as, priced_in, price_type] = key
    return {source_id: Offer(name, True, supported_pairs=pairs[source_id]) for source_id, name in sources}
