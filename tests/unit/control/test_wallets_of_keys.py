"""Wallets of keys in the control store: one wallet in every spelling, and keys that appear nowhere else."""

import logging
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from embit import base58, bip32
from sqlalchemy import text
from sqlalchemy.exc import IntegrityError

from control import audit, ledgers, subjects, tokens, wallets
from control.access import Principal, Role
from control.audit import AuditFilters
from control.errors import Conflict, Denied, Invalid
from control.ledgers import LedgerPut
from control.networks.addresses import InvalidAddress
from control.networks.families import FAMILIES, SCAN_RANGE, codec_for
from control.snapshot import read_snapshot
from control.subjects import SubjectFilters, SubjectRow, TokenCreate, WalletCreate
from tests.unit.control.conftest import World, on_both
from tests.unit.control.test_descriptors import COMPRESSED, A, B

ZPUB = base58.encode_check(bytes.fromhex("04b24746") + base58.decode_check(A)[4:])
WHOLE = f"wpkh({A}/<0;1>/*)"
MULTISIG = f"wsh(sortedmulti(1,{A}/<0;1>/*,{B}/<0;1>/*))"
REVERSED = f"wsh(sortedmulti(1,{B}/<0;1>/*,{A}/<0;1>/*))"
FIXED = f"wpkh({COMPRESSED})"
FIXED_ADDRESS = "bc1qngw83fg8dz0k749cg7k3emc7v98wy0c74dlrkd"

on_sqlite = pytest.mark.parametrize("kind", ["sqlite"])
"""For tests that read all tables or files of the store."""

ROOT = bip32.HDKey.from_seed(b"an example seed of the tests, 32")
# Source: the test vectors of BIP 39.
SEED = "legal winner thank year wave sausage worth useful legal winner thank yellow"
PRIVATE = {
    "xprv": ROOT.to_base58(),
    "zprv": ROOT.to_base58(bytes.fromhex("04b2430c")),
    "wif": "KwDiBf89QgGbjEhKnhXJuH7LrciVrZi3qYjgd9M7rFU73sVHnoWn",
    "in a descriptor": f"wpkh({ROOT.to_base58()}/<0;1>/*)",
    "12 words": SEED,
    "24 words": " ".join(["letter advice cage absurd amount doctor acoustic avoid"] * 3),
    "numbered words": "\n".join(f"{number}. {word}" for number, word in enumerate(SEED.title().split(), start=1)),
}


@pytest.fixture
def chain(world: World) -> World:
    """A world with ledgers on a network of keys, a second such network, and one without keys."""
    with world.store.write() as session:
        for principal in (world.acme, world.other):
            for network in ("bitcoin", "litecoin", "ethereum"):
                ledgers.put(session, principal, world.networks, network, LedgerPut(name=network))
    return world


def add(world: World, ledger_id: str, principal: Principal | None = None, **values: Any) -> SubjectRow:
    request = WalletCreate(**{"ledger": "bitcoin", "ledger_id": ledger_id, **values})
    with world.store.write() as session:
        return wallets.create(session, principal or world.acme, world.networks, request)


def found(world: World, **filters: Any) -> list[str]:
    with world.store.read() as session:
        page = wallets.list_page(session, world.acme.tenant_id, world.networks, SubjectFilters(**filters))
    return [row.id for row in page.rows]


def contents(world: World) -> Iterator[tuple[str, bytes]]:
    """Yield each file of the data folder with its bytes, after all changes are written to the database."""
    with closing(sqlite3.connect(world.settings.data_dir / "control.db")) as connection:
        connection.execute("pragma wal_checkpoint(truncate)")
    for path in sorted(Path(world.settings.data_dir).rglob("*")):
        if path.is_file():
            yield path.name, path.read_bytes()


@on_both
def test_wallet_of_keys_is_stored_by_identity_and_shown_with_shortened_keys(chain: World) -> None:
    wallet = add(chain, WHOLE, name="Treasury")
    keys = chain.networks["bitcoin"].parse_keys(WHOLE)
    assert keys is not None
    assert wallet.address == f"keys:{keys.identity}"
    assert wallet.presented_address == wallet.shown_as == keys.shortened
    assert A not in repr(wallet)
    with chain.store.read() as session:
        assert wallets.get(session, chain.acme.tenant_id, wallet.id) == wallet
        assert wallets.read_keys(session, chain.acme, chain.networks, wallet) == keys
    assert keys.descriptor.startswith(f"{WHOLE}#")
    assert SCAN_RANGE == 1_000


