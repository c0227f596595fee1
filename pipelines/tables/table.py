"""Descriptions of raw tables, and the schemas and statements derived from them."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import polars as pl

from pipelines.rows import Kind

BIGINT: Final = "bigint"
BIGNUM: Final = "bignum"
BOOLEAN: Final = "boolean"
DATE: Final = "date"
DOUBLE: Final = "double"
BATCHES: Final = "map(varchar, bigint)"
"""Cycles by tenant."""
INTEGER: Final = "integer"
PRICE: Final = "decimal(38,18)"
"""A price, exact: 20 digits before the point and 18 behind it."""
TEXTS: Final = "varchar[]"
TIMESTAMP: Final = "timestamp"
VARCHAR: Final = "varchar"

# Integers of any size are decimal text in frames, which have no exact type for them.
_FRAME_TYPES: dict[str, pl.DataType] = {
    BATCHES: pl.List(pl.Struct({"key": pl.String(), "value": pl.Int64()})),
    BIGINT: pl.Int64(),
    BIGNUM: pl.String(),
    BOOLEAN: pl.Boolean(),
    DATE: pl.Date(),
    DOUBLE: pl.Float64(),
    INTEGER: pl.Int32(),
    PRICE: pl.Decimal(38, 18),
    TEXTS: pl.List(pl.String()),
    TIMESTAMP: pl.Datetime("us"),
    VARCHAR: pl.String(),
}


@dataclass(frozen=True, slots=True)
class Column:
    """A column: its type in the warehouse and its description, with the unit.

    A column that is added to a table with rows in existing warehouses must be nullable, and the table's last.
    """

    name: str
    type: str
    description: str
    is_nullable: bool = False


def optional(name: str, type_: str, description: str) -> Column:
    """A column that may be null."""
    return Column(name, type_, description, is_nullable=True)


class Table:
    """A raw table; times are UTC, addresses and hashes lower-case 0x text, amounts integers in base units."""

    def __init__(self, name: str, description: str, grain: str, *columns: Column) -> None:
        """Describe a table.

        Args:
            name: in the schema `raw`.
            description: meaning of its rows, a sentence or two.
            grain: what one row is.
            columns: in their order.
        """
        self.name = name
        self.description = description
        self.grain = grain
        self.columns = columns

    def schema(self, *names: str) -> pl.Schema:
        """Return the schema of a frame of the named columns, in that order; without names, of all columns."""
        types = {column.name: _FRAME_TYPES[column.type] for column in self.columns}
        return pl.Schema({name: types[name] for name in names or types})

    def schema_without(self, *names: str) -> pl.Schema:
        """Return the schema of a frame of the other columns, in the table's order."""
        return self.schema(*(column.name for column in self.columns if column.name not in names))

    def definition(self) -> str:
        """Return the statement that creates the table if it does not exist."""
        columns = ", ".join(
            f"{column.name} {column.type}{'' if column.is_nullable else ' not null'}" for column in self.columns
        )
        return f"create table if not exists raw.{self.name} ({columns})"


class RowTable(Table):
    """A raw table of a family's rows, in the source's form; it has block_number and block_hash.

    Attributes:
        kinds: segments that fill it.
        key: columns that identify a row in its network.
        parties: columns that name the parties of the row's movement; null where there is no party.
        token: the column that names the token; None: rows are of the network's own asset.
        known: the column with an amount that is too low in incomplete rows; None: every row is complete.
    """

    def __init__(
        self,
        name: str,
        description: str,
        grain: str,
        *columns: Column,
        kinds: frozenset[Kind],
        key: tuple[str, ...],
        parties: tuple[str, ...],
        token: str | None = None,
        known: str | None = None,
    ) -> None:
        """Describe a table; arguments as the attributes, and those of Table."""
        super().__init__(name, description, grain, *columns)
        self.kinds = kinds
        self.key = key
        self.parties = parties
        self.token = token
        self.known = known

    @property
    def row_schema(self) -> pl.Schema:
        """Return the schema of a frame of rows as a family returns them."""
        return self.schema_without("network", "batch_id")

    def addressed(self, kind: Kind) -> tuple[str, ...]:
        """Return the columns that contain the addresses of a segment of that kind."""
        if kind != "token":
            return self.parties
        return () if self.token is None else (self.token,)

    def named(self, key: Sequence[object]) -> str:
        """Return a row's key in words, such as `the row of block 7, log index 3`."""
        named = (
            f"{name.removesuffix('_number').replace('_', ' ')} {value}"
            for name, value in zip(self.key, key, strict=True)
        )
        return f"the row of {', '.join(named)}"


@dataclass(frozen=True, slots=True)
class Source:
    """Tables that dbt knows as one source; its views are defined in `raw/sql`."""

    name: str
    description: str
    tables: tuple[Table, ...]
    views: tuple[Table, ...] = ()
