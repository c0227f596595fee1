"""After any cycles, a tenant has the same data version and horizon as it would have alone."""

import random
from collections.abc import Iterator
from contextlib import ExitStack
from datetime import UTC, datetime, timedelta

import duckdb
import polars as pl
import pytest

from control.ranges import BlockRange
from pipelines.balances.readings import (
    insert_balance_observations,
    insert_supply_observations,
    replace_suspected_tokens,
)
from pipelines.chain.contracts import record_creation, store_metadata
from pipelines.chain.reorganisations import remove_orphaned
from pipelines.chain.rows import store_segment
from pipelines.chain.states import record_healthy, record_unhealthy
from pipelines.raw.builds import is_behind, record_publication, record_transform
from pipelines.raw.database import create_tables
from pipelines.rows import Kind, Origin, Segment
from pipelines.tables.families import ROW_TABLES
from pipelines.tables.sources import TABLES
from pipelines.tenants.versions import advance, is_any_due

NETWORK = "n"
NOON = datetime(2026, 1, 1, 12, tzinfo=UTC).replace(tzinfo=None)
PERIOD = 120
TOKENS = ("0xt1", "0xt2", "0xt3")
HOLDERS = ("0xw1", "0xw2", "0xw3", "0xw4")
# Tenant, kind, address and native mode by key. For one address, modes may differ between tenants.
SUBJECTS: dict[int, tuple[str, Kind, str, str | None]] = {
    1: ("a", "token", "0xt1", None),
    2: ("a", "wallet", "0xw1", "balance-only"),
    3: ("a", "wallet", "0xw2", "full"),
    4: ("b", "token", "0xt1", None),
    5: ("b", "token", "0xt2", None),
    6: ("b", "wallet", "0xw1", "full"),
    7: ("b", "wallet", "0xw2", "full"),
    8: ("b", "wallet", "0xw3", "full"),
}


