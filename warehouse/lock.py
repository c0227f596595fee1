"""The one lock that every writer of the warehouse holds, whoever started it.

An advisory file lock: the kernel frees it when its holder ends, however it ends, so a killed writer never
blocks the next one. The file's text says who holds it, for people; nothing decides by that text.

Writers hold it alone. Whoever copies the warehouse's files holds it shared: copies go on side by side, and a writer
waits for them as long as they take, because a cycle must not fail for a copy that ends by itself.
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
# Oftener than writers do, so that a copy finds its turn between two cycles.
_COPY_POLL_SECONDS = 0.02


class WriterBusyError(Exception):
    """Another process held the writer lock for longer than this one was willing to wait."""

    def __init__(self, path: Path, holder: str, waited_seconds: float) -> None:
        super().__init__(
            f"the warehouse is being written by {holder}; gave up after {waited_seconds:.0f} s "
            "(raise LEDGERMART_LOCK_WAIT_SECONDS to wait longer)"
        )
        self.path = path
        self.holder = holder


def describe_holder(path: Path) -> str:
    """Say in words who wrote the lock file last: process, purpose and start."""
    try:
        holder = json.loads(path.read_text())
        return f"process {holder['pid']} ({holder['purpose']}, since {holder['since']})"
    except (OSError, ValueError, KeyError):
        # Between taking the lock and writing the text there is a moment without it.
        return "another process"


def is_locked(path: Path) -> bool:
    """Tell whether a writer is at work, without waiting; a copy is none."""
    if not path.exists():
        return False
    with path.open("r") as file:
        return not _take(file, fcntl.LOCK_SH)


def _take(file: IO[str], kind: int) -> bool:
    """Take the lock in a mode if it is free for that, without waiting; tell whether it was."""
    try:
        fcntl.flock(file, kind | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _is_held_by_copies(file: IO[str]) -> bool:
    """Whether what keeps a writer out are copies alone: then the lock can be shared."""
    is_shared = _take(file, fcntl.LOCK_SH)
    if is_shared:
        fcntl.flock(file, fcntl.LOCK_UN)
    return is_shared


@contextmanager
def writer_lock(path: Path, purpose: str, wait_seconds: float) -> Iterator[None]:
    """Hold the writer lock.

    Args:
        path: the lock file; made when absent, never removed.
        purpose: what the writer does, for whoever waits.
        wait_seconds: how long to wait for another writer; the time that copies take does not count.

    Raises:
        WriterBusyError: another writer held it all that time; names that writer.
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
    """Hold the lock shared: while the block runs, no writer begins, and the warehouse's files stay as they are.

    Waits for the writer at work as long as it takes.

    Args:
        path: the lock file of a warehouse that was written already.
        on_wait: told in words who is waited for, each time that changes.
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
