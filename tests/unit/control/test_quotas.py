"""Quotas of stored prices and objects: no writer exceeds them, not even two concurrent ones."""

from contextlib import closing
from dataclasses import replace
from decimal import Decimal

import pytest

from control import audit, ledgers, quotas, subjects, wallets
from control.access import Principal
from control.audit import AuditFilters
from control.errors import Conflict
from control.ledgers import LedgerPut
from control.networks.families import SCAN_RANGE
from control.pricing import manual_prices
from control.quotas import Quota, QuotaName
from control.store import open_store
from control.subjects import WalletCreate
from tests.unit.control.conftest import World, on_both
from tests.unit.control.second_writer import start_waiting
from tests.unit.control.test_descriptors import COMPRESSED, A, B
from tests.unit.control.test_manual_prices import Desk, check


def quota(world: World, name: QuotaName) -> Quota:
    with world.store.read() as session:
        (found,) = [one for one in quotas.read(session, world.acme.tenant_id) if one.name is name]
    return found


def set_limit(world: World, name: QuotaName, limit: int | None) -> None:
    with world.store.write() as session:
        quotas.set_limits(session, world.acme.tenant_id, {name: limit})


def put_ledger(world: World, name: str) -> None:
    with world.store.write() as session:
        ledgers.put(session, world.acme, world.networks, "ethereum", LedgerPut(name=name))


def test_an_installation_has_high_defaults(world: World) -> None:
    assert quota(world, QuotaName.OBJECTS) == (QuotaName.OBJECTS, 0, 10_000, "LEDGERMART_MAX_OBJECTS")
    assert quota(world, QuotaName.SCRIPTS) == (QuotaName.SCRIPTS, 0, 100_000, "LEDGERMART_MAX_SCRIPTS")
    prices = quota(world, QuotaName.STORED_PRICES)
    assert prices == (QuotaName.STORED_PRICES, 0, 1_000_000, "LEDGERMART_MAX_STORED_PRICES")


@on_both
def test_objects_up_to_the_limit(world: World) -> None:
    put_ledger(world, "one")
    set_limit(world, QuotaName.OBJECTS, 1)
    with pytest.raises(Conflict, match=r"quota objects allows 1, .*ledgermart tenant quotas --objects") as caught:
        put_ledger(world, "two")
    assert caught.value.code == "quota-exceeded"
    put_ledger(world, "one")
    assert quota(world, QuotaName.OBJECTS).used == 1
    with world.store.write() as session:
        ledgers.put(session, world.other, world.networks, "ethereum", LedgerPut(name="theirs"))
        ledgers.remove(session, world.acme, "one")
    put_ledger(world, "two")
    set_limit(world, QuotaName.OBJECTS, None)
    put_ledger(world, "three")
    assert quota(world, QuotaName.OBJECTS)[1:] == (2, 10_000, "LEDGERMART_MAX_OBJECTS")


@on_both
def test_of_two_writers_at_once_one_passes(world: World) -> None:
    put_ledger(world, "zero")
    set_limit(world, QuotaName.OBJECTS, 2)
    with world.store.write() as session:
        ledgers.put(session, world.acme, world.networks, "ethereum", LedgerPut(name="one"))
        waiting = start_waiting(world.settings, lambda: put_ledger(world, "two"))
    with pytest.raises(Conflict, match="this request would make 3"):
        waiting.result(60)
    assert quota(world, QuotaName.OBJECTS).used == 2


@on_both
def test_prices_count_with_revisions_and_as_a_whole(world: World) -> None:
    desk = Desk(world)
    desk.enter(("1", "2026-01-31"), ("2", "2026-02-01"))
    set_limit(world, QuotaName.STORED_PRICES, 4)
    with pytest.raises(Conflict, match="quota storedPrices allows 4, and this request would make 5"):
        desk.enter(("1", "2026-01-31"), ("2", "2026-02-01"), ("3", "2026-02-02"))
    assert quota(world, QuotaName.STORED_PRICES).used == len(desk.all()) == 2

    def enter(text: str) -> None:
        desk.enter((text, "2026-01-31"), (text, "2026-02-02"))

    with world.store.write() as session:
        entries = check(("5", "2026-01-31"), ("6", "2026-03-01"))
        definitions: dict[str, manual_prices.PriceSource] = {}
        manual_prices.enter(session, world.acme, definitions, desk.source_id, desk.pair_id, entries)
        waiting = start_waiting(world.settings, lambda: enter("7"))
    with pytest.raises(Conflict, match="would make 6"):
        waiting.result(60)
    assert quota(world, QuotaName.STORED_PRICES).used == len(desk.all()) == 4
    assert Decimal(desk.all()[0].price) == 6


# Each with its number of scripts.
KEYS = {
    f"wpkh({A}/<0;1>/*)": 2_000,
    f"wpkh({A}/7/*)": 1_000,
    f"wpkh({A}/<2;3>)": 2,
    f"wsh(sortedmulti(2,{A}/<0;1>/*,{B}/<0;1>/*,{COMPRESSED}))": 2_000,
    # Wallets of one address.
    f"wpkh({A}/7)": 0,
    f"wpkh({COMPRESSED})": 0,
}


@on_both
def test_scripts_of_wallets_of_keys_count_by_branch_and_range_and_others_do_not(world: World) -> None:

    def wallet(ledger_id: str) -> WalletCreate:
        return WalletCreate(ledger="coins", ledger_id=ledger_id)

    limited = replace(world.settings, max_scripts=sum(KEYS.values()))
    with closing(open_store(limited)) as store:
        with store.write() as session:
            for principal in (world.acme, world.other):
                ledgers.put(session, principal, world.networks, "bitcoin", LedgerPut(name="coins"))
        rows = {}
        for descriptor, count in KEYS.items():
            before = quota(world, QuotaName.SCRIPTS).used
            with store.write() as session:
                rows[descriptor] = wallets.create(session, world.acme, world.networks, wallet(descriptor))
            assert quota(world, QuotaName.SCRIPTS).used == before + count, descriptor
            keys = world.networks["bitcoin"].parse_keys(descriptor)
            assert keys is not None
            assert count in (0, keys.branches * (SCAN_RANGE if keys.is_ranged else 1))

        def add(principal: Principal, ledger_id: str) -> None:
            with store.write() as session:
                wallets.create(session, principal, world.networks, wallet(ledger_id))

        refused = r"scripts allows 5002, and this request would make 6002; remove wallets .* LEDGERMART_MAX_SCRIPTS"
        with pytest.raises(Conflict, match=refused) as caught:
            add(world.acme, f"wpkh({A}/8/*)")
        assert (caught.value.code, caught.value.fields) == ("quota-exceeded", ("ledgerId",))
        add(world.acme, "1BvBMSEYstWetqTFn5Au4m4GFg7xJaNVN2")
        add(world.other, f"wpkh({A}/8/*)")
        with store.write() as session:
            subjects.remove(session, world.acme, rows[f"wpkh({A}/7/*)"])
        add(world.acme, f"wpkh({A}/8/*)")
        assert quota(world, QuotaName.SCRIPTS).used == 5_002


def test_limits_are_audited(world: World) -> None:
    set_limit(world, QuotaName.OBJECTS, 5)
    with world.store.read() as session:
        (event, *_) = audit.list_page(session, world.acme.tenant_id, AuditFilters(), 10, None).rows
    assert (event.action, event.actor, event.after) == (
        "tenant.quotas",
        "cli",
        {"storedPrices": 1_000_000, "objects": 5, "scripts": 100_000},
    )
