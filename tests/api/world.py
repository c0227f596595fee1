"""Example data of the API's tests: a handmade story; the real dbt builds the marts from its raw rows.

Blocks of `ethereum` come every 12 seconds, block 100 at 2026-02-01T00:00:00Z. Head 410, final 350, newest covered 400.

`small` (no decimals) has two windows, blocks 100 to 200 and 251 to 400. After each block:

| block | what | h1 | h2 | h3 | h4 | supply |
| --- | --- | --- | --- | --- | --- | --- |
| 99 | before the first window | 100 | 50 | 0 | not seen | 150 |
| 120 | h1 sends 30 to h2 | 70 | 80 | 0 | 0 | 150 |
| 150 | 10 minted to h3 | 70 | 80 | 10 | 0 | 160 |
| 250 | before the second window | 60 | 80 | 20 | 0 | 160 |
| 300 | h1 sends 60 to h4 | 0 | 80 | 20 | 60 | 160 |
| 310 | h2 burns 5 | 0 | 75 | 20 | 60 | 155 |

Its supply was read after blocks 99, 250 and 400: from 150 to the end of the first window it is unconfirmed.

`big` (18 decimals) has the golden amounts as transfers and as holdings. `wide` has 77 decimals, those of `unknown` are
unknown, `fresh` was added after the version was published, and `nft` is not fungible.

A second wallet, of keys, is not tracked; its network has no node.

The wallet is h1. Apart from its transfers of `small`, it receives 5 ETH and 5 of a token in block 120; the token
disappears later. It pays a fee in block 300, and receives 9 of a strange token in block 396.

Some rows are written directly to the marts, since they contradict the chain's story: an adjustment and a transfer of
the wallet to itself that leave balances unchanged, all data of the other tenant, prices and values. The other tenant's
token has the address of `small`, its wallet that of h1. Both have rows of their own: a transfer of 7 from h3 to h4 in
block 130, and 42 wei.
"""

import json
import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from fractions import Fraction
from pathlib import Path
from typing import Any

from litestar import Litestar
from litestar.testing import TestClient
from sqlalchemy.orm import Session

from api.app import create_app
from api.examples import (
    EXAMPLE_LEDGER,
    EXAMPLE_LINKED_TOKEN_ID,
    EXAMPLE_NETWORK,
    EXAMPLE_PAIR_ID,
    EXAMPLE_TOKEN_ATTESTATION_ID,
    EXAMPLE_TOKEN_ID,
    EXAMPLE_TOKEN_OPERATION_ID,
    EXAMPLE_UNUSED_LEDGER,
    EXAMPLE_WALLET_ATTESTATION_ID,
    EXAMPLE_WALLET_ID,
    EXAMPLE_WALLET_OF_KEYS_ID,
    EXAMPLE_WALLET_OPERATION_ID,
)
from api.reports import assets
from control import access, ledgers, operations, revision
from control.access import Principal, Role
from control.ledgers import LedgerPut
from control.models import Operation, Subject, Tenant, TrackingWindow
from control.networks.definitions import Network, load_networks
from control.settings import Settings, load_settings
from control.snapshot import read_snapshot
from control.store import ControlStore, open_store
from tests.api.built import built_marts, rows_of
from tests.api.collected import Collected
from tests.api.marts import publish
from tests.api.pricing import LINKED_PAIR_KEY, NAV, add_pricing, pair_rows, source_rows, stopped_rows

NETWORKS = """
[[network]]
name = "ethereum"
display_name = "Ethereum"
family = "evm"
chain_id = 1
rpc = ["http://127.0.0.1:1"]
native = { symbol = "ETH", decimals = 18 }
finality_depth = 64
poll_seconds = 12
max_requests_per_day = 5000
explorer = "https://explorer.example"

[[network.data_set]]
name = "days"
form = "aws"
files = "/nowhere/date={date}/*.parquet"

[[network.data_set]]
name = "blocks"
form = "cryo-logs"
files = "/nowhere/{table}/{first}_to_{last}.parquet"

[[network]]
name = "sepolia"
display_name = "Sepolia"
family = "evm"
chain_id = 11155111
is_testnet = true
rpc = ["${LEDGERMART_TEST_UNSET_RPC_URL}"]
native = { symbol = "ETH", decimals = 18 }
finality_depth = 64
poll_seconds = 12

[[network]]
name = "bitcoin"
display_name = "Bitcoin"
family = "utxo"
genesis_hash = "000000000019d6689c085ae165831e934ff763ae46a2a6c172b3f1b60a8ce26f"
pubkey_hash_prefix = 0
script_hash_prefixes = [5]
segwit_prefix = "bc"
proof_of_work = "sha256d"
rpc = ["${LEDGERMART_TEST_UNSET_RPC_URL}"]
native = { symbol = "BTC", decimals = 8 }
finality_depth = 6
poll_seconds = 30
"""

