"""Run dbt over a warehouse in a separate folder, like a pipeline cycle."""

import json
import os
import resource
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import duckdb

from tests.integration.warm_processes import run_forked

BUILD = ("build", "--exclude-resource-type", "unit_test")
CYCLE = (*BUILD, "--exclude", "tag:audit")
# For runs after CYCLE or `build_over_nothing`: skip views, which exist already, and models that would stay empty.
WITHOUT_VIEWS = ("config.materialized:view",)
LATER_CYCLE = (*CYCLE, *WITHOUT_VIEWS)
# The same models without data tests, for tests that build the same rows with data tests later.
LATER_RUN = ("run", "--exclude", "tag:audit", *WITHOUT_VIEWS)


class Stores(NamedTuple):
    """The two files of dbt in one folder."""

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
    """Open the marts read-only as `published.marts`: the file's own name would clash with the name of its schema."""
    with duckdb.connect() as connection:
        connection.execute(f"attach '{stores.marts}' as published (read_only)")
        connection.execute("use published")
        yield connection


def build_over_nothing(folder: Path) -> Stores:
    """Create both files in a folder with the result of a build over an empty warehouse, including the views."""
    folder.mkdir(parents=True, exist_ok=True)
    done = run_forked(_write_built, (folder,))
    assert done.returncode == 0, done.stderr
    return Stores(folder)


def _write_built(folder: Path) -> None:
    from tests.integration.dbt_warm import BUILT

    for name, content in BUILT.items():
        (folder / name).write_bytes(content)


class Used(NamedTuple):
    """Resource usage of a process: wall and processor seconds, and peak memory in bytes."""

    wall: float
    cpu: float
    peak: float


def run_dbt(stores: Stores, *arguments: str, memory_mb: int | None = None) -> Used:
    """Run dbt over the stores in a forked process; return its resource usage.

    Raises:
        AssertionError: dbt failed; the message is the end of its output.
    """
    done = run_forked(_run, (stores.folder, ["--no-use-colors", *arguments], memory_mb), folder=stores.folder)
    assert done.returncode == 0, (done.stdout + done.stderr)[-8000:]
    # A forked process does not close its files: opening them here applies their write-ahead logs.
    for path in (stores.warehouse, stores.marts):
        duckdb.connect(str(path)).close()
    return Used(*json.loads((stores.folder / "used").read_text()))


def _run(folder: Path, arguments: list[str], memory_mb: int | None) -> None:
    begun = time.perf_counter()
    # Imported here because it is slow: only the forking server needs it.
    from dbt.cli.main import dbtRunner

    from pipelines.defs.dbt import NEEDED, failures
    from tests.integration.dbt_warm import MANIFEST, WAREHOUSE, dbt_environment, take_shortcuts

    os.environ.update(dbt_environment(folder))
    if memory_mb is None:
        take_shortcuts()
    else:
        # The run is measured, so it takes no shortcuts.
        os.environ["LEDGERMART_PIPELINE_MEMORY_MB"] = str(memory_mb)
    if "--full-refresh" not in arguments and WITHOUT_VIEWS[0] in arguments:
        with duckdb.connect(folder / WAREHOUSE, read_only=True) as connection:
            empty = [f"tag:{tag}" for tag, has_any in NEEDED.items() if not has_any(connection)]
        behind = arguments.index(WITHOUT_VIEWS[0]) + 1
        arguments = [*arguments[:behind], *empty, *arguments[behind:]]
    done = dbtRunner(MANIFEST).invoke(arguments)
    if done.exception is not None:
        raise done.exception
    if not done.success:
        raise AssertionError(failures(done.result.results))  # type: ignore[union-attr]
    used = resource.getrusage(resource.RUSAGE_SELF)
    taken = Used(time.perf_counter() - begun, used.ru_utime + used.ru_stime, used.ru_maxrss * 1024)
    (folder / "used").write_text(json.dumps(taken))
