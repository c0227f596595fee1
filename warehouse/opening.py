"""Opening a DuckDB file that another process may still have open."""

import time
from pathlib import Path

import duckdb

_LOCK_POLL_SECONDS = 0.25


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
