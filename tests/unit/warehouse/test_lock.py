"""The writer lock, held by real processes."""

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace

import pytest

from tests.waiting import Naps
from warehouse import lock
from warehouse.lock import WriterBusyError, copy_lock, is_locked, writer_lock

_HOLD = """
import sys, pathlib
from warehouse.lock import copy_lock, writer_lock
with {taken}:
    print("held", flush=True)
    sys.stdin.read()
"""
_WRITE = 'writer_lock(pathlib.Path(sys.argv[1]), "the other writer", 1)'
_COPY = "copy_lock(pathlib.Path(sys.argv[1]), print)"


@contextmanager
def _holder(path: Path, taken: str = _WRITE) -> Iterator[subprocess.Popen[str]]:
    code = _HOLD.format(taken=taken)
    with subprocess.Popen(
        [sys.executable, "-c", code, str(path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "held\n"
        yield process
        process.kill()


@pytest.fixture
def naps(monkeypatch: pytest.MonkeyPatch) -> Naps:
    """The fake time of waiting writers."""
    made = Naps()
    monkeypatch.setattr(lock, "time", SimpleNamespace(monotonic=made.clock, sleep=lambda seconds: made.sleep(seconds)))
    return made


def test_second_writer_waits_and_then_names_the_lock_holder(tmp_path: Path, naps: Naps) -> None:
    path = tmp_path / "warehouse.lock"
    with _holder(path) as process:
        assert is_locked(path)
        with (
            pytest.raises(WriterBusyError, match=f"process {process.pid} .the other writer"),
            writer_lock(path, "me", 60.0),
        ):
            pass
    assert sum(naps.taken) == pytest.approx(60.0)


def test_a_killed_writer_frees_the_lock(tmp_path: Path) -> None:
    path = tmp_path / "warehouse.lock"
    with _holder(path) as process:
        process.kill()
        process.wait()
        with writer_lock(path, "me", 0.0):
            assert is_locked(path)
    assert not is_locked(path)


def test_lock_never_taken_has_no_holder(tmp_path: Path) -> None:
    assert not is_locked(tmp_path / "warehouse.lock")


def test_writer_waits_for_a_copy_without_limit(tmp_path: Path, naps: Naps, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "warehouse.lock"
    path.touch()
    with _holder(path, _COPY) as first, _holder(path, _COPY) as second:
        # Copies run in parallel and do not prevent the start of a cycle.
        assert not is_locked(path)
        first.kill()
        first.wait()
        nap = naps.sleep

        def kill_in_the_end(seconds: float) -> None:
            nap(seconds)
            if sum(naps.taken) > 60.0:
                second.kill()

        monkeypatch.setattr(naps, "sleep", kill_in_the_end)
        with writer_lock(path, "me", wait_seconds=0.1):
            assert sum(naps.taken) > 60.0


def test_copy_waits_for_the_writer_and_names_it(tmp_path: Path) -> None:
    path = tmp_path / "warehouse.lock"
    told: list[str] = []
    with _holder(path) as process:

        def kill(holder: str) -> None:
            told.append(holder)
            process.kill()

        with copy_lock(path, kill):
            assert process.wait() != 0
    assert told == [f"process {process.pid} (the other writer, since {told[0][-21:]}"]


@pytest.mark.usefixtures("naps")
def test_second_writer_gives_up_even_after_waiting_for_copies(tmp_path: Path) -> None:
    path = tmp_path / "warehouse.lock"
    path.touch()
    with _holder(path, _COPY) as copy:
        copy.kill()
        copy.wait()
        with _holder(path), pytest.raises(WriterBusyError), writer_lock(path, "me", 60.0):
            pass
