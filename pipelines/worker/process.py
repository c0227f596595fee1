"""The worker's process: what it prepares, how it forks a run, and what it does until the next."""

import ctypes
import gc
import logging
import os
import select
import shutil
import signal
import sys
import time
import traceback
import uuid
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from importlib import import_module

import dagster as dg
import duckdb
from sqlalchemy.exc import DatabaseError

from control.errors import ControlError
from control.settings import Settings, load_settings
from control.store import open_store
from pipelines.definitions import load_definitions
from pipelines.defs.causes import known_cause
from pipelines.defs.cycle import JOB, LOG_LEVEL, SENSOR, assets_of_cycle, worker_lock
from pipelines.defs.dbt import AUDIT, CYCLE_ARGUMENTS
from pipelines.defs.decide import Cycle, Memory, decide
from pipelines.defs.project import DbtError, copy_project, run_dbt
from pipelines.defs.records import RESTART, find_damaged
from pipelines.defs.runs import WORKER_TAG, is_of_worker
from pipelines.deliver.worker_state import write_worker_state
from pipelines.load.warehouse import create_tables
from pipelines.worker.fingerprint import loaded_fingerprint
from pipelines.worker.fit import UnfitToForkError, check_fit_to_fork
from pipelines.worker.heads import HeadPoller
from warehouse.lock import WriterBusyError, writer_lock
from warehouse.port import Warehouse

_LOG = logging.getLogger(__name__)
_LOOK_SECONDS = 1.0
# What `ledgermart status` shows is written this often, and where it changes.
_TELL_SECONDS = 10.0
_TAKE_OVER_SECONDS = 30.0
_COMPARE_SECONDS = 10.0
_UNFINISHED = [
    dg.DagsterRunStatus.NOT_STARTED,
    dg.DagsterRunStatus.STARTING,
    dg.DagsterRunStatus.STARTED,
    dg.DagsterRunStatus.CANCELING,
]
# What libraries import only where a run comes to use it.
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
# What has a message of its own; all else is told with its stack.
_EXPECTED = (UnfitToForkError, ControlError, DbtError, WriterBusyError)
_LIBC = ctypes.CDLL(None, use_errno=True)
_PR_SET_PDEATHSIG = 1


@dataclass
class _Run:
    """A running cycle, and its fork."""

    run_id: str
    pid: int
    pidfd: int


@dg.job(executor_def=dg.in_process_executor, config=LOG_LEVEL)
def _nothing() -> None:
    dg.op(name="nothing")(lambda: None)()


def _rehearse(settings: Settings) -> None:
    """Have everything imported that a run imports when it first needs it, and every macro of dbt compiled."""
    for module in _LATE_IMPORTS:
        import_module(module)
    _nothing.execute_in_process()
    # Of the data folder, where one worker is at a time, and finds what a killed one left.
    folder = settings.data_dir / "rehearsal"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    try:
        elsewhere = replace(settings, data_dir=folder)
        with Warehouse(elsewhere).open() as connection:
            create_tables(connection)
        run_dbt(elsewhere, [*CYCLE_ARGUMENTS, "--exclude", AUDIT])
    finally:
        shutil.rmtree(folder)