FILE_ON_RECORD: Mapping[str, Any] = {
    "data_set": "blocks",
    "file": "/nowhere/logs/1_to_9.parquet",
    "byte_count": 2**40,
    "day": None,
    "from_block": 1,
    "to_block": 9,
    "status": "Refused",
    "detail": "it is cut",
    "row_count": None,
    "duplicate_count": None,
}
"""A file in the raw tables. Estimates ignore it, because it is refused."""

LEDGER_OF_KEYS = "bitcoin-main"
XPUB = "xpub6ERApfZwUNrhLCkDtcHTcxd75RbzS1ed54G1LkBUHQVHQKqhMkhgbmJbZRkrgZw4koxb5JaHWkY4ALHY2grBGRjaDMzQLcgJvLJuZZvRcEL"
"""A key of the test vectors of BIP 380."""
KEYS = f"wpkh({XPUB}/<0;1>/*)"
"""The keys of the wallet `EXAMPLE_WALLET_OF_KEYS_ID`, which is not tracked."""

SUPERSET = {
    "dashboards": {
        "cap-table": {
            "embeddedId": "6e2312a2-0000-4000-8000-000000000001",
            "embedder": "https://reports.example",
            "datasets": [{"id": 3, "timeColumn": None}],
        },
        "wallet-activity": {
            "embeddedId": "6e2312a2-0000-4000-8000-000000000002",
            "datasets": [{"id": 4, "timeColumn": None}, {"id": 5, "timeColumn": "block_time"}],
        },
    }
}

ZERO = "0x" + "0" * 40
HOLDERS = {name: "0x" + digit * 40 for name, digit in zip(("h1", "h2", "h3", "h4"), "1234", strict=True)}
GONE = "0x" + "9" * 40  # a token that the wallet held only in its first window
STRANGE = "0x" + "d" * 40  # a contract without `decimals`, received by the wallet
TURNING = "0x" + "7" * 40  # sends the golden amounts to itself, so balances do not change
GOLDEN = (0, 1, 2**63, 2**64, 2**127, 2**128, 2**255, 2**256 - 1)

BIG_TOKEN_ID = EXAMPLE_LINKED_TOKEN_ID
WIDE_TOKEN_ID = "tok_01k9zr3m5e8v2c7q4w6t1x0y02"
UNKNOWN_TOKEN_ID = "tok_01k9zr3m5e8v2c7q4w6t1x0y03"
FRESH_TOKEN_ID = "tok_01k9zr3m5e8v2c7q4w6t1x0y04"
NFT_TOKEN_ID = "tok_01k9zr3m5e8v2c7q4w6t1x0y05"
FOREIGN_TOKEN_ID = "tok_01k9zr3m5e8v2c7q4w6t1x0y06"
FOREIGN_WALLET_ID = "wal_01k9zr3m5e8v2c7q4w6t1x0y07"

_TENANT_IDS = {"acme": "ten_01k9zr3m5e8v2c7q4w6t1x0y01", "other": "ten_01k9zr3m5e8v2c7q4w6t1x0y02"}
_ADDRESSES = {
    EXAMPLE_TOKEN_ID: "0xaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa",
    BIG_TOKEN_ID: "0xbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb",
    WIDE_TOKEN_ID: "0xcccccccccccccccccccccccccccccccccccccccc",
    UNKNOWN_TOKEN_ID: "0xd0d0d0d0d0d0d0d0d0d0d0d0d0d0d0d0d0d0d0d0",
    FRESH_TOKEN_ID: "0xeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeee",
    NFT_TOKEN_ID: "0xffffffffffffffffffffffffffffffffffffffff",
    EXAMPLE_WALLET_ID: HOLDERS["h1"],
    FOREIGN_TOKEN_ID: "0xaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa",
    FOREIGN_WALLET_ID: HOLDERS["h1"],
}
_TOLD_BY_HAND = (FRESH_TOKEN_ID, FOREIGN_TOKEN_ID, FOREIGN_WALLET_ID)
_SYMBOLS = {
    EXAMPLE_TOKEN_ID: "SMALL",
    BIG_TOKEN_ID: "BIG",
    WIDE_TOKEN_ID: "WIDE",
    UNKNOWN_TOKEN_ID: "UNKNOWN",
    FRESH_TOKEN_ID: "FRESH",
    NFT_TOKEN_ID: "NFT",
    FOREIGN_TOKEN_ID: "THEIRS",
}
_DECIMALS = {
    EXAMPLE_TOKEN_ID: 0,
    BIG_TOKEN_ID: 18,
    WIDE_TOKEN_ID: 77,
    UNKNOWN_TOKEN_ID: None,
    NFT_TOKEN_ID: None,
    FOREIGN_TOKEN_ID: 6,
}


