"""The rows of a tenant in a bundle, their import beside other tenants, and their removal."""

import logging
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import replace
from datetime import datetime
from pathlib import Path

import duckdb
import pytest

from control import moves, tenants
from control.moves import Bundle, TenantKeys
from control.settings import load_settings
from pipelines.chain.unread import Unread
from pipelines.defs.moves import settle_moves
from pipelines.extract.units import Unit
from pipelines.moves import arriving
from pipelines.moves.arriving import (
    ContradictedBundleError,
    NewerBundleError,
    arrive,
    find_imported,
    find_uncollected,
    record_arrived,
)
from pipelines.moves.leaving import leave, write_bundle
from pipelines.moves.tables import OWNED, RULES, Rule, tables_of
from pipelines.raw.database import open_warehouse
from pipelines.tables.sources import TABLES
from tests.templates import open_migrated
from warehouse.bundles import bundle_path
from warehouse.shared import open_objects

KEYS = TenantKeys("ten_a", [1, 2], [7], [5], [9])
NOW = datetime(2026, 1, 1, 12)  # noqa: DTZ001
BATCH = 50
Row = tuple[object, ...]


def test_every_raw_table_has_a_rule_and_its_column() -> None:
    assert RULES.keys() == TABLES.keys()
    columns = {rule: str(rule.value) for rule in OWNED} | {Rule.READINGS: "visible_to"}
    assert [
        table for table, rule in RULES.items() if rule in columns and columns[rule] not in TABLES[table].schema()
    ] == []


class Shard:
    """A warehouse with blocks 1 to 10 of a network."""

    def __init__(self, connection: duckdb.DuckDBPyConnection) -> None:
        self.connection = connection
        self.run("insert into raw.batches values (1, 'r', ?, null)", NOW)

    def run(self, statement: str, *parameters: object) -> list[Row]:
        return self.connection.execute(statement, list(parameters)).fetchall()

    def rows(self, table: str, columns: str = "*") -> list[Row]:
        return self.run(f"select {columns} from raw.{table} order by all")

    def everything(self) -> dict[str, list[Row]]:
        """All rows of all tables."""
        return {
            table: self.run(f"select cast(columns(*) as varchar) from raw.{table} order by all") for table in TABLES
        }

    def subject(self, key: int, kind: str, tenant: str, address: str, first: int) -> None:
        self.run(
            "insert into raw.control_tenants select ?, ?, 1 where ? not in (select tenant_id from raw.control_tenants)",
            tenant,
            tenant,
            tenant,
        )
        self.run(
            "insert into raw.control_subjects "
            "values (?, ?, ?, ?, 'led', 'n', ?, null, null, null, null, ?, null, null)",
            *(key, str(key), kind, tenant, address, NOW),
        )
        native = "full" if kind == "wallet" else None
        self.run("insert into raw.view_ranges values ('Window', ?, ?, 'n', ?, null, ?)", key, key, first, native)

    def collect(self, kind: str, address: str, first: int, last: int, rows: int) -> None:
        self.run(
            "insert into raw.coverage values ('n', ?, ?, ?, ?, ?, 'node', ?, 1, null)",
            *(kind, address, first, last, rows, NOW),
        )

    def headers(self, first: int, last: int) -> None:
        self.run(
            "insert into raw.blocks select 'n', x, '0x' || x, '', ?::timestamp, 1, true from range(?, ?) t(x)",
            *(NOW, first, last + 1),
        )

    def transfer(self, block: int, token: str, sender: str, recipient: str) -> None:
        self.run(
            "insert into raw.token_transfers values ('n', ?, ?, 0, '0xh', 0, ?, ?, ?, 1, 1)",
            *(block, f"0x{block}", token, sender, recipient),
        )

    def read(self, holder: str, block: int, *tenants: str) -> None:
        self.run(
            "insert into raw.balance_observations values ('n', '0xt', ?, ?, ?, 1, 'Check', 1, map(?, ?))",
            *(holder, block, f"0x{block}", list(tenants), [1] * len(tenants)),
        )

    def state(self, head: int, final: int) -> None:
        self.run(
            """
            insert into raw.network_states
                (network, status, status_since, head_number, final_number, failures_in_a_row, probed_at, batch_id)
            values ('n', 'Healthy', ?, ?, ?, 0, ?, 1)
            """,
            *(NOW, head, final, NOW),
        )


