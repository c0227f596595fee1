"""Rules of price sources and of the pairs that manual ones support."""

from datetime import timedelta
from typing import Any

import pytest

from control import audit, revision
from control.access import Principal, Role
from control.audit import AuditFilters
from control.errors import Conflict, Denied, Invalid, NotFound
from control.pages import After
from control.pricing import items, pairs, sources, supported_pairs
from control.pricing.items import MappingSymbolPut, MappingSymbolsPut
from control.pricing.price_types import PriceType
from control.pricing.sources import PriceSourceCreate, PriceSourcePatch, SourceKind, SourceRow
from control.pricing.supported_pairs import SupportedPairCreate, SupportedPairRow
from tests.unit.control.conftest import World, on_both, on_postgres
from tests.unit.control.pricing import DEFINITIONS, NOON, add_items, add_manual, make
from tests.unit.control.second_writer import start_waiting

LATER = NOON + timedelta(seconds=1)


def create(world: World, name: str = "Desk", principal: Principal | None = None) -> SourceRow:
    with world.store.write() as session:
        return sources.create(session, principal or world.acme, PriceSourceCreate(name=name), now=NOON)


def get(world: World, source_id: str, principal: Principal | None = None) -> SourceRow:
    with world.store.read() as session:
        return sources.get(session, (principal or world.acme).tenant_id, DEFINITIONS, source_id)


def switch(world: World, source_id: str, enabled: bool, principal: Principal | None = None) -> SourceRow:
    with world.store.write() as session:
        return sources.set_enabled(session, principal or world.acme, DEFINITIONS, source_id, enabled=enabled, now=LATER)


def support(world: World, source_id: str, pair: str = "FUND/USD", price_type: str = "NAV") -> SupportedPairRow:
    priced_as, priced_in = pair.split("/")
    with world.store.write() as session:
        return supported_pairs.create(
            session,
            world.acme,
            DEFINITIONS,
            source_id,
            SupportedPairCreate(priced_as=priced_as, priced_in=priced_in, price_type=price_type),
            now=NOON,
        )


def writes(world: World) -> int:
    with world.store.read() as session:
        return revision.read_revision(session)


def events(world: World, object_id: str) -> list[tuple[str, Any, Any]]:
    with world.store.read() as session:
        found = audit.list_page(session, world.acme.tenant_id, AuditFilters(object_id=object_id)).rows[::-1]
    return [(event.action, event.before, event.after) for event in found]


def test_a_manual_source_starts_disabled_and_a_preconfigured_one_enabled(world: World) -> None:
    made = create(world)
    assert made == get(world, made.id)
    assert (made.name, made.kind, made.is_enabled) == ("Desk", SourceKind.MANUAL, False)
    assert (made.price_types, made.history_types, made.granularities) == (tuple(PriceType), (), ())
    kraken = get(world, "src_kraken")
    assert (kraken.name, kraken.kind, kraken.is_enabled) == ("Kraken", SourceKind.PRECONFIGURED, True)
    assert kraken.price_types == (PriceType.ASK, PriceType.BID, PriceType.TRADE)
    assert (kraken.history_types, kraken.granularities) == ((PriceType.TRADE,), ("1m", "1d"))
    assert (kraken.source_key, kraken.created_at) == (None, None)


@on_both
def test_enabling_is_idempotent_and_affects_one_tenant(world: World) -> None:
    made = create(world)
    for source_id, first in ((made.id, True), ("src_kraken", False)):
        before = writes(world)
        assert switch(world, source_id, first).is_enabled is first
        assert switch(world, source_id, first).is_enabled is first
        assert writes(world) == before + 1
        assert switch(world, source_id, not first).is_enabled is not first
        assert switch(world, source_id, first) == get(world, source_id)
        actions = [action for action, _, _ in events(world, source_id) if action != "price-source.create"]
        assert actions == [f"price-source.{'enable' if on else 'disable'}" for on in (first, not first, first)]
    assert get(world, "src_kraken", world.other).is_enabled
    assert events(world, "src_kraken")[0][1:] == ({"enabled": True}, {"enabled": False})