def time_of(block: int) -> datetime:
    """Return the time of a block."""
    return datetime(2026, 2, 1, tzinfo=UTC) + timedelta(seconds=12 * (block - 100))


def hash_of(block: int) -> str:
    """Return the hash of a block."""
    return f"0x{block:064x}"


def text_of(raw: int, decimals: int | None) -> str | None:
    """Return an amount in whole tokens as canonical text, computed independently of the marts."""
    if decimals is None:
        return None
    whole, fraction = divmod(abs(raw), 10**decimals)
    digits = f"{fraction:0{decimals}d}".rstrip("0") if decimals else ""
    return ("-" if raw < 0 else "") + str(whole) + (f".{digits}" if digits else "")


class Clock:
    """The clock of an application, which only tests advance."""

    def __init__(self) -> None:
        self._now = 0.0

    def __call__(self) -> float:
        return self._now

    def look_again(self) -> None:
        """Advance the time until the pointer to the current version is read again."""
        self._now += 0.25


@dataclass
class World:
    """One tenant with example data, another tenant with its own data, and the keys of both."""

    settings: Settings
    store: ControlStore
    keys: dict[str, str] = field(default_factory=dict)
    principals: dict[str, Principal] = field(default_factory=dict)
    subject_keys: dict[str, int] = field(default_factory=dict)
    clock: Clock = field(default_factory=Clock)

    @property
    def tenant_id(self) -> str:
        """The tenant with the example data."""
        return self.principals["admin"].tenant_id

    @property
    def foreign_tenant_id(self) -> str:
        """The other tenant."""
        return self.principals["foreign"].tenant_id

    def headers(self, who: str = "admin", **more: str) -> dict[str, str]:
        """Return the headers of a caller: viewer, operator, admin or foreign (admin of the other tenant)."""
        return {"Authorization": f"Bearer {self.keys[who]}", **more}

    @contextmanager
    def client(self, who: str = "admin", settings: Settings | None = None) -> Iterator[TestClient[Any]]:
        """Start the application and yield a client."""
        # Creating an application takes longer than most tests; a stopped one is restarted with other settings.
        ended = _APPLICATIONS.setdefault(assets.FOLDER, [])
        app = ended.pop() if ended else create_app(self.settings)
        app.state.settings, app.state.clock = settings or self.settings, self.clock
        with TestClient(app) as client:
            client.headers.update(self.headers(who))
            yield client
        ended.append(app)


_APPLICATIONS: dict[Path, list[Litestar]] = {}
"""Applications that are not running, by the folder of the pages that they have read."""


def copy_world(world: World, directory: Path) -> World:
    """Copy a world after closing its store."""
    shutil.copytree(world.settings.data_dir.parent, directory, dirs_exist_ok=True)
    settings = _settings(directory)
    return replace(world, settings=settings, store=open_store(settings), clock=Clock())


def report(world: World, operation_id: str, now: datetime | None = None, **values: Any) -> None:
    """Report progress of an unfinished operation, as the pipeline does."""
    with world.store.write() as session:
        (key,) = [row.operation_key for row in operations.unfinished(session, 0) if row.id == operation_id]
        assert operations.report(session, 0, key, operations.Report(**values), now)


def _settings(directory: Path, more: Mapping[str, str] | None = None) -> Settings:
    return load_settings(
        {
            "LEDGERMART_DATA_DIR": str(directory / "data"),
            "LEDGERMART_NETWORKS": str(directory / "networks.toml"),
            # Longer than any query on a busy machine: only the tests of the limit reach it.
            "LEDGERMART_QUERY_TIMEOUT_SECONDS": "900",
            # The minute of the rate limit does not end while the clock is stopped.
            "LEDGERMART_RATE_LIMIT_PER_MINUTE": "1000000",
            **(more or {}),
        }
    )


