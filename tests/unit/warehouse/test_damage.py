"""Damaged files of the warehouse: the error names the fix, except for tables that can be recomputed."""

from pathlib import Path

import duckdb
import pytest

from control.settings import Settings, load_settings
from tests.damages import Damage, cut, emptied, garbage, overwritten
from warehouse.damage import DamagedFileError, damaged_tables
from warehouse.port import Warehouse

DAMAGES = (cut, emptied, garbage, overwritten)


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    return load_settings({"LEDGERMART_DATA_DIR": str(tmp_path)})


@pytest.fixture
def warehouse(settings: Settings) -> Warehouse:
    warehouse = Warehouse(settings)
    with warehouse.open() as connection:
        connection.execute("create schema raw; create schema intermediate")
        for table in ("raw.blocks", "intermediate.balances"):
            connection.execute(f"create table {table} as select i, md5(i::text) as t from range(300000) as r(i)")
    return warehouse


def read(warehouse: Warehouse) -> None:
    with warehouse.open() as connection:
        connection.execute("select bit_xor(hash(i, t)) from raw.blocks").fetchall()


@pytest.mark.ci
@pytest.mark.parametrize("damage", DAMAGES)
def test_a_damaged_warehouse_is_named_with_the_fix(settings: Settings, warehouse: Warehouse, damage: Damage) -> None:
    read(warehouse)
    damage(settings.warehouse_path)
    with pytest.raises(DamagedFileError) as raised:
        read(warehouse)
    told = str(raised.value)
    assert told.startswith(f"{settings.warehouse_path} is damaged (")
    assert "restore a backup with `ledgermart restore` (docs/how-to/backup-and-upgrade.md)" in told
    assert "`ledgermart cycle --new-warehouse`" in told
    assert "\n" not in told
    (doctors,) = warehouse.damage() if damage is not overwritten else [told]
    assert doctors.startswith(f"{settings.warehouse_path} is damaged (")


def test_other_errors_are_not_taken_for_damage(warehouse: Warehouse) -> None:
    with pytest.raises(duckdb.CatalogException), warehouse.open() as connection:
        connection.execute("select 1 from raw.nothing")
    with pytest.raises(ZeroDivisionError), warehouse.open():
        _ = 1 // 0


def test_damage_in_computed_tables_is_not_taken_for_damage_in_raw_ones(
    settings: Settings, warehouse: Warehouse
) -> None:
    warehouse.check_rows("raw")
    path = settings.warehouse_path
    # The last written table is in the later blocks.
    with path.open("r+b") as file:
        file.seek(path.stat().st_size * 3 // 4)
        file.write(b"\xa5" * 1000)
    assert damaged_tables(path) == ["intermediate.balances"]
    warehouse.check_rows("raw")
    with pytest.raises(DamagedFileError, match=r"is damaged \(in intermediate\.balances\); restore a backup"):
        warehouse.check_rows("intermediate")


@pytest.mark.ci
@pytest.mark.parametrize("damage", DAMAGES)
def test_damaged_build_file_has_no_mark_and_can_be_discarded(
    settings: Settings, warehouse: Warehouse, damage: Damage
) -> None:
    assert not warehouse.has_marts()
    assert warehouse.mark_marts("first") is None
    assert warehouse.mark_marts("second") == "first"
    with duckdb.connect(str(settings.marts_path)) as connection:
        connection.execute("create table n as select md5(i::text) as t from range(300000) as r(i)")
    damage(settings.marts_path)
    assert warehouse.mark_marts("third") in ((None, "second") if damage is overwritten else (None,))
    settings.marts_path.with_name(f"{settings.marts_path.name}.wal").write_bytes(b"left")
    warehouse.discard_marts()
    assert list(settings.data_dir.glob("marts_build*")) == []
    assert warehouse.mark_marts("fourth") is None


def test_warehouse_set_aside_is_kept_under_another_name(settings: Settings, warehouse: Warehouse) -> None:
    whole = settings.warehouse_path.read_bytes()
    aside = warehouse.set_aside()
    assert aside is not None
    assert aside.read_bytes() == whole
    assert (warehouse.exists(), warehouse.set_aside(), warehouse.has_remains()) == (False, None, False)
