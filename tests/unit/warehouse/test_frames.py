"""Frames of published rows: what DuckDB holds exactly, pandas holds exactly."""

from datetime import datetime
from decimal import Decimal
from pathlib import Path

import duckdb
import pytest

from warehouse.frames import read_frame

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
                (1, ?::bignum, '0.123456789012345678'::decimal(38, 18), timestamp '2026-10-31 23:59:59', 'Jane'),
                (2, '-1'::bignum, '99999999999999999999.5'::decimal(38, 18), null, null),
                (3, null::bignum, null, null, 'Joe')
            ) as rows (rank, quantity_raw, price, "at", "a ""name"" of it")
            """,
            [str(_HUGE)],
        )
    return path


def test_a_frame_keeps_every_digit_and_every_null(file: Path) -> None:
    frame = read_frame(file, "select * from holders order by rank")
    assert list(frame.columns) == ["rank", "quantity_raw", "price", "at", 'a "name" of it']
    assert frame["quantity_raw"].tolist() == [_HUGE, -1, None]
    assert frame["quantity_raw"].iloc[:2].sum() == _HUGE - 1
    assert frame["price"].dropna().tolist() == [Decimal("0.123456789012345678"), Decimal("99999999999999999999.5")]
    assert frame["price"].isna().tolist() == [False, False, True]
    assert frame["at"].iloc[0] == datetime(2026, 10, 31, 23, 59, 59)  # noqa: DTZ001 - TIMESTAMP is UTC without a zone
    assert frame['a "name" of it'].isna().tolist() == [False, True, False]


def test_parameters_are_bound_and_an_empty_frame_has_its_columns(file: Path) -> None:
    query = "select rank, quantity_raw from holders where rank = ?"
    assert read_frame(file, query, [2])["quantity_raw"].tolist() == [-1]
    empty = read_frame(file, query, [4])
    assert (len(empty), list(empty.columns)) == (0, ["rank", "quantity_raw"])


def test_the_file_is_free_again_and_was_never_written(file: Path) -> None:
    with pytest.raises(duckdb.Error, match="read-only"):
        read_frame(file, "insert into holders (rank) values (4) returning rank")
    with duckdb.connect(str(file)) as connection:
        assert connection.sql("select count(*) from holders").fetchone() == (3,)