def make_world(directory: Path, more: Mapping[str, str] | None = None) -> World:
    """Create the control store and version 1 of the marts; `more` has further settings."""
    networks_file = directory / "networks.toml"
    networks_file.write_text(NETWORKS)
    settings = _settings(directory, more)
    store = open_store(settings)
    store.migrate()
    world = World(settings, store)
    networks = load_networks(networks_file, {})
    with store.write() as session:
        for tenant_name, callers in (("acme", ("admin", "operator", "viewer")), ("other", ("foreign",))):
            # The built marts contain these keys.
            tenant = Tenant(id=_TENANT_IDS[tenant_name], name=tenant_name, created_at=time_of(90))
            session.add(tenant)
            session.flush()
            revision.bump(session, tenant.id)
            for caller in callers:
                role = "admin" if caller == "foreign" else caller
                key, token = access.create_key(session, tenant.id, role)
                world.keys[caller] = token
                world.principals[caller] = Principal(tenant.id, key.id, Role(role))
        for caller in ("admin", "foreign"):
            ledgers.put(session, world.principals[caller], networks, EXAMPLE_NETWORK, LedgerPut(name=EXAMPLE_LEDGER))
        ledgers.put(
            session, world.principals["admin"], networks, EXAMPLE_NETWORK, LedgerPut(name=EXAMPLE_UNUSED_LEDGER)
        )
        for subject_id, address in _ADDRESSES.items():
            caller = "foreign" if subject_id in (FOREIGN_TOKEN_ID, FOREIGN_WALLET_ID) else "admin"
            principal = world.principals[caller]
            symbol = _SYMBOLS.get(subject_id)
            subject = Subject(
                id=subject_id,
                kind=subject_id[:3].replace("tok", "token").replace("wal", "wallet"),
                tenant_id=principal.tenant_id,
                ledger_id=ledgers.get(session, principal.tenant_id, EXAMPLE_LEDGER).id,
                address=address,
                symbol=symbol,
                name=None,
                external_id=f"ext-{subject_id[-2:]}",
                search_text="\n".join(part for part in (symbol, address) if part).casefold(),
                created_at=time_of(90),
                updated_at=time_of(90),
            )
            session.add(subject)
            session.flush()
            world.subject_keys[subject_id] = subject.subject_key
            if subject_id not in (FRESH_TOKEN_ID, NFT_TOKEN_ID):
                closed, opened = time_of(201), time_of(251)
                session.add_all(
                    TrackingWindow(
                        subject_key=subject.subject_key, opened_at=first, closed_at=last, opened_by=principal.key_id
                    )
                    for first, last in ((time_of(100), closed), (opened, None))
                )
        _add_wallet_of_keys(session, world.principals["admin"], networks)
        for operation_id, subject_id in (
            (EXAMPLE_TOKEN_OPERATION_ID, EXAMPLE_TOKEN_ID),
            (EXAMPLE_WALLET_OPERATION_ID, EXAMPLE_WALLET_ID),
        ):
            session.add(_history_request(world, operation_id, subject_id))
        for operation_id, subject_id in (
            (EXAMPLE_TOKEN_ATTESTATION_ID, EXAMPLE_TOKEN_ID),
            (EXAMPLE_WALLET_ATTESTATION_ID, EXAMPLE_WALLET_ID),
        ):
            session.add(_attestation(world, operation_id, subject_id))
        add_pricing(session, world.principals["admin"])
        linked = session.get_one(Subject, world.subject_keys[EXAMPLE_LINKED_TOKEN_ID])
        linked.pair_key = LINKED_PAIR_KEY
    publish(settings.serving_dir, 1, marts_rows(world))
    _provision_superset(settings)
    return world


def _provision_superset(settings: Settings) -> None:
    """Store the facts that provisioning Superset stores for the API."""
    path = settings.data_dir / "superset" / "provisioned.json"
    path.parent.mkdir()
    path.write_text(json.dumps(SUPERSET))


def _add_wallet_of_keys(session: Session, principal: Principal, networks: Mapping[str, Network]) -> None:
    """Add a wallet of keys on a disabled network."""
    ledger, _ = ledgers.put(session, principal, networks, "bitcoin", LedgerPut(name=LEDGER_OF_KEYS))
    keys = networks["bitcoin"].parse_wallet(KEYS)
    session.add(
        Subject(
            id=EXAMPLE_WALLET_OF_KEYS_ID,
            kind="wallet",
            tenant_id=principal.tenant_id,
            ledger_id=ledger.id,
            address=keys.address,
            descriptor=keys.descriptor,
            shown_as=keys.shown_as,
            external_id=f"ext-{EXAMPLE_WALLET_OF_KEYS_ID[-2:]}",
            search_text=str(keys.shown_as).casefold(),
            created_at=time_of(91),
            updated_at=time_of(91),
        )
    )
    session.flush()