@on_both
def test_every_spelling_is_the_same_wallet(chain: World) -> None:
    first, multisig = add(chain, ZPUB), add(chain, MULTISIG)
    for spelling in (A.join(("wpkh([d34db33f/84h/0h/0h]", "/<0;1>/*)")), WHOLE, f"wpkh({A}/<1;0>/*)"):
        with pytest.raises(Conflict) as caught:
            add(chain, spelling)
        assert (caught.value.code, caught.value.existing_id) == ("duplicate-wallet", first.id)
        assert A not in caught.value.detail
        assert first.presented_address in caught.value.detail
    with pytest.raises(Conflict, match=multisig.id):
        add(chain, REVERSED)
    # A bare xpub has other scripts.
    assert add(chain, A).id != first.id


@on_both
def test_identity_is_per_ledger_and_free_after_removal(chain: World) -> None:
    first = add(chain, WHOLE)
    add(chain, WHOLE, principal=chain.other)
    add(chain, WHOLE, ledger="litecoin")
    with chain.store.write() as session:
        subjects.remove(session, chain.acme, first)
    assert add(chain, ZPUB).id != first.id


@pytest.mark.parametrize("first", [FIXED, FIXED_ADDRESS])
def test_descriptor_of_one_script_is_the_wallet_of_its_address(chain: World, first: str) -> None:
    wallet = add(chain, first)
    assert (wallet.address, wallet.shown_as) == (FIXED_ADDRESS, None)
    for spelling in (FIXED, FIXED_ADDRESS, FIXED_ADDRESS.upper()):
        with pytest.raises(Conflict, match=wallet.id):
            add(chain, spelling)
        assert found(chain, ledger_id=spelling) == [wallet.id]
    with chain.store.read() as session, pytest.raises(Conflict) as caught:
        wallets.read_keys(session, chain.acme, chain.networks, wallet)
    assert caught.value.code == "single-address"


@on_both
def test_filter_finds_a_wallet_by_any_spelling_and_by_its_shown_form(chain: World) -> None:
    wallet, other = add(chain, ZPUB), add(chain, MULTISIG)
    with chain.store.read() as session:
        canonical = wallets.read_keys(session, chain.acme, chain.networks, wallet).descriptor
    for spelling in (ZPUB, WHOLE, canonical, wallet.presented_address, f"wpkh([d34db33f/84h]{A}/<0;1>/*)"):
        assert found(chain, ledger_id=spelling) == [wallet.id]
    assert found(chain, ledger_id=other.presented_address) == [other.id]
    assert found(chain, ledger_id=f"wpkh({B}/<0;1>/*)") == []
    assert found(chain, ledger_id="wpkh(xpub6ER\N{HORIZONTAL ELLIPSIS}/*)") == []
    for wrong in ("wpkh(\N{HORIZONTAL ELLIPSIS}\x00)", f"{canonical[:-1]}x", f"tr({A}/*)"):
        with pytest.raises(Invalid) as caught:
            found(chain, ledger_id=wrong)
        assert (caught.value.field, caught.value.code) == ("ledgerId", "invalid-address")
        assert A not in caught.value.detail
    with pytest.raises(Invalid, match=r"tr\(\.\.\.\) is not supported"):
        found(chain, ledger_id=f"tr({A}/*)")


@on_both
def test_search_uses_the_shown_form_alone(chain: World) -> None:
    wallet = add(chain, WHOLE, name="Treasury")
    assert found(chain, q=wallet.presented_address[:12].upper()) == [wallet.id]
    assert found(chain, q="treas") == [wallet.id]
    assert found(chain, q=A[20:40]) == []
    assert found(chain, q=wallet.address[5:25]) == []
    with chain.store.write() as session:
        wallets.update(session, chain.acme, wallet, subjects.WalletPatch(name="Reserve"))
    assert found(chain, q=A[20:40]) == []
    assert found(chain, q=wallet.presented_address[:12]) == [wallet.id]


def test_audit_shows_the_shortened_keys(chain: World) -> None:
    wallet = add(chain, WHOLE)
    with chain.store.write() as session:
        subjects.remove(session, chain.acme, wallet)
    with chain.store.read() as session:
        events = audit.list_page(session, chain.acme.tenant_id, AuditFilters(object_id=wallet.id)).rows
        kept = [event.before or event.after for event in events]
    assert [event["ledgerId"] for event in kept if event] == [wallet.presented_address] * 2
    assert A not in str(kept)


