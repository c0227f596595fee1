"""Marts that the real dbt builds from raw rows, cached in `build/` by a hash of their sources.

Parallel test processes share them.
"""

import fcntl
import hashlib
import shutil
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa

from pipelines.raw.database import open_warehouse
from tests.api.marts import contract
from tests.integration.dbt_runner import Stores, run_dbt

Rows = dict[str, list[dict[str, Any]]]

_CHECKOUT = Path(__file__).resolve().parents[2]
_KEPT = _CHECKOUT / "build" / "test-world"
# The sources of the marts, besides the packages of the lock file.
_SOURCES = (
    "dbt_project",
    "pipelines",
    "control",
    "warehouse",
    "tests/api/built.py",
    "tests/api/collected.py",
    "tests/api/world.py",
)


@contextmanager
def built_marts(fill: Callable[[Path], None]) -> Iterator[Path]:
    """Yield the marts of a warehouse; dbt builds them unless the cache already holds them.

    Args:
        fill: creates the warehouse at a path.
    """
    _KEPT.mkdir(parents=True, exist_ok=True)
    folder = _KEPT / _digest()
    with (_KEPT / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not folder.exists():
            for old in _KEPT.glob("*/"):
                shutil.rmtree(old)
            making = _KEPT / "making"
            making.mkdir()
            stores = Stores(making)
            fill(stores.warehouse)
            run_dbt(stores, "run")
            making.rename(folder)
        yield Stores(folder).marts


def _digest() -> str:
    found = hashlib.sha256()
    for source in _SOURCES:
        path = _CHECKOUT / source
        for file in sorted(path.rglob("*")) if path.is_dir() else [path]:
            if file.suffix in (".py", ".sql", ".yml", ".toml") and "target" not in file.parts:
                found.update(str(file.relative_to(_CHECKOUT)).encode() + b"\0" + file.read_bytes() + b"\0")
    return found.hexdigest()


def insert_raw(warehouse: Path, rows: Mapping[str, Iterable[Mapping[str, Any]]]) -> None:
    """Add rows to raw tables."""
    with open_warehouse(warehouse) as connection:
        for table, told in rows.items():
            connection.register("incoming", pa.Table.from_pylist(list(told)))
            connection.execute(f"insert into raw.{table} by name select * from incoming")
            connection.unregister("incoming")


def rows_of(marts: Path, tables: Iterable[str]) -> Rows:
    """Read tables of the marts; integers of any size become `int`."""
    with duckdb.connect() as connection:
        connection.execute(f"attach '{marts}' as built (read_only)")
        return {table: _read(connection, table, contract()[table]) for table in tables}


def _read(connection: duckdb.DuckDBPyConnection, table: str, columns: Mapping[str, str]) -> list[dict[str, Any]]:
    listed = ", ".join(f"{name}::varchar" if kind == "bignum" else name for name, kind in columns.items())
    found = connection.execute(f"select {listed} from built.marts.{table} order by all").fetchall()
    return [
        {
            name: int(value) if kind == "bignum" and value is not None else value
            for (name, kind), value in zip(columns.items(), row, strict=True)
        }
        for row in found
    ]
