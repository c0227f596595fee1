"""Block times: checks that stored times are in order, and reads false stored times again."""

from datetime import datetime

import duckdb
import polars as pl

from control.clock import utc_now
from pipelines.chain.headers import insert_blocks
from pipelines.chain.reorganisations import remove_orphaned
from pipelines.extract.errors import FalseBlockTime
from pipelines.extract.family import Header, Node
from pipelines.extract.headers import MOST_AHEAD, dated_before
from pipelines.raw.database import sql, transaction
from pipelines.raw.frames import registered

# Number of headers read again in one step.
_STEP = 1_000


def store_headers(
    connection: duckdb.DuckDBPyConnection, node: Node, headers: pl.DataFrame, batch_id: int, *, is_tail: bool = False
) -> None:
    """Add headers (columns of `Node.headers`) that are not stored yet, with times that fit the stored ones.

    Raises:
        FalseBlockTime: a header is dated before an earlier stored one, or after a later one; the next cycle reads the
            stored ones again.
    """
    network = node.network.name
    conflict = first_conflict(connection, network, headers)
    if conflict is not None:
        note_contradicted(connection, network)
        number = conflict[0]
        raise FalseBlockTime(network, node.header_call, number, number, dated_before(*conflict))
    insert_blocks(connection, network, headers, batch_id, is_tail=is_tail)


def repair_times(connection: duckdb.DuckDBPyConnection, node: Node, head: Header, batch_id: int) -> int | None:
    """Read stored headers with impossible times again, and remove everything that depends on false ones.

    All stored times are compared once, and again after a later block contradicts one of them: false times of the tail
    may have been in order before. Otherwise only this machine's clock can have been wrong.

    Returns:
        The block after which all was removed and must be collected again; None where no time was false.

    Raises:
        FalseBlockTime: the node repeats the false times, or its new ones precede remaining blocks; nothing is removed.
    """
    network = node.network.name
    latest = (utc_now() + MOST_AHEAD).replace(tzinfo=None)
    suspected = [number for number in suspected_blocks(connection, network, latest) if number <= head.number]
    for at in range(0, len(suspected), _STEP):
        headers = node.headers(suspected[at : at + _STEP])
        stored = connection.execute(
            """
            select block_number, block_hash, block_time
            from raw.blocks
            where network = ? and list_contains(?, block_number)
            """,
            [network, headers["block_number"].to_list()],
        ).pl()
        false = stored.join(headers, on=["block_number", "block_hash", "block_time"], how="anti").sort("block_number")
        if not false.is_empty():
            number, orphaned_hash, _ = false.row(0)
            _, canonical_hash, _, told = headers.row(by_predicate=pl.col("block_number") == number)
            earlier = connection.execute(
                """
                select block_number, block_time
                from raw.blocks
                where network = ? and block_number < ?
                order by block_number desc
                limit 1
                """,
                [network, number],
            ).fetchone()
            if earlier is not None and told < earlier[1]:
                raise FalseBlockTime(network, node.header_call, number, number, dated_before(number, told, *earlier))
            remove_orphaned(connection, network, number - 1, orphaned_hash, canonical_hash, batch_id)
            return int(number) - 1
    note_checked(connection, network)
    return None


Conflict = tuple[int, datetime, int, datetime]


def first_conflict(connection: duckdb.DuckDBPyConnection, network: str, headers: pl.DataFrame) -> Conflict | None:
    """Return the first of the new headers, and the stored ones around them, that is dated before its predecessor.

    Returns:
        Its number and time, and those of its predecessor; None where all are in order.
    """
    with registered(connection, headers=headers):
        row = connection.execute(sql("conflicting_times"), {"network": network}).fetchone()
    return row


def suspected_blocks(connection: duckdb.DuckDBPyConnection, network: str, latest: datetime) -> list[int]:
    """Return stored blocks dated after `latest` and, unless the network is checked, others that may be false.

    The others are blocks that are out of order, and the tail that is not final.
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
    """Record that the network's stored headers must be checked again."""
    connection.execute("delete from raw.checked_times where network = ?", [network])
