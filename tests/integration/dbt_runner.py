"""Runs dbt over a warehouse in a folder of its own, as a pipeline cycle does."""

import importlib
import multiprocessing
import os
import shutil
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

import duckdb

PROJECT = Path(__file__).parents[2] / "dbt_project"

BUILD = ("build", "--exclude-resource-type", "unit_test")
CYCLE = (*BUILD, "--exclude", "tag:audit")
# To follow CYCLE where the views are there already.
WITHOUT_VIEWS = ("config.materialized:view",)
# The same where there is no price pair: then a cycle leaves these as they are, too.
WITHOUT_PRICES = ("tag:needs_pairs",)
LATER_CYCLE = (*CYCLE, *WITHOUT_VIEWS, *WITHOUT_PRICES)

# Every run is a process of its own, as in a cycle, forked from one that has imported dbt: that takes 2 s of its own.
_PROCESSES = multiprocessing.get_context("forkserver")
_PROCESSES.set_forkserver_preload(["dbt.cli.main", "dbt.adapters.duckdb"])

_folder = TemporaryDirectory(prefix="ledgermart-dbt-")
_parsed = Path(_folder.name) / "partial_parse.msgpack"


class Stores(NamedTuple):
    """The two files that dbt reads and writes, in one folder."""

    folder: Path

    @property
    def warehouse(self) -> Path:
        """The file with the raw schema."""
        return self.folder / "warehouse.duckdb"

    @property
    def marts(self) -> Path:
        """The file that dbt attaches and fills."""
        return self.folder / "marts.duckdb"


@contextmanager
def open_marts(stores: Stores) -> Iterator[duckdb.DuckDBPyConnection]:
    """Open the marts for reading, as `published.marts`: the file's own name would clash with its schema's."""
    with duckdb.connect() as connection:
        connection.execute(f"attach '{stores.marts}' as published (read_only)")
        connection.execute("use published")
        yield connection


def run_dbt(stores: Stores, *arguments: str) -> None:
    """Run dbt over the stores.

    Raises:
        AssertionError: dbt failed; with its output.
    """
    # The same words for every folder, and so the parsed project of one serves the others: 5 s for each less.
    environment = {
        "LEDGERMART_WAREHOUSE_PATH": stores.warehouse.name,
        "LEDGERMART_MARTS_PATH": stores.marts.name,
        "DBT_PROFILES_DIR": str(PROJECT),
        "DBT_PROJECT_DIR": str(PROJECT),
        "DBT_TARGET_PATH": str(stores.folder / "target"),
        "DBT_LOG_PATH": str(stores.folder / "logs"),
        "DBT_SEND_ANONYMOUS_USAGE_STATS": "false",
    }
    parsed = stores.folder / "target" / "partial_parse.msgpack"
    if _parsed.exists() and not parsed.exists():
        parsed.parent.mkdir(exist_ok=True)
        shutil.copy(_parsed, parsed)
    printed = stores.folder / "printed"
    command = ["--no-use-colors", *arguments]
    process = _PROCESSES.Process(target=_run, args=(stores.folder, environment, command, printed))
    process.start()
    process.join()
    assert process.exitcode == 0, printed.read_text()[-8000:]
    if parsed.exists() and not _parsed.exists():
        shutil.copy(parsed, _parsed)
    # A forked process ends without closing its files; opening them writes what is still beside them.
    for path in (stores.warehouse, stores.marts):
        duckdb.connect(str(path)).close()


def _run(folder: Path, environment: dict[str, str], arguments: list[str], printed: Path) -> None:
    with printed.open("wb") as file:
        os.dup2(file.fileno(), 1)
        os.dup2(file.fileno(), 2)
    os.environ.update(environment)
    os.chdir(folder)
    # dbt looks for options that it no longer knows in here.
    sys.argv = ["dbt", *arguments]
    importlib.import_module("dbt.cli.main").cli(arguments)
