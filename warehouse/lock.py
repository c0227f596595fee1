"""The lock that every writer of the warehouse holds.

It is an advisory file lock. The kernel releases it when its holder ends, so a killed writer never blocks the next one.
The file's text describes the holder, but only for messages.

Writers hold the lock exclusively. Copies of the warehouse's files hold it shared, so several copies can run at once. A
writer waits for copies without a time limit, because a cycle must not fail for a copy that ends by itself.
"""

import fcntl
import json
import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from control.clock import utc_now

_POLL_SECONDS = 0.2
# Shorter than the interval of writers, so that a copy gets the lock between two cycles.
_COPY_POLL_SECONDS = 0.02


class WriterBusyError(Exception):
    """Another process held the writer lock for longer than the wait of this one."""

    def __init__(self, path: Path, holder: str, waited_seconds: float) -> None:
        super().__init__(
            f"the warehouse is being written by {holder}; gave up after {waited_seconds:.0f} s "
            "(raise LEDGERMART_LOCK_WAIT_SECONDS to wait longer)"
        )
        self.path = path
        self.holder = holder


def describe_holder(path: Path) -> str:
    """Return a description of the last writer of the lock file: process, purpose and start."""
    try:
        holder = json.loads(path.read_text())
        return f"process {holder['pid']} ({holder['purpose']}, since {holder['since']})"
    except (OSError, ValueError, KeyError):
        # A writer takes the lock shortly before it writes the text.
        return "another process"


def is_locked(path: Path) -> bool:
    """Return whether a writer holds the lock, without waiting; copies do not count."""
    if not path.exists():
        return False
    with path.open("r") as file:
        return not _take(file, fcntl.LOCK_SH)


def _take(file: IO[str], kind: int) -> bool:
    """Try to take the lock in a mode without waiting; return whether it was taken."""
    try:
        fcntl.flock(file, kind | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _is_held_by_copies(file: IO[str]) -> bool:
    """Return whether only copies hold the lock; then it can be shared."""
    is_shared = _take(file, fcntl.LOCK_SH)
    if is_shared:
        fcntl.flock(file, fcntl.LOCK_UN)
    return is_shared


@contextmanager
def writer_lock(path: Path, purpose: str, wait_seconds: float) -> Iterator[None]:
    """Hold the writer lock.

    Args:
        path: the lock file; created if missing, never removed.
        purpose: description of the work, shown to processes that wait for the lock.
        wait_seconds: longest wait for another writer; the time of copies does not count.

    Raises:
        WriterBusyError: another writer held the lock for all that time; the message names that writer.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("a+") as file:
        waited, last = 0.0, time.monotonic()
        while not _take(file, fcntl.LOCK_EX):
            now = time.monotonic()
            if not _is_held_by_copies(file):
                waited += now - last
                if waited >= wait_seconds:
                    raise WriterBusyError(path, describe_holder(path), waited)
            last = now
            time.sleep(min(_POLL_SECONDS, max(wait_seconds - waited, 0.01)))
        file.seek(0)
        file.truncate()
        since = utc_now().strftime("%Y-%m-%dT%H:%M:%SZ")
        file.write(json.dumps({"pid": os.getpid(), "purpose": purpose, "since": since}))
        file.flush()
        yield


@contextmanager
def copy_lock(path: Path, on_wait: Callable[[str], None]) -> Iterator[None]:
    """Hold the lock shared: during the block no writer can begin, and the warehouse's files do not change.

    Wait for a running writer without a time limit.

    Args:
        path: the lock file; it must exist.
        on_wait: called with a description of the writer that holds the lock, whenever it changes.
    """
    told = None
    with path.open("r") as file:
        while not _take(file, fcntl.LOCK_SH):
            holder = describe_holder(path)
            if holder != told:
                on_wait(holder)
                told = holder
            time.sleep(_COPY_POLL_SECONDS)
        yield
