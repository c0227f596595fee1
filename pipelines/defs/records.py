"""Dagster's records: fast SQLite connections, since each event takes several transactions, and repair of damage."""

import shutil
import sqlite3
from functools import cache
from pathlib import Path
from typing import Any

from sqlalchemy import Engine
from sqlalchemy.dialects import registry
from sqlalchemy.dialects.sqlite.pysqlite import SQLiteDialect_pysqlite
from sqlalchemy.util import LRUCache

from control.store import find_damage

RESTART = "restart the service, which begins new records of runs"
_MOST_COMPILED = 500

_folders: set[Path] = set()
_free: dict[str, list[sqlite3.Connection]] = {}
_compiled: LRUCache[Any, Any] = LRUCache(_MOST_COMPILED)
_columns: dict[tuple[str, str], Any] = {}


class _Kept(sqlite3.Connection):
    """Connection that stays open for the next user when it is closed."""

    path: str

    def close(self) -> None:
        """Roll back, and stay open."""
        self.rollback()
        _free[self.path].append(self)


class _Dialect(SQLiteDialect_pysqlite):
    """SQLAlchemy's SQLite dialect; engines of the kept folders share connections and compiled statements.

    All instances are equal, because compiled statements are looked up by their dialect, and each engine has its own.
    """

    supports_statement_cache = True

    def __eq__(self, other: object) -> bool:
        return type(other) is _Dialect

    def __hash__(self) -> int:
        return hash(_Dialect)

    @classmethod
    def engine_created(cls, engine: Engine) -> None:
        """Let the engine use the shared compiled statements."""
        if _is_kept(engine.url.database):
            engine.update_execution_options(compiled_cache=_compiled)

    def get_columns(self, connection: Any, table_name: str, schema: str | None = None, **options: Any) -> Any:
        """Cache a table's columns: Dagster reads them with each event of an asset, and never changes them."""
        path = connection.engine.url.database
        columns = _columns.get((path, table_name))
        if columns is None:
            columns = super().get_columns(connection, table_name, schema, **options)  # type: ignore[no-untyped-call]
            if _is_kept(path):
                _columns[path, table_name] = columns
        return columns

    def connect(self, *arguments: Any, **options: Any) -> Any:
        """Return a free connection, or a new one."""
        path = str(arguments[0])
        if not _is_kept(path):
            return super().connect(*arguments, **options)
        if free := _free.setdefault(path, []):
            return free.pop()
        # Only one thread uses it at a time.
        connection = sqlite3.connect(path, factory=_Kept, **{**options, "check_same_thread": False})
        connection.path = path
        connection.execute("pragma synchronous = normal")
        return connection


@cache
def _is_kept(path: str | None) -> bool:
    return path is not None and any(Path(path).resolve().is_relative_to(folder) for folder in _folders)


def keep_connections(folder: Path) -> None:
    """Let this process keep its connections to the databases below a folder, and not wait for the disk at each commit.

    Opening a connection reads the whole schema, and closing the last one copies the log into the file. In write-ahead
    mode the database stays consistent without waiting; a loss of power may only lose the last records of runs.
    Statements are compiled once.
    """
    _folders.add(folder.resolve())
    _is_kept.cache_clear()
    registry.register("sqlite", __name__, _Dialect.__name__)


def find_damaged(folder: Path) -> Path | None:
    """Return a database of Dagster's that is damaged or empty; None if all are whole, or there are none."""
    return next((path for path in sorted(folder.glob("*.db")) if find_damage(path)), None)


def set_aside_damaged(folder: Path) -> Path | None:
    """Rename the folder of Dagster's records if one is damaged, so that Dagster begins new ones.

    They are records of runs alone: no data is lost. Only one earlier folder is kept. No other process may use them.

    Returns:
        The damaged database, under its former name; None if all are whole.
    """
    damaged = find_damaged(folder)
    if damaged is None:
        return None
    for path in [path for path in _free if Path(path).resolve().is_relative_to(folder.resolve())]:
        for connection in _free.pop(path):
            sqlite3.Connection.close(connection)
    aside = folder.with_name(f"{folder.name}.damaged")
    shutil.rmtree(aside, ignore_errors=True)
    folder.rename(aside)
    folder.mkdir(mode=0o700)
    return damaged
