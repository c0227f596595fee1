"""Rules of price pairs: what a tenant prices, in what, by which type of price, and from which sources in which order.

What they must satisfy is checked in `pair_checks`; how a price is looked for at a source is in `matching`; which
tokens a pair values in `links`.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from typing import Any

from msgspec import UNSET, UnsetType
from sqlalchemy import ColumnElement, Select, delete, select
from sqlalchemy.exc import IntegrityError
from sqlalchemy.orm import InstrumentedAttribute, Session, aliased

from control import access, audit, ids, quotas, revision
from control.access import Principal, Role
from control.cancellation import cancel_unfinished
from control.clock import utc_now
from control.errors import Conflict, Invalid, NotFound
from control.models import PairSource, PricedItem, PricePair, Subject
from control.pages import After, Page, check_limit, cut_page
from control.pricing.definitions import PriceSource
from control.pricing.durations import read_duration
from control.pricing.in_use import named
from control.pricing.pair_checks import (
    check_change,
    check_sources,
    find_bridge,
    find_item,
    guard_text,
    require_route,
)
from control.pricing.price_types import PAIR_FIELDS, PriceType, check_price_type
from control.pricing.routes import MarketsOf, PairQuestion, find_routes

DEFAULT_PRICED_IN = "USD"
DEFAULT_MAX_AGE = "P1D"
DEFAULT_NAV_MAX_AGE = "P35D"

_PREFIX = "pair_"


@dataclass(frozen=True, slots=True)
class PairRow:
    """A pair as stored; items by symbol, sources by id, the one asked first in front; guards in percent."""

    pair_key: int
    id: str
    tenant_id: str
    priced_as: str
    priced_in: str
    price_type: PriceType
    price_sources: tuple[str, ...]
    max_age: str | None
    max_age_seconds: int | None
    allow_inverse: bool
    bridge: str | None
    max_jump: str | None
    max_deviation: str | None
    created_at: datetime
    updated_at: datetime

    @property
    def question(self) -> PairQuestion:
        """What decides its routes."""
        return PairQuestion(
            self.priced_as, self.priced_in, self.price_type, self.price_sources, self.allow_inverse, self.bridge
        )


def create(
    session: Session,
    principal: Principal,
    definitions: Mapping[str, PriceSource],
    markets_of: MarketsOf,
    *,
    priced_as: str,
    price_type: str,
    price_sources: Sequence[str],
    priced_in: str = DEFAULT_PRICED_IN,
    max_age: str | UnsetType | None = UNSET,
    allow_inverse: bool = False,
    bridge: str | None = None,
    max_jump: Decimal | None = None,
    max_deviation: Decimal | None = None,
    now: datetime | None = None,
) -> PairRow:
    """Store a pair.

    Args:
        session: a write transaction.
        principal: who asks.
        definitions: the preconfigured sources.
        markets_of: the market lists as published; a source whose list is not collected is accepted, pending.
        priced_as: symbol of the item that is priced.
        price_type: one of `PriceType`.
        price_sources: ids of enabled sources, the one to be asked first in front.
        priced_in: symbol of the item that the price is in.
        max_age: greatest age of a price, as `durations.read_duration`; None is no limit, unset a day, NAV 35 days.
        allow_inverse: whether a market the other way round may be used, as 1 / price.
        bridge: symbol of an item over which two markets may be multiplied.
        max_jump: greatest difference from the price before, in percent; None is no guard.
        max_deviation: greatest difference from the other sources' price, in percent; None is no guard.
        now: the moment; None is the clock's.

    Raises:
        Denied: below operator.
        Invalid: on the property by its JSON name.
        Conflict: a source is disabled, several assets have the symbol there, or the tenant has the pair.
    """
    access.require(principal, Role.OPERATOR)
    check_price_type("priceType", price_type)
    base = find_item(session, principal, "pricedAs", priced_as)
    quote = find_item(session, principal, "pricedIn", priced_in)
    if base.item_key == quote.item_key:
        raise Invalid("pricedIn", "same-item", f"{priced_as} cannot be priced in itself; name another item")
    over = None if bridge is None else find_bridge(session, principal, bridge, priced_as, priced_in)
    check_sources(session, principal, definitions, price_sources)
    if max_age is UNSET:
        max_age = DEFAULT_NAV_MAX_AGE if price_type == PriceType.NAV else DEFAULT_MAX_AGE
    moment = now or utc_now()
    pair = PricePair(
        id=ids.new_id(_PREFIX),
        tenant_id=principal.tenant_id,
        priced_as_key=base.item_key,
        priced_in_key=quote.item_key,
        price_type=price_type,
        max_age=max_age,
        max_age_seconds=None if max_age is None else read_duration("maxAge", max_age),
        allow_inverse=allow_inverse,
        bridge_key=None if over is None else over.item_key,
        max_jump=guard_text("maxJump", max_jump),
        max_deviation=guard_text("maxDeviation", max_deviation),
        created_at=moment,
        updated_at=moment,
    )
    try:
        with session.begin_nested():
            session.add(pair)
    except IntegrityError as error:
        existing = session.scalars(
            select(PricePair.id).where(
                PricePair.tenant_id == principal.tenant_id,
                PricePair.priced_as_key == base.item_key,
                PricePair.priced_in_key == quote.item_key,
                PricePair.price_type == price_type,
                PricePair.removed_at.is_(None),
            )
        ).one_or_none()
        if existing is None:
            raise
        detail = f"a pair {priced_as}/{priced_in} of price type {price_type} already exists: {existing}"
        raise Conflict("duplicate-pair", detail, existing, fields=PAIR_FIELDS) from error
    _put_sources(session, pair.pair_key, price_sources)
    row = get(session, principal.tenant_id, pair.id)
    (routes,) = find_routes(session, principal.tenant_id, definitions, [row.question], markets_of)
    for place, route in enumerate(routes):
        require_route(route, place, definitions)
    _record(session, principal, "price-pair.create", None, row, now)
    revision.bump(session, principal.tenant_id)
    quotas.admit_object(session, principal.tenant_id)
    return row


def get(session: Session, tenant_id: str, pair_id: str) -> PairRow:
    """Return one pair of the tenant.

    Raises:
        NotFound: the tenant has none with this id.
    """
    if not ids.is_id(_PREFIX, pair_id):
        raise NotFound("pair", pair_id)
    record = session.execute(_select_rows(tenant_id).where(PricePair.id == pair_id)).one_or_none()
    if record is None:
        raise NotFound("pair", pair_id)
    return _to_rows(session, [record])[0]


def list_page(session: Session, tenant_id: str, limit: int = 50, after: After | None = None) -> Page[PairRow]:
    """Return one page of the tenant's pairs, oldest first (ids sort by creation).

    Raises:
        Invalid: on 'limit'.
    """
    query = _select_rows(tenant_id)
    if after is not None:
        query = query.where(PricePair.id > after.id)
    records = session.execute(query.order_by(PricePair.id).limit(check_limit(limit) + 1)).all()
    return cut_page([(row, After(row.id, row.id)) for row in _to_rows(session, records)], limit)


def of_items(session: Session, tenant_id: str, priced_as: str, priced_in: str) -> list[PairRow]:
    """Return the tenant's pairs of two symbols, one for each price type at most, oldest first."""
    live = select(PricedItem.item_key).where(PricedItem.tenant_id == tenant_id, PricedItem.removed_at.is_(None))
    query = _select_rows(tenant_id).where(
        PricePair.priced_as_key.in_(live.where(PricedItem.symbol == priced_as)),
        PricePair.priced_in_key.in_(live.where(PricedItem.symbol == priced_in)),
    )
    return _to_rows(session, session.execute(query.order_by(PricePair.id)).all())


