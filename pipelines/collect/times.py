"""Block times: what is stored is in order, and false times that were stored are found and read again."""

import duckdb
import polars as pl

from control.clock import utc_now
from pipelines.extract.errors import FalseBlockTime
from pipelines.extract.family import Header, Node
from pipelines.extract.headers import MOST_AHEAD, dated_before
from pipelines.load.chain import insert_blocks, remove_orphaned
from pipelines.load.times import first_conflict, note_checked, note_contradicted, suspected_blocks

# Headers that are read again together.
_STEP = 1_000


def store_headers(
    connection: duckdb.DuckDBPyConnection, node: Node, headers: pl.DataFrame, batch_id: int, *, is_tail: bool = False
) -> None:
    """Add headers (columns of `Node.headers`) that are not stored yet and whose times fit those that are.

    Raises:
        FalseBlockTime: one is dated before a stored one that comes before it, or the other way round; the next cycle
            reads the stored ones again.
    """
    network = node.network.name
    conflict = first_conflict(connection, network, headers)
    if conflict is not None:
        note_contradicted(connection, network)
        number = conflict[0]
        raise FalseBlockTime(network, node.header_call, number, number, dated_before(*conflict))
    insert_blocks(connection, network, headers, batch_id, is_tail=is_tail)


def repair_times(connection: duckdb.DuckDBPyConnection, node: Node, head: Header, batch_id: int) -> int | None:
    """Read again the stored headers whose times cannot be, and remove what rests on false ones.

    All of them are held against each other once, and again when a later block contradicts one: times of the tail may
    be false though they were in order. Otherwise only this machine's clock can have been wrong.

    Returns:
        The block after which all was removed, to be collected again; None where no time was false.

    Raises:
        FalseBlockTime: the node says the same false times again, or others before what stays; nothing is removed.
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
