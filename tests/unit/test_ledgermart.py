"""Frames of published rows: pandas and polars keep DuckDB's exact values, or an error names the fix."""

from datetime import datetime
from decimal import Decimal
from pathlib import Path

import duckdb
import polars as pl
import pytest

import ledgermart

_HUGE = 2**256 - 1


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "published.duckdb"
    with duckdb.connect(str(path)) as connection:
        connection.execute(
            """
            create table holders as
            select * from (
                values
                (1, ?::bignum, '0.1', '0.123456789012345678'::decimal(38, 18), timestamp '2026-10-31 23:59:59', 'Jane'),
                (2, '-1'::bignum, '12345678901234567890.000000000000000001', '99999999999999999999.5', null, null),
                (3, null::bignum, null, null, null, 'Joe')
            ) as rows (rank, quantity_raw, quantity, price, "at", "a ""name"" of it")
            """,
            [str(_HUGE)],
        )
        connection.execute("comment on column holders.quantity is 'Balance in whole tokens, exact decimal text.'")
    return path


def test_pandas_keeps_every_digit_and_every_null(file: Path) -> None:
    with ledgermart.open(file) as marts:
        frame = marts.pandas("select * from holders order by rank")
    assert list(frame.columns) == ["rank", "quantity_raw", "quantity", "price", "at", 'a "name" of it']
    assert frame["quantity_raw"].tolist() == [_HUGE, -1, None]
    assert frame["quantity_raw"].iloc[:2].sum() == _HUGE - 1
    assert frame["quantity"].sum() == Decimal("12345678901234567890.100000000000000001")
    assert frame["price"].dropna().tolist() == [Decimal("0.123456789012345678"), Decimal("99999999999999999999.5")]
    assert frame["price"].isna().tolist() == [False, False, True]
    assert frame["at"].iloc[0] == datetime(2026, 10, 31, 23, 59, 59)  # noqa: DTZ001 - TIMESTAMP is UTC without a zone
    assert frame['a "name" of it'].isna().tolist() == [False, True, False]


def test_polars_keeps_every_digit_and_every_null(file: Path) -> None:
    with ledgermart.open(file) as marts:
        frame = marts.polars("select * from holders where rank > 1 order by rank")
    assert frame["quantity_raw"].to_list() == [-1, None]
    assert frame["quantity_raw"].dtype == pl.Decimal(38, 0)
    assert frame["quantity"].to_list() == [Decimal("12345678901234567890.000000000000000001"), None]
    assert frame["price"].sum() == Decimal("99999999999999999999.5")
    assert frame["at"].null_count() == 2


def test_number_with_too_many_digits_is_an_error_naming_the_fix(file: Path) -> None:
    with ledgermart.open(file) as marts:
        with pytest.raises(ledgermart.InexactError, match=r"quantity_raw::varchar as quantity_raw_text"):
            marts.polars("select quantity_raw from holders")
        frame = marts.polars("select quantity_raw::varchar as quantity_raw_text from holders where rank = 1")
        assert frame["quantity_raw_text"].to_list() == [str(_HUGE)]
        with pytest.raises(ledgermart.InexactError, match="quantity has numbers of more than 64 digits"):
            marts.pandas("select '1' || repeat('0', 64) || '.5' as quantity")
        with pytest.raises(ledgermart.InexactError, match="quantity has numbers of more than 38 digits"):
            marts.polars("select '0.' || repeat('0', 38) || '1' as quantity")
        with pytest.raises(ledgermart.InexactError, match="quantity has texts that are no decimals"):
            marts.polars("select 'plenty' as quantity")
        # Arrow would not detect an overflow.
        most = "repeat('9', 64)"
        assert marts.pandas(f"select {most} as quantity from range(1000)")["quantity"].sum() == 1000 * int("9" * 64)


def test_duplicate_column_names_are_an_error(file: Path) -> None:
    with ledgermart.open(file) as marts, pytest.raises(ValueError, match="same name"):
        marts.pandas("select rank, rank from holders")


def test_parameters_are_bound_and_an_empty_frame_has_its_columns(file: Path) -> None:
    query = "select rank, quantity_raw, quantity from holders where rank = ?"
    with ledgermart.open(file) as marts:
        assert marts.pandas(query, [2])["quantity_raw"].tolist() == [-1]
        empty = marts.pandas(query, [4])
        assert (len(empty), list(empty.columns)) == (0, ["rank", "quantity_raw", "quantity"])
        assert marts.polars(query, [4]).shape == (0, 3)


def test_file_is_closed_afterwards_and_never_written(file: Path) -> None:
    with ledgermart.open(file) as marts, pytest.raises(duckdb.Error, match="read-only"):
        marts.pandas("insert into holders (rank) values (4) returning rank")
    with duckdb.connect(str(file)) as connection:
        assert connection.sql("select count(*) from holders").fetchone() == (3,)


def test_default_path_is_the_file_of_the_data_folder(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    serving = file.parent / "serving"
    serving.mkdir()
    file.rename(serving / "current.duckdb")
    monkeypatch.setenv("LEDGERMART_DATA_DIR", str(file.parent))
    with ledgermart.open() as marts:
        assert len(marts.pandas("select rank from holders")) == 3


@pytest.fixture
def hostile(tmp_path: Path) -> Path:
    """Make a DuckDB file with a view over another file of this machine."""
    (tmp_path / "secret.txt").write_text("secret")
    path = tmp_path / "hostile.duckdb"
    with duckdb.connect(str(path)) as connection:
        connection.execute(f"create view holders as select content from read_text('{tmp_path / 'secret.txt'}')")
    return path


def test_views_and_queries_of_a_foreign_file_reach_nothing_else(hostile: Path) -> None:
    written = hostile.with_name("written.csv")
    with ledgermart.open(hostile) as marts:
        for query in (
            "select * from holders",
            f"select * from read_text('{hostile.with_name('secret.txt')}')",
            f"copy (select 1) to '{written}'",
            f"attach '{written}' as other",
            "install httpfs",
            "load httpfs",
            "set enable_external_access = true",
        ):
            with pytest.raises(duckdb.Error, match=r"disabled|locked"):
                marts.pandas(query)
        settings = ["enable_external_access", "autoinstall_known_extensions", "autoload_known_extensions"]
        selected = ", ".join(f"current_setting('{name}') as {name}" for name in settings)
        assert marts.pandas(f"select {selected}").to_dict("records") == [dict.fromkeys(settings, False)]
    assert not written.exists()


def test_external_file_is_joined_where_the_reader_allows_it(file: Path) -> None:
    names = file.with_name("names.csv")
    names.write_text("rank,name\n1,Jane\n2,Joe\n")
    with ledgermart.open(file, external=True) as marts:
        query = f"select names.name from holders inner join '{names}' as names using (rank) order by rank"
        assert marts.pandas(query)["name"].tolist() == ["Jane", "Joe"]
