"""Check that a process may fork: it must hold nothing that a fork could not use or would share."""

import gc
import os
import socket
import time
from contextlib import suppress
from pathlib import Path

from warehouse.folders import is_database

# Polars starts it on import. It waits for files of queries that exceed memory, and no query here is that large.
_IDLE_THREADS = {"polars-ooc-clea"}
_PATIENCE_SECONDS = 5.0
_LOOK_SECONDS = 0.005


class ForkUnsafeError(Exception):
    """The worker holds a resource that a fork could not use."""


def assert_fork_safe(patience_seconds: float = _PATIENCE_SECONDS) -> None:
    """Check that the process has one thread, no connection over a network, and no open database.

    Args:
        patience_seconds: longest wait for resources that are about to end: the kernel lists a joined thread until it
            has ended completely.

    Raises:
        ForkUnsafeError: names the resource.
    """
    deadline = time.monotonic() + patience_seconds
    while (held := _held()) is not None:
        if time.monotonic() >= deadline:
            raise ForkUnsafeError(f"the worker has {held}")
        gc.collect()
        time.sleep(_LOOK_SECONDS)


def _held() -> str | None:
    """Return the description of a resource that a fork could not use; None without any."""
    own = str(os.getpid())
    for task in Path("/proc/self/task").iterdir():
        # A thread that ends meanwhile does not count.
        with suppress(FileNotFoundError, ProcessLookupError):
            name = (task / "comm").read_text().strip()
            if task.name != own and name not in _IDLE_THREADS:
                return f"a thread, {name!r}"
    for entry in Path("/proc/self/fd").iterdir():
        with suppress(FileNotFoundError):
            target = str(entry.readlink())
            if is_database(target.removesuffix(" (deleted)")):
                return f"{target} open"
            if target.startswith("socket:"):
                with socket.socket(fileno=os.dup(int(entry.name))) as found:
                    if found.family in (socket.AF_INET, socket.AF_INET6):
                        return "a connection over a network"
    return None
