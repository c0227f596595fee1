"""Checks of a pair before it is stored: its items, its sources, and whether these have its price."""

from collections.abc import Mapping, Sequence
from decimal import Decimal

from sqlalchemy.orm import Session

from control.access import Principal
from control.errors import Conflict, Invalid
from control.pricing import items, sources
from control.pricing.decimals import positive_decimal
from control.pricing.definitions import PriceSource
from control.pricing.items import ItemRow
from control.pricing.matching import MappingStatus, Unresolved
from control.pricing.routes import MarketsOf, PairQuestion, SourceRoute, find_routes

MOST_SOURCES = 20


def find_item(session: Session, principal: Principal, field: str, symbol: str) -> ItemRow:
    """Return the tenant's item of a symbol, which stays until the transaction ends.

    Raises:
        Invalid: on the field, there is none.
    """
    item = items.find(session, principal.tenant_id, symbol, is_kept=True)
    if item is None:
        raise Invalid(
            field, "unknown-symbol", f"there is no priced item {symbol[:64]!r}; POST it to /v1/priced-items first"
        )
    return item


def find_bridge(session: Session, principal: Principal, symbol: str, priced_as: str, priced_in: str) -> ItemRow:
    """Return the item of a bridge, as `find_item`; it must be a third one.

    Raises:
        Invalid: on 'bridge'.
    """
    if symbol in (priced_as, priced_in):
        raise Invalid("bridge", "same-item", f"bridge must be an item other than {priced_as} and {priced_in}")
    return find_item(session, principal, "bridge", symbol)


def guard_text(field: str, percent: Decimal | None) -> str | None:
    """Return the limit of a guard as it is stored; None is no guard.

    Raises:
        Invalid: on the field.
    """
    return None if percent is None else positive_decimal(field, percent)


def check_sources(
    session: Session,
    principal: Principal,
    definitions: Mapping[str, PriceSource],
    source_ids: Sequence[str],
    kept: Sequence[str] = (),
) -> None:
    """Check that sources are there once, and, but for the kept ones, exist and are enabled.

    Raises:
        Invalid: on 'priceSources'.
        Conflict: one is disabled; names its id.
    """
    if not 1 <= len(source_ids) <= MOST_SOURCES:
        raise Invalid("priceSources", "out-of-range", f"priceSources must name 1 to {MOST_SOURCES} sources")
    for place, source_id in enumerate(source_ids):
        if source_ids.count(source_id) > 1:
            raise Invalid("priceSources", "repeated-source", f"priceSources names {source_id[:100]!r} more than once")
        if source_id in kept:
            continue
        source = sources.find(session, principal.tenant_id, definitions, source_id, is_kept=True)
        if source is None:
            raise Invalid(
                "priceSources",
                "unknown-source",
                f"there is no price source {source_id[:100]!r}; GET /v2/price-sources lists all",
            )
        if not source.is_enabled:
            raise Conflict(
                "price-source-disabled",
                f"{source.name} is disabled; PATCH /v2/price-sources/{source_id}/enable, or leave it out",
                source_id,
                fields=[f"priceSources/{place}"],
            )


def check_change(
    session: Session,
    principal: Principal,
    definitions: Mapping[str, PriceSource],
    markets_of: MarketsOf,
    before: PairQuestion,
    after: PairQuestion,
) -> None:
    """Refuse a change after which a source that is new, or had a market, has none.

    Raises:
        Invalid: on 'priceSources' or 'priceType'.
        Conflict: several assets have the symbol there.
    """
    old, new = find_routes(session, principal.tenant_id, definitions, [before, after], markets_of)
    lost = {route.source_id for route in old if isinstance(route.outcome, Unresolved)}
    for place, route in enumerate(new):
        if route.source_id not in lost:
            require_route(route, place, definitions)


def require_route(route: SourceRoute, place: int, definitions: Mapping[str, PriceSource]) -> None:
    """Pass when a source has the pair's price, or may have once its market list is collected.

    Args:
        route: of the pair at the source.
        place: of the source among those of the pair; the first one is 0.
        definitions: the preconfigured sources.

    Raises:
        Invalid: on 'priceSources' or 'priceType', with the symbols of the search and the fix.
        Conflict: several assets have the symbol there; names them.
    """
    outcome = route.outcome
    if not isinstance(outcome, Unresolved) or outcome.status is MappingStatus.PENDING:
        return
    if outcome.status is MappingStatus.AMBIGUOUS:
        raise Conflict("ambiguous-market", outcome.detail, fields=[f"priceSources/{place}"])
    if outcome.status is MappingStatus.UNSUPPORTED:
        raise Invalid("priceType", "unsupported-type", outcome.detail)
    fix = f"POST it to /v2/price-sources/{route.source_id}/pairs first"
    if route.source_id in definitions:
        fix = "map the symbols by PUT /v1/priced-items/{symbol}/mapping-symbols, or leave the source out"
    raise Invalid("priceSources", "no-market", f"{outcome.detail}; {fix}")
