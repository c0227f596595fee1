"""Tables that are made of a published version while it is open, in memory, beside the file that never changes.

They hold what many answers are cut from: all holders by rank, for example. What is in them is not decided here.
"""

import itertools
import logging
import threading
from collections import OrderedDict
from collections.abc import Callable
from typing import Any

import duckdb

_numbers = itertools.count(1)
MOST = 500  # tables of a version; small ones are kept for searches, each of which makes one
_SHARE = 2  # tables may take this part of the memory of a version: half of it
_BYTES_OF_VALUE = 24  # what DuckDB needs for one: measured, of holders 23.5

_log = logging.getLogger("ledgermart.api")


class Table:
    """One table; statements read it by its name."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.users = 0
        self.bytes = 0
        self.making = threading.Lock()
        self.is_made = False
        self.failure: Exception | None = None


class Tables:
    """The tables of one open version, by key, for any number of threads.

    Args:
        connection: of the version, read-only.
        memory_megabytes: memory limit of the connection. Where the tables need more than half of it, or are more than
            500, those go that no request reads, the one used longest ago first.
    """

    def __init__(self, connection: duckdb.DuckDBPyConnection, memory_megabytes: int) -> None:
        # A file that this process has open already is the same database, with the tables made of it.
        connection.execute("attach if not exists ':memory:' as kept (read_write)")
        self._connection = connection.cursor()
        self._most_bytes = memory_megabytes * 1_000_000 // _SHARE
        self._lock = threading.Lock()
        self._tables: OrderedDict[Any, Table] = OrderedDict()

    def take(self, key: Any, make: Callable[[str], None]) -> Table:
        """Return the table of a key; who takes it must release it.

        Args:
            key: what tells it from others.
            make: executes a statement that begins so and goes on with the table's query. One thread makes a table, the
                others wait for it; what it failed with is raised to all of them, and whoever asks then tries again.
        """
        with self._lock:
            table = self._tables.get(key)
            if table is None:
                table = self._tables[key] = Table(f"kept.table_{next(_numbers)}")
            self._tables.move_to_end(key)
            table.users += 1
            known = table.failure
        try:
            with table.making:
                if table.failure is not None and table.failure is not known:
                    raise table.failure
                if not table.is_made:
                    self._make(table, make)
        except BaseException:
            self.release(table)
            raise
        return table

    def _make(self, table: Table, make: Callable[[str], None]) -> None:
        try:
            make(f"create or replace table {table.name} as")
        except Exception as error:
            table.failure = error
            raise
        table.is_made = True
        with self._lock:
            table.bytes = self._size_of(table)
            for key in list(self._tables):
                if len(self._tables) <= MOST and sum(one.bytes for one in self._tables.values()) <= self._most_bytes:
                    return
                self._drop_unused(key)

    def close(self) -> None:
        """Give up the connection; the tables go with the version's own."""
        self._connection.close()

    def release(self, table: Table) -> None:
        """Say that one who took a table has read it."""
        with self._lock:
            table.users -= 1

    def clear(self) -> None:
        """Drop the tables that no request reads."""
        with self._lock:
            for key in list(self._tables):
                self._drop_unused(key)

    def _drop_unused(self, key: Any) -> None:
        table = self._tables[key]
        if table.users > 0:
            return
        del self._tables[key]
        try:
            self._connection.execute(f"drop table if exists {table.name}")
        except duckdb.Error:
            # A database that failed is closed soon; nobody who asks for another one is to hear of it.
            _log.exception("%s could not be dropped", table.name)

    def _size_of(self, table: Table) -> int:
        """Estimate it: the sum that DuckDB tells leaves out what is on the disk, and has what is dropped while read."""
        row = self._connection.execute(
            "select estimated_size * column_count from duckdb_tables() where database_name = 'kept' and table_name = ?",
            [table.name.removeprefix("kept.")],
        ).fetchone()
        return int(row[0]) * _BYTES_OF_VALUE if row else 0
