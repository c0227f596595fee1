"""Rules of priced items and of their symbols at sources."""

from collections.abc import Sequence
from datetime import timedelta
from typing import Any

import pytest

from control import audit, revision
from control.access import Principal, Role
from control.audit import AuditFilters
from control.errors import Conflict, Denied, Invalid, NotFound
from control.pages import After
from control.pricing import items, pairs, sources, supported_pairs
from control.pricing.items import (
    ItemClass,
    ItemRow,
    MappingSymbolPut,
    MappingSymbolsPut,
    PricedItemCreate,
    PricedItemPatch,
)
from control.pricing.sources import PriceSourceCreate
from control.pricing.supported_pairs import SupportedPairCreate
from tests.unit.control.conftest import World, on_both, on_postgres
from tests.unit.control.pricing import DEFINITIONS, NOON, add_items, add_manual, make
from tests.unit.control.second_writer import start_waiting

LATER = NOON + timedelta(seconds=1)


def create(world: World, symbol: str = "BTC", principal: Principal | None = None, **values: Any) -> ItemRow:
    given = {"name": "Bitcoin", "item_class": "Cryptocurrency"} | values
    now, class_ = given.pop("now", NOON), given.pop("item_class")
    with world.store.write() as session:
        return items.create(
            session, principal or world.acme, PricedItemCreate(symbol=symbol, class_=class_, **given), now
        )


def mapped(mappings: Sequence[tuple[str, str]]) -> MappingSymbolsPut:
    return MappingSymbolsPut(mappings=[MappingSymbolPut(price_source=source, symbol=text) for source, text in mappings])


def get(world: World, symbol: str = "BTC") -> ItemRow:
    with world.store.read() as session:
        return items.get(session, world.acme.tenant_id, symbol)


def put(world: World, *mappings: tuple[str, str], symbol: str = "BTC", principal: Principal | None = None) -> ItemRow:
    with world.store.write() as session:
        return items.put_mappings(session, principal or world.acme, DEFINITIONS, symbol, mapped(mappings), now=LATER)


def count_of_writes(world: World) -> tuple[int, int]:
    with world.store.read() as session:
        events = audit.list_page(session, world.acme.tenant_id, AuditFilters(), 1000).rows
        return revision.read_revision(session), len(events)


def as_role(world: World, role: Role) -> Principal:
    return Principal(world.acme.tenant_id, world.acme.key_id, role)


def test_stored_item_is_returned(world: World) -> None:
    made = create(world)
    assert made == get(world)
    assert (made.symbol, made.name, made.item_class) == ("BTC", "Bitcoin", ItemClass.CRYPTOCURRENCY)
    assert (dict(made.mappings), made.created_at, made.updated_at) == ({}, NOON, NOON)
    assert made.id.startswith("item_")


@on_both
def test_a_symbol_is_one_tenants_and_case_counts(world: World) -> None:
    first = create(world)
    with pytest.raises(Conflict, match="'BTC'") as caught:
        create(world, name="Other")
    assert (caught.value.code, caught.value.existing_id) == ("duplicate-symbol", "BTC")
    assert create(world, "btc").id != first.id
    theirs = create(world, principal=world.other)
    with world.store.read() as session:
        assert items.get(session, world.other.tenant_id, "BTC").id == theirs.id
        assert items.find(session, world.other.tenant_id, "btc") is None


def test_symbols_that_fit_a_path(world: World) -> None:
    for symbol in ("B", "A" * 64, "BTC.b", "USD:EUR", "x$1", "a+b", "A_1-2", "7UP"):
        assert create(world, symbol).symbol == symbol


def test_invalid_values_are_refused(world: World) -> None:
    for symbol in ("", "A" * 65, ".", "-A", "a b", "a/b", "é", "BTC\n", "a%41", "a?b", "\x00"):
        with pytest.raises(Invalid) as caught:
            create(world, symbol)
        assert caught.value.field == "symbol"
        with pytest.raises(NotFound):
            get(world, symbol)
    for values, field in (({"name": ""}, "name"), ({"item_class": "currency"}, "class")):
        with pytest.raises(Invalid) as caught:
            create(world, **values)
        assert caught.value.field == field


def test_update_keeps_unset_fields(world: World) -> None:
    made = create(world)
    with world.store.write() as session:
        changed = items.update(session, world.acme, "BTC", PricedItemPatch(class_="Other"), now=LATER)
    assert (changed.name, changed.item_class, changed.updated_at) == ("Bitcoin", ItemClass.OTHER, LATER)
    assert changed.id == made.id
    before = count_of_writes(world)
    with world.store.write() as session:
        items.update(session, world.acme, "BTC", PricedItemPatch(name="Bitcoin"))
        items.update(session, world.acme, "BTC", PricedItemPatch())
    assert (get(world), count_of_writes(world)) == (changed, before)


