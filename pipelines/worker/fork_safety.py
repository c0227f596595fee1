"""Whether a process may fork: what a fork of it could not use, or would share."""

import gc
import os
import socket
import time
from contextlib import suppress
from pathlib import Path

from warehouse.folders import is_database

# Polars starts it when it is imported; it waits for files of queries larger than memory, which nobody makes.
_IDLE_THREADS = {"polars-ooc-clea"}
_PATIENCE_SECONDS = 5.0
_LOOK_SECONDS = 0.005


class ForkUnsafeError(Exception):
    """The worker holds what a fork of it could not use."""


def assert_fork_safe(patience_seconds: float = _PATIENCE_SECONDS) -> None:
    """Do nothing where the process has one thread, no connection over a network, and no database open.

    Args:
        patience_seconds: how long to wait for what is only about to go: the kernel lists a thread that has been joined
            until it is at its very end.

    Raises:
        ForkUnsafeError: names what it has.
    """
    deadline = time.monotonic() + patience_seconds
    while (held := _held()) is not None:
        if time.monotonic() >= deadline:
            raise ForkUnsafeError(f"the worker has {held}")
        gc.collect()
        time.sleep(_LOOK_SECONDS)


def _held() -> str | None:
    """What the process has that a fork could not use; None where there is nothing."""
    own = str(os.getpid())
    for task in Path("/proc/self/task").iterdir():
        # One that ends meanwhile is none.
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
