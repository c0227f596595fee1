"""The writer lock, held by real processes."""

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from pipelines.load.lock import WriterBusyError, is_locked, writer_lock

_HOLD = """
import sys, pathlib
from pipelines.load.lock import writer_lock
with writer_lock(pathlib.Path(sys.argv[1]), "the other writer", 1):
    print("held", flush=True)
    sys.stdin.read()
"""


@contextmanager
def _holder(path: Path) -> Iterator[subprocess.Popen[str]]:
    with subprocess.Popen(
        [sys.executable, "-c", _HOLD, str(path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "held\n"
        yield process
        process.kill()


def test_a_second_writer_waits_and_then_says_who_holds_the_lock(tmp_path: Path) -> None:
    path = tmp_path / "warehouse.lock"
    with _holder(path) as process:
        assert is_locked(path)
        with (
            pytest.raises(WriterBusyError, match=f"process {process.pid} .the other writer"),
            writer_lock(path, "me", 0.3),
        ):
            pass


def test_a_killed_writer_frees_the_lock(tmp_path: Path) -> None:
    path = tmp_path / "warehouse.lock"
    with _holder(path) as process:
        process.kill()
        process.wait()
        with writer_lock(path, "me", 0.0):
            assert is_locked(path)
    assert not is_locked(path)


def test_nobody_holds_a_lock_that_was_never_taken(tmp_path: Path) -> None:
    assert not is_locked(tmp_path / "warehouse.lock")