def update(
    session: Session,
    principal: Principal,
    definitions: Mapping[str, PriceSource],
    markets_of: MarketsOf,
    pair_id: str,
    *,
    price_sources: Sequence[str] | UnsetType = UNSET,
    max_age: str | UnsetType | None = UNSET,
    allow_inverse: bool | UnsetType = UNSET,
    bridge: str | UnsetType | None = UNSET,
    max_jump: Decimal | UnsetType | None = UNSET,
    max_deviation: Decimal | UnsetType | None = UNSET,
    now: datetime | None = None,
) -> PairRow:
    """Change a pair; what is unset stays, and writing what is stored changes nothing. What it prices is fixed.

    A source that the pair has already may be disabled, or have lost its market; one that is new must be enabled and
    have it. A change must not take away the market of any source. Arguments as `create`.

    Raises:
        Denied: below operator.
        NotFound: the tenant has none such.
        Invalid: on the property by its JSON name.
        Conflict: a new source is disabled, or several assets have the symbol there.
    """
    access.require(principal, Role.OPERATOR)
    pair = lock(session, principal.tenant_id, pair_id)
    before = get(session, principal.tenant_id, pair_id)
    if price_sources is not UNSET:
        check_sources(session, principal, definitions, price_sources, kept=before.price_sources)
        _put_sources(session, pair.pair_key, price_sources)
    if max_age is not UNSET:
        pair.max_age = max_age
        pair.max_age_seconds = None if max_age is None else read_duration("maxAge", max_age)
    if allow_inverse is not UNSET:
        pair.allow_inverse = allow_inverse
    if bridge is None:
        pair.bridge_key = None
    elif bridge is not UNSET:
        pair.bridge_key = find_bridge(session, principal, bridge, before.priced_as, before.priced_in).item_key
    if max_jump is not UNSET:
        pair.max_jump = guard_text("maxJump", max_jump)
    if max_deviation is not UNSET:
        pair.max_deviation = guard_text("maxDeviation", max_deviation)
    session.flush()
    after = get(session, principal.tenant_id, pair_id)
    if after == before:
        return before
    if after.question != before.question:
        check_change(session, principal, definitions, markets_of, before.question, after.question)
    pair.updated_at = max(now or utc_now(), pair.updated_at)
    session.flush()
    after = get(session, principal.tenant_id, pair_id)
    _record(session, principal, "price-pair.update", before, after, now)
    revision.bump(session, principal.tenant_id)
    return after


