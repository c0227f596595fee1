"""Opening a DuckDB file that another process may still have open."""

import threading
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import duckdb

_LOCK_POLL_SECONDS = 0.25
# Who finds a file not locked down may set it before another thread that has opened it, too, locks it down.
_SETTING = threading.Lock()


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
            return quiet(duckdb.connect(str(path), read_only=read_only))
        except duckdb.IOException as error:
            if "Could not set lock" not in str(error) or time.monotonic() >= deadline:
                raise
            time.sleep(_LOCK_POLL_SECONDS)


def quiet(connection: duckdb.DuckDBPyConnection, *, locked_down: bool = False) -> duckdb.DuckDBPyConnection:
    """Let a connection and the cursors made of it draw no progress bar: DuckDB writes it to the standard output.

    Args:
        locked_down: nothing can be set on the file any more in this process, once that is done.
    """
    # A file that this process has open already keeps its settings: where it is locked down, nothing can be set here.
    with _SETTING:
        if connection.execute("select current_setting('lock_configuration')").fetchone() == (False,):
            connection.execute("set enable_progress_bar = false")
            if locked_down:
                connection.execute("set lock_configuration = true")
    return connection


@contextmanager
def open_for_writing(path: Path, memory_mb: int | None = None) -> Iterator[duckdb.DuckDBPyConnection]:
    """Open a warehouse's file for writing; closed on leaving.

    Args:
        path: its file.
        memory_mb: most memory of its query engine, in megabytes; None: DuckDB's own limit.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    with closing(connect(path)) as connection:
        connection.execute("set timezone = 'UTC'")
        # Writing with two threads was measured to cost a quarter more CPU than with one, while the other core fetches.
        connection.execute("set threads = 1")
        if memory_mb is not None:
            connection.execute(f"set memory_limit = '{memory_mb}MB'")
        yield connection
