"""Forked warm processes: none outlives the test that started it."""

import os
import signal
import sys
import threading
import time
from pathlib import Path

import psutil
import pytest

from tests.integration.warm_processes import run_forked
from tests.waiting import eventually

# It tests a tool of the tests.
pytestmark = pytest.mark.release


def _write_pid_and_sleep(path: Path) -> None:
    beside = path.with_suffix(".tmp")
    beside.write_text(str(os.getpid()))
    beside.rename(path)
    time.sleep(600)


def test_interrupted_caller_leaves_no_process(tmp_path: Path) -> None:
    path = tmp_path / "pid"

    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    def signal_caller() -> None:
        while not path.exists():
            time.sleep(0.05)
        signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGUSR1)

    before = signal.signal(signal.SIGUSR1, interrupt)
    threading.Thread(target=signal_caller, daemon=True).start()
    with pytest.raises(KeyboardInterrupt):
        run_forked(_write_pid_and_sleep, (path,))
    signal.signal(signal.SIGUSR1, before)
    eventually(lambda: not psutil.pid_exists(int(path.read_text())), "the process is gone")


def _exit_with(code: int) -> None:
    sys.stdout.write("written\n")
    raise SystemExit(code)


def test_exit_code_and_output_are_returned() -> None:
    done = run_forked(_exit_with, (3,))
    assert (done.returncode, done.stdout, done.stderr) == (3, "written\n", "")