class Worker:
    """Runs the cycles that it finds a reason for, one at a time."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self._mark_lost()
        write_worker_state(settings.data_dir, None)
        self._fingerprint = loaded_fingerprint(settings)
        self._compared_at, self._has_changed = time.monotonic(), False
        networks, definitions = load_definitions()
        self._job = definitions.resolve_job_def(JOB)
        self._networks = networks
        self._heads = HeadPoller(networks, self._prepare_fork)
        self._memory = Memory()
        self._store = open_store(settings)
        self._trouble: str | None = None
        self._told_at = float("-inf")
        self._run: _Run | None = None
        _rehearse(settings)
        copy_project(settings)
        duckdb.default_connection().close()
        gc.collect()
        # What will not change stays shared.
        gc.freeze()
        _LOG.info("ready")

    @cached_property
    def _instance(self) -> dg.DagsterInstance:
        """Dagster's records; made once, because it looks at its databases' schemas then. It holds no connection."""
        return dg.DagsterInstance.get()

    def work(self) -> None:
        """Run until the code changes and the last cycle has ended, or a signal ends it."""
        while not self._is_stale() or self._run is not None:
            if self._run is None:
                self._begin()
            self._wait()
        _LOG.info("code, dbt project or definitions have changed: the worker must be restarted")

    def stop(self) -> None:
        """End the run in progress, and the polls."""
        self._heads.stop()
        if self._run is not None:
            os.kill(self._run.pid, signal.SIGKILL)
            os.waitpid(self._run.pid, 0)
            self._mark(self._run.run_id, "the service was stopped")

    def _is_stale(self, *, now: bool = False) -> bool:
        """Whether something has changed since the worker loaded it; not looked at each time, unless `now`."""
        if now or time.monotonic() - self._compared_at > _COMPARE_SECONDS:
            self._compared_at = time.monotonic()
            self._has_changed = loaded_fingerprint(self.settings) != self._fingerprint
        return self._has_changed

    def _begin(self) -> None:
        """Begin a cycle where there is a reason for one."""
        try:
            cycle = decide(self.settings, self._store, self._networks, self._heads, self._memory, time.monotonic())
        except ControlError as error:
            self._tell(str(error))
            return
        self._tell(None)
        if cycle is not None and not self._is_stale(now=True):
            run_id = str(uuid.uuid4())
            self._fork(run_id, lambda: self._cycle(run_id, cycle))

    def _tell(self, trouble: str | None) -> None:
        """Write for `ledgermart status` that the worker looks; in the log a trouble stands once, and its end."""
        if trouble != self._trouble:
            _LOG.warning("%s", trouble or "checking for work again")
        elif time.monotonic() - self._told_at < _TELL_SECONDS:
            return
        self._trouble, self._told_at = trouble, time.monotonic()
        write_worker_state(self.settings.data_dir, trouble)

    def _cycle(self, run_id: str, cycle: Cycle) -> None:
        instance = self._instance
        # Whoever stops the sensor in Dagster's pages wants no cycles.
        states = {state.instigator_name: state.status.value for state in instance.all_instigator_state()}
        if states.get(SENSOR) == "STOPPED":
            return
        result = self._job.execute_in_process(
            instance=instance,
            run_id=run_id,
            asset_selection=assets_of_cycle(self._networks, cycle.networks, is_short=cycle.is_short),
            tags={"networks": ",".join(cycle.networks), WORKER_TAG: run_id},
            raise_on_error=False,
        )
        if known := known_cause(result):
            _LOG.error("the cycle failed: %s", known[1])

    def _prepare_fork(self) -> None:
        self._store.close()
        check_fit_to_fork()
        sys.stdout.flush()
        sys.stderr.flush()

    def _fork(self, run_id: str, body: Callable[[], None]) -> None:
        self._prepare_fork()
        parent = os.getpid()
        pid = os.fork()
        if pid:
            self._run = _Run(run_id, pid, os.pidfd_open(pid))
            return
        code = 1
        try:
            # It ends with the worker, however that ends.
            _LIBC.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
            if os.getppid() != parent:
                os._exit(1)
            self._heads.leave()
            signal.signal(signal.SIGINT, signal.default_int_handler)
            signal.signal(signal.SIGTERM, signal.SIG_DFL)
            before = set(sys.modules)
            body()
            if late := sorted(set(sys.modules) - before):
                _LOG.warning("a run imported modules that the worker could have loaded: %s", ", ".join(late))
            _LOG.info("run %s took %.2f s of processor time", run_id, time.process_time())
            code = 0
        except BaseException:  # noqa: BLE001 - told, and the fork ends here whatever it was
            traceback.print_exc()
        finally:
            sys.stdout.flush()
            sys.stderr.flush()
            os._exit(code)

    def _wait(self) -> None:
        """Wait for the end of the cycle, for an answer of a poll, or until it is time to look again."""
        run, heads = self._run, self._heads.fileno()
        # Answers of polls wait for the end of a cycle.
        ends = [run.pidfd] if run is not None else [] if heads is None else [heads]
        ready, _, _ = select.select(ends, [], [], _LOOK_SECONDS)
        if run is not None and run.pidfd in ready:
            os.close(run.pidfd)
            _, status = os.waitpid(run.pid, 0)
            self._run = None
            if status:
                self._mark(run.run_id, f"the run's process exited with {os.waitstatus_to_exitcode(status)}")

    def _mark(self, run_id: str, reason: str) -> None:
        """Record how a run ended that could not say so itself."""
        _mark(self._instance, self._instance.get_run_by_id(run_id), reason)

    def _mark_lost(self) -> None:
        """Record the end of cycles that an earlier worker took with it."""
        for record in self._instance.get_run_records(dg.RunsFilter(statuses=_UNFINISHED)):
            if is_of_worker(record.dagster_run):
                _mark(self._instance, record.dagster_run, "the worker stopped")


def _mark(instance: dg.DagsterInstance, run: dg.DagsterRun | None, reason: str) -> None:
    if run is None or run.is_finished:
        return
    if run.status is dg.DagsterRunStatus.CANCELING:
        instance.report_run_canceled(run, reason)
    else:
        instance.report_run_failed(run, reason)


def main() -> None:
    """Run the worker of the data folder that the environment names."""
    os.umask(0o077)
    logging.basicConfig(format="%(asctime)s %(message)s")
    _LOG.setLevel(logging.INFO)
    settings = load_settings()
    try:
        with writer_lock(worker_lock(settings), "the worker", _TAKE_OVER_SECONDS):
            _work(settings)
    except Exception as error:  # noqa: BLE001 - told where it is looked for, and the worker ends whatever it was
        damaged = find_damaged(settings.dagster_dir) if isinstance(error, DatabaseError) else None
        words = f"{damaged} is damaged; {RESTART}" if damaged else str(error)
        is_expected = damaged is not None or isinstance(error, _EXPECTED)
        _LOG.error("the worker stops: %s", words, exc_info=None if is_expected else error)
        write_worker_state(settings.data_dir, f"it stopped: {words}")
        sys.exit(1)


def _work(settings: Settings) -> None:
    worker = Worker(settings)
    # Here, because Dagster sets its own when it executes something.
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: sys.exit(0))
    try:
        worker.work()
    finally:
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, signal.SIG_IGN)
        worker.stop()