@on_both
def test_mappings_replace_each_other(world: World) -> None:
    create(world)
    manual = add_manual(world)
    first = put(world, ("src_kraken", "XXBT"), (manual, "btc at ours"))
    assert dict(first.mappings) == {"src_kraken": "XXBT", manual: "btc at ours"}
    assert first == get(world)
    before = count_of_writes(world)
    assert put(world, (manual, "btc at ours"), ("src_kraken", "XXBT")) == first
    assert count_of_writes(world) == before
    assert dict(put(world, ("src_kraken", "XBT")).mappings) == {"src_kraken": "XBT"}
    assert dict(put(world).mappings) == {}
    assert count_of_writes(world) == (before[0] + 2, before[1] + 2)


def test_a_mapping_to_a_source_that_is_switched_off_is_kept(world: World) -> None:
    create(world)
    with world.store.write() as session:
        sources.set_enabled(session, world.acme, DEFINITIONS, "src_kraken", enabled=False)
    assert dict(put(world, ("src_kraken", "XXBT")).mappings) == {"src_kraken": "XXBT"}


def test_invalid_mappings_are_refused(world: World) -> None:
    create(world)
    put(world, ("src_kraken", "XXBT"))
    with world.store.write() as session:
        theirs = sources.create(session, world.other, PriceSourceCreate(name="Theirs")).id
    for mappings, field, code in (
        ([("src_none", "X")], "mappings/0/priceSource", "unknown-source"),
        ([("src_kraken", "X"), (theirs, "X")], "mappings/1/priceSource", "unknown-source"),
        ([("\x00", "X")], "mappings/0/priceSource", "unknown-source"),
        ([("src_kraken", "X"), ("src_kraken", "Y")], "mappings/1/priceSource", "repeated-source"),
        ([("src_kraken", " ")], "mappings/0/symbol", "empty"),
        ([("src_kraken", "X" * 65)], "mappings/0/symbol", "too-long"),
        ([("src_kraken", "X")] * 101, "mappings", "too-many"),
    ):
        with pytest.raises(Invalid) as caught:
            put(world, *mappings)
        assert (caught.value.field, caught.value.code) == (field, code)
    with pytest.raises(NotFound):
        put(world, symbol="ETH")
    with pytest.raises(NotFound):
        put(world, principal=world.other)
    assert dict(get(world).mappings) == {"src_kraken": "XXBT"}


@on_both
def test_item_in_use_cannot_be_removed(world: World) -> None:
    add_items(world, world.acme, "BTC", "USD", "EUR", "FUND")
    manual = add_manual(world)
    pair = make(world, "BTC/EUR", bridge="USD", allow_inverse=True)
    with world.store.write() as session:
        supported = supported_pairs.create(
            session,
            world.acme,
            DEFINITIONS,
            manual,
            SupportedPairCreate(priced_as="FUND", priced_in="USD", price_type="NAV"),
        )
    for symbol, users in (
        ("BTC", pair.id),
        ("EUR", pair.id),
        ("USD", f"{pair.id}, {supported.id}"),
        ("FUND", supported.id),
    ):
        with pytest.raises(Conflict, match=f"used by {users};") as caught, world.store.write() as session:
            items.remove(session, world.acme, symbol)
        assert (caught.value.code, caught.value.existing_id) == ("item-in-use", symbol)
    with world.store.write() as session:
        pairs.remove(session, world.acme, pair.id)
        supported_pairs.remove(session, world.acme, DEFINITIONS, manual, supported.id)
        for symbol in ("BTC", "EUR", "USD", "FUND"):
            items.remove(session, world.acme, symbol, NOON)
    with world.store.read() as session:
        assert items.list_page(session, world.acme.tenant_id).rows == ()


def test_many_users_are_counted(world: World) -> None:
    add_items(world, world.acme, "USD", *(f"S{number}" for number in range(12)))
    manual = add_manual(world)
    with world.store.write() as session:
        for number in range(12):
            supported_pairs.create(
                session,
                world.acme,
                DEFINITIONS,
                manual,
                SupportedPairCreate(priced_as=f"S{number}", priced_in="USD", price_type="NAV"),
            )
    with pytest.raises(Conflict, match=", 2 more;"), world.store.write() as session:
        items.remove(session, world.acme, "USD")


@on_both
def test_a_removed_items_symbol_is_free(world: World) -> None:
    first = create(world)
    put(world, ("src_kraken", "XXBT"))
    with world.store.write() as session:
        items.remove(session, world.acme, "BTC")
    with pytest.raises(NotFound):
        get(world)
    with pytest.raises(NotFound), world.store.write() as session:
        items.remove(session, world.acme, "BTC")
    second = create(world)
    assert second.id != first.id
    assert dict(second.mappings) == {}


