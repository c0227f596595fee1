"""Damaged databases, renamed so that new ones can be made in their places."""

from collections.abc import Iterable
from pathlib import Path

from control.clock import utc_now


def set_aside(path: Path, logs: Iterable[str]) -> Path:
    """Rename a database's file after its logs; return its new name.

    Args:
        path: the file, which exists.
        logs: what the names of its logs have after the file's name, such as `.wal`.
    """
    # Another prefix, so that a backup of `warehouse.duckdb*` leaves it out.
    aside = path.with_name(f"aside-{utc_now():%Y-%m-%dT%H%M%SZ}-{path.name}")
    for log in logs:
        if (file := path.with_name(path.name + log)).exists():
            file.rename(aside.with_name(aside.name + log))
    path.rename(aside)
    return aside
