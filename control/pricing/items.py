"""Rules of priced items: they have a price or express one, and the tenant chooses their symbols."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Annotated, Literal

from msgspec import UNSET, Meta, UnsetType, field
from sqlalchemy import Select, delete, or_, select
from sqlalchemy.exc import IntegrityError
from sqlalchemy.orm import Session

from control import access, fields, ids
from control.access import Principal, Role
from control.changes import lock_one, record_change
from control.clock import utc_now
from control.errors import Conflict, Invalid, NotFound
from control.fields import NAME_LENGTH, SYMBOL_LENGTH
from control.inputs import ITEM, SOURCE_ID, Schema, described, line
from control.models import MappingSymbol, PricedItem, PricePair, SupportedPair
from control.pages import After, Page, check_limit, cut_page
from control.pricing import sources
from control.pricing.definitions import PriceSource
from control.pricing.in_use import named

_PREFIX = "item_"
MOST_MAPPINGS = 100


class ItemClass(StrEnum):
    """The kinds of priced items."""

    CURRENCY = "Currency"
    CRYPTOCURRENCY = "Cryptocurrency"
    COMMODITY = "Commodity"
    EQUITY = "Equity"
    OPTION = "Option"
    FUND = "Fund"
    OTHER = "Other"


ItemClassName = Literal["Currency", "Cryptocurrency", "Commodity", "Equity", "Option", "Fund", "Other"]


class PricedItemCreate(Schema, frozen=True, kw_only=True):
    """An item to add."""

    symbol: Annotated[
        str,
        described("Unique for the tenant, case-sensitive.", ["BTC"], **ITEM),
    ]
    name: Annotated[str, line(NAME_LENGTH, "Display name.", ["Bitcoin"])]
    class_: Annotated[ItemClassName, Meta(description="Class of the asset.")] = field(name="class")


class PricedItemPatch(Schema, frozen=True, kw_only=True):
    """Changes to an item. A field that is left out stays the same. The symbol is fixed."""

    name: Annotated[str, line(NAME_LENGTH, "Display name.")] | UnsetType = UNSET
    class_: ItemClassName | UnsetType = field(name="class", default=UNSET)


class MappingSymbolPut(Schema, frozen=True, kw_only=True):
    """The symbol of an item at a source."""

    price_source: Annotated[str, described("`src_...`", ["src_kraken"], **SOURCE_ID)]
    symbol: Annotated[str, line(SYMBOL_LENGTH, "Symbol in the source's own form, or its unified code.", ["XBT"])]


class MappingSymbolsPut(Schema, frozen=True, kw_only=True):
    """All mappings of an item; they replace the existing ones."""

    mappings: Annotated[list[MappingSymbolPut], described("In any order.", maxItems=MOST_MAPPINGS)]


@dataclass(frozen=True, slots=True)
class ItemRow:
    """A priced item as stored; `mappings` are its symbols at sources, by the source's id."""

    item_key: int
    id: str
    symbol: str
    name: str
    item_class: ItemClass
    mappings: Mapping[str, str]
    created_at: datetime
    updated_at: datetime


def create(
    session: Session,
    principal: Principal,
    request: PricedItemCreate,
    now: datetime | None = None,
) -> ItemRow:
    """Store a priced item, without mappings.

    Raises:
        Denied: below operator.
        Invalid: on 'symbol', 'name' or 'class'.
        Conflict: the tenant has this symbol; symbols that differ in case are different.
    """
    access.require(principal, Role.OPERATOR)
    symbol = request.symbol
    if fields.ITEM_SYMBOL.fullmatch(symbol) is None:
        raise Invalid(
            "symbol",
            "malformed",
            "symbol must be 1 to 64 letters, digits and any of . _ $ : + -, and begin with a letter or digit",
        )
    fields.check_text("name", request.name, NAME_LENGTH)
    moment = now or utc_now()
    item = PricedItem(
        id=ids.new_id(_PREFIX),
        tenant_id=principal.tenant_id,
        symbol=symbol,
        name=request.name,
        item_class=_check_class(request.class_),
        created_at=moment,
        updated_at=moment,
    )
    try:
        with session.begin_nested():
            session.add(item)
    except IntegrityError as error:
        if find(session, principal.tenant_id, symbol) is None:
            raise
        # Items are addressed by symbol, so that is what names the one in the way.
        detail = f"the priced item {symbol!r} already exists"
        raise Conflict("duplicate-symbol", detail, symbol, fields=["symbol"]) from error
    row = _to_row(item, {})
    after = _audited(row)
    record_change(session, principal, "priced-item.create", "priced-item", row.id, None, after, now, is_new=True)
    return row


