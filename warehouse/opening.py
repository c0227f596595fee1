"""Opening a DuckDB file that another process may still have open, and texts in statements."""

import threading
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import duckdb

_LOCK_POLL_SECONDS = 0.25
# Held while settings are checked and changed: another thread may lock down the same file between the two.
_SETTING = threading.Lock()


def connect(path: Path, wait_seconds: float = 60.0, *, read_only: bool = False) -> duckdb.DuckDBPyConnection:
    """Open a DuckDB file, for writing by default.

    DuckDB lets only one process open a file for writing. Writers queue at `writer_lock`. So the file can only be
    in use by a child process that outlived a killed writer, and such a child ends by itself.

    Raises:
        duckdb.IOException: the file stayed in use for `wait_seconds`, or cannot be opened at all.
    """
    deadline = time.monotonic() + wait_seconds
    while True:
        try:
            return quiet(duckdb.connect(str(path), read_only=read_only))
        except duckdb.IOException as error:
            if "Could not set lock" not in str(error) or time.monotonic() >= deadline:
                raise
            time.sleep(_LOCK_POLL_SECONDS)


def quiet(connection: duckdb.DuckDBPyConnection, *, locked_down: bool = False) -> duckdb.DuckDBPyConnection:
    """Disable the progress bar of a connection and its cursors: DuckDB draws it on standard output.

    Args:
        locked_down: also forbid any later change of settings on this file in this process.
    """
    # All connections of a process to one file share its settings, and a file that is locked down accepts no change.
    with _SETTING:
        if connection.execute("select current_setting('lock_configuration')").fetchone() == (False,):
            connection.execute("set enable_progress_bar = false")
            if locked_down:
                connection.execute("set lock_configuration = true")
    return connection


@contextmanager
def open_for_writing(path: Path, memory_mb: int | None = None) -> Iterator[duckdb.DuckDBPyConnection]:
    """Open a file of the warehouse for writing, and close it at the end of the block.

    Args:
        path: the file.
        memory_mb: memory limit of the query engine in megabytes; None for DuckDB's own limit.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    with closing(connect(path)) as connection:
        connection.execute("set timezone = 'UTC'")
        # Writing with two threads was measured to cost a quarter more CPU than with one, while the other core fetches.
        connection.execute("set threads = 1")
        if memory_mb is not None:
            connection.execute(f"set memory_limit = '{memory_mb}MB'")
        yield connection


def literal(text: object) -> str:
    """Return a text as a literal, for statements that take no parameter in that place."""
    return "'" + str(text).replace("'", "''") + "'"
