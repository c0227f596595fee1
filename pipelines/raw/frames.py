"""Conversion of records to frames, with columns named like their attributes."""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from datetime import datetime
from decimal import Decimal
from typing import Any

import duckdb
import polars as pl

from pipelines.tables.table import Table


def to_frame(records: Iterable[object], schema: pl.Schema) -> pl.DataFrame:
    """Return one row per record: aware instants (UTC) without their zone, and decimal text as numbers."""
    columns = list(schema.items())
    rows = [tuple(_stored(getattr(record, name), type_) for name, type_ in columns) for record in records]
    return pl.DataFrame(rows, schema=schema, orient="row")


def _stored(value: Any, type_: pl.DataType) -> Any:
    if isinstance(value, datetime):
        return value.replace(tzinfo=None)
    if isinstance(value, str) and isinstance(type_, pl.Decimal):
        return Decimal(value)
    return value


def copied(table: Table, records: Iterable[object]) -> pl.DataFrame:
    """Return the described columns of records as a frame for the table.

    Raises:
        LookupError: the records lack a described column.
    """
    try:
        return to_frame(records, table.schema())
    except AttributeError as error:
        raise LookupError(f"raw.{table.name} describes a column that the control store lacks: {error}") from error


@contextmanager
def registered(connection: duckdb.DuckDBPyConnection, **frames: pl.DataFrame) -> Iterator[None]:
    """Register the frames as views of the given names while the context lasts."""
    for name, frame in frames.items():
        connection.register(name, frame)
    try:
        yield
    finally:
        for name in frames:
            connection.unregister(name)
