"""Counts of the statements that this process sends to DuckDB and to the control store, and of the rows they write."""

from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partialmethod
from threading import Lock
from typing import Any
from unittest import mock

from duckdb import DuckDBPyConnection, ExpectedResultType, Statement
from sqlalchemy import Engine, event

_plain_execute = DuckDBPyConnection.execute
# SQLite needs them for each transaction, PostgreSQL does not.
_OF_TRANSACTIONS = ("pragma", "begin")


@contextmanager
def counting() -> Iterator[Counter[str]]:
    """Count `duckdb` statements, `rows` that they insert, update or delete, and `control` statements.

    A block inside another one counts for both. Rows of temporary tables count. Statements of `executemany` and of
    relations do not.
    """
    counts: Counter[str] = Counter()
    lock = Lock()

    def add(name: str, number: int = 1) -> None:
        with lock:
            counts[name] += number

    def count_control(connection: Any, _cursor: Any, statement: str, *_: Any) -> None:
        # Dagster uses SQLAlchemy, too.
        if "ledgermart_access" in connection.get_execution_options() and not statement.startswith(_OF_TRANSACTIONS):
            add("control")

    counted = partialmethod(_execute, DuckDBPyConnection.execute, add)
    event.listen(Engine, "before_cursor_execute", count_control)
    try:
        with mock.patch.object(DuckDBPyConnection, "execute", counted):
            yield counts
    finally:
        event.remove(Engine, "before_cursor_execute", count_control)


def _execute(
    connection: DuckDBPyConnection,
    execute: Callable[..., DuckDBPyConnection],
    add: Callable[..., None],
    query: str | Statement,
    parameters: object = None,
) -> DuckDBPyConnection:
    """Execute the statements of a text one by one, so that each returns its number of rows."""
    statements = connection.extract_statements(query) if isinstance(query, str) else [query]
    for place, statement in enumerate(statements, 1):
        add("duckdb")
        # Parameters belong to the last statement.
        execute(connection, statement, parameters if place == len(statements) else None)
        may_write = ExpectedResultType.CHANGED_ROWS in statement.expected_result_type
        if may_write and connection.description[0][0] == "Count" and (rows := connection.fetchall()):
            add("rows", rows[0][0])
            # Reading the number has consumed the result, which the caller may need.
            _plain_execute(connection, 'select ?::bigint as "Count"', rows[0])
    return connection
