"""`ledgermart init`: its progress, and the next step that it prints."""

import os
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

import cli.cycle
from cli.cycle import CycleResult
from cli.main import main
from control import tenants
from control.settings import load_settings
from control.store import open_store


@pytest.fixture
def networks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Definitions of two networks without a node, next to the data folder."""
    file = tmp_path / "networks.toml"
    file.write_text(
        "".join(
            f"""
[[network]]
name = "{name}"
display_name = "{name}"
family = "evm"
chain_id = {number}
is_testnet = true
rpc = ["${{{name.upper()}_RPC_URL}}"]
native = {{ symbol = "ETH", decimals = 18 }}
finality_depth = 64
poll_seconds = 1
"""
            for number, name in enumerate(("first", "second"), start=1)
        )
    )
    monkeypatch.setenv("LEDGERMART_NETWORKS", str(file))
    monkeypatch.setenv("LEDGERMART_DATA_DIR", str(tmp_path / "data"))
    for variable in ("DAGSTER_HOME", "LEDGERMART_DAGSTER_DIR", "LEDGERMART_CODE_SERVER_SOCKET"):
        monkeypatch.setenv(variable, "")

    def run_cycle(_: Any, networks: list[str], begins: Any) -> CycleResult:
        assert networks == []
        begins("building")
        return CycleResult(0, None, None, None, True)

    monkeypatch.setattr(cli.cycle, "run_cycle", run_cycle)
    return file


def initialised(*options: str) -> Result:
    """Run the command in this process."""
    before = os.umask(0o077)
    try:
        done = CliRunner().invoke(main, ["init", "--tenant", "acme", *options])
    finally:
        os.umask(before)
    assert done.exit_code == 0, done.output
    return done


def test_init_shows_its_phases_and_the_next_steps(networks: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    done = initialised()
    assert [line.split(" s  ")[1].split(";")[0] for line in done.stderr.splitlines()] == [
        "creating the control store",
        "loading the pipeline",
        "building",
        "done",
    ]
    assert "key     lm_" in done.stdout
    assert "  first: no node address: set FIRST_RPC_URL, or the variable of another network" in done.stdout
    assert "ledgermart doctor" in done.stdout
    assert "ledgermart up" in done.stdout

    monkeypatch.setenv("SECOND_RPC_URL", "http://127.0.0.1:9")
    again = initialised().stdout
    assert "tenant acme already exists" in again
    assert "FIRST_RPC_URL" not in again


def test_json_output_is_one_line_without_progress(networks: Path) -> None:
    done = initialised("--json")
    assert done.stderr == ""
    assert done.stdout.count("\n") == 1


@pytest.mark.usefixtures("networks")
def test_tenant_is_created_in_the_shard_of_the_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LEDGERMART_SHARD", "2")
    initialised()
    with closing(open_store(load_settings())) as store, store.read() as session:
        assert [tenant.shard for tenant in tenants.list_all(session)] == [2]
