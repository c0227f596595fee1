"""Functions that rewrite one Parquet file of a data set so that it lies or no longer fits its schema.

Columns are arguments, so the functions fit every form of `chain_files`. Rows are numbered from 0 in the order of the
file. A changed value keeps its form: 0x text, decimal text, bytes or a number.
"""

import hashlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from tests.damages import cut


def read_rows(path: Path) -> list[dict[str, Any]]:
    """Return the file's rows, in its order."""
    rows: list[dict[str, Any]] = _read(path).to_pylist()
    return rows


def find_row(path: Path, **values: Any) -> int:
    """Return the number of the first row with these values.

    Raises:
        LookupError: no row has them.
    """
    for number, row in enumerate(read_rows(path)):
        if all(row[name] == value for name, value in values.items()):
            return number
    raise LookupError(f"no row of {path.name} with {values}")


def change_amount(path: Path, row: int, column: str, by: int = 1) -> None:
    """Add `by` to the amount of a row."""
    _edit(path, column, lambda number, value: _form_like(value, _as_int(value) + by) if number == row else value)


def omit_row(path: Path, row: int) -> None:
    """Delete a row."""
    table = _read(path)
    _write(path, pa.concat_tables([table.slice(0, row), table.slice(row + 1)]))


def double_row(path: Path, row: int, *, other_index: bool, index_column: str = "log_index") -> None:
    """Repeat a row at the end of the file.

    Args:
        path: the file.
        row: its number.
        other_index: give the copy an index that no row of the file has, so that it looks like another event.
        index_column: the column of that index.
    """
    table = _read(path)
    copy = table.slice(row, 1)
    if other_index:
        place = table.schema.get_field_index(index_column)
        unused = max(table.column(place).to_pylist()) + 1
        copy = copy.set_column(place, table.schema.field(place), pa.array([unused], table.schema.field(place).type))
    _write(path, pa.concat_tables([table, copy]))


def other_hashes(path: Path, *columns: str) -> None:
    """Replace each hash in the columns by another one; equal hashes stay equal."""
    for column in columns:
        _edit(path, column, lambda _, value: _form_like(value, int.from_bytes(hashlib.sha256(_bytes(value)).digest())))


def drop_column(path: Path, *columns: str) -> None:
    """Delete columns."""
    _write(path, _read(path).drop_columns(list(columns)))


def as_double(path: Path, column: str) -> None:
    """Store the amounts of a column as doubles, which rounds the large ones."""
    table = _read(path)
    values = [None if value is None else float(_as_int(value)) for value in table.column(column).to_pylist()]
    place = table.schema.get_field_index(column)
    _write(path, table.set_column(place, pa.field(column, pa.float64()), pa.array(values, pa.float64())))


def truncate_file(path: Path) -> None:
    """Keep the first half of the file's bytes."""
    cut(path)


def _edit(path: Path, column: str, change: Callable[[int, Any], Any]) -> None:
    table = _read(path)
    place = table.schema.get_field_index(column)
    field = table.schema.field(place)
    values = [change(number, value) for number, value in enumerate(table.column(place).to_pylist())]
    _write(path, table.set_column(place, field, pa.array(values, field.type)))


def _as_int(value: Any) -> int:
    if isinstance(value, bytes):
        return int.from_bytes(value)
    return int(value, 0) if isinstance(value, str) else int(value)


def _bytes(value: Any) -> bytes:
    return value if isinstance(value, bytes) else str(value).encode()


def _form_like(value: Any, number: int) -> Any:
    """Return a number in the form of the value that it replaces; 0x text and bytes keep their length, modulo that."""
    if isinstance(value, bytes):
        return (number % 256 ** len(value)).to_bytes(len(value))
    if isinstance(value, str) and value.startswith("0x"):
        digits = len(value) - 2
        return f"0x{number % 16**digits:0{digits}x}"
    return type(value)(number)


def _read(path: Path) -> pa.Table:
    # Without the reader of data sets, which takes columns from names of folders.
    return pq.ParquetFile(path).read()


def _write(path: Path, table: pa.Table) -> None:
    """Write a table in the compression and the type of timestamps that the file has."""
    metadata = pq.read_metadata(path)
    groups = range(metadata.num_row_groups)
    columns = [metadata.row_group(group).column(number) for group in groups for number in range(metadata.num_columns)]
    compression = columns[0].compression if columns else "snappy"
    int96 = any(column.physical_type == "INT96" for column in columns)
    pq.write_table(table, path, compression=compression, use_deprecated_int96_timestamps=int96)
