"""The times of stored headers against each other, and against those that are to be stored."""

from datetime import datetime

import duckdb
import polars as pl

from pipelines.load.frames import registered
from pipelines.load.warehouse import sql, transaction

Conflict = tuple[int, datetime, int, datetime]


def first_conflict(connection: duckdb.DuckDBPyConnection, network: str, headers: pl.DataFrame) -> Conflict | None:
    """The first block, among new headers and the stored ones around them, that is dated before the one before it.

    Returns:
        Its number and time, and those of the one before it; None where all are in order.
    """
    with registered(connection, headers=headers):
        row = connection.execute(sql("conflicting_times"), {"network": network}).fetchone()
    return row


def suspected_blocks(connection: duckdb.DuckDBPyConnection, network: str, latest: datetime) -> list[int]:
    """Stored blocks dated after `latest` and, as long as the network is not checked, others that may be false.

    Those are blocks that are not in order, and the tail that is not final.
    """
    row = connection.execute(
        """
        select
            exists (select 1 from raw.checked_times where network = $network),
            coalesce(max(block_time) > $latest, false)
        from raw.blocks
        where network = $network
        """,
        {"network": network, "latest": latest},
    ).fetchone()
    if row == (True, False):
        return []
    rows = connection.execute(sql("suspected_times"), {"network": network, "latest": latest}).fetchall()
    return [number for (number,) in rows]


def note_checked(connection: duckdb.DuckDBPyConnection, network: str) -> None:
    """Record that the network's stored headers are in order."""
    with transaction(connection):
        note_contradicted(connection, network)
        connection.execute("insert into raw.checked_times values (?)", [network])


def note_contradicted(connection: duckdb.DuckDBPyConnection, network: str) -> None:
    """Record that the network's stored headers are to be checked again."""
    connection.execute("delete from raw.checked_times where network = ?", [network])
