"""`ledgermart tenant create` and `ledgermart tenant list`, with shards."""

import json
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from cli.main import main
from control import access
from control.settings import load_settings
from control.store import open_store
from tests.templates import open_migrated


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A data folder with a control store."""
    monkeypatch.setenv("LEDGERMART_DATA_DIR", str(tmp_path))
    for variable in ("DAGSTER_HOME", "LEDGERMART_DAGSTER_DIR", "LEDGERMART_CODE_SERVER_SOCKET"):
        monkeypatch.setenv(variable, "")
    open_migrated(load_settings()).close()
    return tmp_path


def run(*arguments: str, code: int = 0, command: str = "tenant") -> str:
    done = CliRunner().invoke(main, [command, *arguments])
    assert done.exit_code == code, done.output
    return done.output


def run_json(*arguments: str) -> Any:
    return json.loads(run(*arguments, "--json"))


@pytest.mark.usefixtures("folder")
def test_shards_are_listed_if_any_tenant_is_not_in_shard_0(monkeypatch: pytest.MonkeyPatch) -> None:
    first = run_json("create", "first")
    assert (first["tenant"], first["shard"]) == ("first", 0)
    with closing(open_store(load_settings())) as store, store.read() as session:
        found = access.authenticate(session, first["apiKey"])
        assert (found.tenant_id, found.role) == (first["id"], access.Role.ADMIN)
    assert "shard" not in run("list")
    assert "shard   7" in run("create", "second", "--shard", "7")
    monkeypatch.setenv("LEDGERMART_SHARD", "3")
    assert run_json("create", "third")["shard"] == 3
    assert "shard" in run("list")
    listed = run_json("list")["data"]
    assert [(row["tenant"], row["shard"]) for row in listed] == [("first", 0), ("second", 7), ("third", 3)]


@pytest.mark.usefixtures("folder")
def test_existing_name_and_unknown_shard_are_refused() -> None:
    run("create", "first")
    assert "tenant 'first' already exists" in run("create", "first", "--shard", "1", code=2)
    assert "10000 is not in the range" in run("create", "second", "--shard", "10000", code=2)
    assert len(run_json("list")["data"]) == 1


@pytest.mark.usefixtures("folder")
def test_export_of_a_tenant_of_another_shard_is_refused() -> None:
    run("create", "second", "--shard", "7")
    printed = run("--tenant", "second", "--format", "csv", code=2, command="export")
    assert "tenant second is in shard 7" in printed
    assert "LEDGERMART_SHARD" in printed


@pytest.mark.usefixtures("folder")
def test_move_without_store_of_versions_is_refused() -> None:
    run("create", "first")
    assert "set LEDGERMART_VERSIONS" in run("move", "first", "--to", "1", code=2)
    assert "give either --to or --cancel" in run("move", "first", code=2)
    assert "first is not moving; it is in shard 0" in run("move", "first", "--cancel", code=2)
    assert [row["nextShard"] for row in run_json("list")["data"]] == [None]
