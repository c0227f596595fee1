"""Damage of the warehouse's files: how DuckDB's errors show it, and which tables it reaches."""

import re
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import duckdb
import numpy as np

from warehouse.opening import connect

# Parts of DuckDB's messages that mean a damaged file.
_SIGNS = re.compile(
    r"not a valid DuckDB database file|Could not read enough bytes|Corrupt (?:database|WAL) file|"
    r"computed checksum \d+ does not match"
)

# A DuckDB file is three headers, then blocks; each block begins with the checksum of the rest.
_HEADERS_BYTES = 3 * 4096
_CHECKSUM_SEED = np.uint64(5381)
_CHECKSUM_FACTOR = np.uint64(0xBF58476D1CE4E5B9)


class DamagedFileError(Exception):
    """A file of the data folder is lost or damaged; the message names it, the cause and the fix."""


def is_damage(words: str) -> bool:
    """Tell whether an error's message says that a DuckDB file is damaged."""
    return _SIGNS.search(words) is not None


@contextmanager
def damage_named(path: Path, fix: str) -> Iterator[None]:
    """Raise errors of DuckDB that show damage under the file's name.

    Raises:
        DamagedFileError: the file is damaged.
    """
    try:
        yield
    except duckdb.Error as error:
        if not is_damage(str(error)):
            raise
        raise DamagedFileError(f"{path} is damaged ({reason(error)}); {fix}") from error


def reason(error: duckdb.Error | OSError) -> str:
    """Return the first line of an error without its kind."""
    return str(error).partition("\n")[0].removeprefix("IO Error: ").rstrip("!")


def check_length(connection: duckdb.DuckDBPyConnection, path: Path) -> None:
    """Check that a file that was just opened is long enough for the blocks in use.

    Raises:
        duckdb.IOException: it was cut off.
    """
    row = connection.execute(
        "select block_size * used_blocks from pragma_database_size() where database_name = current_database()"
    ).fetchone()
    assert row is not None
    if path.stat().st_size < row[0]:
        raise duckdb.IOException(f"Corrupt database file: {row[0]} bytes are in use, and only some are there")


def damaged_tables(path: Path) -> list[str]:
    """Read all rows of a file; return the tables that cannot be read, such as `raw.blocks`.

    Raises:
        duckdb.Error: the file cannot be opened.
    """
    found = []
    with closing(connect(path, read_only=True)) as connection:
        names = connection.execute(
            "select schema_name, table_name from duckdb_tables() where database_name = current_database() order by all"
        ).fetchall()
        for schema, table in names:
            try:
                query = f'select bit_xor(hash(whole_row)) from "{schema}"."{table}" as whole_row'  # nosec B608 # our names
                connection.execute(query).fetchall()
            except duckdb.Error as error:
                if not is_damage(str(error)):
                    raise
                found.append(f"{schema}.{table}")
    return found


def unreadable_parts(path: Path) -> list[str]:
    """Check a whole file: compare the checksum of every block, and find the tables of those that do not match.

    A checksum takes a fortieth of the time of reading the rows. Blocks that no table uses are free: their content
    does not matter.

    Raises:
        duckdb.Error: the file cannot be opened.
    """
    with closing(connect(path, read_only=True)) as connection:
        check_length(connection, path)
        row = connection.execute(
            "select block_size from pragma_database_size() where database_name = current_database()"
        ).fetchone()
    assert row is not None
    return damaged_tables(path) if _has_damaged_block(path, row[0]) else []


def _has_damaged_block(path: Path, block_bytes: int) -> bool:
    with path.open("rb") as file:
        file.seek(_HEADERS_BYTES)
        while len(block := file.read(block_bytes)) == block_bytes:
            words = np.frombuffer(block, "<u8")
            if words[0] != _CHECKSUM_SEED ^ np.bitwise_xor.reduce(words[1:] * _CHECKSUM_FACTOR):
                return True
    return False
