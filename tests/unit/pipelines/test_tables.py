"""The raw tables: descriptions, creation, inserts from frames, and dbt's source file."""

from collections.abc import Iterator

import duckdb
import polars as pl
import pytest

from pipelines.raw import database
from pipelines.raw.database import create_tables, movement_views
from pipelines.tables.sources import DBT_FILE, SOURCES, TABLES, dbt_text
from pipelines.tables.table import Table


@pytest.fixture(scope="module")
def unchanged() -> Iterator[duckdb.DuckDBPyConnection]:
    """A warehouse for tests that only read."""
    with duckdb.connect() as connection:
        create_tables(connection)
        yield connection


@pytest.fixture
def connection() -> Iterator[duckdb.DuckDBPyConnection]:
    with duckdb.connect() as connection:
        create_tables(connection)
        yield connection


def columns_of(connection: duckdb.DuckDBPyConnection, name: str) -> list[tuple[str, str, bool]]:
    """Return name, type and nullability of each column from the warehouse's catalog."""
    return connection.execute(
        """
        select column_name, lower(data_type), is_nullable
        from duckdb_columns()
        where schema_name = 'raw' and table_name = ?
        order by column_index
        """,
        [name],
    ).fetchall()


def test_dbt_sources_are_current() -> None:
    assert DBT_FILE.read_text() == dbt_text(), "run `python -m pipelines.tables.sources`"


def test_every_table_is_unique_and_described() -> None:
    described = [table for source in SOURCES for table in (*source.tables, *source.views)]
    names = [table.name for table in described]
    assert len(set(names)) == len(names)
    for table in described:
        texts = [table.description, table.grain, *(column.description for column in table.columns)]
        assert all(text.endswith(".") for text in texts), table.name
        assert len({column.name for column in table.columns}) == len(table.columns), table.name


@pytest.mark.parametrize("table", TABLES.values(), ids=TABLES)
def test_the_warehouse_has_the_columns_as_described(unchanged: duckdb.DuckDBPyConnection, table: Table) -> None:
    assert columns_of(unchanged, table.name) == [(c.name, c.type, c.is_nullable) for c in table.columns]


@pytest.mark.parametrize("view", [view for source in SOURCES for view in source.views], ids=lambda view: view.name)
def test_views_have_the_columns_as_described(unchanged: duckdb.DuckDBPyConnection, view: Table) -> None:
    stored = [(name, type_) for name, type_, _ in columns_of(unchanged, view.name)]
    assert stored == [(column.name, column.type) for column in view.columns]


def test_exact_numbers_reach_the_warehouse_through_frames(connection: duckdb.DuckDBPyConnection) -> None:
    largest = 2**256 - 1
    price = TABLES["prices"].schema("source_id", "price")
    assert price["price"] == pl.Decimal(38, 18)
    rows = TABLES["internal_transfers"].schema_without("network", "batch_id")
    frame = pl.DataFrame([(1, "0xb", 0, "0xc", 0, "0xd", "0xe", str(largest), "call")], schema=rows, orient="row")
    connection.register("incoming", frame)
    connection.execute(
        "insert into raw.internal_transfers by name select *, 'a' as network, 1 as batch_id from incoming"
    )
    stored = connection.execute("select amount_raw::varchar from raw.internal_transfers").fetchall()
    assert stored == [(str(largest),)]


def test_interrupted_creation_leaves_no_table(monkeypatch: pytest.MonkeyPatch) -> None:
    with duckdb.connect() as connection:
        with monkeypatch.context() as patched:
            patched.setattr(database, "_views", lambda: "select missing")
            with pytest.raises(duckdb.BinderException, match="missing"):
                create_tables(connection)
        assert connection.execute("select table_name from duckdb_tables()").fetchall() == []
        create_tables(connection)


def test_missing_column_is_added_and_rows_are_kept(connection: duckdb.DuckDBPyConnection) -> None:
    before = columns_of(connection, "blocks")
    connection.execute("alter table raw.blocks drop column is_tail")
    connection.execute("insert into raw.blocks values ('a', 1, '0xb', '0xc', '2026-01-01', 1)")
    # Earlier releases recorded no definitions and replaced the views.
    connection.execute(movement_views())
    for _ in range(2):
        create_tables(connection)
        assert columns_of(connection, "blocks") == before
        assert connection.execute("select block_number, is_tail from raw.blocks").fetchall() == [(1, None)]


def test_unchanged_definitions_create_tables_once(connection: duckdb.DuckDBPyConnection) -> None:
    def views() -> list[tuple[str, int]]:
        return connection.execute(
            "select view_name, view_oid from duckdb_views() where schema_name = 'raw' order by all"
        ).fetchall()

    before = views()
    create_tables(connection)
    assert views() == before
    connection.execute("comment on view raw.movements is 'of other definitions'")
    create_tables(connection)
    assert not set(views()) & set(before)