def get(session: Session, tenant_id: str, symbol: str) -> ItemRow:
    """Return one priced item of the tenant.

    Raises:
        NotFound: the tenant has none with this symbol.
    """
    row = find(session, tenant_id, symbol)
    if row is None:
        raise NotFound("priced item", symbol)
    return row


def find(session: Session, tenant_id: str, symbol: str, *, is_kept: bool = False) -> ItemRow | None:
    """Return one priced item of the tenant, or None.

    With `is_kept` it cannot be changed or removed until the transaction ends.
    """
    if fields.ITEM_SYMBOL.fullmatch(symbol) is None:
        return None
    query = _select(tenant_id).where(PricedItem.symbol == symbol)
    item = session.scalars(query.with_for_update(read=True) if is_kept else query).one_or_none()
    return None if item is None else _to_rows(session, [item])[0]


def list_page(session: Session, tenant_id: str, limit: int = 50, after: After | None = None) -> Page[ItemRow]:
    """Return one page of the tenant's priced items, oldest first (ids sort by creation).

    Raises:
        Invalid: on 'limit'.
    """
    query = _select(tenant_id)
    if after is not None:
        query = query.where(PricedItem.id > after.id)
    items = session.scalars(query.order_by(PricedItem.id).limit(check_limit(limit) + 1)).all()
    return cut_page([(row, After(row.id, row.id)) for row in _to_rows(session, items)], limit)


def update(
    session: Session,
    principal: Principal,
    symbol: str,
    request: PricedItemPatch,
    now: datetime | None = None,
) -> ItemRow:
    """Change name or class of an item. Unset fields stay, and stored values change nothing.

    Raises:
        Denied: below operator.
        NotFound: the tenant has none such.
        Invalid: on 'name' or 'class'.
    """
    access.require(principal, Role.OPERATOR)
    item = _lock(session, principal.tenant_id, symbol)
    before = _to_rows(session, [item])[0]
    if request.name is not UNSET:
        item.name = fields.check_text("name", request.name, NAME_LENGTH)
    if request.class_ is not UNSET:
        item.item_class = _check_class(request.class_)
    if (item.name, item.item_class) == (before.name, before.item_class):
        return before
    item.updated_at = max(now or utc_now(), item.updated_at)
    after = _to_row(item, before.mappings)
    states = (_audited(before), _audited(after))
    record_change(session, principal, "priced-item.update", "priced-item", item.id, *states, now)
    return after


def put_mappings(
    session: Session,
    principal: Principal,
    definitions: Mapping[str, PriceSource],
    symbol: str,
    request: MappingSymbolsPut,
    now: datetime | None = None,
) -> ItemRow:
    """Replace the symbols of an item at sources. Stored symbols change nothing.

    Args:
        session: a write transaction.
        principal: who asks.
        definitions: the preconfigured sources.
        symbol: the item's own.
        request: symbols of the item at sources, enabled or not; each source at most once.
        now: the moment; None is the clock's.

    Raises:
        Denied: below operator.
        NotFound: the tenant has no such item.
        Invalid: on 'mappings' or a property within, such as 'mappings/0/symbol'.
    """
    access.require(principal, Role.OPERATOR)
    item = _lock(session, principal.tenant_id, symbol)
    before = _to_rows(session, [item])[0]
    wanted = _check_mappings(session, principal.tenant_id, definitions, request.mappings)
    if wanted == before.mappings:
        return before
    session.execute(delete(MappingSymbol).where(MappingSymbol.item_key == item.item_key))
    session.add_all(
        MappingSymbol(item_key=item.item_key, source_id=source_id, symbol=text) for source_id, text in wanted.items()
    )
    item.updated_at = max(now or utc_now(), item.updated_at)
    after = _to_row(item, wanted)
    states = (_audited(before), _audited(after))
    record_change(session, principal, "priced-item.mapping", "priced-item", item.id, *states, now)
    return after


