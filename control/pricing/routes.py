"""The routes of configured pairs: brings what tenants configured and what sources list to `matching`."""

from collections import defaultdict
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass

from sqlalchemy import select
from sqlalchemy.orm import Session, aliased

from control.models import ManualSource, MappingSymbol, PricedItem, SupportedPair
from control.pricing.definitions import PriceSource
from control.pricing.matching import MappingStatus, MarketIndex, Offer, Route, Unresolved, resolve
from control.pricing.offers import manual_offers, preconfigured_offer, undefined_offer, wanted_of

MarketsOf = Callable[[Mapping[str, Collection[str]]], Mapping[str, MarketIndex]]
"""Gives of each source, by id, the listed markets with some of these codes; a list not collected is left out."""

_RANKS = {status: rank for rank, status in enumerate(MappingStatus)}


@dataclass(frozen=True, slots=True)
class PairQuestion:
    """The part of a pair that decides its routes; symbols of the tenant's items, ids of sources in priority order."""

    priced_as: str
    priced_in: str
    price_type: str
    price_sources: tuple[str, ...]
    allow_inverse: bool
    bridge: str | None

    @property
    def symbols(self) -> tuple[str, ...]:
        """All items that it names."""
        return tuple(symbol for symbol in (self.priced_as, self.priced_in, self.bridge) if symbol is not None)


@dataclass(frozen=True, slots=True)
class SourceRoute:
    """The route of a pair at one of its sources, or why there is none."""

    source_id: str
    outcome: Route | Unresolved

    @property
    def detail(self) -> str | None:
        """Why there is no route, for people."""
        return self.outcome.detail if isinstance(self.outcome, Unresolved) else None


def find_routes(
    session: Session,
    tenant_id: str,
    definitions: Mapping[str, PriceSource],
    questions: Sequence[PairQuestion],
    markets_of: MarketsOf,
) -> list[tuple[SourceRoute, ...]]:
    """Return the routes of pairs, in their order; of each in the order of its sources.

    Args:
        session: a transaction.
        tenant_id: the tenant of the pairs.
        definitions: the preconfigured sources.
        questions: the pairs.
        markets_of: asked once for all of them.
    """
    mapped = _mapping_symbols(session, tenant_id, {symbol for question in questions for symbol in question.symbols})
    used = {source_id for question in questions for source_id in question.price_sources}
    manual = _manual_offers(session, tenant_id, used - definitions.keys())
    wanted = [
        [wanted_of(question, source_id, mapped) for source_id in question.price_sources] for question in questions
    ]
    texts: defaultdict[str, set[str]] = defaultdict(set)
    for question, asked in zip(questions, wanted, strict=True):
        for source_id, one in zip(question.price_sources, asked, strict=True):
            if source_id in definitions:
                texts[source_id] |= one.texts
    markets = markets_of(texts) if texts else {}
    offers = {
        **manual,
        **{source_id: preconfigured_offer(definitions[source_id], markets.get(source_id)) for source_id in texts},
    }
    return [
        tuple(
            SourceRoute(source_id, resolve(one, offers.get(source_id) or undefined_offer(source_id)))
            for source_id, one in zip(question.price_sources, asked, strict=True)
        )
        for question, asked in zip(questions, wanted, strict=True)
    ]


def worst_status(routes: Sequence[SourceRoute]) -> MappingStatus:
    """Return the worst status of a pair's sources."""
    return max((route.outcome.status for route in routes), key=_RANKS.__getitem__)


def _mapping_symbols(session: Session, tenant_id: str, symbols: Collection[str]) -> dict[tuple[str, str], str]:
    """Return mapping symbols by source and the item's own symbol."""
    found = session.execute(
        select(PricedItem.symbol, MappingSymbol.source_id, MappingSymbol.symbol)
        .join(MappingSymbol, MappingSymbol.item_key == PricedItem.item_key)
        .where(PricedItem.tenant_id == tenant_id, PricedItem.removed_at.is_(None), PricedItem.symbol.in_(symbols))
    )
    return {(source_id, symbol): text for symbol, source_id, text in found}


def _manual_offers(session: Session, tenant_id: str, source_ids: Collection[str]) -> dict[str, Offer]:
    if not source_ids:
        return {}
    priced_as, priced_in = aliased(PricedItem), aliased(PricedItem)
    sources = session.execute(
        select(ManualSource.id, ManualSource.name).where(
            ManualSource.tenant_id == tenant_id, ManualSource.removed_at.is_(None), ManualSource.id.in_(source_ids)
        )
    )
    supported = session.execute(
        select(
            ManualSource.id,
            SupportedPair.supported_pair_key,
            priced_as.symbol,
            priced_in.symbol,
            SupportedPair.price_type,
        )
        .join(SupportedPair, SupportedPair.source_key == ManualSource.source_key)
        .join(priced_as, priced_as.item_key == SupportedPair.priced_as_key)
        .join(priced_in, priced_in.item_key == SupportedPair.priced_in_key)
        .where(
            ManualSource.tenant_id == tenant_id,
            ManualSource.id.in_(source_ids),
            SupportedPair.removed_at.is_(None),
        )
    )
    return manual_offers(sources, supported)
