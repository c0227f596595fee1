"""Bundles: files with the rows of one tenant, on their way from the warehouse of one shard to that of another one."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import duckdb

from warehouse.opening import literal

DATABASE = "bundle"
"""Name under which statements find an attached bundle."""

_FILE = "bundle.duckdb"


def bundle_path(folder: Path) -> Path:
    """Return the path of the bundle in a folder."""
    return folder / _FILE


@contextmanager
def attached(connection: duckdb.DuckDBPyConnection, folder: Path, *, read_only: bool) -> Iterator[None]:
    """Attach the bundle in a folder, and detach it at the end of the block."""
    mode = " (read_only)" if read_only else ""
    connection.execute(f"attach {literal(bundle_path(folder))} as {DATABASE}{mode}")
    try:
        yield
    finally:
        connection.execute(f"detach {DATABASE}")
