"""Rules of ledgers, and the pins of the networks they use."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from control import ledgers, revision, subjects, tokens, wallets
from control.access import Principal, Role
from control.errors import Conflict, Denied, Invalid, NotFound
from control.ledgers import LedgerPatch, LedgerPut
from control.models import Ledger
from control.networks.evm import EvmDefinition
from control.networks.pins import enforce_pins, undefined_networks
from control.pages import After
from control.subjects import TokenCreate, WalletCreate
from tests.unit.control.conftest import World, on_both, on_postgres
from tests.unit.control.second_writer import start_waiting

NOON = datetime(2024, 5, 1, 12, 0, 0, 250_000, tzinfo=UTC)


def put(world: World, network: str = "ethereum", name: str = "main", **values: Any) -> tuple[Ledger, bool]:
    now = values.pop("now", None)
    with world.store.write() as session:
        return ledgers.put(session, world.acme, world.networks, network, LedgerPut(name=name, **values), now)


def count(world: World) -> int:
    with world.store.read() as session:
        return len(ledgers.list_page(session, world.acme.tenant_id, 1000).rows)


@on_both
def test_put_creates_then_updates_then_changes_nothing(world: World) -> None:
    ledger, is_created = put(world, display_name="Main", description="two\nlines", now=NOON)
    assert is_created
    later = NOON + timedelta(seconds=1)
    updated, is_created = put(world, display_name="Other", now=later)
    assert not is_created
    with world.store.read() as session:
        before = revision.read_revision(session)
    put(world, display_name="Other", now=later + timedelta(hours=1))
    with world.store.read() as session:
        stored = ledgers.get(session, world.acme.tenant_id, "main")
        assert revision.read_revision(session) == before
    assert (stored.id, stored.network, stored.name) == (ledger.id, "ethereum", "main")
    assert (stored.display_name, stored.description) == (updated.display_name, updated.description) == ("Other", None)
    assert (stored.created_at, stored.updated_at) == (NOON, later)


@on_both
def test_a_name_is_one_tenants_and_one_networks(world: World) -> None:
    ledger, _ = put(world)
    with pytest.raises(Conflict) as caught:
        put(world, network="polygon")
    assert (caught.value.code, caught.value.existing_id) == ("ledger-on-other-network", ledger.id)
    with world.store.write() as session:
        other, is_created = ledgers.put(session, world.other, world.networks, "polygon", LedgerPut(name="main"))
    assert is_created
    with world.store.read() as session:
        for reference in (ledger.id, "main"):
            assert ledgers.get(session, world.acme.tenant_id, reference).id == ledger.id
        assert ledgers.get(session, world.other.tenant_id, "main").id == other.id
        for reference in (other.id, "none", "", "a\x00", "LED_" + ledger.id[4:]):
            with pytest.raises(NotFound):
                ledgers.get(session, world.acme.tenant_id, reference)


def test_names(world: World) -> None:
    for name in ("a", "0", "a-b-", "a" * 63):
        assert put(world, name=name)[1], name
    for name in ("", "A", "-a", "a_b", "a b", "a" * 64, "ä", "a\n", "a\x00"):
        with pytest.raises(Invalid) as caught:
            put(world, name=name)
        assert (name, caught.value.field) == (name, "name")
    assert count(world) == 4


@pytest.mark.parametrize(
    ("values", "field"),
    [
        ({"display_name": "a\nb"}, "displayName"),
        ({"display_name": "x" * 201}, "displayName"),
        ({"description": "x" * 2001}, "description"),
    ],
)
def test_bad_texts_are_named(world: World, values: dict[str, str], field: str) -> None:
    with pytest.raises(Invalid) as caught:
        put(world, **values)
    assert caught.value.field == field


def test_an_unknown_network_is_not_found_and_a_viewer_denied(world: World) -> None:
    with pytest.raises(NotFound):
        put(world, network="nowhere")
    viewer = Principal(world.acme.tenant_id, world.acme.key_id, Role.VIEWER)
    with pytest.raises(Denied), world.store.write() as session:
        ledgers.put(session, viewer, world.networks, "ethereum", LedgerPut(name="main"))
    assert count(world) == 0


@on_both
def test_pages_hold_every_ledger_once_also_when_one_is_added(world: World) -> None:
    made = [put(world, name=f"l{number}")[0].id for number in range(5)]
    seen: list[str] = []
    after: After | None = None
    while True:
        with world.store.read() as session:
            page = ledgers.list_page(session, world.acme.tenant_id, 2, after)
        seen += [ledger.id for ledger in page.rows]
        if len(seen) == 2:
            made.append(put(world, name="later")[0].id)
        after = page.after
        if after is None:
            break
    assert seen == made
    with world.store.read() as session:
        assert ledgers.list_page(session, world.other.tenant_id, 2).rows == ()
        for limit in (0, 1001):
            with pytest.raises(Invalid):
                ledgers.list_page(session, world.acme.tenant_id, limit)


@on_postgres
def test_two_writers_of_one_name_give_one_ledger(world: World) -> None:
    with world.store.write() as session:
        first, is_created = ledgers.put(
            session, world.acme, world.networks, "ethereum", LedgerPut(name="main", display_name="first")
        )
        same = start_waiting(world.settings, lambda: put(world, display_name="second"))
        elsewhere = start_waiting(world.settings, lambda: put(world, network="polygon"))
    ledger, is_second_created = same.result()
    assert (is_created, is_second_created, ledger.id, count(world)) == (True, False, first.id, 1)
    refused = elsewhere.exception()
    assert isinstance(refused, Conflict)
    assert refused.existing_id == first.id


def test_a_network_in_use_keeps_its_chain(world: World) -> None:
    put(world)
    changed = world.networks | {
        "ethereum": replace(
            world.networks["ethereum"], own=EvmDefinition(2, None, None), is_enabled=True, disabled_reason=None
        ),
        "polygon": replace(
            world.networks["polygon"], own=EvmDefinition(3, None, None), is_enabled=True, disabled_reason=None
        ),
    }
    with pytest.raises(Conflict) as caught, world.store.write() as session:
        ledgers.put(session, world.acme, changed, "ethereum", LedgerPut(name="second"))
    assert caught.value.code == "network-changed"
    assert "evm chain 1," in caught.value.detail
    assert "evm chain 2" in caught.value.detail
    assert count(world) == 1
    with world.store.read() as session:
        enforced = enforce_pins(session, changed)
        assert enforce_pins(session, world.networks) == world.networks
    assert (enforced["ethereum"].is_enabled, enforced["ethereum"].disabled_reason) == (False, caught.value.detail)
    assert enforced["polygon"] == changed["polygon"]
    assert list(enforced) == list(changed)


def test_a_network_in_use_that_is_not_defined_is_found(world: World) -> None:
    put(world)
    with world.store.read() as session:
        assert undefined_networks(session, world.networks) == []
        assert undefined_networks(session, world.networks.keys() - {"ethereum", "polygon"}) == ["ethereum"]
        assert undefined_networks(session, [], world.acme.tenant_id) == ["ethereum"]
        assert undefined_networks(session, [], "ten_other") == []
    with world.store.write() as session:
        ledgers.remove(session, world.acme, "main")
    with world.store.read() as session:
        assert undefined_networks(session, []) == []


def test_update_keeps_unset_fields_and_none_clears_a_field(world: World) -> None:
    ledger, _ = put(world, display_name="Main", description="d", now=NOON)
    later = NOON + timedelta(seconds=1)
    with world.store.write() as session:
        changed = ledgers.update(session, world.acme, "main", LedgerPatch(display_name="Other"), now=later)
    assert (changed.display_name, changed.description, changed.updated_at) == ("Other", "d", later)
    with world.store.write() as session:
        cleared = ledgers.update(
            session, world.acme, ledger.id, LedgerPatch(display_name=None, description=None), now=later
        )
    assert (cleared.id, cleared.display_name, cleared.description) == (ledger.id, None, None)
    with world.store.read() as session:
        before = revision.read_revision(session)
    with world.store.write() as session:
        ledgers.update(session, world.acme, "main", LedgerPatch(display_name=None))
        ledgers.update(session, world.acme, "main", LedgerPatch())
    with world.store.read() as session:
        assert revision.read_revision(session) == before


def test_invalid_changes_are_refused(world: World) -> None:
    put(world)
    viewer = Principal(world.acme.tenant_id, world.acme.key_id, Role.VIEWER)
    with world.store.write() as session:
        with pytest.raises(Denied):
            ledgers.update(session, viewer, "main", LedgerPatch(display_name="x"))
        for principal, name in ((world.other, "main"), (world.acme, "none"), (world.acme, "\x00")):
            with pytest.raises(NotFound):
                ledgers.update(session, principal, name, LedgerPatch(display_name="x"))
        with pytest.raises(Invalid) as caught:
            ledgers.update(session, world.acme, "main", LedgerPatch(description="a\x00"))
    assert caught.value.field == "description"


def test_ledger_in_use_cannot_be_removed(world: World) -> None:
    ledger, _ = put(world)
    made = []
    with world.store.write() as session:
        for number in (1, 2):
            made.append(
                tokens.create(
                    session,
                    world.acme,
                    world.networks,
                    TokenCreate(ledger="main", symbol="T", ledger_id=f"0x{number:040x}"),
                )
            )
        wallet = wallets.create(
            session, world.acme, world.networks, WalletCreate(ledger="main", ledger_id=f"0x{1:040x}")
        )
    with pytest.raises(Conflict, match="used by 2 tokens and 1 wallet;") as caught, world.store.write() as session:
        ledgers.remove(session, world.acme, "main")
    assert (caught.value.code, caught.value.existing_id) == ("ledger-in-use", ledger.id)
    with world.store.write() as session:
        subjects.remove(session, world.acme, wallet)
        for token in made:
            subjects.remove(session, world.acme, token)
        ledgers.remove(session, world.acme, "main")
    assert count(world) == 0


@on_both
def test_only_admin_removes_a_ledger_and_its_name_becomes_free(world: World) -> None:
    ledger, _ = put(world)
    operator = Principal(world.acme.tenant_id, world.acme.key_id, Role.OPERATOR)
    with pytest.raises(Denied), world.store.write() as session:
        ledgers.remove(session, operator, "main")
    for principal, name in ((world.other, ledger.id), (world.acme, "none")):
        with pytest.raises(NotFound), world.store.write() as session:
            ledgers.remove(session, principal, name)
    with world.store.write() as session:
        ledgers.remove(session, world.acme, ledger.id, NOON)
    with pytest.raises(NotFound), world.store.write() as session:
        ledgers.remove(session, world.acme, ledger.id)
    with world.store.read() as session:
        assert session.get_one(Ledger, ledger.id).removed_at == NOON
        with pytest.raises(NotFound):
            ledgers.get(session, world.acme.tenant_id, ledger.id)
    assert count(world) == 0
    second, is_created = put(world, network="polygon")
    assert (is_created, second.id == ledger.id) == (True, False)
    with world.store.read() as session:
        assert ledgers.get(session, world.acme.tenant_id, "main").id == second.id
