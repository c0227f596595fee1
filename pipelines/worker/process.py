"""The worker's process: it looks for a reason for a cycle, and starts a process for it.

Each cycle runs in a fork of a process that has loaded everything (`warm`): `multiprocessing`'s forkserver makes it. So
the worker itself may have threads and connections.
"""

import logging
import multiprocessing
import os
import signal
import sys
import time
import uuid
from collections.abc import Callable
from multiprocessing.connection import wait
from multiprocessing.process import BaseProcess

from control.errors import ControlError
from control.networks.in_force import networks_in_force
from control.settings import Settings, load_settings
from control.store import open_store
from pipelines.defs.decide import Memory, decide
from pipelines.defs.fingerprints import loaded_fingerprint
from pipelines.defs.records import RESTART, find_damaged
from pipelines.deliver.worker_state import worker_lock, write_worker_state
from pipelines.worker import cycles
from pipelines.worker.heads import HeadPoller
from warehouse.lock import WriterBusyError, writer_lock

_LOG = logging.getLogger(__name__)
_LOOK_SECONDS = 1.0
# Interval for writing the state, which `ledgermart status` shows; changes are written at once.
_TELL_SECONDS = 10.0
_TAKE_OVER_SECONDS = 30.0
_COMPARE_SECONDS = 10.0


class WorkerError(Exception):
    """The worker cannot work; the message says why."""


# Errors with a clear message of their own; the log has the stack of all others.
_EXPECTED = (WorkerError, ControlError, WriterBusyError)


class Worker:
    """Runs the cycles for which it finds a reason, one at a time."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        write_worker_state(settings.data_dir, None)
        self._fingerprint = loaded_fingerprint(settings)
        self._compared_at, self._has_changed = time.monotonic(), False
        self._networks = networks_in_force(settings)
        self._store = open_store(settings)
        self._heads = HeadPoller()
        self._memory = Memory()
        self._trouble: str | None = None
        self._told_at = float("-inf")
        self._run: tuple[str, BaseProcess] | None = None
        self._context = multiprocessing.get_context("forkserver")
        self._context.set_forkserver_preload(["pipelines.worker.warm"])
        self._check_warm()
        self._record(cycles.mark_lost)
        _LOG.info("ready")

    def work(self) -> None:
        """Run until the code changes and the last cycle has ended, or until a signal."""
        while not self._is_stale() or self._run is not None:
            if self._run is None:
                self._begin()
            self._wait()
        _LOG.info("code, dbt project or definitions have changed: the worker must be restarted")

    def stop(self) -> None:
        """End the run in progress."""
        if self._run is not None:
            run_id, process = self._run
            process.kill()
            process.join()
            self._record(cycles.mark, run_id, "the service was stopped")

    def _check_warm(self) -> None:
        """Wait until everything is loaded.

        Raises:
            WorkerError: loading failed.
        """
        answer, sent = self._context.Pipe(duplex=False)
        try:
            with answer, sent:
                process = self._start(cycles.report, sent)
                sent.close()
                trouble = answer.recv()
                process.join()
        except (EOFError, OSError):
            trouble = "the process that cycles are forked from ended"
        if trouble is not None:
            raise self._failed(trouble)

    def _start(self, run: Callable[..., None], *arguments: object) -> BaseProcess:
        process = self._context.Process(target=run, args=arguments)
        process.start()
        return process

    def _record(self, run: Callable[..., None], *arguments: object) -> None:
        """Write Dagster's records in a process of its own.

        Raises:
            WorkerError: writing failed; the log has the stack of the process.
        """
        process = self._start(run, *arguments)
        process.join()
        if process.exitcode:
            raise self._failed("Dagster's records cannot be written")

    def _failed(self, words: str) -> WorkerError:
        damaged = find_damaged(self.settings.dagster_dir)
        return WorkerError(f"{damaged} is damaged; {RESTART}" if damaged else words)

    def _is_stale(self, *, now: bool = False) -> bool:
        """Return whether code, project or definitions changed since the start; checked rarely, unless `now`."""
        if now or time.monotonic() - self._compared_at > _COMPARE_SECONDS:
            self._compared_at = time.monotonic()
            self._has_changed = loaded_fingerprint(self.settings) != self._fingerprint
        return self._has_changed

    def _begin(self) -> None:
        """Begin a cycle if there is a reason for one."""
        try:
            cycle = decide(self.settings, self._store, self._networks, self._heads, self._memory, time.monotonic())
        except ControlError as error:
            self._tell(str(error))
            return
        self._tell(None)
        if cycle is not None and not self._is_stale(now=True):
            run_id = str(uuid.uuid4())
            self._run = run_id, self._start(cycles.run_cycle, run_id, cycle)

    def _tell(self, trouble: str | None) -> None:
        """Write the state for `ledgermart status`; log a trouble once, and its end."""
        if trouble != self._trouble:
            _LOG.warning("%s", trouble or "checking for work again")
        elif time.monotonic() - self._told_at < _TELL_SECONDS:
            return
        self._trouble, self._told_at = trouble, time.monotonic()
        write_worker_state(self.settings.data_dir, trouble)

    def _wait(self) -> None:
        """Wait for the end of the cycle, for a finished poll, or until it is time to look again."""
        if self._run is None:
            wait([self._heads.answered], _LOOK_SECONDS)
            return
        # Answers of polls wait for the end of a cycle.
        run_id, process = self._run
        process.join(_LOOK_SECONDS)
        if process.exitcode is not None:
            self._run = None
            if process.exitcode:
                self._record(cycles.mark, run_id, f"the run's process exited with {process.exitcode}")


def main() -> None:
    """Run the worker of the data folder that the environment sets."""
    os.umask(0o077)
    logging.basicConfig(format="%(asctime)s %(message)s")
    _LOG.setLevel(logging.INFO)
    settings = load_settings()
    try:
        with writer_lock(worker_lock(settings), "the worker", _TAKE_OVER_SECONDS):
            _work(settings)
    except Exception as error:  # noqa: BLE001 - any error is logged and shown in the state, and the worker ends
        _LOG.error("the worker stops: %s", error, exc_info=None if isinstance(error, _EXPECTED) else error)
        write_worker_state(settings.data_dir, f"it stopped: {error}")
        sys.exit(1)


def _work(settings: Settings) -> None:
    worker = Worker(settings)
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: sys.exit(0))
    try:
        worker.work()
    finally:
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, signal.SIG_IGN)
        worker.stop()
