"""Sandboxes: their content, and protection from locks, overwriting and accidental removal."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import duckdb
import pytest

from tests import CHECKOUT
from tests.integration.conftest import READY_NETWORKS, MakeService
from tests.integration.harness import LEDGERMART, Service
from warehouse.lock import writer_lock

pytestmark = pytest.mark.release

_DBT = str(Path(sys.executable).with_name("dbt"))


def sandbox(service: Service, *arguments: str) -> dict[str, Any]:
    """Run the command with --json; return the printed object."""
    done = service.ledgermart("sandbox", *arguments, "--json")
    assert done.returncode == 0, done.stderr
    printed: dict[str, Any] = json.loads(done.stdout)
    return printed


def refused(service: Service, *arguments: str) -> str:
    """Run the command, which must be refused; return its message."""
    done = service.ledgermart("sandbox", *arguments)
    assert done.returncode == 2, done.stdout + done.stderr
    assert "Traceback" not in done.stderr
    return done.stderr


def run_dbt(service: Service, *arguments: str) -> str:
    """Run dbt like an analyst: in `dbt_project`, with only the service's folder in the environment."""
    written = {name: str(service.settings.data_dir / "analyst") for name in ("DBT_TARGET_PATH", "DBT_LOG_PATH")}
    done = subprocess.run(
        [_DBT, *arguments],
        cwd=CHECKOUT / "dbt_project",
        env=service.environment(**written),
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-3000:]
    return done.stdout


def test_dbt_builds_in_a_sandbox_while_the_service_runs(ready_service: Service) -> None:
    service = ready_service
    made = sandbox(service)
    folder = service.settings.data_dir / "sandboxes" / "analyst"
    assert Path(made["folder"]) == folder
    assert made["version"] == 1
    with (
        # A cycle that writes, and a reader of the published file.
        writer_lock(service.settings.lock_path, "a cycle", 0),
        duckdb.connect(str(service.settings.warehouse_path)),
        duckdb.connect(str(service.settings.serving_dir / "current.duckdb"), read_only=True),
    ):
        assert "target='sandbox'" in run_dbt(service, "build", "--select", "networks", "stg_chain__blocks")
        # Deferring: the marts of the published version, not those built here.
        state = ("--defer", "--favor-state", "--state", str(folder / "state"))
        shown = run_dbt(service, "compile", "--inline", "select * from {{ ref('tokens') }}", *state)
        assert '"published"."marts"."tokens"' in shown
        drawn = run_dbt(service, "show", "--inline", "select current_setting('enable_progress_bar') as is_drawn")
        assert "False" in drawn
        assert "True" not in drawn
    with duckdb.connect() as connection:
        connection.execute(f"attach '{folder / 'published.duckdb'}' as published (read_only)")
        assert connection.execute("select version from published.marts.publication").fetchall() == [(1,)]
    # The published file under another name: it needs no space, and stays write-protected.
    published = service.settings.serving_dir / "marts-000000000001.duckdb"
    assert (folder / "published.duckdb").samefile(published)
    assert published.stat().st_mode & 0o222 == 0


def test_a_sandbox_is_renewed_and_removed_only_when_told_and_not_in_use(ready_service: Service) -> None:
    service = ready_service
    sandbox(service, "--name", "first")
    folder = service.settings.data_dir / "sandboxes" / "first"
    with duckdb.connect(str(folder / "marts_db.duckdb")) as connection:
        connection.execute("create table marts.mine as select 1 as number")
    assert "--refresh" in refused(service, "--name", "first")
    with subprocess.Popen(
        [
            sys.executable,
            "-c",
            f"import duckdb, sys; c = duckdb.connect({str(folder / 'marts_db.duckdb')!r}); "
            "print('open', flush=True); sys.stdin.read()",
        ],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    ) as user:
        assert user.stdout is not None
        assert user.stdout.readline() == b"open\n"
        assert "marts_db.duckdb is in use" in refused(service, "--name", "first", "--refresh")
        assert "marts_db.duckdb is in use" in refused(service, "remove", "first")
        user.kill()
    sandbox(service, "--name", "first", "--refresh")
    with duckdb.connect(str(folder / "marts_db.duckdb"), read_only=True) as connection:
        assert connection.execute("select * from duckdb_tables() where table_name = 'mine'").fetchall() == []
    assert [one["name"] for one in sandbox(service, "list")["data"]] == ["first"]
    assert sandbox(service, "remove", "first") == {"name": "first", "isRemoved": True}
    assert list(folder.parent.iterdir()) == []
    assert "there is no sandbox" in refused(service, "remove", "first")


def test_without_a_version_it_says_what_to_do(make_service: MakeService) -> None:
    assert "nothing is published" in refused(make_service(*READY_NETWORKS))


def test_a_folder_that_is_no_sandbox_stays(ready_service: Service, tmp_path: Path) -> None:
    (tmp_path / "papers").mkdir()
    (tmp_path / "papers" / "letter").write_text("mine")
    for arguments in (("--refresh", "--name", "papers"), ("remove", "papers")):
        assert "is not a sandbox" in refused(ready_service, "--dir", str(tmp_path), *arguments)
    assert (tmp_path / "papers" / "letter").read_text() == "mine"


def test_a_sandbox_waits_for_the_running_cycle_with_a_message(ready_service: Service) -> None:
    service = ready_service
    with writer_lock(service.settings.lock_path, "a cycle", 0):
        process = subprocess.Popen(
            [str(LEDGERMART), "sandbox", "--json"],
            env=service.environment(),
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        assert process.stderr is not None
        assert "waiting for the running cycle: process" in process.stderr.readline()
        assert not (service.settings.data_dir / "sandboxes" / "analyst").exists()
    printed, _ = process.communicate()
    assert json.loads(printed)["name"] == "analyst"
