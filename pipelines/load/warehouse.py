"""Opening the warehouse, and the transactions in it. The one module that knows that the warehouse is a file."""

import re
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime
from functools import cache
from pathlib import Path

import duckdb

_SQL = Path(__file__).parent / "sql"
_LOCK_POLL_SECONDS = 0.25
_PARAMETER = re.compile(r"\$([a-z_]+)")


@cache
def sql(name: str) -> str:
    """Return the text of the named file in `load/sql`."""
    return (_SQL / f"{name}.sql").read_text()


def named(name: str, parameters: Mapping[str, object]) -> tuple[str, dict[str, object]]:
    """Return the text of the named file and those of the parameters that it uses, for `execute`.

    DuckDB refuses a parameter that a statement does not name.
    """
    text = sql(name)
    return text, {key: parameters[key] for key in set(_PARAMETER.findall(text))}


def utc_now() -> datetime:
    """Now, as the warehouse stores instants: UTC without a zone."""
    return datetime.now(UTC).replace(tzinfo=None)


def connect(path: Path, wait_seconds: float = 60.0, *, read_only: bool = False) -> duckdb.DuckDBPyConnection:
    """Open a DuckDB file, for writing unless told.

    DuckDB lets one process at a time open a file it writes. Writers queue by `writer_lock`; what can still
    hold the file is a child that outlived a killed writer, and that ends by itself.

    Raises:
        duckdb.IOException: the file stayed in use for `wait_seconds`, or cannot be opened at all.
    """
    deadline = time.monotonic() + wait_seconds
    while True:
        try:
            return duckdb.connect(str(path), read_only=read_only)
        except duckdb.IOException as error:
            if "lock" not in str(error).lower() or time.monotonic() >= deadline:
                raise
            time.sleep(_LOCK_POLL_SECONDS)


@contextmanager
def open_warehouse(path: Path, memory_mb: int | None = None) -> Iterator[duckdb.DuckDBPyConnection]:
    """Open the warehouse for writing, with its raw tables in place; closed on leaving.

    Args:
        path: its file.
        memory_mb: most memory of its query engine, in megabytes; None: DuckDB's own limit.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    connection = connect(path)
    try:
        connection.execute("set timezone = 'UTC'")
        # Writing with two threads was measured to cost a quarter more CPU than with one, while the other core fetches.
        connection.execute("set threads = 1")
        if memory_mb is not None:
            connection.execute(f"set memory_limit = '{memory_mb}MB'")
        connection.execute(sql("raw"))
        connection.execute(sql("raw_prices"))
        yield connection
    finally:
        connection.close()


@contextmanager
def transaction(connection: duckdb.DuckDBPyConnection) -> Iterator[None]:
    """All statements inside, or none."""
    connection.begin()
    try:
        yield
    except BaseException:
        connection.rollback()
        raise
    connection.commit()
