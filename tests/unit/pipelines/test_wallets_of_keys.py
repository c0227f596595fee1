"""Descriptors of wallets in the warehouse: in one raw column, and not in an analyst's copy."""

from pathlib import Path

import pytest

from pipelines.deliver import sandbox
from pipelines.raw.database import create_tables
from pipelines.tables.sources import TABLES
from warehouse.copies import open_copy
from warehouse.opening import connect

DESCRIPTOR = "wpkh(xpub6WholeKey/<0;1>/*)#00000000"


def fill(warehouse: Path, *, has_column: bool = True) -> None:
    with connect(warehouse) as connection:
        create_tables(connection)
        connection.execute(
            """
            insert into raw.control_subjects by name select
                1 as subject_key, 'wal_1' as subject_id, 'wallet' as kind, 'a' as tenant_id, 'led' as ledger_id,
                'n' as network, 'keys:1' as address, 'wpkh(x)' as shown_as, ? as descriptor,
                '2026-01-01'::timestamp as created_at
            """,
            [DESCRIPTOR],
        )
        connection.execute("insert into raw.utxo_scripts values ('n', 'keys:1', 0, 0, '00', 'address')")
        if not has_column:
            connection.execute("alter table raw.control_subjects drop column descriptor")


def test_descriptor_is_the_last_column_and_only_the_subjects_have_it() -> None:
    having = [table.name for table in TABLES.values() if "descriptor" in table.schema()]
    assert having == ["control_subjects"]
    assert [column.name for column in TABLES["control_subjects"].columns][-2:] == ["shown_as", "descriptor"]


@pytest.mark.parametrize("has_column", [True, False])
def test_sandbox_has_no_descriptors_and_no_derived_addresses(tmp_path: Path, has_column: bool) -> None:
    fill(tmp_path / "warehouse.duckdb", has_column=has_column)
    sandbox._remove_descriptors(tmp_path)
    with open_copy(tmp_path) as connection:
        (row,) = connection.execute("select * from raw.control_subjects").fetchall()
        shown = connection.execute("select address, shown_as from raw.control_subjects").fetchall()
        tables = connection.execute("select table_name from duckdb_tables() where schema_name = 'raw'").fetchall()
    assert DESCRIPTOR not in row
    assert ("utxo_scripts",) not in tables
    assert shown == [("keys:1", "wpkh(x)")]
