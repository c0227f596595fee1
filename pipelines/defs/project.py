"""dbt in this process: the project, parsed once, and its runs over the pipeline's own files."""

import os
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

from dbt.adapters.duckdb.connections import DuckDBConnectionManager
from dbt.artifacts.schemas.run import RunExecutionResult
from dbt.cli.main import dbtRunner
from dbt.contracts.graph.manifest import Manifest

from control.resources import DBT_PROJECT
from control.settings import Settings
from pipelines.defs.fingerprints import project_fingerprint
from warehouse.port import Warehouse

# Copies of the parsed project, one for each run.
_copies: dict[Settings, Manifest] = {}


class DbtError(Exception):
    """A dbt command failed; the message is dbt's own."""


@dataclass(frozen=True)
class Project:
    """dbt's manifest of the project, and the fingerprint of its files."""

    manifest: Manifest
    fingerprint: str


def dbt_environment(settings: Settings) -> dict[str, str]:
    """Return the environment in which dbt finds the warehouse and writes nothing outside the data folder."""
    return {
        **Warehouse(settings).dbt_environment(),
        # Override variables of the caller's own dbt.
        "DBT_TARGET": "warehouse",
        "DBT_PROJECT_DIR": str(DBT_PROJECT),
        "DBT_PROFILES_DIR": str(DBT_PROJECT),
        "DBT_TARGET_PATH": str(settings.dbt_target_dir),
        "DBT_LOG_PATH": str(settings.data_dir / "dbt" / "logs"),
        "DBT_SEND_ANONYMOUS_USAGE_STATS": "false",
        "DBT_WRITE_JSON": "false",
        # It starts threads, which a fork of the worker would not have.
        "DBT_STATIC_PARSER": "false",
        # The result of a run has the errors. With a log, dbt would format lines that are never read.
        "DBT_LOG_LEVEL": "none",
        "DBT_LOG_LEVEL_FILE": "none",
    }


@cache
def parsed_project(settings: Settings) -> Project:
    """Return the project as of the first call in this process; dbt caches the parsed files for the next process.

    Raises:
        DbtError: dbt could not parse the project.
    """
    os.environ.update(dbt_environment(settings))
    fingerprint = project_fingerprint()
    parsed = dbtRunner().invoke(["parse"])
    if not isinstance(parsed.result, Manifest):
        raise DbtError(f"dbt could not parse the project: {parsed.exception}")
    return Project(parsed.result, fingerprint)


def keep_manifest(settings: Settings, *, is_new: bool) -> None:
    """Write dbt's manifest of the built project, for sandboxes, if it is new or missing."""
    path = settings.manifest_path
    if path.exists() and not is_new:
        return
    beside = path.with_suffix(".tmp")
    parsed_project(settings).manifest.writable_manifest().write(str(beside))
    beside.replace(path)


def copy_project(settings: Settings) -> None:
    """Copy the project for the first run of this process, or of each fork of it, because a run changes its copy."""
    _copies[settings] = parsed_project(settings).manifest.deepcopy()  # type: ignore[no-untyped-call]


def run_dbt(settings: Settings, arguments: Sequence[str]) -> list[Any]:
    """Run a dbt command over the warehouse and return its results, one per node, also of those that failed.

    No connection to the warehouse may be open in this process; none is afterwards.

    Raises:
        DbtError: dbt failed before it ran a node.
    """
    os.environ.update(dbt_environment(settings))
    if settings not in _copies:
        copy_project(settings)
    runner = dbtRunner(_copies.pop(settings))
    try:
        done = runner.invoke(list(arguments))
    finally:
        DuckDBConnectionManager.close_all_connections()  # type: ignore[no-untyped-call]
    if not isinstance(done.result, RunExecutionResult):
        raise DbtError(f"dbt {arguments[0]} failed: {done.exception}") from done.exception
    return list(done.result.results)
