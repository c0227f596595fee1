"""Forms of files with the past of a network: their columns, and how these become rows of the raw tables.

A family describes its forms with these classes. `pipelines.data_sets` reads the files.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import NamedTuple

EXPORTED = "ledgermart"
"""Name of the form with a family's raw tables themselves: of raw exports, and of lakes."""


class ColumnKind(StrEnum):
    """Content of a column, of any type in the file; in parentheses: its type in queries."""

    NUMBER = "number"
    """An integer, also as text (bigint)."""
    BYTES = "bytes"
    """Bytes, or 0x text (lower-case 0x text)."""
    BYTES_LIST = "bytes list"
    """A list of these, in CSV with commas between (list of 0x text in any case)."""
    AMOUNT = "amount"
    """An integer of up to 256 bits: decimal text, 0x text, big-endian bytes, or an integer (one of the two texts)."""
    TIME = "time"
    """An instant (timestamp, UTC): a timestamp, or seconds since 1970."""
    TEXT = "text"
    """Text as it is (varchar)."""
    TRUTH = "truth"
    """True or false (boolean)."""
    ABSENT = "absent"
    """The files do not have it; null in queries."""


class FileColumn(NamedTuple):
    """A column of a file.

    Attributes:
        kind: its content.
        names: names that it may have in files, the best one first; empty: the name by which queries know it.
    """

    kind: ColumnKind
    names: tuple[str, ...] = ()


@dataclass(frozen=True)
class FileTable:
    """A kind of files.

    Attributes:
        name: their kind, which stands for `{table}` in the names of files.
        columns: the columns that are read, by their names in queries.
        query: name of the query in the family's folder `forms` that makes rows of the relation `file`; None: the
            columns are those of the rows. Rows have the columns of the raw table and `block_time`; their amounts are
            decimal or 0x text.
        refused: columns of files that must not be read, each with the reason.
    """

    name: str
    columns: Mapping[str, FileColumn]
    query: str | None = None
    refused: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class FileForm:
    """A form of files.

    Attributes:
        rows: files of rows, by raw table; the first one says which files there are.
        checks: for each raw table, an SQL condition that each well-formed row fulfils, beside that of its block.
        block_check: the same for the hash of a block.
        blocks: files with block_number, block_hash and block_time; None: the files of rows have these.
        coverage: files that say for which addresses and blocks the others are complete (subject_kind, address,
            from_block, to_block); None: they are complete for every address.
    """

    rows: Mapping[str, FileTable]
    checks: Mapping[str, str]
    block_check: str
    blocks: FileTable | None = None
    coverage: FileTable | None = None