def remove(session: Session, principal: Principal, symbol: str, now: datetime | None = None) -> None:
    """Remove an item that nothing uses, with its mappings; its symbol is free again.

    Raises:
        Denied: below admin.
        NotFound: the tenant has none such.
        Conflict: a pair prices it, is expressed in it or goes over it, or a supported pair of a source has it.
    """
    access.require(principal, Role.ADMIN)
    item = _lock(session, principal.tenant_id, symbol)
    before = _to_rows(session, [item])[0]
    users = _users(session, item.item_key)
    if users:
        raise Conflict("item-in-use", f"{symbol!r} is used by {named(users)}; remove them first", symbol)
    session.execute(delete(MappingSymbol).where(MappingSymbol.item_key == item.item_key))
    item.removed_at = item.updated_at = max(now or utc_now(), item.updated_at)
    record_change(session, principal, "priced-item.remove", "priced-item", item.id, _audited(before), None, now)


def _check_class(text: str) -> ItemClass:
    if text not in set(ItemClass):
        raise Invalid("class", "unknown-class", f"class is {text[:40]!r}; use one of {', '.join(ItemClass)}")
    return ItemClass(text)


def _check_mappings(
    session: Session, tenant_id: str, definitions: Mapping[str, PriceSource], mappings: Sequence[MappingSymbolPut]
) -> dict[str, str]:
    if len(mappings) > MOST_MAPPINGS:
        raise Invalid("mappings", "too-many", f"there are {len(mappings)} mappings; send at most {MOST_MAPPINGS}")
    checked: dict[str, str] = {}
    for index, mapping in enumerate(mappings):
        source_id = mapping.price_source
        field = f"mappings/{index}/priceSource"
        if sources.find(session, tenant_id, definitions, source_id, is_kept=True) is None:
            raise Invalid(
                field,
                "unknown-source",
                f"there is no price source {source_id[:100]!r}; GET /v2/price-sources lists all",
            )
        if source_id in checked:
            raise Invalid(
                field, "repeated-source", f"{source_id} is listed twice; an item has only one symbol at each source"
            )
        checked[source_id] = fields.check_text(f"mappings/{index}/symbol", mapping.symbol, SYMBOL_LENGTH)
    return checked


def _users(session: Session, item_key: int) -> list[str]:
    """Ids of the pairs and supported pairs that use an item, oldest first."""
    pairs = select(PricePair.id).where(
        PricePair.removed_at.is_(None),
        or_(
            PricePair.priced_as_key == item_key,
            PricePair.priced_in_key == item_key,
            PricePair.bridge_key == item_key,
        ),
    )
    supported = select(SupportedPair.id).where(
        SupportedPair.removed_at.is_(None),
        or_(SupportedPair.priced_as_key == item_key, SupportedPair.priced_in_key == item_key),
    )
    return [
        *session.scalars(pairs.order_by(PricePair.id)),
        *session.scalars(supported.order_by(SupportedPair.id)),
    ]


def _select(tenant_id: str) -> Select[PricedItem]:
    return select(PricedItem).where(PricedItem.tenant_id == tenant_id, PricedItem.removed_at.is_(None))


def _lock(session: Session, tenant_id: str, symbol: str) -> PricedItem:
    query = _select(tenant_id).where(PricedItem.item_key == get(session, tenant_id, symbol).item_key)
    return lock_one(session, query, "priced item", symbol)


def _to_rows(session: Session, items: Sequence[PricedItem]) -> list[ItemRow]:
    found = session.scalars(
        select(MappingSymbol)
        .where(MappingSymbol.item_key.in_([item.item_key for item in items]))
        .order_by(MappingSymbol.source_id)
    )
    mappings: dict[int, dict[str, str]] = {}
    for mapping in found:
        mappings.setdefault(mapping.item_key, {})[mapping.source_id] = mapping.symbol
    return [_to_row(item, mappings.get(item.item_key, {})) for item in items]


def _to_row(item: PricedItem, mappings: Mapping[str, str]) -> ItemRow:
    return ItemRow(
        item_key=item.item_key,
        id=item.id,
        symbol=item.symbol,
        name=item.name,
        item_class=ItemClass(item.item_class),
        mappings=dict(sorted(mappings.items())),
        created_at=item.created_at,
        updated_at=item.updated_at,
    )


def _audited(item: ItemRow) -> dict[str, object]:
    mappings = [{"priceSource": source_id, "symbol": symbol} for source_id, symbol in item.mappings.items()]
    return {"symbol": item.symbol, "name": item.name, "class": item.item_class.value, "mappings": mappings}