def test_setting_the_initial_state_changes_nothing(world: World) -> None:
    made = create(world)
    before = writes(world)
    assert not switch(world, made.id, False).is_enabled
    assert switch(world, "src_kraken", True).is_enabled
    assert writes(world) == before


@on_postgres
def test_two_concurrent_first_switches(world: World) -> None:
    with world.store.write() as session:
        sources.set_enabled(session, world.acme, DEFINITIONS, "src_kraken", enabled=False)
        second = start_waiting(world.settings, lambda: switch(world, "src_kraken", True))
    assert second.result().is_enabled
    assert get(world, "src_kraken").is_enabled


@on_both
def test_names_are_one_tenants(world: World) -> None:
    first = create(world)
    with pytest.raises(Conflict) as caught:
        create(world)
    assert (caught.value.code, caught.value.existing_id) == ("duplicate-source", first.id)
    create(world, principal=world.other)
    second = create(world, "Second")
    with pytest.raises(Conflict) as caught, world.store.write() as session:
        sources.rename(session, world.acme, DEFINITIONS, second.id, PriceSourcePatch(name="Desk"))
    assert caught.value.existing_id == first.id
    assert get(world, second.id) == second
    for name in ("", " x", "a\x00b", "n" * 201):
        with pytest.raises(Invalid) as invalid:
            create(world, name)
        assert invalid.value.field == "name"


def test_renaming(world: World) -> None:
    made = create(world)
    with world.store.write() as session:
        renamed = sources.rename(session, world.acme, DEFINITIONS, made.id, PriceSourcePatch(name="Other"), now=LATER)
    assert (renamed.name, renamed.updated_at) == ("Other", LATER)
    assert renamed == get(world, made.id)
    before = writes(world)
    with world.store.write() as session:
        assert sources.rename(session, world.acme, DEFINITIONS, made.id, PriceSourcePatch(name="Other")) == renamed
        assert sources.rename(session, world.acme, DEFINITIONS, made.id, PriceSourcePatch()) == renamed
    assert writes(world) == before
    assert events(world, made.id)[1:] == [
        ("price-source.update", {"name": "Desk", "enabled": False}, {"name": "Other", "enabled": False})
    ]


def test_preconfigured_source_can_only_be_enabled_or_disabled(world: World) -> None:
    add_items(world, world.acme, "BTC", "USD")
    with world.store.write() as session:
        for attempt in (
            lambda: sources.rename(session, world.acme, DEFINITIONS, "src_kraken", PriceSourcePatch(name="Mine")),
            lambda: sources.remove(session, world.acme, DEFINITIONS, "src_kraken"),
            lambda: supported_pairs.create(
                session,
                world.acme,
                DEFINITIONS,
                "src_kraken",
                SupportedPairCreate(priced_as="BTC", priced_in="USD", price_type="NAV"),
            ),
            lambda: supported_pairs.list_page(session, world.acme.tenant_id, DEFINITIONS, "src_kraken"),
        ):
            with pytest.raises(Conflict, match="Kraken is preconfigured") as caught:
                attempt()
            assert caught.value.code == "preconfigured-source"


def test_another_tenants_source_does_not_exist(world: World) -> None:
    theirs = create(world, principal=world.other).id
    with world.store.write() as session:
        for source_id in (theirs, "src_none", "kraken", "\x00", "src_" + "0" * 26):
            for attempt in (
                lambda source_id=source_id: sources.get(session, world.acme.tenant_id, DEFINITIONS, source_id),
                lambda source_id=source_id: sources.rename(
                    session, world.acme, DEFINITIONS, source_id, PriceSourcePatch(name="x")
                ),
                lambda source_id=source_id: sources.remove(session, world.acme, DEFINITIONS, source_id),
                lambda source_id=source_id: sources.set_enabled(
                    session, world.acme, DEFINITIONS, source_id, enabled=True
                ),
                lambda source_id=source_id: supported_pairs.list_page(
                    session, world.acme.tenant_id, DEFINITIONS, source_id
                ),
            ):
                with pytest.raises(NotFound):
                    attempt()


