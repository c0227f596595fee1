"""Tables that are made of a published version while it is open, in memory, beside the file that never changes.

They hold what many answers are cut from: all holders by rank, for example. What is in them is not decided here.
"""

import itertools
import threading
from collections import OrderedDict
from collections.abc import Callable
from typing import Any

import duckdb

_numbers = itertools.count(1)
_MOST = 500  # tables of a version; small ones are kept for searches, each of which makes one
_SHARE = 2  # tables may take this part of the memory of a version: half of it


class Table:
    """One table; statements read it by its name."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.users = 0
        self.making = threading.Lock()
        self.is_made = False


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
                others wait for it.
        """
        with self._lock:
            table = self._tables.get(key)
            if table is None:
                table = self._tables[key] = Table(f"kept.table_{next(_numbers)}")
            self._tables.move_to_end(key)
            table.users += 1
        try:
            with table.making:
                if not table.is_made:
                    make(f"create table {table.name} as")
                    table.is_made = True
                    self._make_room()
        except BaseException:
            self.release(table)
            raise
        return table

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

    def _make_room(self) -> None:
        with self._lock:
            for key in list(self._tables):
                if len(self._tables) <= _MOST and self._bytes() <= self._most_bytes:
                    return
                self._drop_unused(key)

    def _drop_unused(self, key: Any) -> None:
        table = self._tables[key]
        if table.users == 0:
            self._connection.execute(f"drop table if exists {table.name}")
            del self._tables[key]

    def _bytes(self) -> int:
        row = self._connection.execute(
            "select memory_usage_bytes from duckdb_memory() where tag = 'IN_MEMORY_TABLE'"
        ).fetchone()
        return int(row[0]) if row else 0