def _history_request(world: World, operation_id: str, subject_id: str) -> Operation:
    """Return a request for blocks 20 to 59 with ten blocks done."""
    principal = world.principals["admin"]
    return Operation(
        id=operation_id,
        tenant_id=principal.tenant_id,
        kind="History",
        subject_key=world.subject_keys[subject_id],
        parameters={"from": "block:20", "to": "block:59", "native": None},
        status="Running",
        progress_done=10,
        progress_total=40,
        from_block=20,
        to_block=59,
        native=None if subject_id == EXAMPLE_TOKEN_ID else "balance-only",
        rate="2.5",
        estimated_end=time_of(412),
        created_by=principal.key_id,
        created_at=time_of(391),
        started_at=time_of(392),
        reported_at=time_of(410),
    )


def _attestation(world: World, operation_id: str, subject_id: str) -> Operation:
    """Return an attestation of block 130 with two of four balances read."""
    principal = world.principals["admin"]
    return Operation(
        id=operation_id,
        tenant_id=principal.tenant_id,
        kind="Attestation",
        subject_key=world.subject_keys[subject_id],
        parameters={"asOf": "block:130"},
        result={"attestationNumber": 9},
        status="Running",
        progress_done=2,
        progress_total=4,
        to_block=130,
        created_by=principal.key_id,
        created_at=time_of(391),
        started_at=time_of(392),
        reported_at=time_of(410),
    )


def supply_status_at(block: int) -> str:
    """Return the status of the supply of `small` at a block of a window."""
    return "Unconfirmed" if 150 <= block <= 200 else "Observed"


_BY_DBT = (
    "blocks",
    "networks",
    "tokens",
    "wallets",
    "coverage",
    "token_activities",
    "wallet_activities",
    "balance_changes",
    "supply_changes",
    "token_holders",
    "wallet_balances",
    "data_files",
)


def marts_rows(world: World) -> dict[str, list[dict[str, Any]]]:
    """Return the rows of version 1, which the caller may change."""
    if not _BUILT:
        with built_marts(lambda warehouse: _fill(world, warehouse)) as marts:
            _BUILT.update(rows_of(marts, _BY_DBT))
    rows = {table: [dict(row) for row in built] for table, built in _BUILT.items()}
    _add_by_hand(rows, world)
    for subject_id in (FOREIGN_TOKEN_ID, FOREIGN_WALLET_ID):
        _add_foreign_subject(rows, world, subject_id)
    _add_foreign(rows, world)
    rows |= source_rows(world.tenant_id)
    rows |= pair_rows(world.tenant_id)
    rows["source_prices"].extend(stopped_rows(world.tenant_id))
    _add_values(rows, world)
    return rows


_BUILT: dict[str, list[dict[str, Any]]] = {}
"""Rows built by dbt, read once."""


