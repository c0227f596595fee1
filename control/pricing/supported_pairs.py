"""Rules of supported pairs, for which a manual source has prices; the prices are in `manual_prices`."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Annotated, Any

from sqlalchemy import Row, Select, select
from sqlalchemy.orm import Session, aliased

from control import access, ids
from control.access import Principal, Role
from control.changes import lock_one, record_change
from control.clock import utc_now
from control.errors import Conflict, Invalid, NotFound
from control.inputs import ITEM, Schema, described
from control.models import ManualSource, PairSource, PricedItem, PricePair, SupportedPair
from control.pages import After, Page, check_limit, cut_page
from control.pricing import items, sources
from control.pricing.definitions import PriceSource
from control.pricing.in_use import named
from control.pricing.price_types import PAIR_FIELDS, PriceType, PriceTypeName, check_price_type

_PREFIX = "spair_"


class SupportedPairCreate(Schema, frozen=True, kw_only=True):
    """A pair for which a manual source will have prices."""

    priced_as: Annotated[str, described("Symbol of the priced item.", ["FUND1"], **ITEM)]
    priced_in: Annotated[str, described("Symbol of the item that expresses the price.", **ITEM)] = "USD"
    price_type: PriceTypeName


@dataclass(frozen=True, slots=True)
class SupportedPairRow:
    """A pair of a manual source; items by symbol and by key."""

    supported_pair_key: int
    id: str
    source_id: str
    priced_as_key: int
    priced_as: str
    priced_in_key: int
    priced_in: str
    price_type: PriceType
    created_at: datetime


def create(
    session: Session,
    principal: Principal,
    definitions: Mapping[str, PriceSource],
    source_id: str,
    request: SupportedPairCreate,
    now: datetime | None = None,
) -> SupportedPairRow:
    """Let a manual source, enabled or not, have prices of an item.

    Args:
        session: a write transaction.
        principal: who asks.
        definitions: the preconfigured sources.
        source_id: the source.
        request: the pair.
        now: time of creation; None is the clock's.

    Raises:
        Denied: below operator.
        NotFound: the tenant has no such source.
        Invalid: on 'pricedAs', 'pricedIn' or 'priceType'.
        Conflict: the source is preconfigured, or has the pair already (names its id).
    """
    access.require(principal, Role.OPERATOR)
    found = sources.get(session, principal.tenant_id, definitions, source_id)
    if found.source_key is None:
        raise sources.preconfigured(found.id, found.name)
    priced = _item(session, principal.tenant_id, "pricedAs", request.priced_as)
    expressed = _item(session, principal.tenant_id, "pricedIn", request.priced_in)
    if priced.item_key == expressed.item_key:
        raise Invalid("pricedIn", "same-item", f"{request.priced_as!r} cannot be priced in itself; name another symbol")
    kind = check_price_type("priceType", request.price_type)
    # Every writer locks items before their sources.
    source = sources.lock_manual(session, principal.tenant_id, definitions, source_id)
    pair = SupportedPair(
        id=ids.new_id(_PREFIX),
        tenant_id=principal.tenant_id,
        source_key=source.source_key,
        priced_as_key=priced.item_key,
        priced_in_key=expressed.item_key,
        price_type=kind,
        created_at=now or utc_now(),
    )
    existing = session.scalars(
        select(SupportedPair.id).where(
            SupportedPair.source_key == source.source_key,
            SupportedPair.priced_as_key == priced.item_key,
            SupportedPair.priced_in_key == expressed.item_key,
            SupportedPair.price_type == kind,
            SupportedPair.removed_at.is_(None),
        )
    ).one_or_none()
    if existing is not None:
        named = f"{request.priced_as}/{request.priced_in} of type {request.price_type}"
        detail = f"the source already has {named}, as {existing}"
        raise Conflict("duplicate-supported-pair", detail, existing, fields=PAIR_FIELDS)
    session.add(pair)
    session.flush()
    row = get(session, principal.tenant_id, definitions, source_id, pair.id)
    after = _audited(row)
    record_change(session, principal, "supported-pair.create", "supported-pair", row.id, None, after, now, is_new=True)
    return row


def get(
    session: Session, tenant_id: str, definitions: Mapping[str, PriceSource], source_id: str, pair_id: str
) -> SupportedPairRow:
    """Return one pair of a manual source.

    Raises:
        NotFound: the tenant has no such source, or the source no such pair; a preconfigured one has none.
    """
    source = sources.get(session, tenant_id, definitions, source_id)
    if source.source_key is None or not ids.is_id(_PREFIX, pair_id):
        raise NotFound("supported pair", pair_id)
    record = session.execute(_select(source.source_key).where(SupportedPair.id == pair_id)).one_or_none()
    if record is None:
        raise NotFound("supported pair", pair_id)
    return _to_row(record)


def list_page(
    session: Session,
    tenant_id: str,
    definitions: Mapping[str, PriceSource],
    source_id: str,
    limit: int = 50,
    after: After | None = None,
) -> Page[SupportedPairRow]:
    """Return one page of the pairs of a manual source, oldest first (ids sort by creation).

    Raises:
        NotFound: the tenant has no such source.
        Invalid: on 'limit'.
        Conflict: the source is preconfigured: it has markets, no such pairs.
    """
    source = sources.get(session, tenant_id, definitions, source_id)
    if source.source_key is None:
        raise sources.preconfigured(source.id, source.name)
    query = _select(source.source_key)
    if after is not None:
        query = query.where(SupportedPair.id > after.id)
    records = session.execute(query.order_by(SupportedPair.id).limit(check_limit(limit) + 1))
    return cut_page([(_to_row(record), After(record.id, record.id)) for record in records], limit)


def lock(session: Session, pair: SupportedPairRow) -> SupportedPair:
    """Return the stored pair; until the transaction ends, no other one enters prices for it or removes it.

    Raises:
        NotFound: removed meanwhile.
    """
    is_there = (SupportedPair.supported_pair_key == pair.supported_pair_key, SupportedPair.removed_at.is_(None))
    return lock_one(session, select(SupportedPair).where(*is_there), "supported pair", pair.id)


def remove(
    session: Session,
    principal: Principal,
    definitions: Mapping[str, PriceSource],
    source_id: str,
    pair_id: str,
    now: datetime | None = None,
) -> None:
    """Remove a pair of a manual source that no price pair asks; its prices count no more and are not shown.

    Raises:
        Denied: below admin.
        NotFound: there is none such.
        Conflict: a price pair asks the source for it, or the source is preconfigured.
    """
    access.require(principal, Role.ADMIN)
    # A price pair that is being made keeps its sources, so that it is seen here or does not see this pair.
    sources.lock_manual(session, principal.tenant_id, definitions, source_id)
    before = get(session, principal.tenant_id, definitions, source_id, pair_id)
    pair = lock(session, before)
    users = session.scalars(
        select(PricePair.id)
        .join(PairSource, PairSource.pair_key == PricePair.pair_key)
        .where(
            PairSource.source_id == source_id,
            PricePair.priced_as_key == before.priced_as_key,
            PricePair.priced_in_key == before.priced_in_key,
            PricePair.price_type == before.price_type,
            PricePair.removed_at.is_(None),
        )
        .order_by(PricePair.id)
    ).all()
    if users:
        raise Conflict("supported-pair-in-use", f"{pair_id} is used by {named(users)}; change them first", pair_id)
    pair.removed_at = now or utc_now()
    record_change(session, principal, "supported-pair.remove", "supported-pair", pair_id, _audited(before), None, now)


def _item(session: Session, tenant_id: str, field: str, symbol: str) -> items.ItemRow:
    item = items.find(session, tenant_id, symbol, is_kept=True)
    if item is None:
        raise Invalid(
            field,
            "unknown-symbol",
            f"{field} is {symbol[:64]!r}; there is no such priced item: POST it to /v1/priced-items first",
        )
    return item


def _select(source_key: int) -> Select[Any]:
    """Columns named as the fields of SupportedPairRow."""
    priced, expressed = aliased(PricedItem), aliased(PricedItem)
    columns: list[Any] = [
        SupportedPair.supported_pair_key,
        SupportedPair.id,
        ManualSource.id.label("source_id"),
        SupportedPair.priced_as_key,
        priced.symbol.label("priced_as"),
        SupportedPair.priced_in_key,
        expressed.symbol.label("priced_in"),
        SupportedPair.price_type,
        SupportedPair.created_at,
    ]
    return (
        select(*columns)
        .join(ManualSource, ManualSource.source_key == SupportedPair.source_key)
        .join(priced, priced.item_key == SupportedPair.priced_as_key)
        .join(expressed, expressed.item_key == SupportedPair.priced_in_key)
        .where(SupportedPair.source_key == source_key, SupportedPair.removed_at.is_(None))
    )


def _to_row(record: Row[Any]) -> SupportedPairRow:
    return SupportedPairRow(**{**record._mapping, "price_type": PriceType(record.price_type)})


def _audited(pair: SupportedPairRow) -> dict[str, str]:
    return {
        "priceSource": pair.source_id,
        "pricedAs": pair.priced_as,
        "pricedIn": pair.priced_in,
        "priceType": pair.price_type.value,
    }
