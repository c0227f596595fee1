"""Processes that are forked warm: none outlives the test that started it."""

import os
import time
from pathlib import Path

import psutil
import pytest

from tests.integration import warm_processes
from tests.integration.warm_processes import run_forked


def _tell_and_stay(told: Path) -> None:
    beside = told.with_suffix(".tmp")
    beside.write_text(str(os.getpid()))
    beside.rename(told)
    time.sleep(600)


def test_an_interrupt_ends_the_process_that_is_waited_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    told = tmp_path / "pid"

    def interrupt(*_: object) -> None:
        while not told.exists():
            time.sleep(0.05)
        raise KeyboardInterrupt

    monkeypatch.setattr(warm_processes, "wait", interrupt)
    with pytest.raises(KeyboardInterrupt):
        run_forked(_tell_and_stay, (told,))
    assert not psutil.pid_exists(int(told.read_text()))
