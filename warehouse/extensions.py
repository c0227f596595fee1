"""DuckDB's extensions from the package index: signed by DuckDB, and loaded without network."""

from importlib.util import find_spec
from pathlib import Path

import duckdb


class ExtensionError(Exception):
    """An extension is not installed, or is not of DuckDB's version; the message says what to run."""


def load_extension(connection: duckdb.DuckDBPyConnection, name: str) -> None:
    """Load an extension from its package.

    Raises:
        ExtensionError: the package is missing, or its extension is for another version of DuckDB.
    """
    package = f"duckdb-extension-{name.replace('_', '-')}"
    # The package has no code, only the file of the extension.
    found = find_spec(f"duckdb_extension_{name}")
    if found is None or found.origin is None:
        raise ExtensionError(f"the package {package} is not installed: run `make install`")
    file = Path(found.origin).parent / "extensions" / f"v{duckdb.__version__}" / f"{name}.duckdb_extension"
    if not file.exists():
        raise ExtensionError(f"the package {package} is not for DuckDB {duckdb.__version__}: run `make install`")
    connection.load_extension(str(file))
