"""Exact frames of the published marts, for notebooks and scripts.

    with ledgermart.open("data/serving/current.duckdb") as marts:
        holders = marts.pandas("select * from marts.cap_tables where tenant_id = ?", ["ten_..."])
        holders["quantity"].sum()  # exact

This one file needs `duckdb`, `pyarrow`, and `pandas` or `polars`; it may be copied into an environment of your own.
"""

import os
from collections.abc import Sequence
from decimal import Decimal, InvalidOperation
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

import duckdb
import pyarrow as pa

if TYPE_CHECKING:
    import pandas as pd
    import polars as pl

__all__ = ["InexactError", "Marts", "open"]

# Arrow's sums do not notice an overflow. The sum of ten billion numbers with 64 digits has none.
_ARROW_DIGITS = 64
_POLARS_DIGITS = 38
# A view of the file runs with the rights of its reader: it could read other files and addresses, and load extensions.
_LOCKED: dict[str, Any] = {
    "enable_external_access": "false",
    "autoinstall_known_extensions": "false",
    "autoload_known_extensions": "false",
    "lock_configuration": "true",
}


class InexactError(ValueError):
    """The decimals of a column cannot be held exactly; the message says what to select instead."""


class Marts:
    """A published file, read-only: the version that was in force when it was opened.

    Args:
        path: the file.
        external: let queries and views reach other files and addresses.
    """

    def __init__(self, path: Path | str, *, external: bool = False) -> None:
        self._connection = duckdb.connect(str(path), read_only=True, config={} if external else _LOCKED)
        # Texts that the file describes as decimals. They are texts, because they may have any number of digits.
        self._decimal_texts = {
            name
            for (name,) in self._connection.execute(
                "select distinct column_name from duckdb_columns() where comment like '%exact decimal text%'"
            ).fetchall()
        }

    def pandas(self, query: str, parameters: Sequence[Any] = ()) -> "pd.DataFrame":
        """Return the rows of a query as a pandas frame.

        Args:
            query: one SELECT statement; `?` stands for a parameter.
            parameters: the values of the parameters, in their order.

        Returns:
            Columns of Arrow's types. Decimals, and texts that the marts describe as decimals, such as `quantity`, are
            decimals. A BIGNUM, such as `quantity_raw`, is an integer of Python.

        Raises:
            InexactError: a decimal has more than 64 digits, or a text is none.
        """
        import pandas as pd

        table, integers = self._read(query, parameters, _ARROW_DIGITS)
        frame = table.to_pandas(types_mapper=pd.ArrowDtype)
        for name in integers:
            values = [None if text is None else int(text) for text in table.column(name).to_pylist()]
            frame[name] = pd.Series(values, index=frame.index, dtype=object)
        return frame

    def polars(self, query: str, parameters: Sequence[Any] = ()) -> "pl.DataFrame":
        """Return the rows of a query as a polars frame; arguments as of `pandas`.

        Returns:
            Columns of polars' types. Decimals, texts that the marts describe as decimals, and BIGNUMs are decimals. A
            sum of more than 38 digits is an error of polars.

        Raises:
            InexactError: a number has more than 38 digits, or a text is none.
        """
        import polars as pl

        table, integers = self._read(query, parameters, _POLARS_DIGITS)
        for name in integers:
            place = table.column_names.index(name)
            table = table.set_column(place, name, _decimals(name, table.column(name), _POLARS_DIGITS))
        return pl.DataFrame(table)

    def close(self) -> None:
        """Close the file."""
        self._connection.close()

    def _read(self, query: str, parameters: Sequence[Any], digits: int) -> tuple[pa.Table, list[str]]:
        """Return the rows with decimals of at most these digits, and the names of BIGNUM columns, which are texts."""
        rows = self._connection.sql(query, params=list(parameters))
        types = dict(zip(rows.columns, map(str, rows.types), strict=True))
        if len(types) < len(rows.columns):
            raise ValueError("two columns of the query have the same name; name one of them with `as`")
        integers = [name for name, kind in types.items() if kind == "BIGNUM"]
        quoted = {name: '"' + name.replace('"', '""') + '"' for name in types}
        selected = (f"{text}::varchar as {text}" if name in integers else text for name, text in quoted.items())
        table = rows.project(", ".join(selected)).to_arrow_table()
        for place, (name, kind) in enumerate(types.items()):
            if kind.startswith("DECIMAL") or (kind == "VARCHAR" and name in self._decimal_texts):
                table = table.set_column(place, name, _decimals(name, table.column(name), digits))
        return table, integers

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()


def open(path: Path | str | None = None, *, external: bool = False) -> Marts:
    """Open a published file, by default so that its views and your queries reach nothing else.

    Args:
        path: by default `serving/current.duckdb` in the folder that LEDGERMART_DATA_DIR names, else in `data`.
        external: let queries join other files, and load extensions. Use it only for a file of your own service: a view
            of any other file can then read your files and call addresses.

    Raises:
        duckdb.IOException: there is no such file, or it cannot be read.
        duckdb.ConnectionException: this process has the file open with other settings; close that connection first.
    """
    default = Path(os.environ.get("LEDGERMART_DATA_DIR") or "data") / "serving" / "current.duckdb"
    return Marts(path or default, external=external)


def _decimals(name: str, column: pa.ChunkedArray, digits: int) -> pa.Array:
    """Return texts or decimals as decimals with as many places as the longest has."""
    remedy = f"select it under another name as text: {name}::varchar as {name}_text"
    try:
        values = [None if value is None else Decimal(value) for value in column.to_pylist()]
        places = max((-int(value.as_tuple().exponent) for value in values if value is not None), default=0)
    except (InvalidOperation, ValueError) as error:
        raise InexactError(f"{name} has texts that are no decimals; {remedy}") from error
    to_type = pa.decimal256 if digits > _POLARS_DIGITS else pa.decimal128
    try:
        if places <= digits:
            return pa.array(values, type=to_type(digits, places))
    except pa.ArrowInvalid:
        pass
    raise InexactError(f"{name} has numbers of more than {digits} digits; {remedy}")