class Chain:
    """Blocks with occasional transfers or transactions, and metadata of contracts."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.head = self.final = 0
        self.transfers: list[dict[str, object]] = []
        self.transactions: list[dict[str, object]] = []
        self.names = dict.fromkeys(TOKENS, 0)

    def mine(self, count: int) -> None:
        """Add blocks."""
        for block in range(self.head + 1, self.head + count + 1):
            sender, recipient = self.random.sample(HOLDERS, 2)
            row = {
                "block_number": block,
                "block_hash": f"0x{block}",
                "transaction_index": 0,
                "transaction_hash": f"0xx{block}",
                "from_address": sender,
                "to_address": recipient,
            }
            match self.random.randrange(12):
                case 0:
                    token = self.random.choice(TOKENS)
                    self.transfers.append({**row, "log_index": 0, "token_address": token, "amount_raw": "1"})
                case 1:
                    rest = {"created_address": None, "fee_raw": "1", "gas_used": 1, "is_success": True}
                    self.transactions.append({**row, "value_raw": "1", **rest})
        self.head += count


class Warehouse:
    """The stored part of the chain for some tenants."""

    def __init__(self, connection: duckdb.DuckDBPyConnection, tenants: str) -> None:
        create_tables(connection)
        self.connection, self.tenants, self.version = connection, tenants, 0
        self.subjects = {key: row for key, row in SUBJECTS.items() if row[0] in tenants}
        connection.executemany("insert into raw.control_tenants values (?, ?, 1)", [(name, name) for name in tenants])
        connection.executemany(
            "insert into raw.control_subjects "
            "values (?, ?, ?, ?, 'led', 'n', ?, null, null, null, null, ?, null, null)",
            [(key, str(key), kind, tenant, where, NOON) for key, (tenant, kind, where, _) in self.subjects.items()],
        )
        connection.execute("insert into raw.control_revisions values (0)")

    def configure(self, key: int, origin: int, first: int, last: int | None, batch: int) -> None:
        """Open or close a tracking window, or request a past range."""
        tenant, _, _, native = SUBJECTS[key]
        if tenant not in self.tenants:
            return
        self.connection.execute("delete from raw.view_ranges where origin_key = ?", [origin])
        self.connection.execute(
            "insert into raw.view_ranges values ('Window', ?, ?, 'n', ?, ?, ?)", [origin, key, first, last, native]
        )
        self.connection.execute("insert into raw.changes values (?, ?, 0, null, 'View')", [batch, key])
        self.connection.execute("update raw.control_tenants set revision = revision + 1 where tenant_id = ?", [tenant])
        self.connection.execute("update raw.control_revisions set revision = revision + 1")

    def collect(self, chain: Chain, batch: int) -> None:
        """Collect all missing blocks of the views once, then the metadata of contracts that moved."""
        self.connection.execute(
            """
            insert into raw.blocks by name
            select 'n' as network, number as block_number, '0x' || number as block_hash, '' as parent_hash,
                timestamp '2026-01-01' as block_time, ? as batch_id, false as is_tail
            from range(0, ?) as numbers (number)
            where number not in (select block_number from raw.blocks)
            """,
            [batch, chain.head + 1],
        )
        for kind, where, missing in self._missing(chain.head):
            table, rows = "token_transfers", chain.transfers
            if kind == "native":
                table, rows = "transactions", chain.transactions
            columns = ("token_address",) if kind == "token" else ("from_address", "to_address")
            for covered in missing:
                found = [
                    row
                    for row in rows
                    if covered.first <= row["block_number"] <= covered.last and where in [row[name] for name in columns]
                ]
                frame = pl.DataFrame(found, schema=ROW_TABLES[table].row_schema)
                store_segment(
                    self.connection, NETWORK, Segment(kind, covered, (where,)), {table: frame}, Origin("node"), batch
                )
        moved = self.connection.execute("select distinct token_address from raw.token_transfers order by 1").fetchall()
        schema = TABLES["token_metadata"].schema_without("network", "read_at")
        tenants = self.connection.execute("select distinct tenant_id from raw.control_subjects order by 1").fetchall()
        said = [
            (token, "Fungible", "ERC-20", "T", str(chain.names[token]), 18, None, tenant)
            for (token,) in moved
            for (tenant,) in tenants
        ]
        if said:
            store_metadata(self.connection, NETWORK, pl.DataFrame(said, schema=schema, orient="row"), chain.head, batch)

    def _missing(self, head: int) -> Iterator[tuple[Kind, str, list[BlockRange]]]:
        wanted: dict[tuple[Kind, str], set[int]] = {}
        views = self.connection.execute(
            "select subject_key, from_block, to_block, native from raw.view_ranges order by all"
        )
        for key, first, last, native in views.fetchall():
            _, kind, where, _ = SUBJECTS[key]
            kinds: list[Kind] = [kind, "native"] if native == "full" else [kind]
            for each in kinds:
                blocks = range(first, (head if last is None else min(last, head)) + 1)
                wanted.setdefault((each, where), set()).update(blocks)
        for (kind, where), blocks in sorted(wanted.items()):
            covered = self.connection.execute(
                "select from_block, to_block from raw.coverage where subject_kind = ? and address = ?", [kind, where]
            )
            left = sorted(blocks.difference(*(range(first, last + 1) for first, last in covered.fetchall())))
            starts = [block for block in left if block - 1 not in left]
            ends = [block for block in left if block + 1 not in left]
            yield kind, where, [BlockRange(*pair) for pair in zip(starts, ends, strict=True)]

    def read(self, token: str, holder: str, block: int, purpose: str, visible_to: set[str], batch: int) -> None:
        """Read a balance for some tenants, if one of them is present."""
        tenants = sorted(visible_to & set(self.tenants))
        if not tenants:
            return
        row = {"token_address": token, "block_number": block, "block_hash": f"0x{block}", "tenant_ids": tenants}
        if purpose == "Supply":
            frame = pl.DataFrame([{**row, "total_supply_raw": "1"}])
            insert_supply_observations(self.connection, NETWORK, frame, batch)
        else:
            frame = pl.DataFrame([{**row, "holder_address": holder, "quantity_raw": "1"}])
            insert_balance_observations(self.connection, NETWORK, frame, purpose, batch)

    def build(self, batch: int, now: datetime) -> None:
        """End a cycle, with a new version if one is due."""
        if not (is_behind(self.connection) or is_any_due(self.connection, PERIOD, now)):
            return
        advance(self.connection, self.version, PERIOD, now)
        self.connection.execute(
            "create schema if not exists intermediate; "
            "create or replace table intermediate.int_views_transformed as from raw.visible_ranges"
        )
        self.version += 1
        record_transform(self.connection, batch, "")
        record_publication(self.connection, self.version, batch)

    def shown(self) -> list[tuple[object, ...]]:
        """Return the data versions and horizon that tenant a sees."""
        return self.connection.execute(
            """
            select 'number', data_version::varchar, raised_at::varchar, revision::varchar, failing
            from raw.tenant_versions where tenant_id = 'a'
            union all
            select 'horizon', network, head_number::varchar, final_number::varchar, null
            from raw.tenant_horizons where tenant_id = 'a'
            order by all
            """
        ).fetchall()


def happen(chain: Chain, warehouses: list[Warehouse], tenant: str, batch: int) -> None:
    """Do an action of a tenant, or of the pipeline for that tenant only."""
    choose = chain.random
    key = choose.choice([key for key, row in SUBJECTS.items() if row[0] == tenant])
    _, kind, where, _ = SUBJECTS[key]
    token, holder = (where, choose.choice(HOLDERS)) if kind == "token" else (choose.choice(TOKENS), where)
    action = choose.choice(["open", "close", "ask", "read", "read", "read", "suspect", "create"])
    first, block = choose.randint(1, chain.head), choose.randint(0, chain.head)
    purpose = choose.choice(["Check", "Sample", "Sample", "Supply"])
    for warehouse in warehouses:
        if tenant not in warehouse.tenants:
            continue
        match action:
            case "open":
                warehouse.configure(key, key, chain.head, None, batch)
            case "close":
                warehouse.configure(key, key, max(chain.head - 8, 1), chain.head - 1, batch)
            case "ask":
                warehouse.configure(key, 100 + batch, first, min(first + 6, chain.head), batch)
            case "read":
                warehouse.read(token, holder, block, purpose, {tenant}, batch)
            case "suspect":
                replace_suspected_tokens(warehouse.connection, NETWORK, [(token, tenant)], block, batch)
            case "create":
                record_creation(warehouse.connection, NETWORK, token, tenant, block, batch)


@pytest.mark.release
@pytest.mark.parametrize(
    "seed",
    [
        0,
        pytest.param(1, marks=pytest.mark.release),
        *(pytest.param(seed, marks=pytest.mark.release) for seed in range(2, 30)),
    ],
)
def test_other_tenants_do_not_affect_a_tenants_data_version(seed: int) -> None:
    chain, now, others_built = Chain(seed), NOON, 0
    choose = chain.random
    with ExitStack() as stack:
        alone, beside = (
            Warehouse(stack.enter_context(duckdb.connect(config={"threads": 1})), tenants) for tenants in ("a", "ab")
        )
        warehouses = [alone, beside]
        for batch in range(1, 30):
            now += timedelta(seconds=choose.randint(1, 60))
            chain.mine(choose.randint(1, 5))
            is_failing = batch > 1 and choose.random() < 0.1
            if batch == 1:
                for warehouse in warehouses:
                    for key in (1, 2, 3, 6):
                        warehouse.configure(key, key, 1, None, batch)
            elif not is_failing:
                for _ in range(choose.randint(0, 3)):
                    happen(chain, warehouses, choose.choice("abbbbbb"), batch)
            if choose.random() < 0.2:
                chain.names[choose.choice(TOKENS)] += 1
            is_fork, final = choose.random() < 0.05, choose.randint(chain.final, max(chain.final, chain.head - 6))
            for warehouse in warehouses:
                if is_failing:
                    record_unhealthy(
                        warehouse.connection, NETWORK, "Unreachable", "eth_getLogs", (None, None), "gone", batch
                    )
                else:
                    if is_fork:
                        remove_orphaned(warehouse.connection, NETWORK, chain.final + 1, "0x", "0xother", batch)
                    warehouse.collect(chain, batch)
                    record_healthy(warehouse.connection, NETWORK, {"head_number": chain.head}, final, batch)
            chain.final = chain.final if is_failing else final
            for warehouse in warehouses:
                warehouse.build(batch, now)
            assert (batch, alone.shown()) == (batch, beside.shown())
            others_built += beside.version - alone.version
        # By chance, there may be no build for another tenant only.
        assert others_built > 0 or seed > 1
        assert alone.shown()[-1][0] == "number"
