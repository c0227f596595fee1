"""Whether a process may fork: what a fork of it could not use, or would share."""

import os
import socket
from contextlib import suppress
from pathlib import Path

# Polars starts it when it is imported; it waits for files of queries larger than memory, which nobody makes.
_IDLE_THREADS = {"polars-ooc-clea"}


class UnfitToForkError(Exception):
    """The worker holds what a fork of it could not use."""


def check_fit_to_fork() -> None:
    """Do nothing where the process has one thread, no connection over a network, and no database open.

    Raises:
        UnfitToForkError: names what it has.
    """
    own = str(os.getpid())
    for task in Path("/proc/self/task").iterdir():
        name = (task / "comm").read_text().strip()
        if task.name != own and name not in _IDLE_THREADS:
            raise UnfitToForkError(f"the worker has a thread, {name!r}")
    for entry in Path("/proc/self/fd").iterdir():
        with suppress(FileNotFoundError):
            target = str(entry.readlink())
            if target.removesuffix(" (deleted)").endswith((".duckdb", ".wal")):
                raise UnfitToForkError(f"the worker has {target} open")
            if target.startswith("socket:"):
                with socket.socket(fileno=os.dup(int(entry.name))) as found:
                    if found.family in (socket.AF_INET, socket.AF_INET6):
                        raise UnfitToForkError("the worker has a connection over a network")
