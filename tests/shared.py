"""Resources shared by all pytest-xdist workers of a run, such as a server; without xdist there is one worker."""

import fcntl
import json
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TypeVar

import pytest

Value = TypeVar("Value")


def worker() -> str:
    """Return the name of this worker, such as `gw0`; without xdist `main`."""
    return os.environ.get("PYTEST_XDIST_WORKER", "main")


def run_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the temporary folder of the run, which all its workers see."""
    base = tmp_path_factory.getbasetemp()
    # Each worker's folder is inside the folder of the run.
    return base if worker() == "main" else base.parent


@contextmanager
def once(
    folder: Path, name: str, make: Callable[[], Value], stop: Callable[[Value], None] | None = None
) -> Iterator[Value]:
    """Create a resource in the first worker that needs it, and yield its value in every worker.

    Locks of the operating system count the workers, so a killed worker is no longer counted.

    Args:
        folder: of the run, from `run_folder`.
        name: of the resource, unique in the run; part of file names.
        make: returns a value that JSON can hold, such as a URL; the other workers wait until it returns. If it raises,
            the next worker calls it again.
        stop: called by the last worker that leaves. Without it, the resource stays until the run deletes its folder.
    """
    stored = folder / f"{name}.json"
    with _open(folder / f"{name}.users") as users:
        with _open(folder / f"{name}.lock") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            if not stored.exists():
                made = json.dumps(make())
                stored.write_text(made)
            value: Value = json.loads(stored.read_text())
            fcntl.flock(users, fcntl.LOCK_SH)
        try:
            yield value
        finally:
            with _open(folder / f"{name}.lock") as lock:
                fcntl.flock(lock, fcntl.LOCK_EX)
                # A child process may have inherited the file: closing it alone would not release the lock.
                fcntl.flock(users, fcntl.LOCK_UN)
                if stop is not None and _is_last(users):
                    stored.unlink()
                    stop(value)


@contextmanager
def _open(path: Path) -> Iterator[int]:
    """Open a file for locking, created where it is missing; closing it releases the lock."""
    descriptor = os.open(path, os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o600)
    try:
        yield descriptor
    finally:
        os.close(descriptor)


def _is_last(users: int) -> bool:
    try:
        fcntl.flock(users, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
