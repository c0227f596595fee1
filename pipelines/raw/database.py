"""The raw tables' statements, and transactions in the warehouse."""

import hashlib
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, nullcontext
from functools import cache
from pathlib import Path

import duckdb

from pipelines.tables.sources import TABLES
from warehouse.opening import open_for_writing

_ROOMS = Path(__file__).parents[1]
# Listed once, before the worker forks. Names are unique among the rooms.
_FILES = {path.stem: path for path in _ROOMS.glob("*/sql/*.sql")}
# Each family's query of its movements, with the columns of `raw.movements`.
_FAMILY_MOVEMENTS = sorted(_ROOMS.glob("extract/*/movements.sql"))
# Columns of earlier releases, by table, with their present names.
_RENAMED = {(table, "owed_to"): "visible_to" for table in ("balance_observations", "supply_observations")}
_PARAMETER = re.compile(r"\$([a-z_]+)")


@cache
def sql(name: str) -> str:
    """Return the text of a file in a room's folder `sql`."""
    return _FILES[name].read_text()


def family_sql(family: str, name: str) -> str:
    """Return the text of a query in a family's folder."""
    return (_ROOMS / "extract" / family / f"{name}.sql").read_text()


def form_sql(family: str, name: str) -> str:
    """Return the text of a query of a form of files of a family."""
    return (_ROOMS / "extract" / family / "forms" / f"{name}.sql").read_text()


def movement_views() -> str:
    """Return the views of movements over the raw tables of every family."""
    families = "\nunion all\n".join(path.read_text() for path in _FAMILY_MOVEMENTS)
    return sql("movements").replace("$families", families)


def named(name: str, parameters: Mapping[str, object]) -> tuple[str, dict[str, object]]:
    """Return the text of the named file and those of the parameters that it uses, for `execute`.

    DuckDB refuses a parameter that a statement does not name.
    """
    text = sql(name)
    return text, {key: parameters[key] for key in set(_PARAMETER.findall(text))}


@contextmanager
def open_warehouse(path: Path, memory_mb: int | None = None) -> Iterator[duckdb.DuckDBPyConnection]:
    """Open a warehouse's file for writing, create missing raw tables, and close it on leaving.

    Args:
        path: its file.
        memory_mb: memory limit of its query engine, in megabytes; None: DuckDB's own limit.
    """
    with open_for_writing(path, memory_mb) as connection:
        create_tables(connection)
        yield connection


def create_tables(connection: duckdb.DuckDBPyConnection) -> None:
    """Create missing raw tables and views, and fill columns that older tables lack.

    Do nothing if the definitions have not changed: a comment, written last, holds their fingerprint.
    """
    made_of = connection.execute(
        "select comment from duckdb_views() where schema_name = 'raw' and view_name = 'movements' and not internal"
    ).fetchone()
    if made_of == (_fingerprint(),):
        return
    is_new = connection.execute("select 1 from duckdb_schemas() where schema_name = 'raw'").fetchone() is None
    # Outside a transaction, each of the statements waits for the disk.
    with transaction(connection) if is_new else nullcontext():
        connection.execute(_definitions())
        if not is_new:
            _upgrade_tables(connection)
        connection.execute(_views())
        connection.execute(f"comment on view raw.movements is '{_fingerprint()}'")


def _upgrade_tables(connection: duckdb.DuckDBPyConnection) -> None:
    """Give older tables the present names and columns."""
    columns = "select table_name, column_name from duckdb_columns() where schema_name = 'raw'"
    for table, column in connection.execute(columns).fetchall():
        if (table, column) in _RENAMED:
            connection.execute(f"alter table raw.{table} rename column {column} to {_RENAMED[table, column]}")
    known = set(connection.execute(columns).fetchall())
    required = set(connection.execute(f"{columns} and not is_nullable").fetchall())
    for table in TABLES.values():
        for column in table.columns:
            if (table.name, column.name) not in known:
                connection.execute(f"alter table raw.{table.name} add column {column.name} {column.type}")
            elif column.is_nullable and (table.name, column.name) in required:
                connection.execute(f"alter table raw.{table.name} alter column {column.name} drop not null")
    if ("token_metadata", "tenant_id") not in known:
        connection.execute(sql("name_older_readings"))
    if ("verified_ranges", "is_sampled") not in known:
        # Earlier releases also counted final ranges that were read once, and the rows do not show the difference.
        connection.execute("delete from raw.verified_ranges")


@cache
def _definitions() -> str:
    tables = ";".join(table.definition() for table in TABLES.values())
    return f"create schema if not exists raw; create sequence if not exists raw.batch_ids; {tables}"


def _views() -> str:
    return f"{sql('views')};{sql('visibility')};{movement_views()}"


@cache
def _fingerprint() -> str:
    return hashlib.sha256(f"{_definitions()};{_views()}".encode()).hexdigest()


@contextmanager
def transaction(connection: duckdb.DuckDBPyConnection) -> Iterator[None]:
    """Run all statements inside in one transaction."""
    connection.begin()
    try:
        yield
    except BaseException:
        connection.rollback()
        raise
    connection.commit()
