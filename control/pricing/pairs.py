"""Rules of price pairs: two items, a type of price, and sources in their order.

`pair_checks` has their checks, `matching` the search for a price at a source, `links` the tokens that they value.
"""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Annotated, Any, ClassVar

import msgspec
from msgspec import UNSET, Meta, UnsetType
from sqlalchemy import Select, delete, select
from sqlalchemy.exc import IntegrityError
from sqlalchemy.orm import Session, aliased

from control import access, ids
from control.access import Principal, Role
from control.cancellation import cancel_unfinished
from control.changes import lock_one, record_change
from control.clock import utc_now
from control.errors import Conflict, Invalid, NotFound
from control.inputs import (
    ITEM,
    SOURCE_ID,
    DecimalText,
    ExactNumber,
    Keywords,
    Schema,
    described,
    given,
    needs_one_of,
    positive,
    whole,
)
from control.models import PairSource, PricedItem, PricePair, Subject
from control.pages import After, Page, check_limit, cut_page
from control.pricing.definitions import PriceSource
from control.pricing.durations import DURATION, LONGEST_DAYS, read_duration
from control.pricing.in_use import named
from control.pricing.pair_checks import (
    MOST_SOURCES,
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


PriceSourceIds = Annotated[
    list[Annotated[str, described("`src_...`", **SOURCE_ID)]],
    described(
        "Ids of price sources, in order of preference.",
        [["src_kraken"]],
        minItems=1,
        maxItems=MOST_SOURCES,
        uniqueItems=True,
    ),
]
MaxAge = Annotated[
    str | None,
    described(
        "Greatest age of a price that is used: an ISO 8601 duration of weeks, days, hours, minutes and seconds, at "
        f"most P{LONGEST_DAYS}D; null for no limit.",
        ["P1D"],
        pattern=whole(DURATION),
    ),
]
Bridge = Annotated[
    str | None,
    described(
        "Symbol of an item through which two markets may be combined if there is no market for the pair.", **ITEM
    ),
]
AllowInverse = Annotated[
    bool,
    Meta(description="True if the market of the opposite direction may be used, as 1 / price, when there is no other."),
]
_MAX_JUMP = "Greatest difference from the source's last used price, in percent; a price beyond it is quarantined."
_MAX_DEVIATION = (
    "Greatest difference from the median of the other sources' prices, in percent; a price beyond it is quarantined."
)


class PairCreate(Schema, frozen=True, kw_only=True):
    """A pair to add; give `priceSources`, or `priceSource` for a single source."""

    rules: ClassVar[Keywords] = needs_one_of("priceSources", "priceSource")

    priced_as: Annotated[str, described("Symbol of the item that is priced.", ["BTC"], **ITEM)]
    priced_in: Annotated[str, described("Symbol of the item that expresses the price.", **ITEM)] = DEFAULT_PRICED_IN
    price_type: PriceType
    price_sources: PriceSourceIds | UnsetType = UNSET
    price_source: Annotated[str, described("Id of the only price source.", **SOURCE_ID)] | UnsetType = UNSET
    max_age: MaxAge | UnsetType = UNSET
    allow_inverse: AllowInverse = False
    bridge: Bridge = None
    max_jump: Annotated[ExactNumber | None, positive(_MAX_JUMP)] = None
    max_deviation: Annotated[ExactNumber | None, positive(_MAX_DEVIATION)] = None


class PairPatch(Schema, frozen=True, kw_only=True):
    """Changes to a pair. A field that is left out stays the same. `pricedAs`, `pricedIn` and `priceType` are fixed."""

    price_sources: PriceSourceIds | UnsetType = UNSET
    max_age: MaxAge | UnsetType = UNSET
    allow_inverse: AllowInverse | UnsetType = UNSET
    bridge: Bridge | UnsetType = UNSET
    max_jump: Annotated[ExactNumber | None, positive(_MAX_JUMP)] | UnsetType = UNSET
    max_deviation: Annotated[ExactNumber | None, positive(_MAX_DEVIATION)] | UnsetType = UNSET


class PairFields(Schema, frozen=True, kw_only=True):
    """Fields of a pair that rows, answers and the audit share; items by symbol, guards in percent."""

    id: Annotated[str, Meta(description="`pair_...`, the `{pairId}` of paths.")]
    priced_as: str
    priced_in: str
    price_type: PriceType
    price_sources: PriceSourceIds
    max_age: MaxAge
    allow_inverse: AllowInverse
    bridge: Bridge
    max_jump: Annotated[DecimalText | None, Meta(description=_MAX_JUMP)]
    max_deviation: Annotated[DecimalText | None, Meta(description=_MAX_DEVIATION)]


class PairRow(PairFields, frozen=True, kw_only=True):
    """A pair as stored."""

    pair_key: int
    tenant_id: str
    max_age_seconds: int | None
    created_at: datetime
    updated_at: datetime

    @property
    def question(self) -> PairQuestion:
        """The part that decides its routes."""
        return PairQuestion(
            self.priced_as, self.priced_in, self.price_type, tuple(self.price_sources), self.allow_inverse, self.bridge
        )


def create(
    session: Session,
    principal: Principal,
    definitions: Mapping[str, PriceSource],
    markets_of: MarketsOf,
    request: PairCreate,
    now: datetime | None = None,
) -> PairRow:
    """Store a pair.

    Args:
        session: a write transaction.
        principal: the key that asks.
        definitions: the preconfigured sources.
        markets_of: the published market lists; a source without a collected list is accepted, pending.
        request: the pair, with `price_sources`; without `max_age` the limit is a day, of NAV 35 days.
        now: the moment; None is the clock's.

    Raises:
        Denied: below operator.
        Invalid: on the property by its JSON name.
        Conflict: a source is disabled, several assets have the symbol there, or the tenant has the pair.
    """
    access.require(principal, Role.OPERATOR)
    check_price_type("priceType", request.price_type)
    base = find_item(session, principal, "pricedAs", request.priced_as)
    quote = find_item(session, principal, "pricedIn", request.priced_in)
    if base.item_key == quote.item_key:
        detail = f"{request.priced_as} cannot be priced in itself; name another item"
        raise Invalid("pricedIn", "same-item", detail)
    sources = [] if request.price_sources is UNSET else request.price_sources
    rules = {"max_age": DEFAULT_NAV_MAX_AGE if request.price_type == PriceType.NAV else DEFAULT_MAX_AGE}
    columns = _columns(session, principal, rules | given(request), base.symbol, quote.symbol)
    check_sources(session, principal, definitions, sources)
    moment = now or utc_now()
    pair = PricePair(
        id=ids.new_id(_PREFIX),
        tenant_id=principal.tenant_id,
        priced_as_key=base.item_key,
        priced_in_key=quote.item_key,
        created_at=moment,
        updated_at=moment,
        **columns,
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
                PricePair.price_type == request.price_type,
                PricePair.removed_at.is_(None),
            )
        ).one_or_none()
        if existing is None:
            raise
        shown = f"{request.priced_as}/{request.priced_in} of price type {request.price_type}"
        detail = f"a pair {shown} already exists: {existing}"
        raise Conflict("duplicate-pair", detail, existing, fields=PAIR_FIELDS) from error
    _put_sources(session, pair.pair_key, sources)
    row = get(session, principal.tenant_id, pair.id)
    (routes,) = find_routes(session, principal.tenant_id, definitions, [row.question], markets_of)
    for place, route in enumerate(routes):
        require_route(route, place, definitions)
    record_change(session, principal, "price-pair.create", "price-pair", pair.id, None, _audited(row), now, is_new=True)
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
    request: PairPatch,
    now: datetime | None = None,
) -> PairRow:
    """Change a pair. Unset fields stay, and stored values change nothing; the other arguments are those of `create`.

    A source that the pair has already may be disabled, or have lost its market. A new source must be enabled and have
    a market. A change must not take away the market of any source.

    Raises:
        Denied: below operator.
        NotFound: the tenant has none such.
        Invalid: on the property by its JSON name.
        Conflict: a new source is disabled, or several assets have the symbol there.
    """
    access.require(principal, Role.OPERATOR)
    pair = lock(session, principal.tenant_id, pair_id)
    before = get(session, principal.tenant_id, pair_id)
    columns = _columns(session, principal, given(request), before.priced_as, before.priced_in)
    for name, value in columns.items():
        setattr(pair, name, value)
    if request.price_sources is not UNSET:
        check_sources(session, principal, definitions, request.price_sources, kept=before.price_sources)
        _put_sources(session, pair.pair_key, request.price_sources)
    session.flush()
    after = get(session, principal.tenant_id, pair_id)
    if after == before:
        return before
    if after.question != before.question:
        check_change(session, principal, definitions, markets_of, before.question, after.question)
    pair.updated_at = max(now or utc_now(), pair.updated_at)
    session.flush()
    after = get(session, principal.tenant_id, pair_id)
    states = (_audited(before), _audited(after))
    record_change(session, principal, "price-pair.update", "price-pair", pair.id, *states, now)
    return after


