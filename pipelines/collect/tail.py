"""The unfinalised tail: its headers, linked by parent hash, and its repair after a reorganisation."""

import duckdb

from pipelines.extract.errors import ChainReorganised, ExtractError
from pipelines.extract.evm.blocks import Header, read_headers
from pipelines.extract.evm.rpc import RpcClient
from pipelines.load.chain import insert_blocks, remove_orphaned


class StaleHead(ExtractError):
    """The node's head is behind what was collected from it, on the same chain or far back: the node is unhealthy."""


class FinalBlockChanged(ExtractError):
    """A block that was final has another hash now. Never repaired without a person: one of the answers was wrong."""


def repair_tail(
    connection: duckdb.DuckDBPyConnection,
    client: RpcClient,
    network: str,
    head: Header,
    finality_depth: int,
    batch_id: int,
) -> int | None:
    """Compare the stored tail with the node and remove what is orphaned; return the common ancestor when there was.

    One header settles the usual case: stored blocks are linked by parent hash, so when the newest is canonical, all
    before it are.

    Raises:
        StaleHead: the node has not got what it had, or is further back than a reorganisation goes.
        FinalBlockChanged: no stored block of the tail is canonical.
    """
    stored = connection.execute(
        """
        select block_number, block_hash
        from raw.blocks
        where
            network = $network
            and block_number >= (
                select coalesce(max(final_number), -1) from raw.network_states where network = $network
            )
        order by block_number desc
        """,
        {"network": network},
    ).fetchall()
    if not stored:
        return None
    newest_number, newest_hash = stored[0]
    if head.number < newest_number - finality_depth:
        raise StaleHead(
            network,
            "eth_getBlockByNumber",
            head.number,
            newest_number,
            "the node's head is far behind what was collected",
        )
    known = dict(stored)
    if head.number < newest_number and known.get(head.number, head.hash) == head.hash:
        raise StaleHead(
            network, "eth_getBlockByNumber", head.number, newest_number, "the node's head is behind what was collected"
        )
    if head.number >= newest_number:
        (current,) = read_headers(client, [newest_number])["block_hash"]
        if current == newest_hash:
            return None
    comparable = [number for number in known if number <= head.number]
    canonical = dict(read_headers(client, sorted(comparable)).select("block_number", "block_hash").iter_rows())
    ancestor = max((number for number in comparable if canonical[number] == known[number]), default=None)
    if ancestor is None:
        raise FinalBlockChanged(
            network,
            "eth_getBlockByNumber",
            min(known),
            newest_number,
            "no stored block of the tail is on the node's chain",
        )
    orphaned = min(number for number in known if number > ancestor)
    remove_orphaned(connection, network, ancestor, known[orphaned], canonical.get(orphaned, head.hash), batch_id)
    return int(ancestor)


def _moved(network: str, number: int) -> ChainReorganised:
    return ChainReorganised(
        network, "eth_getBlockByNumber", number, number, "the chain moved while it was read", block_number=number
    )


def extend_tail(
    connection: duckdb.DuckDBPyConnection,
    client: RpcClient,
    network: str,
    head: Header,
    final_number: int,
    batch_id: int,
) -> int:
    """Store the headers after the newest stored one, or after the final block, up to the head; return how many.

    Raises:
        ChainReorganised: the headers do not join the stored ones, or do not end in the head; nothing is written.
    """
    row = connection.execute(
        "select block_number, block_hash from raw.blocks where network = ? order by block_number desc limit 1",
        [network],
    ).fetchone()
    newest_number, newest_hash = row or (-1, None)
    first = max(newest_number + 1, min(final_number + 1, head.number))
    if first > head.number:
        return 0
    headers = read_headers(client, range(first, head.number + 1))
    if row and first == newest_number + 1 and headers["parent_hash"][0] != newest_hash:
        raise _moved(network, first)
    if headers["block_hash"][-1] != head.hash:
        raise _moved(network, head.number)
    insert_blocks(connection, network, headers, batch_id, is_tail=True)
    return headers.height
