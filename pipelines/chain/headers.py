"""Stored headers."""

from collections.abc import Iterable, Sequence

import duckdb
import polars as pl

from pipelines.raw.frames import registered

# Headers of the unfinalised tail that are stored at most, its newest ones: more than any reorganisation goes back.
MOST_TAIL_BLOCKS = 10_000


def insert_blocks(
    connection: duckdb.DuckDBPyConnection,
    network: str,
    headers: pl.DataFrame,
    batch_id: int,
    *,
    is_tail: bool = False,
) -> None:
    """Add headers (columns of `Node.headers`) that are not stored yet; those of the tail do not depend on tracking."""
    with registered(connection, headers=headers):
        connection.execute(
            """
            insert into raw.blocks
            select ?, headers.block_number, headers.block_hash, headers.parent_hash, headers.block_time, ?, ?
            from headers
            where not exists (
                select 1 from raw.blocks
                where blocks.network = ? and blocks.block_number = headers.block_number
            )
            """,
            [network, batch_id, is_tail, network],
        )


def missing_headers(connection: duckdb.DuckDBPyConnection, network: str, numbers: Iterable[int]) -> list[int]:
    """Return the given block numbers without a stored header, in order."""
    wanted = pl.DataFrame({"block_number": sorted(set(numbers))}, schema={"block_number": pl.Int64})
    with registered(connection, wanted=wanted):
        rows = connection.execute(
            """
            select wanted.block_number
            from wanted
            anti join (select block_number from raw.blocks where network = ?) as blocks
                on wanted.block_number = blocks.block_number
            order by wanted.block_number
            """,
            [network],
        ).fetchall()
    return [number for (number,) in rows]


def hashes_of(connection: duckdb.DuckDBPyConnection, network: str, numbers: Sequence[int]) -> dict[int, str]:
    """Return the hashes of those blocks that have a stored header."""
    return dict(
        connection.execute(
            "select block_number, block_hash from raw.blocks where network = ? and list_contains(?, block_number)",
            [network, list(numbers)],
        ).fetchall()
    )
