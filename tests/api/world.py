"""The example data of the API's tests, worked out by hand.

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

`big` (18 decimals) has the golden amounts as transfers and as holdings. `wide` has 77 decimals, `unknown` none known,
`fresh` was added after the version was published, `nft` is not fungible.

The other tenant's token has the address of `small`, its wallet that of h1, and both have rows that no subject of the
first tenant has: a transfer of 7 from h3 to h4 in block 130, and 42 wei.
"""

import json
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from fractions import Fraction
from pathlib import Path
from typing import Any

from litestar import Litestar
from litestar.testing import TestClient

from api.app import create_app
from api.operations import (
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
    EXAMPLE_WALLET_OPERATION_ID,
)
from api.reports import assets
from control import access, ledgers, tenants
from control.access import Principal, Role
from control.models import Operation, Subject, TrackingWindow
from control.networks.definitions import load_networks
from control.settings import Settings, load_settings
from control.store import ControlStore, open_store
from tests.api.market_pair import add_market_pair, stopped_rows
from tests.api.marts import publish
from tests.api.pricing import LINKED_PAIR_KEY, NAV, add_pricing, pair_rows, source_rows

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
"""

SUPERSET = {
    "dashboards": {
        "cap-table": {
            "embeddedId": "6e2312a2-0000-4000-8000-000000000001",
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
GONE = "0x" + "9" * 40  # a token that the wallet was seen with in its first window alone
GOLDEN = (0, 1, 2**63, 2**64, 2**127, 2**128, 2**255, 2**256 - 1)

BIG_TOKEN_ID = EXAMPLE_LINKED_TOKEN_ID
WIDE_TOKEN_ID = "tok_01k9zr3m5e8v2c7q4w6t1x0y02"
UNKNOWN_TOKEN_ID = "tok_01k9zr3m5e8v2c7q4w6t1x0y03"
FRESH_TOKEN_ID = "tok_01k9zr3m5e8v2c7q4w6t1x0y04"
NFT_TOKEN_ID = "tok_01k9zr3m5e8v2c7q4w6t1x0y05"
FOREIGN_TOKEN_ID = "tok_01k9zr3m5e8v2c7q4w6t1x0y06"
FOREIGN_WALLET_ID = "wal_01k9zr3m5e8v2c7q4w6t1x0y07"

_ADDRESSES = {
    EXAMPLE_TOKEN_ID: "0xaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa",
    BIG_TOKEN_ID: "0xbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb",
    WIDE_TOKEN_ID: "0xcccccccccccccccccccccccccccccccccccccccc",
    UNKNOWN_TOKEN_ID: "0xdddddddddddddddddddddddddddddddddddddddd",
    FRESH_TOKEN_ID: "0xeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeee",
    NFT_TOKEN_ID: "0xffffffffffffffffffffffffffffffffffffffff",
    EXAMPLE_WALLET_ID: HOLDERS["h1"],
    FOREIGN_TOKEN_ID: "0xaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa",
    FOREIGN_WALLET_ID: HOLDERS["h1"],
}
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
    """Return an amount in whole tokens as canonical text, by another road than the marts."""
    if decimals is None:
        return None
    whole, fraction = divmod(abs(raw), 10**decimals)
    digits = f"{fraction:0{decimals}d}".rstrip("0") if decimals else ""
    return ("-" if raw < 0 else "") + str(whole) + (f".{digits}" if digits else "")


@dataclass
class World:
    """One tenant with example data, another one with its own, and the keys of both."""

    settings: Settings
    store: ControlStore
    keys: dict[str, str] = field(default_factory=dict)
    principals: dict[str, Principal] = field(default_factory=dict)
    subject_keys: dict[str, int] = field(default_factory=dict)

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
        """Start the application and give a client of it."""
        # Making an application costs more than most tests; one that has ended can start again with other settings.
        ended = _APPLICATIONS.setdefault(assets.FOLDER, [])
        app = ended.pop() if ended else create_app(self.settings)
        app.state.settings = settings or self.settings
        with TestClient(app) as client:
            client.headers.update(self.headers(who))
            yield client
        ended.append(app)


_APPLICATIONS: dict[Path, list[Litestar]] = {}
"""Applications that are not running, by the folder of the pages that they have read."""


def copy_world(world: World, directory: Path) -> World:
    """Copy a world whose store is closed."""
    shutil.copytree(world.settings.data_dir.parent, directory, dirs_exist_ok=True)
    settings = _settings(directory)
    return replace(world, settings=settings, store=open_store(settings))


def _settings(directory: Path) -> Settings:
    return load_settings(
        {
            "LEDGERMART_DATA_DIR": str(directory / "data"),
            "LEDGERMART_NETWORKS": str(directory / "networks.toml"),
        }
    )


def make_world(directory: Path) -> World:
    """Make the control store and version 1 of the marts."""
    networks_file = directory / "networks.toml"
    networks_file.write_text(NETWORKS)
    settings = _settings(directory)
    store = open_store(settings)
    store.migrate()
    world = World(settings, store)
    networks = load_networks(networks_file, {})
    with store.write() as session:
        for tenant_name, callers in (("acme", ("admin", "operator", "viewer")), ("other", ("foreign",))):
            tenant = tenants.create(session, tenant_name)
            for caller in callers:
                role = "admin" if caller == "foreign" else caller
                key, token = access.create_key(session, tenant.id, role)
                world.keys[caller] = token
                world.principals[caller] = Principal(tenant.id, key.id, Role(role))
        for caller in ("admin", "foreign"):
            ledgers.put(session, world.principals[caller], networks, EXAMPLE_NETWORK, EXAMPLE_LEDGER)
        ledgers.put(session, world.principals["admin"], networks, EXAMPLE_NETWORK, EXAMPLE_UNUSED_LEDGER)
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
        add_market_pair(session, world.principals["admin"])
    publish(settings.serving_dir, 1, marts_rows(world))
    _provision_superset(settings)
    return world


def _provision_superset(settings: Settings) -> None:
    """Tell what provisioning Superset tells the API."""
    path = settings.data_dir / "superset" / "provisioned.json"
    path.parent.mkdir()
    path.write_text(json.dumps(SUPERSET))


def _history_request(world: World, operation_id: str, subject_id: str) -> Operation:
    """A request for blocks 20 to 59 that has done ten of them."""
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
    """An attestation of block 130 that has read two of four balances."""
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


def marts_rows(world: World) -> dict[str, list[dict[str, Any]]]:
    """Return the rows of version 1."""
    rows: dict[str, list[dict[str, Any]]] = {
        "networks": [
            {
                "network": "ethereum",
                "display_name": "Ethereum",
                "family": "evm",
                "chain_id": 1,
                "is_testnet": False,
                "native_symbol": "ETH",
                "native_decimals": 18,
                "status": "Healthy",
                "head_number": 410,
                "head_time": time_of(410).replace(tzinfo=None),
                "final_number": 350,
                "has_archive": True,
                "has_traces": False,
            }
        ],
        "blocks": [
            {
                "network": "ethereum",
                "block_number": block,
                "block_hash": hash_of(block),
                "block_time": time_of(block).replace(tzinfo=None),
                "is_tail": block >= 390,
            }
            for block in (99, 100, 120, 130, 150, 200, 250, 251, 300, 310, *range(390, 411))
        ],
    }
    for subject_id in _ADDRESSES:
        if subject_id == FRESH_TOKEN_ID:
            continue
        _add_subject(rows, world, subject_id)
    _add_small(rows, world)
    _add_golden(rows, world, BIG_TOKEN_ID)
    _add_golden(rows, world, WIDE_TOKEN_ID)
    _add_golden(rows, world, UNKNOWN_TOKEN_ID)
    _add_wallet(rows, world)
    _add_foreign(rows, world)
    rows |= source_rows(world.tenant_id)
    rows |= pair_rows(world.tenant_id)
    rows["source_prices"].extend(stopped_rows(world.tenant_id))
    _add_values(rows, world)
    return rows


def value_of(raw: int, decimals: int | None, price: str) -> str | None:
    """Return the value of a quantity as canonical text, by another road than the marts: half to even at 18 decimals."""
    if decimals is None:
        return None
    return text_of(round(Fraction(raw, 10**decimals) * Fraction(price) * 10**18), 18)


def _add_values(rows: dict[str, list[dict[str, Any]]], world: World) -> None:
    """Add what the marts say of values: BIG is linked, nothing else is."""
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
                "unpriced": ["ETH", _ADDRESSES[UNKNOWN_TOKEN_ID]],
                "change24h_status": "NoPair",
                "change24h_omitted": ["ETH", _ADDRESSES[UNKNOWN_TOKEN_ID]],
                "currency": "USD",
            }
        )
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


def _add_subject(rows: dict[str, list[dict[str, Any]]], world: World, subject_id: str) -> None:
    is_covered = subject_id != NFT_TOKEN_ID
    row = {
        **_keys(world, subject_id),
        "ledger_id": "led_x",
        "network": "ethereum",
        "address": _ADDRESSES[subject_id],
        "view_from_block": 100 if is_covered else None,
        "view_from_time": time_of(100).replace(tzinfo=None) if is_covered else None,
        "as_of_block_number": 400 if is_covered else None,
        "as_of_block_hash": hash_of(400) if is_covered else None,
        "as_of_block_time": time_of(400).replace(tzinfo=None) if is_covered else None,
        "as_of_finality": "Confirmed" if is_covered else None,
    }
    if subject_id.startswith("wal_"):
        rows.setdefault("wallets", []).append(row | {"wallet_id": subject_id, "holdings_complete": False})
    else:
        row |= {
            "token_id": subject_id,
            "contract_status": "Fungible" if is_covered else "NotFungible",
            "standard": "ERC-20" if is_covered else "ERC-721",
            "decimals": _DECIMALS.get(subject_id, 6),
            "behaviour": "Standard" if subject_id == EXAMPLE_TOKEN_ID else None,
        }
        rows.setdefault("tokens", []).append(row)
    ranges: list[tuple[int, int, bool, str | None]] = [(0, 410, False, "NeverTracked")]
    if is_covered:
        ranges = [
            (0, 99, False, "BeforeTracking"),
            (100, 200, True, None),
            (201, 250, False, "TrackingDisabled"),
            (251, 400, True, None),
            (401, 410, False, "NotYetCollected"),
        ]
    stored = {row["block_number"] for row in rows["blocks"]}
    for first, last, covered, reason in ranges:
        rows.setdefault("coverage", []).append(
            {
                **_keys(world, subject_id),
                "from_block": first,
                "to_block": last,
                "from_time": time_of(first).replace(tzinfo=None) if first in stored else None,
                "to_time": time_of(last).replace(tzinfo=None) if last in stored else None,
                "is_covered": covered,
                "reason": reason,
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


def _add_small(rows: dict[str, list[dict[str, Any]]], world: World) -> None:
    h1, h2, h3, h4 = HOLDERS.values()
    token = EXAMPLE_TOKEN_ID
    rows.setdefault("token_activities", []).extend(
        [
            _activity(world, token, 1, "Transfer", 120, h1, h2, 30),
            _activity(world, token, 2, "Mint", 150, ZERO, h3, 10),
            _activity(world, token, 3, "Transfer", 300, h1, h4, 60),
            _activity(world, token, 4, "Burn", 310, h2, ZERO, 5),
        ]
    )
    adjustment = _activity(world, token, 5, "Adjustment", 395, h2, h2, 7)
    rows["token_activities"].append(
        adjustment
        | {"transaction_index": -1, "log_index": -1, "transaction_hash": None, "from_address": None}
        | {"is_located": False}
    )
    known = [
        (100, 99, {h1: 100, h2: 50, h3: 0}, True),
        (100, 120, {h1: 70, h2: 80}, False),
        (100, 150, {h3: 10}, False),
        (251, 250, {h1: 60, h2: 80, h3: 20, h4: 0}, True),
        (251, 300, {h1: 0, h4: 60}, False),
        (251, 310, {h2: 75}, False),
    ]
    rows.setdefault("balance_changes", []).extend(
        _change(world, token, first, block, _ADDRESSES[token], holder, raw, 0, observed=observed)
        for first, block, balances, observed in known
        for holder, raw in balances.items()
    )
    rows["supply_changes"] = [
        {
            **_keys(world, token),
            "range_from_block": first,
            "block_number": block,
            "block_time": time_of(block).replace(tzinfo=None),
            "total_supply_raw": raw,
            "total_supply": text_of(raw, 0),
            "is_observed": block < first,
            "opened_by": "Observed",
        }
        for first, block, raw in ((100, 99, 150), (100, 150, 160), (251, 250, 160), (251, 310, 155))
    ]
    _add_cap_table(rows, world, token, {h2: 75, h4: 60, h3: 20}, 155)


def _add_golden(rows: dict[str, list[dict[str, Any]]], world: World, token: str) -> None:
    sender, recipient = HOLDERS["h1"], HOLDERS["h2"]
    rows["token_activities"].extend(
        _activity(world, token, number, "Transfer", 390 + number, sender, recipient, raw)
        for number, raw in enumerate(GOLDEN)
    )
    holdings = {f"0x{number:040x}": raw for number, raw in enumerate(GOLDEN, start=0x1000) if raw}
    rows["supply_changes"].append(
        {
            **_keys(world, token),
            "range_from_block": 251,
            "block_number": 250,
            "block_time": time_of(250).replace(tzinfo=None),
            "total_supply_raw": 2**256 - 1,
            "total_supply": text_of(2**256 - 1, _DECIMALS[token]),
            "is_observed": True,
            "opened_by": "Observed",
        }
    )
    _add_cap_table(rows, world, token, holdings, 2**256 - 1)


def _add_cap_table(
    rows: dict[str, list[dict[str, Any]]], world: World, token: str, holdings: dict[str, int], supply: int
) -> None:
    for holder, raw in holdings.items():
        rows.setdefault("token_holders", []).append(
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
            row |= {"holder_count": len(holdings), "opens_without_holders": False}


def percentage_of(part: int, whole: int) -> str:
    """Return a percentage as the contract defines it, by fractions."""
    rounded = round(Fraction(100 * part, whole) * 10**12)
    return str(text_of(rounded, 12))


def _add_wallet(rows: dict[str, list[dict[str, Any]]], world: World) -> None:
    wallet, h1, h4 = EXAMPLE_WALLET_ID, HOLDERS["h1"], HOLDERS["h4"]
    small = _ADDRESSES[EXAMPLE_TOKEN_ID]
    moves: list[tuple[int, str, str | None, str, int, int, str | None, str, int, int | None]] = [
        (1, "TransferIn", "In", "Finalized", 120, 3, h4, "native", 5 * 10**18, 18),
        (2, "Fee", "Out", "Finalized", 300, -1, None, "native", 21_000, 18),
        (3, "TransferOut", "Out", "Finalized", 300, 7, h4, small, 60, 0),
        (4, "Self", None, "Confirmed", 395, 2, h1, small, 2**256 - 1, 0),
        (5, "TransferIn", "In", "Confirmed", 396, 1, h4, _ADDRESSES[UNKNOWN_TOKEN_ID], 9, None),
    ]
    for number, kind, direction, status, block, log, counterparty, token, raw, decimals in moves:
        rows.setdefault("wallet_activities", []).append(
            {
                **_keys(world, wallet),
                "wallet_id": wallet,
                "activity_id": f"wact-{number}",
                "activity_type": kind,
                "direction": direction,
                "status": status,
                "block_number": block,
                "block_hash": hash_of(block),
                "block_time": time_of(block).replace(tzinfo=None),
                "transaction_index": 1,
                "log_index": log,
                "transaction_hash": f"0x{number:064x}",
                "counterparty_address": counterparty,
                "token_address": token,
                "token_id": EXAMPLE_TOKEN_ID if token == small else None,
                "token_symbol": {"native": "ETH", small: "SMALL"}.get(token),
                "amount_raw": raw,
                "amount": text_of(raw, decimals),
                "amount_status": "Known",
                "amount_approx": 0,
            }
        )
    known = [
        (100, 99, "native", 10**18, 18, True),
        (100, 120, "native", 6 * 10**18, 18, False),
        (100, 99, small, 100, 0, True),
        (100, 120, small, 70, 0, False),
        (100, 120, GONE, 5, 0, False),
        (251, 250, "native", 6 * 10**18, 18, True),
        (251, 300, "native", 6 * 10**18 - 21_000, 18, False),
        (251, 250, small, 60, 0, True),
        (251, 300, small, 0, 0, False),
        (251, 396, _ADDRESSES[UNKNOWN_TOKEN_ID], 9, None, False),
    ]
    rows["balance_changes"].extend(
        _change(world, wallet, first, block, token, h1, raw, decimals, observed=observed)
        for first, block, token, raw, decimals, observed in known
    )
    for token, symbol, decimals, raw in (
        ("native", "ETH", 18, 6 * 10**18 - 21_000),
        (_ADDRESSES[UNKNOWN_TOKEN_ID], None, None, 9),
    ):
        rows.setdefault("wallet_balances", []).append(
            {
                **_keys(world, wallet),
                "token_address": token,
                "token_symbol": symbol,
                "token_decimals": decimals,
                "quantity_raw": raw,
                "quantity": text_of(raw, decimals),
                "quantity_approx": 0,
                "reconciliation": "Reconciled",
                "checked_block_number": 400,
                "opened_by": "Observed",
            }
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
            "is_observed": True,
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
