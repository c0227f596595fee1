"""Preparation of `warm_server` before it forks: import the modules of all runs, and parse the project.

Only the server imports this module. That costs some 15 s of processor time, which each run of dbt or the command saves.
"""

import gc
import logging
import os
import threading
from importlib import import_module
from pathlib import Path
from tempfile import TemporaryDirectory
from types import CodeType
from typing import Any

import dagster as dg
import duckdb
import jinja2
from dbt.adapters.duckdb.connections import DuckDBConnectionManager
from dbt.cli.main import dbtRunner
from dbt.contracts.graph.manifest import Manifest
from dbt_common.events.base_types import BaseEvent, EventLevel
from dbt_common.events.event_manager import EventManager

import cli.cycle
import cli.main  # noqa: F401 - with cli.cycle: what every command and a cycle import
from pipelines.defs.cycle import LOG_LEVEL
from pipelines.extract import pacing
from pipelines.raw.database import open_warehouse

PROJECT = Path(__file__).parents[2] / "dbt_project"
# The files of a run, relative to its folder: the parsed project contains these paths, and must fit every folder.
WAREHOUSE = "warehouse.duckdb"
MARTS = "marts.duckdb"


def dbt_environment(folder: Path) -> dict[str, str]:
    """Return the environment of a run over the files of a folder, which must be its working directory."""
    return {
        "LEDGERMART_WAREHOUSE_PATH": WAREHOUSE,
        "LEDGERMART_MARTS_PATH": MARTS,
        "DBT_PROFILES_DIR": str(PROJECT),
        "DBT_PROJECT_DIR": str(PROJECT),
        "DBT_TARGET_PATH": str(folder / "target"),
        "DBT_LOG_PATH": str(folder / "logs"),
        "DBT_LOG_LEVEL": "none",
        "DBT_LOG_LEVEL_FILE": "none",
        "DBT_WRITE_JSON": "false",
        "DBT_STATIC_PARSER": "false",
        "DBT_SEND_ANONYMOUS_USAGE_STATS": "false",
    }


_compile, _fire_event = jinja2.Environment.compile, EventManager.fire_event
# Compiled templates, by kind of environment and text; those of models are also compiled before the fork.
_COMPILED: dict[tuple[type, str], CodeType] = {}


def _compile_once(environment: jinja2.Environment, source: str, *arguments: Any, **named: Any) -> CodeType:
    key = (type(environment), source)
    if key not in _COMPILED:
        _COMPILED[key] = _compile(environment, source, *arguments, **named)
    return _COMPILED[key]


def _fire_what_is_shown(manager: EventManager, event: BaseEvent, level: EventLevel | None = None, **named: Any) -> None:
    if (level or event.level_tag()) is not EventLevel.DEBUG:
        _fire_event(manager, event, level, **named)


def take_shortcuts() -> None:
    """Switch off work without effect on results, a fifth of the run; only for a process that ends after one run."""
    gc.disable()
    jinja2.Environment.compile = _compile_once
    # dbt formats some 1,500 debug messages even if they are not shown.
    EventManager.fire_event = _fire_what_is_shown


# Modules that a cycle or its libraries import lazily.
_LATE_IMPORTS = (
    "dateutil.easter",
    "dbt.task.build",
    # DuckDB imports it at the first bound value.
    "pandas",
    "pipelines.extract.prices.exchanges",
    "pyarrow.dataset",
    "pydoc",
    "rich.progress",
    "zoneinfo._zoneinfo",
)


@dg.job(executor_def=dg.in_process_executor, config=LOG_LEVEL)
def _nothing() -> None:
    dg.op(name="nothing")(lambda: None)()


# Content of a run's files after a build over an empty warehouse, by file name.
BUILT: dict[str, bytes] = {}


def _parsed_project() -> Manifest | None:
    """Parse the project, and build it once over an empty warehouse; return None if it cannot be parsed."""
    before = Path.cwd()
    with TemporaryDirectory(prefix="ledgermart-dbt-") as name:
        folder = Path(name)
        os.chdir(folder)
        os.environ.update(dbt_environment(folder))
        with open_warehouse(folder / WAREHOUSE):
            pass
        manifest = dbtRunner().invoke(["--quiet", "parse"]).result
        if isinstance(manifest, Manifest):
            # Ignore failures of models: each run reports them, too.
            dbtRunner(manifest.deepcopy()).invoke(["--quiet", "run"])
        DuckDBConnectionManager.close_all_connections()
        for file in (WAREHOUSE, MARTS):
            duckdb.connect(file).close()
            BUILT[file] = Path(file).read_bytes()
        for module in _LATE_IMPORTS:
            import_module(module)
        # Dagster imports many modules during its first run.
        with dg.instance_for_test(temp_dir=name) as instance:
            _nothing.execute_in_process(instance=instance)
        os.chdir(before)
    assert threading.active_count() == 1, "a forked process would wait forever for a thread that it does not have"
    # Forked processes share the frozen objects.
    gc.collect()
    gc.freeze()
    return manifest if isinstance(manifest, Manifest) else None


jinja2.Environment.compile = _compile_once
MANIFEST = _parsed_project()
jinja2.Environment.compile = _compile
# Shorten the delay of retries, but not their number.
pacing.BASE_SECONDS = 0.01
# dbt added a handler to the root logger, which the command does not have.
logging.getLogger().handlers.clear()
