"""Dagster's own records, in SQLite: for each event of a cycle several connections, each with a transaction."""

import sqlite3
from functools import cache
from pathlib import Path
from typing import Any

from sqlalchemy import Dialect, Engine, event

_free: dict[str, list[sqlite3.Connection]] = {}


class _Kept(sqlite3.Connection):
    """A connection that whoever closes it leaves for the next."""

    path: str

    def close(self) -> None:
        """End what was begun, and stay open."""
        self.rollback()
        _free[self.path].append(self)


@cache
def keep_connections(folder: Path) -> None:
    """Have this process keep its connections to the databases below a folder, and not wait for the disk at each commit.

    Opening one reads the whole schema, and the last one that is closed copies the log into the file. In write-ahead
    mode nothing is torn by not waiting; what a loss of power may take is the last records of runs.
    """

    @event.listens_for(Engine, "do_connect")
    def connect(
        dialect: Dialect, _record: Any, arguments: list[Any], options: dict[str, Any]
    ) -> sqlite3.Connection | None:
        if dialect.name != "sqlite" or not arguments:
            return None
        path = str(arguments[0])
        if not Path(path).resolve().is_relative_to(folder.resolve()):
            return None
        if free := _free.setdefault(path, []):
            return free.pop()
        # Whoever uses it has it alone, in whichever thread.
        connection = sqlite3.connect(path, factory=_Kept, **{**options, "check_same_thread": False})
        connection.path = path
        connection.execute("pragma synchronous = normal")
        return connection