def _fill(world: World, warehouse: Path) -> None:
    """Create the warehouse for the part of the story that dbt builds."""
    h1, h2, h3, h4 = HOLDERS.values()
    stored = (99, 100, 120, 130, 150, 200, 250, 251, 300, 310, *range(390, 411))
    blocks = {block: (hash_of(block), time_of(block).replace(tzinfo=None)) for block in stored}
    raw = Collected(EXAMPLE_NETWORK, world.tenant_id, blocks, tail=390)
    raw.state(head=410, final=350)
    keys = {one: key for one, key in world.subject_keys.items() if one not in _TOLD_BY_HAND}
    with world.store.read() as session:
        snapshot = read_snapshot(session, 0)
    for subject_id, key in keys.items():
        windows = [window.window_key for window in snapshot.tables["control_windows"] if window.subject_key == key]
        if subject_id == EXAMPLE_WALLET_ID:
            raw.view(key, windows, "full")
            raw.collected("wallet", _ADDRESSES[subject_id])
            raw.collected("native", _ADDRESSES[subject_id])
            continue
        is_fungible = subject_id != NFT_TOKEN_ID
        status = "Fungible" if is_fungible else "NotFungible"
        raw.contract(_ADDRESSES[subject_id], status, _SYMBOLS[subject_id], _DECIMALS[subject_id])
        if is_fungible:
            raw.view(key, windows, None)
            raw.collected("token", _ADDRESSES[subject_id])
    small = _ADDRESSES[EXAMPLE_TOKEN_ID]
    raw.transfer(120, 1, small, h1, h2, 30)
    raw.transfer(150, 2, small, ZERO, h3, 10)
    raw.transfer(300, 3, small, h1, h4, 60)
    raw.transfer(310, 4, small, h2, ZERO, 5)
    raw.balances(99, small, {h1: 100, h2: 50, h3: 0})
    raw.balances(250, small, {h1: 60, h2: 80, h3: 20, h4: 0})
    raw.balances(400, small, {h1: 0, h2: 75, h3: 20, h4: 60})
    for block, supply in ((99, 150), (250, 160), (400, 155)):
        raw.supply(block, small, supply)
    for token_id in (BIG_TOKEN_ID, WIDE_TOKEN_ID, UNKNOWN_TOKEN_ID):
        token = _ADDRESSES[token_id]
        for number, amount in enumerate(GOLDEN):
            raw.transfer(390 + number, number, token, TURNING, TURNING, amount)
        holders = {f"0x{number:040x}": amount for number, amount in enumerate(GOLDEN, start=0x1000) if amount}
        raw.found(world.subject_keys[token_id], holders)
        for block in (250, 400):
            raw.balances(block, token, {**holders, TURNING: 0})
            raw.supply(block, token, 2**256 - 1)
    wallet = _ADDRESSES[EXAMPLE_WALLET_ID]
    raw.transaction(120, 1, h4, wallet, 5 * 10**18, 21_000)
    raw.transaction(300, 3, wallet, small, 0, 21_000)
    raw.transfer(396, 5, STRANGE, h4, wallet, 9)
    raw.balances(99, "native", {wallet: 10**18})
    raw.balances(99, GONE, {wallet: 0})
    raw.balances(250, "native", {wallet: 6 * 10**18})
    raw.balances(400, "native", {wallet: 6 * 10**18 - 21_000})
    raw.transfer(120, 6, GONE, h4, wallet, 5)
    raw.balances(400, STRANGE, {wallet: 9})
    raw.file(**FILE_ON_RECORD)
    networks = load_networks(world.settings.networks_file, {})
    raw.write(warehouse, snapshot, networks, keys.values())


def value_of(raw: int, decimals: int | None, price: str) -> str | None:
    """Return the value of a quantity as canonical text, half-even at 18 decimals, independently of the marts."""
    if decimals is None:
        return None
    return text_of(round(Fraction(raw, 10**decimals) * Fraction(price) * 10**18), 18)


def _add_values(rows: dict[str, list[dict[str, Any]]], world: World) -> None:
    """Add values to the rows of the marts: only BIG is linked."""
    for token in rows["tokens"]:
        is_linked, raw = token["token_id"] == EXAMPLE_LINKED_TOKEN_ID, token.get("total_supply_raw")
        status = "Priced" if is_linked else "NoPair"
        rows.setdefault("token_prices", []).append(
            {
                "tenant_id": token["tenant_id"],
                "subject_key": token["subject_key"],
                "as_of_time": token["as_of_block_time"],
                "price_status": status,
                "market_capitalization_status": status,
                "change24h_status": status,
            }
            | (
                {
                    "pair_key": LINKED_PAIR_KEY,
                    "pair_id": EXAMPLE_PAIR_ID,
                    "price_text": NAV,
                    "market_capitalization": value_of(raw, token["decimals"], NAV),
                    "change24h": "0",
                }
                if is_linked
                else {}
            )
        )
    for wallet in rows["wallets"]:
        rows.setdefault("wallet_totals", []).append(
            {
                "tenant_id": wallet["tenant_id"],
                "subject_key": wallet["subject_key"],
                "as_of_time": wallet["as_of_block_time"],
                "total_value_status": "NoPair",
                "value_complete": False,
                "unpriced": ["ETH", STRANGE],
                "change24h_status": "NoPair",
                "change24h_omitted": ["ETH", STRANGE],
                "currency": "USD",
            }
        )
    linked = world.subject_keys[EXAMPLE_LINKED_TOKEN_ID]
    rows["token_pairs"] = [
        {
            "tenant_id": world.tenant_id,
            "subject_key": subject_key,
            "network": EXAMPLE_NETWORK,
            "token_address": _ADDRESSES[EXAMPLE_LINKED_TOKEN_ID],
            "pair_key": LINKED_PAIR_KEY,
        }
        for subject_key in (linked, *(wallet["subject_key"] for wallet in rows["wallets"]))
    ]
    rows["token_activity_values"] = [
        {
            name: row[name]
            for name in ("tenant_id", "subject_key", "activity_id", "block_number", "block_time", "transaction_index")
        }
        | {
            "pair_key": LINKED_PAIR_KEY,
            "price_text": NAV,
            "value": value_of(row["amount_raw"], _DECIMALS[EXAMPLE_LINKED_TOKEN_ID], NAV),
            "value_status": "Priced",
        }
        for row in rows["token_activities"]
        if row["token_id"] == EXAMPLE_LINKED_TOKEN_ID
    ]


