"""Functions that the worker runs in processes of their own: forks of one process that has loaded everything, `warm`.

Their arguments can be sent to another process. Their imports are local, so that the worker, which imports this module,
loads neither Dagster nor dbt.
"""

import gc
import logging
import os
import signal
import sys
import threading
import time
from dataclasses import replace
from functools import cache
from importlib import import_module
from multiprocessing import parent_process
from multiprocessing.connection import Connection, wait
from typing import TYPE_CHECKING

from control.errors import ControlError
from control.settings import Settings, load_settings
from pipelines.defs.decide import Cycle
from pipelines.worker.fork_safety import ForkUnsafeError, assert_fork_safe

if TYPE_CHECKING:
    import dagster as dg

_LOG = logging.getLogger(__name__)
# Modules that libraries import only when a run needs them.
_LATE_IMPORTS = (
    "dateutil.easter",
    # DuckDB imports it at the first bound value.
    "pandas",
    "pyarrow.compute",
    "pyarrow.dataset",
    "pipelines.extract.prices.exchanges",
    "pydoc",
    "zoneinfo._zoneinfo",
)
# Reason why a fork of this process would not be warm. Before the warm-up, none would be.
trouble: str | None = "the process that runs are forked from has loaded nothing"


def warm_up() -> None:
    """Import and parse everything that a cycle needs, and build once; `report` sends the result."""
    global trouble
    # Before an import of dbt, which configures logging itself.
    logging.basicConfig(format="%(asctime)s %(message)s")
    _LOG.setLevel(logging.INFO)
    from pipelines.defs.project import DbtError

    try:
        load(load_settings())
    except (ControlError, DbtError, ForkUnsafeError) as error:
        trouble = str(error)
    except Exception as error:  # noqa: BLE001 - the worker reports any error
        _LOG.exception("a rehearsal of a cycle failed")
        trouble = f"a rehearsal of a cycle failed: {error}"
    else:
        trouble = None


def load(settings: Settings) -> None:
    """Load everything that a cycle needs, and check that a fork of this process is safe."""
    import dagster as dg
    import duckdb

    from pipelines.definitions import load_definitions
    from pipelines.defs.cycle import JOB, LOG_LEVEL
    from pipelines.defs.project import copy_project

    for module in _LATE_IMPORTS:
        import_module(module)
    instance()
    load_definitions()[1].resolve_job_def(JOB)

    @dg.job(executor_def=dg.in_process_executor, config=LOG_LEVEL)
    def nothing() -> None:
        dg.op(name="nothing")(lambda: None)()

    nothing.execute_in_process()
    rehearse(settings)
    copy_project(settings)
    duckdb.default_connection().close()
    gc.collect()
    assert_fork_safe()
    # Forks share all memory that does not change.
    gc.freeze()


@cache
def instance() -> "dg.DagsterInstance":
    """Dagster's records. Opened once, because opening checks the schemas of its databases. It holds no connection."""
    import dagster as dg

    return dg.DagsterInstance.get()


def rehearse(settings: Settings) -> None:
    """Build over an empty warehouse, so that dbt compiles every macro."""
    from pipelines.defs.dbt import AUDIT, CYCLE_ARGUMENTS
    from pipelines.defs.project import run_dbt
    from pipelines.raw.database import create_tables
    from warehouse.folders import scratch_folder
    from warehouse.port import Warehouse

    # In the data folder: it has only one worker at a time, which removes the folder of a killed one.
    with scratch_folder(settings.data_dir / "rehearsal") as folder:
        elsewhere = replace(settings, data_dir=folder)
        with Warehouse(elsewhere).open() as connection:
            create_tables(connection)
        run_dbt(elsewhere, [*CYCLE_ARGUMENTS, "--exclude", AUDIT])


def report(answer: Connection) -> None:
    """Send the reason why this process is not warm; None if it is warm."""
    answer.send(trouble)


def run_cycle(run_id: str, cycle: Cycle) -> None:
    """Run a cycle. A failed one records its own failure."""
    from pipelines.definitions import load_definitions
    from pipelines.defs.causes import known_cause
    from pipelines.defs.cycle import JOB, SENSOR, assets_of_cycle
    from pipelines.defs.runs import WORKER_TAG

    if trouble is not None:
        sys.exit(f"the run does not begin: {trouble}")
    threading.Thread(target=end_with_worker, daemon=True).start()
    before = set(sys.modules)
    # If the sensor is stopped in Dagster's pages, no cycles run.
    states = {state.instigator_name: state.status.value for state in instance().all_instigator_state()}
    if states.get(SENSOR) == "STOPPED":
        return
    networks, definitions = load_definitions()
    result = definitions.resolve_job_def(JOB).execute_in_process(
        instance=instance(),
        run_id=run_id,
        asset_selection=assets_of_cycle(networks, cycle.networks, is_short=cycle.is_short),
        tags={"networks": ",".join(cycle.networks), WORKER_TAG: run_id},
        raise_on_error=False,
    )
    if known := known_cause(result):
        _LOG.error("the cycle failed: %s", known[1])
    if late := sorted(set(sys.modules) - before):
        _LOG.warning("a run imported modules that the worker could have loaded: %s", ", ".join(late))
    _LOG.info("run %s took %.2f s of processor time", run_id, time.process_time())


def mark(run_id: str, reason: str) -> None:
    """Record the end of a run that its own process did not record."""
    _mark(instance().get_run_by_id(run_id), reason)


def mark_lost() -> None:
    """Record the end of cycles that ended together with an earlier worker."""
    import dagster as dg

    from pipelines.defs.runs import is_of_worker

    status = dg.DagsterRunStatus
    unfinished = [status.NOT_STARTED, status.STARTING, status.STARTED, status.CANCELING]
    for record in instance().get_run_records(dg.RunsFilter(statuses=unfinished)):
        if is_of_worker(record.dagster_run):
            _mark(record.dagster_run, "the worker stopped")


def _mark(run: "dg.DagsterRun | None", reason: str) -> None:
    if run is None or run.is_finished:
        return
    if run.status.value == "CANCELING":
        instance().report_run_canceled(run, reason)
    else:
        instance().report_run_failed(run, reason)


def end_with_worker() -> None:
    """End this process when the worker ends, for any reason."""
    worker = parent_process()
    assert worker is not None
    wait([worker.sentinel])
    os.kill(os.getpid(), signal.SIGKILL)
