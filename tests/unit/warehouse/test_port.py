"""Only one package knows that the warehouse consists of files; other code uses its `Warehouse` port."""

import ast
import fcntl
from collections.abc import Iterator
from pathlib import Path

import duckdb
import pytest

from control.settings import Settings, load_settings
from pipelines.raw.database import create_tables
from tests import CHECKOUT
from warehouse.copies import Listener
from warehouse.lock import WriterBusyError
from warehouse.port import NothingPublishedError, Warehouse

_FILES = {"warehouse_path", "marts_path", "lock_path", "serving_dir"}
# Settings of the files' paths, owners and modes of folders, the folder for the reader of versions. The other
# modules copy, verify or archive single files.
_MAY_NAME_THEM = {
    "control/settings.py",
    "cli/data_folder.py",
    "api/app.py",
    "cli/deep.py",
    "pipelines/deliver/backup.py",
    "pipelines/deliver/restore.py",
    "pipelines/chain/reset.py",
}
_LISTENER = Listener(lambda _: None, lambda _: None, lambda _: None)


def _knowledge(path: Path) -> Iterator[str]:
    """Yield the parts of a module that depend on the warehouse's files."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Attribute) and node.attr in _FILES:
            yield node.attr
        if isinstance(node, ast.Attribute) and ast.unparse(node) in ("duckdb.connect", "fcntl.ioctl"):
            yield ast.unparse(node)
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and node.value.endswith(".duckdb"):
            yield node.value


def test_only_one_package_knows_the_files() -> None:
    found = {
        f"{path.relative_to(CHECKOUT)}: {known}"
        for folder in ("api", "cli", "control", "pipelines")
        for path in (CHECKOUT / folder).rglob("*.py")
        if str(path.relative_to(CHECKOUT)) not in _MAY_NAME_THEM
        for known in _knowledge(path)
    }
    assert found == set()
    assert set(_knowledge(CHECKOUT / "warehouse" / "port.py")) >= _FILES


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    return load_settings({"LEDGERMART_DATA_DIR": str(tmp_path / "data"), "LEDGERMART_LOCK_WAIT_SECONDS": "0"})


def test_exclusively_written_warehouse_is_published_and_copied(settings: Settings, tmp_path: Path) -> None:
    warehouse, analyst = Warehouse(settings), tmp_path / "analyst"
    assert (warehouse.published(), warehouse.writer(), warehouse.is_newest_readable()) == (None, None, False)
    with warehouse.exclusive("a test"), warehouse.open() as connection:
        create_tables(connection)
        connection.execute(f"attach '{warehouse.dbt_environment()['LEDGERMART_MARTS_PATH']}' as marts_db")
        connection.execute("create schema marts_db.marts; create table marts_db.marts.numbers as select 7 as number")
        assert warehouse.is_written()
        assert "a test" in str(warehouse.writer())
        with pytest.raises(WriterBusyError, match="a test"), warehouse.exclusive("another"):
            pass
    made = warehouse.publish(3, recorded=41, control_revision=1)
    assert (made.version, warehouse.published(), warehouse.is_newest_readable()) == (42, made, True)
    with warehouse.open_published() as (publication, reader):
        assert publication == made
        assert reader.execute("select number, version from marts.numbers, marts.publication").fetchall() == [(7, 42)]

    analyst.mkdir()
    with warehouse.copy_for(analyst, _LISTENER) as copy:
        assert copy.publication == made
        with settings.lock_path.open() as file, pytest.raises(BlockingIOError):
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    with duckdb.connect(str(analyst / "marts_db.duckdb")) as mine:
        mine.execute("update marts.numbers set number = 8")
    with warehouse.open_published() as (_, reader):
        assert reader.execute("select number from marts.numbers").fetchall() == [(7,)]


def test_missing_publication_is_reported(settings: Settings, tmp_path: Path) -> None:
    warehouse = Warehouse(settings)
    with (
        pytest.raises(NothingPublishedError, match="run `ledgermart init"),
        warehouse.copy_for(tmp_path / "analyst", _LISTENER),
    ):
        pass
    with pytest.raises(NothingPublishedError, match="run `ledgermart init"), warehouse.open_published():
        pass
