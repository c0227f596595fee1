"""Dagster's own records, in SQLite: for each event of a cycle several engines, each with one transaction."""

import sqlite3
from functools import cache
from pathlib import Path
from typing import Any

from sqlalchemy import Engine
from sqlalchemy.dialects import registry
from sqlalchemy.dialects.sqlite.pysqlite import SQLiteDialect_pysqlite
from sqlalchemy.util import LRUCache

_MOST_COMPILED = 500

_folders: set[Path] = set()
_free: dict[str, list[sqlite3.Connection]] = {}
_compiled: LRUCache[Any, Any] = LRUCache(_MOST_COMPILED)
_columns: dict[tuple[str, str], Any] = {}


class _Kept(sqlite3.Connection):
    """A connection that whoever closes it leaves for the next."""

    path: str

    def close(self) -> None:
        """End what was begun, and stay open."""
        self.rollback()
        _free[self.path].append(self)


class _Dialect(SQLiteDialect_pysqlite):
    """SQLite as SQLAlchemy has it, with what one engine of the kept folders opened and compiled there for the next.

    Compiled statements are looked up by their dialect, of which each engine has its own.
    """

    supports_statement_cache = True

    def __eq__(self, other: object) -> bool:
        return type(other) is _Dialect

    def __hash__(self) -> int:
        return hash(_Dialect)

    @classmethod
    def engine_created(cls, engine: Engine) -> None:
        """Have it share what was compiled."""
        if _is_kept(engine.url.database):
            engine.update_execution_options(compiled_cache=_compiled)

    def get_columns(self, connection: Any, table_name: str, schema: str | None = None, **options: Any) -> Any:
        """Look a table's columns up once: Dagster asks for them with each event of an asset, and changes none."""
        path = connection.engine.url.database
        columns = _columns.get((path, table_name))
        if columns is None:
            columns = super().get_columns(connection, table_name, schema, **options)  # type: ignore[no-untyped-call]
            if _is_kept(path):
                _columns[path, table_name] = columns
        return columns

    def connect(self, *arguments: Any, **options: Any) -> Any:
        """Return a connection that is free, or another one."""
        path = str(arguments[0])
        if not _is_kept(path):
            return super().connect(*arguments, **options)
        if free := _free.setdefault(path, []):
            return free.pop()
        # Whoever uses it has it alone, in whichever thread.
        connection = sqlite3.connect(path, factory=_Kept, **{**options, "check_same_thread": False})
        connection.path = path
        connection.execute("pragma synchronous = normal")
        return connection


@cache
def _is_kept(path: str | None) -> bool:
    return path is not None and any(Path(path).resolve().is_relative_to(folder) for folder in _folders)


def keep_connections(folder: Path) -> None:
    """Have this process keep its connections to the databases below a folder, and not wait for the disk at each commit.

    Opening one reads the whole schema, and the last one that is closed copies the log into the file. In write-ahead
    mode nothing is torn by not waiting; what a loss of power may take is the last records of runs. Statements are
    compiled once.
    """
    _folders.add(folder.resolve())
    _is_kept.cache_clear()
    registry.register("sqlite", __name__, _Dialect.__name__)