def _keys(world: World, subject_id: str) -> dict[str, Any]:
    is_foreign = subject_id in (FOREIGN_TOKEN_ID, FOREIGN_WALLET_ID)
    return {
        "tenant_id": world.foreign_tenant_id if is_foreign else world.tenant_id,
        "subject_key": world.subject_keys[subject_id],
    }


def _add_foreign_subject(rows: dict[str, list[dict[str, Any]]], world: World, subject_id: str) -> None:
    row = {
        **_keys(world, subject_id),
        "ledger_id": "led_x",
        "network": EXAMPLE_NETWORK,
        "address": _ADDRESSES[subject_id],
        "view_from_block": 100,
        "view_from_time": time_of(100).replace(tzinfo=None),
        "as_of_block_number": 400,
        "as_of_block_hash": hash_of(400),
        "as_of_block_time": time_of(400).replace(tzinfo=None),
        "as_of_finality": "Confirmed",
    }
    if subject_id == FOREIGN_WALLET_ID:
        rows["wallets"].append(row | {"wallet_id": subject_id, "holdings_complete": False})
    else:
        row |= {"token_id": subject_id, "contract_status": "Fungible", "standard": "ERC-20"}
        rows["tokens"].append(row | {"decimals": _DECIMALS[subject_id]})
    stored = {row["block_number"] for row in rows["blocks"]}
    for first, last, reason in (
        (1, 99, "BeforeTracking"),
        (100, 200, None),
        (201, 250, "TrackingDisabled"),
        (251, 400, None),
        (401, 410, "NotYetCollected"),
    ):
        rows["coverage"].append(
            {
                **_keys(world, subject_id),
                "from_block": first,
                "to_block": last,
                "from_time": time_of(first).replace(tzinfo=None) if first in stored else None,
                "to_time": time_of(last).replace(tzinfo=None) if last in stored else None,
                "is_covered": reason is None,
                "reason": reason,
                "verified": "true" if reason is None else None,
                "source": "node" if reason is None else None,
            }
        )


def _activity(
    world: World, subject_id: str, number: int, kind: str, block: int, sender: str, recipient: str, raw: int
) -> dict[str, Any]:
    return {
        **_keys(world, subject_id),
        "token_id": subject_id,
        "activity_id": f"act-{subject_id[-2:]}-{number}",
        "activity_type": kind,
        "status": "Finalized" if block <= 350 else "Confirmed",
        "block_number": block,
        "block_hash": hash_of(block),
        "block_time": time_of(block).replace(tzinfo=None),
        "transaction_index": number % 3,
        "log_index": number,
        "transaction_hash": f"0x{number:064x}",
        "from_address": sender,
        "to_address": recipient,
        "amount_raw": raw,
        "amount": text_of(raw, _DECIMALS[subject_id]),
        "amount_approx": 0,
    }


def _change(
    world: World,
    subject_id: str,
    first: int,
    block: int,
    token: str,
    holder: str,
    raw: int,
    decimals: int | None,
    *,
    observed: bool,
) -> dict[str, Any]:
    return {
        **_keys(world, subject_id),
        "range_from_block": first,
        "token_address": token,
        "token_symbol": {"native": "ETH", _ADDRESSES[EXAMPLE_TOKEN_ID]: "SMALL"}.get(token),
        "holder_address": holder,
        "block_number": block,
        "block_time": time_of(block).replace(tzinfo=None),
        "balance_raw": raw,
        "balance": text_of(raw, decimals),
        "is_moved": not observed,
        "is_observed": observed,
        "is_checked": observed,
        "is_adjusted": False,
        "opened_by": "Observed",
    }