@pytest.fixture
def shards(tmp_path: Path) -> Iterator[tuple[Shard, Shard]]:
    """The shard of tenants a and b, and that of tenant c, who tracks a's wallet from block 3 on."""
    with ExitStack() as stack:
        old, new = (Shard(stack.enter_context(open_warehouse(tmp_path / f"{name}.duckdb"))) for name in ("old", "new"))
        old.subject(1, "token", "ten_a", "0xt", 1)
        old.subject(2, "wallet", "ten_a", "0xw", 1)
        old.subject(3, "token", "ten_b", "0xt2", 1)
        old.headers(1, 10)
        for kind, address, rows in (
            ("token", "0xt", 3),
            ("wallet", "0xw", 2),
            ("native", "0xw", 0),
            ("token", "0xt2", 1),
        ):
            old.collect(kind, address, 1, 10, rows)
        for block, token, sender, recipient in (
            (2, "0xt", "0xw", "0xo"),
            (3, "0xt2", "0xq", "0xo"),
            (5, "0xt", "0xw", "0xo"),
            (9, "0xt", "0xo", "0xp"),
        ):
            old.transfer(block, token, sender, recipient)
        old.read("0xw", 10, "ten_a", "ten_b")
        old.read("0xz", 10, "ten_b")
        old.read("0xo", 6, "ten_a")
        old.state(10, 4)
        old.run("insert into raw.history_requests values (7, 1, 'n', 1, 5, null, null, null, 'Running', 3, 1)")
        old.run("insert into raw.tenant_versions values ('ten_a', 4, 3, ?, 1, ''), ('ten_b', 9, 3, ?, 1, '')", NOW, NOW)
        new.subject(4, "wallet", "ten_c", "0xw", 3)
        new.headers(5, 8)
        new.collect("wallet", "0xw", 5, 6, 1)
        new.transfer(5, "0xt", "0xw", "0xo")
        new.read("0xw", 10, "ten_c")
        new.state(8, 4)
        yield old, new


@pytest.fixture
def folder(shards: tuple[Shard, Shard], tmp_path: Path) -> Path:
    """A folder with the bundle of tenant a."""
    made = tmp_path / "bundle"
    made.mkdir()
    write_bundle(shards[0].connection, KEYS, made)
    return made


def test_bundle_has_no_row_of_another_tenant(shards: tuple[Shard, Shard], folder: Path) -> None:
    before = shards[0].everything()
    assert shards[0].everything() == before
    with duckdb.connect(str(bundle_path(folder)), read_only=True) as connection:
        for table in TABLES:
            found = repr(connection.execute(f"select cast(columns(*) as varchar) from raw.{table}").fetchall())
            assert "ten_b" not in found, table
            assert "0xt2" not in found, table


def test_import_adds_the_missing_facts_once(shards: tuple[Shard, Shard], folder: Path) -> None:
    _, new = shards
    arrive(new.connection, KEYS, folder, "object", BATCH)
    assert new.rows("token_transfers", "block_number, token_address, batch_id") == [
        (2, "0xt", BATCH),
        (5, "0xt", 1),
        (9, "0xt", BATCH),
    ]
    assert new.rows("coverage", "subject_kind, address, from_block, to_block, row_count, batch_id") == [
        ("native", "0xw", 1, 10, 0, BATCH),
        ("token", "0xt", 1, 10, 3, BATCH),
        ("wallet", "0xw", 1, 4, 1, BATCH),
        ("wallet", "0xw", 5, 6, 1, 1),
        ("wallet", "0xw", 7, 10, 0, BATCH),
    ]
    assert new.rows("balance_observations", "holder_address, block_number, visible_to") == [
        ("0xo", 6, {"ten_a": BATCH}),
        ("0xw", 10, {"ten_a": BATCH, "ten_c": 1}),
    ]
    # Only tenant b has a row in block 3.
    assert [block for (block,) in new.rows("blocks", "block_number")] == [1, 2, *range(4, 11)]
    assert new.rows("history_requests", "operation_key, status, worked_blocks") == [(7, "Running", 3)]
    assert new.rows("network_states", "head_number") == [(8,)]
    # Data versions continue, and all subjects of the tenant are marked. Tenant c sees blocks 3 to 10 of its wallet now.
    assert new.rows("tenant_versions", "tenant_id, data_version") == [("ten_a", 5)]
    assert new.rows("changes", "batch_id, subject_key, reason") == [
        (BATCH, 1, "View"),
        (BATCH, 2, "View"),
        (BATCH, 4, "Rows"),
    ]
    assert find_imported(new.connection) == {"ten_a": "object"}


def test_covered_block_without_traces_is_traced_in_the_new_shard(shards: tuple[Shard, Shard], tmp_path: Path) -> None:
    old, new = shards
    for kind, address, part, block in (
        ("traces", "", "", 9),
        ("traces", "", "", 11),  # after the blocks that the wallet has
        ("block", "0xw", "native", 9),
        ("contract", "0xt2", "", None),
    ):
        old.run(
            "insert into raw.unread_units values ('n', ?, ?, ?, ?, 'trace_block', 'it is too large', 3, ?, ?, 1)",
            *(kind, address, part, block, NOW, NOW),
        )
    made = tmp_path / "bundle"
    made.mkdir()
    write_bundle(old.connection, KEYS, made)
    for object_name in ("first", "second"):
        arrive(new.connection, KEYS, made, object_name, BATCH)
        due = Unread(new.connection, "n", BATCH + 1).due(("traces", "block", "contract"))
        assert due == [Unit("traces", "", "", 9)]
        assert len(new.rows("unread_units")) == 1


