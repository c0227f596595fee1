"""The one lock that every writer of the warehouse holds, whoever started it.

An advisory file lock: the kernel frees it when its holder ends, however it ends, so a killed writer never
blocks the next one. The file's text says who holds it, for people; nothing decides by that text.
"""

import fcntl
import json
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path

_POLL_SECONDS = 0.2


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
    """Tell whether a writer is at work, without waiting."""
    if not path.exists():
        return False
    with path.open("r") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
        return False


@contextmanager
def writer_lock(path: Path, purpose: str, wait_seconds: float) -> Iterator[None]:
    """Hold the writer lock.

    Args:
        path: the lock file; made when absent, never removed.
        purpose: what the writer does, for whoever waits.
        wait_seconds: how long to wait for another writer.

    Raises:
        WriterBusyError: another writer held it all that time; names that writer.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    started = time.monotonic()
    with path.open("a+") as file:
        while True:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                waited = time.monotonic() - started
                if waited >= wait_seconds:
                    raise WriterBusyError(path, describe_holder(path), waited) from None
                time.sleep(min(_POLL_SECONDS, max(wait_seconds - waited, 0.01)))
        file.seek(0)
        file.truncate()
        since = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
        file.write(json.dumps({"pid": os.getpid(), "purpose": purpose, "since": since}))
        file.flush()
        yield
