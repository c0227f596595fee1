"""A lost or damaged control store is not a new installation: each command names the cause and the fix."""

import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import duckdb
import pytest
from click.testing import CliRunner, Result

import cli.cycle
from cli.cycle import CycleResult
from cli.main import main
from tests.damages import Damage, cut, emptied, garbage, removed

_COMMANDS = (["cycle"], ["backfill"], ["up"], ["api"])


@pytest.fixture
def data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The data folder of an installation with a tenant; no cycle runs."""
    monkeypatch.setenv("LEDGERMART_DATA_DIR", str(tmp_path))
    for variable in ("DAGSTER_HOME", "LEDGERMART_DAGSTER_DIR", "LEDGERMART_CODE_SERVER_PORT"):
        monkeypatch.setenv(variable, "")
    monkeypatch.setattr(cli.cycle, "run_cycle", lambda *_, **__: CycleResult(0, None, None, None, True))
    assert run("init", "--tenant", "acme").exit_code == 0
    duckdb.connect(str(tmp_path / "warehouse.duckdb")).close()
    return tmp_path


def run(*arguments: str) -> Result:
    return CliRunner().invoke(main, list(arguments))


def refused(*arguments: str) -> str:
    """Run a command that must be refused in one sentence; return the sentence."""
    done = run(*arguments)
    assert (done.exit_code, done.stdout) == (2, ""), done.output
    assert not isinstance(done.exception, Exception)
    return done.stderr


def damage_store(data: Path, damage: Damage) -> None:
    """Replace the store by a damaged copy; this process still has the original open."""
    copy = data / "copy.db"
    with closing(sqlite3.connect(data / "control.db")) as source, closing(sqlite3.connect(copy)) as target:
        source.backup(target)
    for path in data.glob("control.db*"):
        path.unlink()
    damage(copy)
    if copy.exists():
        copy.rename(data / "control.db")


def files(folder: Path) -> dict[str, Any]:
    return {path.name: path.stat().st_size for path in folder.iterdir() if path.is_file() and path.suffix != ".lock"}


@pytest.mark.parametrize("damage", [removed, emptied])
def test_lost_store_is_not_recreated(data: Path, damage: Damage) -> None:
    damage_store(data, damage)
    before = files(data)
    for command in (*_COMMANDS, ["init", "--tenant", "acme"], ["status"]):
        told = refused(*command)
        assert f"the control store ({data}/control.db) is missing or empty" in told
        assert "restore a backup with `ledgermart restore` (docs/how-to/backup-and-upgrade.md)" in told
        assert "`ledgermart init --tenant NAME --new-control-store`" in told
    assert files(data) == before
    assert run("init", "--tenant", "acme", "--new-control-store").exit_code == 0
    assert "acme" in run("status", "--json").stdout
    assert not (data / "warehouse.duckdb").exists()
    assert len(list(data.glob("aside-*-warehouse.duckdb"))) == 1


@pytest.mark.parametrize("damage", [cut, garbage])
def test_a_damaged_store_is_named(data: Path, damage: Damage) -> None:
    damage_store(data, damage)
    for command in (*_COMMANDS, ["init", "--tenant", "acme"], ["status"], ["key", "list", "--tenant", "acme"]):
        told = refused(*command)
        assert f"the control store {data}/control.db is damaged (" in told
        assert "restore a backup with `ledgermart restore` (docs/how-to/backup-and-upgrade.md)" in told
    damaged = (data / "control.db").read_bytes()
    assert run("init", "--tenant", "acme", "--new-control-store").exit_code == 0
    assert "acme" in run("status", "--json").stdout
    (aside,) = data.glob("aside-*-control.db")
    assert aside.read_bytes() == damaged
    assert len(list(data.glob("aside-*-warehouse.duckdb"))) == 1


def test_doctor_names_a_damaged_store_that_still_opens(data: Path) -> None:
    """The store is truncated while another process uses it, and SQLite takes the file's length from its log."""
    with closing(sqlite3.connect(data / "control.db")) as user:
        user.execute("create table later as select zeroblob(10000000) as pages")
        user.commit()
        user.execute("pragma wal_checkpoint(truncate)")
        user.execute("update tenants set name = 'beta'")
        user.commit()
        cut(data / "control.db")
        told = run("doctor", "--json").stdout
        assert f"the control store {data}/control.db is damaged (" in told
        assert "`ledgermart restore`" in told
        assert run("init", "--tenant", "gamma", "--new-control-store").exit_code == 0
    assert "beta" not in run("status", "--json").stdout


def test_intact_store_is_kept_with_new_control_store(data: Path) -> None:
    assert run("init", "--tenant", "beta", "--new-control-store").exit_code == 0
    assert "acme" in run("status", "--json").stdout
    assert not list(data.glob("aside-*"))


def test_only_init_creates_a_store_in_a_new_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LEDGERMART_DATA_DIR", str(tmp_path))
    for command in _COMMANDS:
        told = refused(*command)
        assert f"there is no control store yet ({tmp_path}/control.db); run `ledgermart init --tenant NAME`" in told
    assert not (tmp_path / "control.db").exists()