def test_roles_and_tenants_limit_writes(world: World) -> None:
    create(world)
    viewer, operator = as_role(world, Role.VIEWER), as_role(world, Role.OPERATOR)
    with world.store.write() as session:
        for attempt in (
            lambda: items.create(session, viewer, PricedItemCreate(symbol="X", name="X", class_="Other")),
            lambda: items.update(session, viewer, "BTC", PricedItemPatch(name="X")),
            lambda: items.put_mappings(session, viewer, DEFINITIONS, "BTC", mapped([])),
            lambda: items.remove(session, operator, "BTC"),
        ):
            with pytest.raises(Denied):
                attempt()
        with pytest.raises(NotFound):
            items.update(session, world.other, "BTC", PricedItemPatch(name="X"))
        with pytest.raises(NotFound):
            items.remove(session, world.other, "BTC")


def test_every_write_is_audited(world: World) -> None:
    made = create(world)
    with world.store.write() as session:
        items.update(session, world.acme, "BTC", PricedItemPatch(name="B"), now=NOON)
    put(world, ("src_kraken", "XXBT"))
    with world.store.write() as session:
        items.remove(session, world.acme, "BTC")
    with world.store.read() as session:
        events = audit.list_page(session, world.acme.tenant_id, AuditFilters(object_id=made.id)).rows[::-1]
    assert [event.action for event in events] == [
        "priced-item.create",
        "priced-item.update",
        "priced-item.mapping",
        "priced-item.remove",
    ]
    first = {"symbol": "BTC", "name": "Bitcoin", "class": "Cryptocurrency", "mappings": []}
    mapped = first | {"name": "B", "mappings": [{"priceSource": "src_kraken", "symbol": "XXBT"}]}
    states = [first, first | {"name": "B"}, mapped]
    assert [(event.before, event.after) for event in events] == list(zip([None, *states], [*states, None], strict=True))


@on_both
def test_pages_hold_every_item_once_in_the_order_of_creation(world: World) -> None:
    made = [create(world, symbol).symbol for symbol in ("Z", "a", "M", "B")]
    put(world, ("src_kraken", "zz"), symbol="Z")
    create(world, "THEIRS", world.other)
    seen: list[ItemRow] = []
    after: After | None = None
    while True:
        with world.store.read() as session:
            page = items.list_page(session, world.acme.tenant_id, 2, after)
        assert len(page.rows) == 2
        seen += page.rows
        after = page.after
        if after is None:
            break
    assert [row.symbol for row in seen] == made
    assert seen == [get(world, symbol) for symbol in made]
    assert dict(seen[0].mappings) == {"src_kraken": "zz"}
    with world.store.read() as session, pytest.raises(Invalid):
        items.list_page(session, world.acme.tenant_id, 1001)


@on_postgres
def test_two_writers_of_one_symbol_give_one_item(world: World) -> None:
    with world.store.write() as session:
        first = items.create(session, world.acme, PricedItemCreate(symbol="BTC", name="B", class_="Other"), now=NOON)
        second = start_waiting(world.settings, lambda: create(world))
    assert isinstance(second.exception(), Conflict)
    assert get(world) == first


@on_postgres
def test_item_is_not_removed_while_a_pair_is_created(world: World) -> None:
    add_items(world, world.acme, "FUND", "USD")
    manual = add_manual(world)

    def remove() -> None:
        with world.store.write() as session:
            items.remove(session, world.acme, "FUND")

    with world.store.write() as session:
        supported_pairs.create(
            session,
            world.acme,
            DEFINITIONS,
            manual,
            SupportedPairCreate(priced_as="FUND", priced_in="USD", price_type="NAV"),
        )
        second = start_waiting(world.settings, remove)
    refused = second.exception()
    assert isinstance(refused, Conflict)
    assert refused.code == "item-in-use"


@on_postgres
def test_no_pair_is_created_with_an_item_being_removed(world: World) -> None:
    add_items(world, world.acme, "FUND", "USD")
    manual = add_manual(world)

    def support() -> None:
        with world.store.write() as session:
            supported_pairs.create(
                session,
                world.acme,
                DEFINITIONS,
                manual,
                SupportedPairCreate(priced_as="FUND", priced_in="USD", price_type="NAV"),
            )

    with world.store.write() as session:
        items.remove(session, world.acme, "FUND")
        second = start_waiting(world.settings, support)
    refused = second.exception()
    assert isinstance(refused, Invalid)
    assert refused.code == "unknown-symbol"
