"""Columns of files as the queries of their form know them, after checks of limits and types."""

from collections.abc import Mapping, Sequence

from control.networks.data_sets import DataSet
from pipelines.data_sets.errors import FileRefused
from pipelines.data_sets.listing import Unit
from pipelines.data_sets.reader import Reader, identifier
from pipelines.extract.data_sets import ColumnKind, FileColumn, FileTable
from warehouse.opening import literal

# Limits of the files of a unit. A day of Ethereum's logs has some 300 MB, 1 GB unpacked, and some million rows.
_MOST_BYTES = 64 * 2**30
_MOST_UNPACKED_BYTES = 512 * 2**30
_MOST_ROWS = 2_000_000_000
_MOST_COLUMNS = 200
# Texts that are longer are malformed; they are cut, so that they take no space.
_LONGEST_BYTES = 67
_LONGEST_AMOUNT = 79
_LONGEST_TEXT = 200

_NUMBERS = ("TINYINT", "SMALLINT", "INTEGER", "BIGINT", "UTINYINT", "USMALLINT", "UINTEGER", "UBIGINT", "HUGEINT")
_FLOATING = ("FLOAT", "DOUBLE")
# Types of columns in queries.
_TYPES = {
    ColumnKind.NUMBER: "bigint",
    ColumnKind.BYTES: "varchar",
    ColumnKind.BYTES_LIST: "varchar[]",
    ColumnKind.AMOUNT: "varchar",
    ColumnKind.TIME: "timestamp",
    ColumnKind.TEXT: "varchar",
    ColumnKind.TRUTH: "boolean",
    ColumnKind.ABSENT: "varchar",
}


def relation(reader: Reader, table: FileTable, unit: Unit, main: str) -> str:
    """Return a query of a kind of files with the columns that the form names, after checks of limits and types."""
    is_parquet = unit.data_set.files.endswith(".parquet")
    found = unit.paths_of(table.name, main)
    sizes = reader.run("select filename, size from read_blob(?) order by filename", [found]).fetchall()
    byte_count = sum(size for _, size in sizes)
    reader.allow_for(byte_count)
    if byte_count > _MOST_BYTES:
        raise FileRefused(f"it has more than {_MOST_BYTES:,} bytes; cut it into smaller files")
    # A CSV file without rows may be empty, without names of columns.
    paths = [literal(path) for path, size in sizes if is_parquet or size]
    if not paths:
        empty = (f"null::{_TYPES[column.kind]} as {name}" for name, column in table.columns.items())
        return f"select {', '.join(empty)} where false"
    if is_parquet:
        _check_footers(reader, ", ".join(paths))
    # Of several files, the first one gives the types, and the others are converted to them without a word.
    described = [_types_of(reader, _files([path], is_parquet=is_parquet)) for path in paths]
    types = described[0]
    if any(other != types for other in described):
        raise FileRefused("its files have different columns or types")
    columns = [
        f"{_expression(name, column, unit.data_set, table, types)} as {name}" for name, column in table.columns.items()
    ]
    return f"select {', '.join(columns)} from {_files(paths, is_parquet=is_parquet)}"


def _files(paths: Sequence[str], *, is_parquet: bool) -> str:
    """Return the relation of files as they are, without columns from the names of their folders."""
    listed = ", ".join(paths)
    if is_parquet:
        return f"read_parquet([{listed}], hive_partitioning = false)"
    return f"read_csv([{listed}], header = true, all_varchar = true, delim = ',', hive_partitioning = false)"


def _types_of(reader: Reader, files: str) -> dict[str, str]:
    types = {row[0]: row[1] for row in reader.run(f"describe from {files}").fetchall()}
    if len(types) > _MOST_COLUMNS:
        raise FileRefused(f"it has {len(types)} columns, more than {_MOST_COLUMNS}")
    return types


def _check_footers(reader: Reader, paths: str) -> None:
    rows, columns, unpacked = reader.run(
        f"""
        select
            (select sum(num_rows) from parquet_file_metadata([{paths}])),
            count(distinct path_in_schema),
            sum(total_uncompressed_size)
        from parquet_metadata([{paths}])
        """
    ).fetchone() or (0, 0, 0)
    if (rows or 0) > _MOST_ROWS:
        raise FileRefused(f"it has {rows:,} rows, more than {_MOST_ROWS:,}; cut it into smaller files")
    if columns > _MOST_COLUMNS:
        raise FileRefused(f"it has {columns} columns, more than {_MOST_COLUMNS}")
    if (unpacked or 0) > _MOST_UNPACKED_BYTES:
        raise FileRefused(f"it has {unpacked:,} bytes unpacked, more than {_MOST_UNPACKED_BYTES:,}")


def _expression(name: str, column: FileColumn, data_set: DataSet, table: FileTable, types: Mapping[str, str]) -> str:
    """Return the expression of a column as queries of the form know it.

    Raises:
        FileRefused: the files lack the column, or it has another type.
    """
    if column.kind is ColumnKind.ABSENT:
        return "null"
    names = column.names or (name,)
    if own := data_set.columns.get(names[0]):
        names = (own,)
    found = next((one for one in names if one in types), None)
    if found is None:
        for refused, reason in table.refused.items():
            if refused in types:
                raise FileRefused(reason)
        raise FileRefused(f"it lacks the column {names[0]}")
    text = _converted(column.kind, identifier(found), types[found])
    if text is None:
        if types[found] in _FLOATING:
            raise FileRefused(f"its column {found} is {types[found]}: a floating-point number is not exact")
        raise FileRefused(f"its column {found} has the type {types[found]}, which is not {column.kind}")
    return text


def _converted(kind: ColumnKind, column: str, type_: str) -> str | None:
    """Return the expression that converts a column of a type; None where the type does not fit."""
    is_text, is_whole = type_ == "VARCHAR", type_ in _NUMBERS
    match kind:
        case ColumnKind.NUMBER:
            return f"{column}::bigint" if is_text or is_whole else None
        case ColumnKind.BYTES:
            if type_ == "BLOB":
                return f"left('0x' || lower(hex({column})), {_LONGEST_BYTES})"
            return f"lower(left({column}, {_LONGEST_BYTES}))" if is_text else None
        case ColumnKind.BYTES_LIST:
            if is_text:
                return f"string_split({column}, ',')"
            if type_ == "BLOB[]":
                return f"list_transform({column}, lambda one: '0x' || hex(one))"
            return column if type_ == "VARCHAR[]" else None
        case ColumnKind.AMOUNT:
            if type_ == "BLOB":
                return f"left('0x' || lower(hex({column})), {_LONGEST_BYTES})"
            is_decimal = type_.startswith("DECIMAL(") and type_.endswith(",0)")
            if is_text:
                return f"lower(left({column}, {_LONGEST_AMOUNT}))"
            return f"{column}::varchar" if is_whole or is_decimal or type_ == "UHUGEINT" else None
        case ColumnKind.TIME:
            if type_.startswith("TIMESTAMP"):
                return f"{column}::timestamp"
            seconds = f"make_timestamp(try_cast({column} as bigint) * 1000000)"
            if is_text:
                return f"coalesce({seconds}, {column}::timestamp)"
            return seconds if is_whole else None
        case ColumnKind.TRUTH:
            return column if type_ == "BOOLEAN" else None
        case ColumnKind.TEXT:
            return f"left({column}, {_LONGEST_TEXT})" if is_text else None
        case _:
            return None
