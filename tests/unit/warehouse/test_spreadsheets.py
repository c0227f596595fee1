"""CSV cells that a spreadsheet would evaluate as formulas."""

import duckdb
import pytest

from warehouse.spreadsheets import guard_cell, guarded_sql

CELLS = {
    "=1+1": "'=1+1",
    "=cmd|' /C calc'!A0,\"x\"": "'=cmd|' /C calc'!A0,\"x\"",
    "@SUM(1)": "'@SUM(1)",
    "+1.5": "'+1.5",
    "-1.5-2": "'-1.5-2",
    "-": "'-",
    "-1.": "'-1.",
    "-1\n": "'-1\n",
    "-\u0661": "'-\u0661",
    "\t=1": "'\t=1",
    "\r=1": "'\r=1",
    "＝1": "'＝1",  # noqa: RUF001
    "＠x": "'＠x",  # noqa: RUF001
    "-1.5": "-1.5",
    "-" + "9" * 78: "-" + "9" * 78,
    "-0.000000000000000001": "-0.000000000000000001",
    "0xab": "0xab",
    "1=1": "1=1",
    "": "",
}


@pytest.mark.parametrize(("cell", "guarded"), [*CELLS.items(), (None, None)])
def test_formulas_get_an_apostrophe_and_numbers_stay(cell: str | None, guarded: str | None) -> None:
    assert guard_cell(cell) == guarded
    with duckdb.connect() as connection:
        found = connection.execute(f"select {guarded_sql('cell')} from (select $cell::varchar as cell)", {"cell": cell})
        assert found.fetchall() == [(guarded,)]