@on_sqlite
def test_only_the_column_of_the_descriptor_has_the_keys(chain: World) -> None:
    wallet = add(chain, WHOLE, name="Treasury")
    with chain.store.read() as session:
        tables = read_snapshot(session, 0).tables
        (copied,) = tables["control_subjects"]
        rows = {
            (table, column)
            for (table,) in session.execute(text("select name from sqlite_master where type = 'table'"))
            for row in session.execute(text(f"select * from {table}")).mappings()
            for column, value in row.items()
            if A[30:60] in str(value)
        }
    assert rows == {("subjects", "descriptor")}
    assert copied.descriptor == f"{WHOLE}#{wallet.presented_address[-8:]}"
    assert [name for name, found in tables.items() if A[30:60] in str(found)] == ["control_subjects"]


@pytest.mark.parametrize("role", [Role.VIEWER, Role.OPERATOR])
def test_keys_are_read_by_admins_alone(chain: World, role: Role) -> None:
    wallet = add(chain, WHOLE)
    reader = Principal(chain.acme.tenant_id, chain.acme.key_id, role)
    with chain.store.read() as session, pytest.raises(Denied):
        wallets.read_keys(session, reader, chain.networks, wallet)


@on_sqlite
@pytest.mark.parametrize("ledger", ["bitcoin", "ethereum"])
@pytest.mark.parametrize("private", PRIVATE.values(), ids=PRIVATE.keys())
def test_private_keys_are_refused_and_kept_nowhere(
    chain: World, ledger: str, private: str, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    token = TokenCreate(ledger=ledger, ledger_id=private, symbol="T")
    for ask in (
        lambda: add(chain, private, ledger=ledger),
        lambda: add(chain, private, ledger="unknown"),
        lambda: found(chain, ledger_id=private),
    ):
        with pytest.raises(Invalid) as caught:
            ask()
        assert "private key" in caught.value.detail
        assert_without_key(private, caught.value.detail)
    with chain.store.write() as session, pytest.raises(Invalid) as caught:
        tokens.create(session, chain.acme, chain.networks, token)
    assert_without_key(private, caught.value.detail)
    assert found(chain) == []
    for name, content in contents(chain):
        assert private.encode() not in content, name
    assert_without_key(private, caplog.text)


def assert_without_key(private: str, said: str) -> None:
    key = private.removeprefix("wpkh(").split("/")[0]
    assert key[:20] not in said
    assert key[20:40] not in said


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("private", PRIVATE.values(), ids=PRIVATE.keys())
def test_no_codec_repeats_a_private_key(family: str, private: str) -> None:
    with pytest.raises(InvalidAddress) as caught:
        codec_for(family).parse(private)
    assert_without_key(private, str(caught.value))


def test_text_of_64_digits_is_not_repeated(chain: World) -> None:
    for secret in ("0x" + 32 * "ab", 32 * "ab"):
        with pytest.raises(Invalid) as caught:
            add(chain, secret, ledger="ethereum")
        assert "abab" not in caught.value.detail


def test_networks_and_tokens_without_keys_refuse_descriptors(chain: World) -> None:
    for spelling in (WHOLE, A):
        with pytest.raises(Invalid) as caught:
            add(chain, spelling, ledger="ethereum")
        assert (caught.value.code, caught.value.field) == ("invalid-address", "ledgerId")
        assert A not in caught.value.detail
        with chain.store.write() as session, pytest.raises(Invalid) as refused:
            tokens.create(
                session, chain.acme, chain.networks, TokenCreate(ledger="bitcoin", ledger_id=spelling, symbol="T")
            )
        assert refused.value.code == "no-tokens"
        with chain.store.read() as session, pytest.raises(Invalid):
            tokens.list_page(session, chain.acme.tenant_id, chain.networks, SubjectFilters(ledger_id=spelling))


@on_both
def test_errors_of_the_database_name_no_parameters(chain: World) -> None:
    wallet = add(chain, WHOLE)
    with pytest.raises(IntegrityError) as caught, chain.store.write() as session:
        session.execute(
            text("update subjects set tenant_id = null, descriptor = :descriptor where id = :id"),
            {"descriptor": WHOLE, "id": wallet.id},
        )
    assert A not in str(caught.value).split("DETAIL")[0]
