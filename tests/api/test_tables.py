"""Tables derived from a version: created once, by one thread, within a memory budget."""

import threading
from collections.abc import Iterator
from pathlib import Path

import duckdb
import pytest

from api.engine import tables as tables_module
from api.engine.tables import Table, Tables
from tests.waiting import eventually
from warehouse.versions import open_locked_down


@pytest.fixture
def connection(tmp_path: Path) -> Iterator[duckdb.DuckDBPyConnection]:
    path = tmp_path / "marts.duckdb"
    with duckdb.connect(str(path)) as writer:
        writer.execute("create table numbers as select i, repeat('x', 90) || i as text from range(200000) r (i)")
    path.chmod(0o400)
    opened = open_locked_down(path, 64)
    yield opened
    opened.close()


class _Asked:
    """Creates tables of a query, and counts the calls."""

    def __init__(self, connection: duckdb.DuckDBPyConnection, query: str = "from numbers") -> None:
        self.connection = connection
        self.query = query
        self.times = 0

    def make(self, statement: str) -> None:
        self.times += 1
        self.connection.cursor().execute(f"{statement} {self.query}")


def _rows(connection: duckdb.DuckDBPyConnection, table: Table) -> int:
    ((found,),) = connection.cursor().execute(f"select count(*) from {table.name}").fetchall()
    return int(found)


def test_table_is_created_once_and_readable_by_every_cursor(connection: duckdb.DuckDBPyConnection) -> None:
    tables, asked = Tables(connection, 1024), _Asked(connection)
    first, second = tables.take("a", asked.make), tables.take("a", asked.make)
    other = tables.take("b", _Asked(connection, "from numbers limit 7").make)
    assert first is second
    assert asked.times == 1
    assert (_rows(connection, first), _rows(connection, other)) == (200_000, 7)
    tables.close()


def test_concurrent_threads_wait_for_the_first_to_create_the_table(connection: duckdb.DuckDBPyConnection) -> None:
    tables, asked = Tables(connection, 1024), _Asked(connection)
    begun, found = threading.Barrier(8), []

    def ask() -> None:
        begun.wait()
        found.append(_rows(connection, tables.take("a", asked.make)))

    threads = [threading.Thread(target=ask) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert (asked.times, found) == (1, [200_000] * 8)
    tables.close()


def test_least_recently_used_table_is_evicted_for_space(connection: duckdb.DuckDBPyConnection) -> None:
    # 400,000 values each, and a budget of 16 MB.
    tables, asked = Tables(connection, 32), _Asked(connection)
    first = tables.take("a", asked.make)
    tables.release(first)
    second = tables.take("b", asked.make)
    with pytest.raises(duckdb.CatalogException):
        _rows(connection, first)
    assert _rows(connection, second) == 200_000
    tables.release(second)
    again = tables.take("a", asked.make)
    assert _rows(connection, again) == 200_000
    assert asked.times == 3
    tables.close()


def test_table_in_use_is_not_evicted(connection: duckdb.DuckDBPyConnection) -> None:
    tables, asked = Tables(connection, 32), _Asked(connection)
    taken = [tables.take(key, asked.make) for key in ("a", "b")]
    assert [_rows(connection, table) for table in taken] == [200_000] * 2
    tables.close()


def test_small_tables_are_evicted_beyond_the_maximum_number(
    connection: duckdb.DuckDBPyConnection, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tables_module, "MOST", 3)
    tables, asked = Tables(connection, 1024), _Asked(connection, "from numbers limit 1")
    for key in range(5):
        tables.release(tables.take(key, asked.make))
    for key in range(4, -1, -1):
        tables.release(tables.take(key, asked.make))
    assert asked.times == 5 + 2
    tables.close()


def test_waiting_threads_fail_with_the_failed_creation(
    connection: duckdb.DuckDBPyConnection, monkeypatch: pytest.MonkeyPatch
) -> None:
    known: list[Table] = []

    class Known(Table):
        def __init__(self, name: str) -> None:
            super().__init__(name)
            known.append(self)

    monkeypatch.setattr(tables_module, "Table", Known)
    tables, waiting = Tables(connection, 1024), threading.Event()
    times, found = [], []

    def make(_: str) -> None:
        times.append(1)
        waiting.wait()
        raise ValueError("it cannot be made")

    def ask() -> None:
        try:
            tables.take("a", make)
        except ValueError as error:
            found.append(error)

    threads = [threading.Thread(target=ask) for _ in range(6)]
    for thread in threads:
        thread.start()
    eventually(lambda: [table.users for table in known] == [6], "all threads wait for one table")
    waiting.set()
    for thread in threads:
        thread.join()
    assert (len(times), len(found)) == (1, 6)
    with pytest.raises(ValueError, match="cannot be made"):
        tables.take("a", make)
    assert len(times) == 2
    tables.close()


def test_failed_drop_of_a_table_is_only_logged(
    connection: duckdb.DuckDBPyConnection, caplog: pytest.LogCaptureFixture
) -> None:
    tables = Tables(connection, 1024)
    tables.release(tables.take("a", _Asked(connection).make))
    tables.close()
    tables.clear()
    assert "could not be dropped" in caplog.text


def test_failed_creation_is_retried_on_the_next_request(connection: duckdb.DuckDBPyConnection) -> None:
    tables = Tables(connection, 1024)
    with pytest.raises(duckdb.CatalogException):
        tables.take("a", _Asked(connection, "from nothing").make)
    assert _rows(connection, tables.take("a", _Asked(connection).make)) == 200_000
    tables.close()