def _add_cap_table(
    rows: dict[str, list[dict[str, Any]]], world: World, token: str, holdings: dict[str, int], supply: int
) -> None:
    for holder, raw in holdings.items():
        rows["token_holders"].append(
            {
                **_keys(world, token),
                "holder_address": holder,
                "quantity_raw": raw,
                "reconciliation": "Reconciled",
                "checked_block_number": 400,
                "opened_by": "Observed",
            }
        )
    for row in rows["tokens"]:
        if row["token_id"] == token:
            row |= {"total_supply_raw": supply, "total_supply": text_of(supply, _DECIMALS[token])}
            row["total_supply_status"] = "Observed"
            row |= {"holder_count": len(holdings), "opens_without_holders": False}


def percentage_of(part: int, whole: int) -> str:
    """Return a percentage as the contract defines it, using fractions."""
    rounded = round(Fraction(100 * part, whole) * 10**12)
    return str(text_of(rounded, 12))


def _add_by_hand(rows: dict[str, list[dict[str, Any]]], world: World) -> None:
    """Add rows that contradict the chain's story; they do not change balances."""
    h1, h2 = HOLDERS["h1"], HOLDERS["h2"]
    adjustment = _activity(world, EXAMPLE_TOKEN_ID, 5, "Adjustment", 395, h2, h2, 7)
    rows["token_activities"].append(
        adjustment
        | {"transaction_index": -1, "log_index": -1, "transaction_hash": None, "from_address": None}
        | {"is_located": False}
    )
    sent = next(row for row in rows["wallet_activities"] if row["block_number"] == 300 and row["log_index"] >= 0)
    rows["wallet_activities"].append(
        sent
        | {"activity_id": "act-self", "activity_type": "Self", "direction": None, "status": "Confirmed"}
        | {"block_number": 395, "block_hash": hash_of(395), "block_time": time_of(395).replace(tzinfo=None)}
        | {"log_index": 2, "transaction_hash": f"0x{8:064x}", "counterparty_address": h1}
        | {"amount_raw": 2**256 - 1, "amount": str(2**256 - 1), "amount_approx": 2.0**256}
    )


def _add_foreign(rows: dict[str, list[dict[str, Any]]], world: World) -> None:
    token, wallet = FOREIGN_TOKEN_ID, FOREIGN_WALLET_ID
    address, (h1, _, h3, h4) = _ADDRESSES[token], HOLDERS.values()
    rows["token_activities"].append(_activity(world, token, 1, "Transfer", 130, h3, h4, 7 * 10**6))
    known = [(99, {h3: 9 * 10**6, h4: 0}, True), (130, {h3: 2 * 10**6, h4: 7 * 10**6}, False)]
    rows["balance_changes"].extend(
        _change(world, token, 100, block, address, holder, raw, 6, observed=observed)
        for block, balances, observed in known
        for holder, raw in balances.items()
    )
    rows["supply_changes"].extend(
        {
            **_keys(world, token),
            "range_from_block": first,
            "block_number": first - 1,
            "block_time": time_of(first - 1).replace(tzinfo=None),
            "total_supply_raw": 9 * 10**6,
            "total_supply": "9",
            "is_moved": False,
            "is_observed": True,
            "is_checked": True,
            "is_adjusted": False,
            "opened_by": "Observed",
        }
        for first in (100, 251)
    )
    _add_cap_table(rows, world, token, {h4: 7 * 10**6, h3: 2 * 10**6}, 9 * 10**6)
    rows["wallet_activities"].append(
        {
            **_keys(world, wallet),
            "wallet_id": wallet,
            "activity_id": "their-wact-1",
            "activity_type": "TransferIn",
            "direction": "In",
            "status": "Finalized",
            "block_number": 120,
            "block_hash": hash_of(120),
            "block_time": time_of(120).replace(tzinfo=None),
            "transaction_index": 1,
            "log_index": 3,
            "transaction_hash": f"0x{1:064x}",
            "counterparty_address": h4,
            "token_address": "native",
            "token_symbol": "ETH",
            "amount_raw": 42,
            "amount": text_of(42, 18),
            "amount_approx": 0,
        }
    )
    rows["balance_changes"].extend(
        _change(world, wallet, first, block, "native", h1, raw, 18, observed=observed)
        for first, block, raw, observed in ((100, 99, 0, True), (100, 120, 42, False), (251, 250, 42, True))
    )
    rows["wallet_balances"].append(
        {
            **_keys(world, wallet),
            "token_address": "native",
            "token_symbol": "ETH",
            "token_decimals": 18,
            "quantity_raw": 42,
            "quantity": text_of(42, 18),
            "quantity_approx": 0,
            "reconciliation": "Reconciled",
            "checked_block_number": 400,
        }
    )
