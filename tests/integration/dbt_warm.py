"""What the fork server of `warm_processes` has done before it forks: the pipeline and dbt imported, the project parsed.

Imported there alone. It costs some 15 s of processor time; each run of dbt or the command begins where this ends.
"""

import gc
import logging
import os
import threading
from pathlib import Path
from tempfile import TemporaryDirectory

from dbt.adapters.duckdb.connections import DuckDBConnectionManager
from dbt.cli.main import dbtRunner
from dbt.contracts.graph.manifest import Manifest

import cli.cycle  # noqa: F401 - what a cycle imports
from pipelines.load.warehouse import open_warehouse

PROJECT = Path(__file__).parents[2] / "dbt_project"
# The files of a run, as seen from its folder: what is parsed holds these words, which so are the same for all folders.
WAREHOUSE = "warehouse.duckdb"
MARTS = "marts.duckdb"


def dbt_environment(folder: Path) -> dict[str, str]:
    """The variables of a run over the files of a folder, which has to be its working directory."""
    return {
        "LEDGERMART_WAREHOUSE_PATH": WAREHOUSE,
        "LEDGERMART_MARTS_PATH": MARTS,
        "DBT_PROFILES_DIR": str(PROJECT),
        "DBT_PROJECT_DIR": str(PROJECT),
        "DBT_TARGET_PATH": str(folder / "target"),
        "DBT_LOG_PATH": str(folder / "logs"),
        "DBT_LOG_LEVEL_FILE": "none",
        "DBT_STATIC_PARSER": "false",
        "DBT_SEND_ANONYMOUS_USAGE_STATS": "false",
    }


def _parsed_project() -> Manifest | None:
    """Parse the project, and build a copy of what was parsed once over nothing; None when it cannot be parsed."""
    before = Path.cwd()
    with TemporaryDirectory(prefix="ledgermart-dbt-") as name:
        folder = Path(name)
        os.chdir(folder)
        os.environ.update(dbt_environment(folder))
        with open_warehouse(folder / WAREHOUSE):
            pass
        manifest = dbtRunner().invoke(["--quiet", "parse"]).result
        if isinstance(manifest, Manifest):
            # When a model fails, it will for whoever asked for it, too.
            dbtRunner(manifest.deepcopy()).invoke(["--quiet", "run"])
        DuckDBConnectionManager.close_all_connections()
        os.chdir(before)
    assert threading.active_count() == 1, "a forked process would wait forever for a thread that it does not have"
    # What will not change stays shared.
    gc.collect()
    gc.freeze()
    return manifest if isinstance(manifest, Manifest) else None


MANIFEST = _parsed_project()
# What dbt logged has made a handler of the root logger, which a command of ours does not have.
logging.getLogger().handlers.clear()
