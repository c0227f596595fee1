"""Runs dbt over a warehouse in a folder of its own, as a pipeline cycle does."""

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import duckdb

PROJECT = Path(__file__).parents[2] / "dbt_project"

CYCLE = ("build", "--exclude-resource-type", "unit_test", "--exclude", "tag:audit")


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
    done = subprocess.run(
        [str(Path(sys.executable).with_name("dbt")), "--no-use-colors", *arguments],
        cwd=PROJECT,
        env={
            **os.environ,
            "LEDGERMART_WAREHOUSE_PATH": str(stores.warehouse),
            "LEDGERMART_MARTS_PATH": str(stores.marts),
            "DBT_PROFILES_DIR": str(PROJECT),
            "DBT_TARGET_PATH": str(stores.folder / "target"),
            "DBT_LOG_PATH": str(stores.folder / "logs"),
            "DBT_SEND_ANONYMOUS_USAGE_STATS": "false",
        },
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stdout[-6000:] + done.stderr[-2000:]
