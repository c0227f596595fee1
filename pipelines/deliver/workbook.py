"""A mart as a workbook for spreadsheets: each amount as a number for computing, and as its exact text."""

import itertools
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from pathlib import Path
from typing import Any

import duckdb
import pandas as pd
import xlsxwriter

# Excel's sheets hold 1,048,576 rows, its cells 32,767 characters, its numbers 15 digits. Its calendar begins in 1900.
MOST_ROWS = 1_000_000
_MOST_CHARACTERS = 32_767
_MOST_INTEGER = 10**15
_FIRST_YEAR = 1900
_BATCH_ROWS = 10_000


class CellError(Exception):
    """A value does not fit into a cell; the message names the column."""


@dataclass(frozen=True)
class Field:
    """A column of the mart: an amount is text in the rows, and has two columns in the workbook."""

    name: str
    kind: str
    description: str | None
    is_amount: bool

    @property
    def heads(self) -> list[str]:
        """Return the heads of its columns."""
        if self.is_amount:
            return [f"{self.name} (number, 15 digits)", f"{self.name} (exact)"]
        return [f"{self.name} (UTC)" if self.kind == "TIMESTAMP" else self.name]


def write_workbook(
    path: Path, mart: str, fields: Sequence[Field], rows: duckdb.DuckDBPyConnection, advances: Callable[[int], None]
) -> int:
    """Write the rows of an executed query with these columns; return their number.

    Memory does not grow with the rows: they are written one after the other, by way of files beside `path`.

    Args:
        advances: called with the number of rows written.

    Raises:
        CellError: a text is longer than a cell allows.
    """
    options = {
        "constant_memory": True,
        "tmpdir": str(path.parent),
        "use_zip64": True,
        # Texts remain texts.
        "strings_to_formulas": False,
        "strings_to_numbers": False,
        "strings_to_urls": False,
    }
    written = 0
    with xlsxwriter.Workbook(str(path), options) as book:
        bold = book.add_format({"bold": True})
        formats = {
            "TIMESTAMP": book.add_format({"num_format": "yyyy-mm-dd hh:mm:ss.000"}),
            "DATE": book.add_format({"num_format": "yyyy-mm-dd"}),
        }
        sheet = book.add_worksheet(mart)
        sheet.freeze_panes(1, 0)
        sheet.write_row(0, 0, list(itertools.chain.from_iterable(field.heads for field in fields)), bold)
        for frame in _frames(rows):
            columns = [column for field in fields for column in _cells(frame[field.name], field)]
            for cells in zip(*columns, strict=True):
                written += 1
                for place, value in enumerate(cells):
                    if value is None:
                        continue
                    if isinstance(value, str):
                        sheet.write_string(written, place, value)
                    elif isinstance(value, bool):
                        sheet.write_boolean(written, place, value)
                    elif isinstance(value, date):
                        kind = "TIMESTAMP" if isinstance(value, datetime) else "DATE"
                        sheet.write_datetime(written, place, value, formats[kind])
                    else:
                        sheet.write_number(written, place, value)
            advances(written)
        described = book.add_worksheet("columns")
        described.write_row(0, 0, ["column", "type", "description"], bold)
        for place, field in enumerate(fields, start=1):
            for across, text in enumerate((field.name, field.kind, field.description or "")):
                described.write_string(place, across, text)
    return written


def _frames(rows: duckdb.DuckDBPyConnection) -> Iterator[pd.DataFrame]:
    for batch in rows.to_arrow_reader(_BATCH_ROWS):
        yield batch.to_pandas(types_mapper=pd.ArrowDtype)


def _cells(column: "pd.Series[Any]", field: Field) -> list[list[Any]]:
    """Return the values of the field's columns in the workbook; absent ones are None."""
    values = [None if value is pd.NA else value for value in column.array]
    if field.is_amount:
        return [[None if value is None else float(value) for value in values], values]
    if field.kind == "TIMESTAMP":
        return [[_moment(value) for value in values]]
    if field.kind in ("BIGINT", "INTEGER"):
        # A spreadsheet would round larger numbers.
        return [[str(value) if value is not None and abs(value) >= _MOST_INTEGER else value for value in values]]
    if field.kind == "VARCHAR" and any(value is not None and len(value) > _MOST_CHARACTERS for value in values):
        raise CellError(f"{field.name} has a text of more than {_MOST_CHARACTERS:,} characters")
    return [values]


def _moment(value: pd.Timestamp | None) -> datetime | str | None:
    moment: datetime | None = None if value is None else value.to_pydatetime(warn=False)
    return moment.isoformat(" ") if moment is not None and moment.year < _FIRST_YEAR else moment