def remove(session: Session, principal: Principal, pair_id: str, now: datetime | None = None) -> None:
    """Remove a pair that no token is linked to; its unfinished discoveries end, and adding it anew makes another.

    Raises:
        Denied: below admin.
        NotFound: the tenant has none such.
        Conflict: tokens are linked to it; names them.
    """
    access.require(principal, Role.ADMIN)
    pair = lock(session, principal.tenant_id, pair_id)
    before = get(session, principal.tenant_id, pair_id)
    linked = select(Subject.id).where(Subject.pair_key == pair.pair_key, Subject.removed_at.is_(None))
    tokens = session.scalars(linked.order_by(Subject.id)).all()
    if tokens:
        raise Conflict("pair-in-use", f"{pair_id} is linked to {named(tokens)}; unlink them first", pair_id)
    moment = max(now or utc_now(), pair.updated_at)
    cancel_unfinished(session, "pair_key", pair.pair_key, moment)
    pair.removed_at = pair.updated_at = moment
    _record(session, principal, "price-pair.remove", before, None, now)
    revision.bump(session, principal.tenant_id)


def lock(session: Session, tenant_id: str, pair_id: str, *, is_shared: bool = False) -> PricePair:
    """Return the stored pair for change, which nobody else can do until the transaction ends.

    With `is_shared` others may keep it as well, and nobody can change or remove it.

    Raises:
        NotFound: the tenant has none such.
    """
    query = select(PricePair).where(
        PricePair.tenant_id == tenant_id, PricePair.id == pair_id, PricePair.removed_at.is_(None)
    )
    locking = query.with_for_update(read=is_shared).execution_options(populate_existing=True)
    pair = session.scalars(locking).one_or_none() if ids.is_id(_PREFIX, pair_id) else None
    if pair is None:
        raise NotFound("pair", pair_id)
    return pair


def _put_sources(session: Session, pair_key: int, source_ids: Sequence[str]) -> None:
    session.execute(delete(PairSource).where(PairSource.pair_key == pair_key))
    session.add_all(
        PairSource(pair_key=pair_key, position=position, source_id=source_id)
        for position, source_id in enumerate(source_ids)
    )
    session.flush()


def _select_rows(tenant_id: str) -> Select[Any]:
    """Columns named as the fields of PairRow, without sources."""
    priced_as, priced_in, bridge = aliased(PricedItem), aliased(PricedItem), aliased(PricedItem)
    columns: list[ColumnElement[Any] | InstrumentedAttribute[Any]] = [
        PricePair.pair_key,
        PricePair.id,
        PricePair.tenant_id,
        priced_as.symbol.label("priced_as"),
        priced_in.symbol.label("priced_in"),
        PricePair.price_type,
        PricePair.max_age,
        PricePair.max_age_seconds,
        PricePair.allow_inverse,
        bridge.symbol.label("bridge"),
        PricePair.max_jump,
        PricePair.max_deviation,
        PricePair.created_at,
        PricePair.updated_at,
    ]
    return (
        select(*columns)
        .join(priced_as, priced_as.item_key == PricePair.priced_as_key)
        .join(priced_in, priced_in.item_key == PricePair.priced_in_key)
        .outerjoin(bridge, bridge.item_key == PricePair.bridge_key)
        .where(PricePair.tenant_id == tenant_id, PricePair.removed_at.is_(None))
    )


def _to_rows(session: Session, records: Sequence[Any]) -> list[PairRow]:
    found = session.execute(
        select(PairSource.pair_key, PairSource.source_id)
        .where(PairSource.pair_key.in_([record.pair_key for record in records]))
        .order_by(PairSource.pair_key, PairSource.position)
    )
    asked: dict[int, list[str]] = {}
    for pair_key, source_id in found:
        asked.setdefault(pair_key, []).append(source_id)
    return [
        PairRow(
            **{**record._mapping, "price_type": PriceType(record.price_type)},
            price_sources=tuple(asked[record.pair_key]),
        )
        for record in records
    ]


def _record(
    session: Session,
    principal: Principal,
    action: audit.Action,
    before: PairRow | None,
    after: PairRow | None,
    now: datetime | None,
) -> None:
    """Record a write of a pair; one of the two states is there."""
    pair = after or before
    if pair is None:
        raise ValueError("a write without a pair")
    audit.record(
        session,
        principal.tenant_id,
        principal.key_id,
        action,
        "price-pair",
        pair.id,
        None if before is None else _audited(before),
        None if after is None else _audited(after),
        now,
    )


def _audited(pair: PairRow) -> dict[str, object]:
    return {
        "pricedAs": pair.priced_as,
        "pricedIn": pair.priced_in,
        "priceType": pair.price_type.value,
        "priceSources": list(pair.price_sources),
        "maxAge": pair.max_age,
        "allowInverse": pair.allow_inverse,
        "bridge": pair.bridge,
        "maxJump": pair.max_jump,
        "maxDeviation": pair.max_deviation,
    }