@on_both
def test_pages_hold_the_preconfigured_ones_first(world: World) -> None:
    made = [create(world, name).id for name in ("B", "A", "C")]
    create(world, "Theirs", world.other)
    switch(world, made[1], True)
    switch(world, "src_gemini", False)
    expected = [*sorted(DEFINITIONS), *made]
    for size in range(1, 8):
        seen: list[SourceRow] = []
        after: After | None = None
        while True:
            with world.store.read() as session:
                page = sources.list_page(session, world.acme.tenant_id, DEFINITIONS, size, after)
            seen += page.rows
            after = page.after
            if after is None:
                break
            assert len(page.rows) == size
        assert [row.id for row in seen] == expected
        assert seen == [get(world, source_id) for source_id in expected]


def test_source_in_use_cannot_be_removed(world: World) -> None:
    add_items(world, world.acme, "FUND", "USD")
    manual = add_manual(world)
    supported = support(world, manual)
    pair = make(world, "FUND/USD", price_type="NAV", price_sources=[manual])
    with world.store.write() as session:
        mapped = [MappingSymbolPut(price_source=manual, symbol="F")]
        items.put_mappings(session, world.acme, DEFINITIONS, "FUND", MappingSymbolsPut(mappings=mapped))
    for users in (f"{pair.id}, priced item 'FUND'", "priced item 'FUND'"):
        with pytest.raises(Conflict, match=f"used by {users};") as caught, world.store.write() as session:
            sources.remove(session, world.acme, DEFINITIONS, manual)
        assert (caught.value.code, caught.value.existing_id) == ("source-in-use", manual)
        if users.startswith(pair.id):
            with world.store.write() as session:
                pairs.remove(session, world.acme, pair.id)
    with world.store.write() as session:
        items.put_mappings(session, world.acme, DEFINITIONS, "FUND", MappingSymbolsPut(mappings=[]))
        sources.remove(session, world.acme, DEFINITIONS, manual)
        items.remove(session, world.acme, "FUND")  # the supported pair was removed with its source
    with pytest.raises(NotFound):
        get(world, manual)
    with world.store.read() as session, pytest.raises(NotFound):
        supported_pairs.get(session, world.acme.tenant_id, DEFINITIONS, manual, supported.id)
    assert create(world, "Ours").id != manual
    assert events(world, manual)[-1] == ("price-source.remove", {"name": "Ours", "enabled": True}, None)


def test_roles_and_tenants_limit_writes(world: World) -> None:
    made = create(world)
    viewer = Principal(world.acme.tenant_id, world.acme.key_id, Role.VIEWER)
    operator = Principal(world.acme.tenant_id, world.acme.key_id, Role.OPERATOR)
    with world.store.write() as session:
        for attempt in (
            lambda: sources.create(session, viewer, PriceSourceCreate(name="x")),
            lambda: sources.rename(session, viewer, DEFINITIONS, made.id, PriceSourcePatch(name="x")),
            lambda: sources.set_enabled(session, viewer, DEFINITIONS, made.id, enabled=True),
            lambda: sources.remove(session, operator, DEFINITIONS, made.id),
            lambda: supported_pairs.create(
                session,
                viewer,
                DEFINITIONS,
                made.id,
                SupportedPairCreate(priced_as="A", priced_in="B", price_type="NAV"),
            ),
            lambda: supported_pairs.remove(session, operator, DEFINITIONS, made.id, "spair_x"),
        ):
            with pytest.raises(Denied):
                attempt()


