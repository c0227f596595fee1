"""Dagster's own records, in SQLite: several hundred transactions in a cycle, each of which would wait for the disk."""

import sqlite3
from functools import cache
from pathlib import Path
from typing import Any

from sqlalchemy import Engine, event

_kept_open: dict[str, sqlite3.Connection] = {}


@cache
def do_not_wait_for_disk(folder: Path) -> None:
    """Have this process write the databases below a folder without waiting for the disk at each commit.

    In write-ahead mode nothing is torn by that; what a loss of power may take is the last records of runs. One
    connection stays open to each database: the last one that closes copies the log into the file and waits for that.
    """

    @event.listens_for(Engine, "connect")
    def set_up(connection: Any, _record: Any) -> None:
        if not isinstance(connection, sqlite3.Connection):
            return
        # SQLite names its file without symbolic links.
        path = connection.execute("pragma database_list").fetchone()[2]
        if not Path(path).is_relative_to(folder.resolve()):
            return
        connection.execute("pragma synchronous = normal")
        if path not in _kept_open:
            _kept_open[path] = sqlite3.connect(path, check_same_thread=False)
            _kept_open[path].execute("pragma schema_version").fetchone()