def remove(session: Session, principal: Principal, pair_id: str, now: datetime | None = None) -> None:
    """Remove a pair that no token is linked to. Its unfinished discoveries end; adding the same items makes a new pair.

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
    record_change(session, principal, "price-pair.remove", "price-pair", pair.id, _audited(before), None, now)


def lock(session: Session, tenant_id: str, pair_id: str, *, is_shared: bool = False) -> PricePair:
    """Return the stored pair, locked as by `control.changes.lock_one`.

    Raises:
        NotFound: the tenant has none such.
    """
    if not ids.is_id(_PREFIX, pair_id):
        raise NotFound("pair", pair_id)
    query = select(PricePair).where(
        PricePair.tenant_id == tenant_id, PricePair.id == pair_id, PricePair.removed_at.is_(None)
    )
    return lock_one(session, query, "pair", pair_id, is_shared=is_shared)


def _columns(
    session: Session, principal: Principal, values: Mapping[str, Any], priced_as: str, priced_in: str
) -> dict[str, Any]:
    """Return the columns of the values that a request sets, without items and sources but for the bridge.

    Raises:
        Invalid: on the property by its JSON name.
    """
    columns = {name: value for name, value in values.items() if name in PricePair.__table__.columns}
    if "bridge" in values:
        bridge = values["bridge"]
        over = None if bridge is None else find_bridge(session, principal, bridge, priced_as, priced_in)
        columns["bridge_key"] = None if over is None else over.item_key
    if "max_age" in values:
        max_age = values["max_age"]
        columns["max_age_seconds"] = None if max_age is None else read_duration("maxAge", max_age)
    for name, field in (("max_jump", "maxJump"), ("max_deviation", "maxDeviation")):
        if name in values:
            columns[name] = guard_text(field, values[name])
    return columns


def _put_sources(session: Session, pair_key: int, source_ids: Sequence[str]) -> None:
    session.execute(delete(PairSource).where(PairSource.pair_key == pair_key))
    session.add_all(
        PairSource(pair_key=pair_key, position=position, source_id=source_id)
        for position, source_id in enumerate(source_ids)
    )
    session.flush()


def _select_rows(tenant_id: str) -> Select[Any]:
    """Select the columns that are named as the fields of PairRow, without sources."""
    priced_as, priced_in, bridge = aliased(PricedItem), aliased(PricedItem), aliased(PricedItem)
    symbols = {"priced_as": priced_as.symbol, "priced_in": priced_in.symbol, "bridge": bridge.symbol}
    columns = [
        symbols[name].label(name) if name in symbols else getattr(PricePair, name)
        for name in PairRow.__struct_fields__
        if name != "price_sources"
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
            price_sources=asked[record.pair_key],
        )
        for record in records
    ]


def _audited(pair: PairRow) -> dict[str, Any]:
    shown = msgspec.structs.fields(PairFields)
    return {field.encode_name: getattr(pair, field.name) for field in shown if field.name != "id"}