def test_import_of_another_bundle_replaces_the_first(shards: tuple[Shard, Shard], folder: Path, tmp_path: Path) -> None:
    old, new = shards
    arrive(new.connection, KEYS, folder, "first", BATCH)
    once = new.everything()
    old.run("update raw.history_requests set status = 'Succeeded'")
    later = tmp_path / "later"
    later.mkdir()
    write_bundle(old.connection, KEYS, later)
    arrive(new.connection, KEYS, later, "second", BATCH + 1)
    twice = new.everything()
    assert new.rows("history_requests", "status") == [("Succeeded",)]
    assert find_imported(new.connection) == {"ten_a": "second"}
    for table in tables_of(Rule.RANGES, Rule.NETWORKS, Rule.MARKETS):
        assert once[table] == twice[table], table
    assert new.rows("balance_observations", "holder_address, visible_to") == [
        ("0xo", {"ten_a": BATCH + 1}),
        ("0xw", {"ten_a": BATCH + 1, "ten_c": 1}),
    ]
    # No data version returns.
    assert new.rows("tenant_versions", "data_version") == [(6,)]


def test_killed_import_leaves_nothing(
    shards: tuple[Shard, Shard], folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _, new = shards
    before = new.everything()

    def fail(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(arriving, "_mark", fail)
    with pytest.raises(KeyboardInterrupt):
        arrive(new.connection, KEYS, folder, "object", BATCH)
    assert new.everything() == before
    monkeypatch.undo()
    arrive(new.connection, KEYS, folder, "object", BATCH)
    assert find_imported(new.connection) == {"ten_a": "object"}


def test_contradicted_blocks_that_are_not_final_are_left_out(shards: tuple[Shard, Shard], folder: Path) -> None:
    _, new = shards
    new.run("update raw.blocks set block_hash = '0xother' where block_number = 7")
    arrive(new.connection, KEYS, folder, "object", BATCH)
    assert [block for (block,) in new.rows("token_transfers", "block_number")] == [2, 5]
    assert max(new.rows("coverage", "to_block")) == (6,)
    assert new.rows("balance_observations", "holder_address") == [("0xo",), ("0xw",)]
    assert new.run("select visible_to from raw.balance_observations where holder_address = '0xw'") == [({"ten_c": 1},)]


def test_contradicted_final_block_is_refused(shards: tuple[Shard, Shard], folder: Path) -> None:
    _, new = shards
    new.headers(4, 4)
    new.run("update raw.blocks set block_hash = '0xother' where block_number = 4")
    before = new.everything()
    with pytest.raises(ContradictedBundleError, match="block 4 of network n"):
        arrive(new.connection, KEYS, folder, "object", BATCH)
    assert new.everything() == before


def test_bundle_of_a_newer_release_is_refused(shards: tuple[Shard, Shard], folder: Path) -> None:
    _, new = shards
    with duckdb.connect(str(bundle_path(folder))) as connection:
        connection.execute("alter table raw.coverage add column later integer")
    before = new.everything()
    with pytest.raises(NewerBundleError, match=r"newer release \(raw.coverage.later\)"):
        arrive(new.connection, KEYS, folder, "object", BATCH)
    assert new.everything() == before


def test_bundle_that_the_database_refuses_is_left_out_named_and_tried_again(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    settings = load_settings({"LEDGERMART_DATA_DIR": str(tmp_path), "LEDGERMART_SHARD": "1"})
    settings = replace(settings, versions=str(tmp_path / "store"))
    store, path = open_migrated(settings), tmp_path / "bundle.duckdb"
    with open_warehouse(path) as connection, store.write() as session:
        ids = sorted(tenants.create(session, name).id for name in ("one", "two"))

        def record(tenant_id: str) -> None:
            moves.begin(session, tenants.get(session, tenant_id), 0, 1)
            connection.execute("checkpoint")
            stored = open_objects(settings).put(path, f"moves/{tenant_id}")
            moves.record(session, Bundle(tenant_id, *stored), 0, 1)

        record(ids[1])
        connection.execute("alter table raw.view_ranges alter from_block type varchar")
        connection.execute("insert into raw.view_ranges values ('Window', 1, 1, 'n', 'later', null, null)")
        record(ids[0])
    with open_warehouse(settings.warehouse_path) as connection:

        def settle() -> list[str]:
            return settle_moves(settings, store, connection, "run", logging.getLogger("cycle"))

        assert settle() == [ids[1]]
        with store.write() as session:
            assert f"tenant {ids[0]} cannot move to shard 1 yet: Conversion Error: Could not" in caplog.text
            (_, whole) = moves.find_arriving(session, 1)
            moves.record(session, whole._replace(tenant_id=ids[0]), 0, 1)
        assert settle() == ids
    store.close()


@pytest.mark.ci
@pytest.mark.parametrize(
    ("state", "is_waited_for"),
    [
        ("batch_id = 52", False),
        ("batch_id = 52, status = 'Unreachable'", True),
        ("batch_id = 50", True),  # the import itself
        ("batch_id = 54", True),  # after the publication
        ("network = 'other'", True),  # this shard has no node for it
    ],
)
def test_tenant_waits_for_a_complete_cycle_after_the_import(
    shards: tuple[Shard, Shard], folder: Path, state: str, is_waited_for: bool
) -> None:
    _, new = shards
    arrive(new.connection, KEYS, folder, "object", BATCH)
    new.subject(1, "token", "ten_a", "0xt", 1)
    new.run(f"update raw.network_states set {state}")
    expected = ["n"] if is_waited_for else []
    assert find_uncollected(new.connection, "ten_a", 53) == []  # nothing is tracked
    new.run("insert into raw.control_windows values (1, 1, ?, null)", NOW)
    assert find_uncollected(new.connection, "ten_a", 53) == expected


def test_leaving_empties_the_tables_of_the_tenant(shards: tuple[Shard, Shard]) -> None:
    old, _ = shards
    facts = {table: old.rows(table) for table in ("token_transfers", "coverage", "blocks")}
    leave(old.connection, KEYS)
    assert old.rows("control_tenants", "tenant_id") == [("ten_b",)]
    for table, rule in RULES.items():
        if rule in (*OWNED, Rule.READINGS):
            assert "ten_a" not in repr(old.rows(table)), table
    assert old.rows("view_ranges", "subject_key") == [(3,)]
    assert old.rows("balance_observations", "holder_address, visible_to") == [
        ("0xw", {"ten_b": 1}),
        ("0xz", {"ten_b": 1}),
    ]
    assert old.rows("tenant_versions", "tenant_id") == [("ten_b",)]
    assert {table: old.rows(table) for table in facts} == facts
    assert old.rows("tenant_moves") == [("ten_a", "Left", None, None, None, 4)]


def test_data_versions_of_a_returning_tenant_are_new_in_both_shards(
    shards: tuple[Shard, Shard], folder: Path, tmp_path: Path
) -> None:
    old, new = shards
    # After the bundle was written, its shard served number 8 before the switch.
    old.run("insert into raw.tenant_versions values ('ten_a', 8, 4, ?, 1, '')", NOW)
    arrive(new.connection, KEYS, folder, "there", BATCH)
    record_arrived(new.connection, "ten_a")
    leave(old.connection, KEYS)
    back = tmp_path / "back"
    back.mkdir()
    write_bundle(new.connection, KEYS, back)
    arrive(old.connection, KEYS, back, "back", BATCH)
    assert max(old.run("select data_version from raw.tenant_versions where tenant_id = 'ten_a'")) == (9,)


def test_polled_prices_move_to_the_pair_alone(shards: tuple[Shard, Shard], tmp_path: Path) -> None:
    old, new = shards
    old.run(
        "insert into raw.control_price_pairs "
        "values (5, 'pair', 'ten_a', 'X', 'USD', 'Trade', null, true, null, null, null, ?)",
        NOW,
    )
    old.run(
        "insert into raw.pair_routes values (5, 'src', 0, 'Resolved', 'Direct', null, 1, 'XUSD', 'Trade', false, null)"
    )
    old.run("insert into raw.markets values ('src', 'XUSD', 'X', 'USD', 'X', 'USD', true, ?, ?, 1)", NOW, NOW)
    poll = "insert into raw.prices values ('src', 'XUSD', 'Trade', null, ?, 2, 'Poll', false, ?, ?, 1)"
    early = datetime(2025, 1, 1)  # noqa: DTZ001
    old.run(poll, NOW, NOW, NOW)
    old.run(poll, early, early, early)  # before the pair was created
    made = tmp_path / "bundle"
    made.mkdir()
    write_bundle(old.connection, KEYS, made)
    arrive(new.connection, KEYS, made, "object", BATCH)
    assert new.rows("prices", "window_start, effective_from, origin") == [(NOW, NOW, "Window")]
    assert new.rows("pair_windows", "pair_key, window_start, effective_from") == [(5, NOW, NOW)]
    assert new.rows("markets", "market_id") == [("XUSD",)]
    assert new.rows("price_changes", "batch_id, pair_key") == [(BATCH, 5)]