@on_both
def test_supported_pairs(world: World) -> None:
    add_items(world, world.acme, "FUND", "USD", "EUR")
    manual = create(world).id
    before = writes(world)
    made = [support(world, manual, pair, kind) for pair, kind in (("FUND/USD", "NAV"), ("FUND/EUR", "NAV"))]
    made.append(support(world, manual, "FUND/USD", "Market"))
    assert writes(world) == before + 3
    assert (made[0].priced_as, made[0].priced_in, made[0].price_type) == ("FUND", "USD", PriceType.NAV)
    assert (made[0].source_id, made[0].created_at) == (manual, NOON)
    with pytest.raises(Conflict) as caught:
        support(world, manual)
    assert (caught.value.code, caught.value.existing_id) == ("duplicate-supported-pair", made[0].id)
    with world.store.read() as session:
        asked = (session, world.acme.tenant_id, DEFINITIONS, manual)
        assert [supported_pairs.get(*asked, pair.id) for pair in made] == made
        first = supported_pairs.list_page(*asked, 2)
        second = supported_pairs.list_page(*asked, 2, first.after)
    assert [*first.rows, *second.rows] == made
    assert second.after is None
    other = create(world, "Second").id
    with world.store.read() as session, pytest.raises(NotFound):
        supported_pairs.get(session, world.acme.tenant_id, DEFINITIONS, other, made[0].id)
    assert events(world, made[1].id) == [
        (
            "supported-pair.create",
            None,
            {"priceSource": manual, "pricedAs": "FUND", "pricedIn": "EUR", "priceType": "NAV"},
        )
    ]


def test_invalid_supported_pairs_are_refused(world: World) -> None:
    add_items(world, world.acme, "FUND", "USD")
    add_items(world, world.other, "THEIRS")
    manual = create(world).id
    for pair, price_type, field in (
        ("NONE/USD", "NAV", "pricedAs"),
        ("fund/USD", "NAV", "pricedAs"),
        ("FUND/NONE", "NAV", "pricedIn"),
        ("FUND/FUND", "NAV", "pricedIn"),
        ("THEIRS/USD", "NAV", "pricedAs"),
        ("FUND/USD", "nav", "priceType"),
    ):
        with pytest.raises(Invalid) as caught:
            support(world, manual, pair, price_type)
        assert caught.value.field == field


def test_supported_pair_in_use_cannot_be_removed(world: World) -> None:
    add_items(world, world.acme, "FUND", "USD", "EUR")
    manual = add_manual(world)
    used, unused = support(world, manual), support(world, manual, "FUND/EUR")
    other_type = support(world, manual, price_type="Market")
    pair = make(world, "FUND/USD", price_type="NAV", price_sources=[manual])

    def remove(supported: SupportedPairRow) -> None:
        with world.store.write() as session:
            supported_pairs.remove(session, world.acme, DEFINITIONS, manual, supported.id)

    remove(unused)
    remove(other_type)
    with pytest.raises(NotFound):
        remove(unused)
    with pytest.raises(Conflict, match=pair.id) as caught:
        remove(used)
    assert (caught.value.code, caught.value.existing_id) == ("supported-pair-in-use", used.id)
    with world.store.write() as session:
        pairs.remove(session, world.acme, pair.id)
    remove(used)
    assert support(world, manual).id != used.id
    assert events(world, used.id)[-1][0] == "supported-pair.remove"


@on_postgres
def test_two_writers_of_one_supported_pair(world: World) -> None:
    add_items(world, world.acme, "FUND", "USD")
    manual = add_manual(world)
    with world.store.write() as session:
        first = supported_pairs.create(
            session,
            world.acme,
            DEFINITIONS,
            manual,
            SupportedPairCreate(priced_as="FUND", priced_in="USD", price_type="NAV"),
        )
        second = start_waiting(world.settings, lambda: support(world, manual))
    refused = second.exception()
    assert isinstance(refused, Conflict)
    assert refused.existing_id == first.id
