"""The node's head, the unfinalised tail (headers linked by parent hash), and its repair after a reorganisation."""

from collections.abc import Collection
from datetime import UTC

import duckdb

from pipelines.collect.times import store_headers
from pipelines.extract.errors import ChainReorganised, ExtractError
from pipelines.extract.family import Header, Node
from pipelines.load.chain import MOST_TAIL_BLOCKS, remove_orphaned

# Where a network's block time is not defined: no network makes more blocks.
_MOST_PER_SECOND = 100
# A defined block time may be so many times too long: networks become faster before their definition follows.
_TOLERANCE = 4
# Blocks that need no time: timestamps are whole seconds, and blocks come in bursts.
_BURST = 1_000
# Stored headers that are compared with the node in one step back.
_STEP = 1_000


class StaleHead(ExtractError):
    """The node's head is behind what was collected from it, on the same chain or far back: the node is unhealthy."""


class ImplausibleHead(ExtractError):
    """The node's head is further ahead than the network can have come since the newest stored block."""


class FinalBlockChanged(ExtractError):
    """A block that was final has another hash now. Never repaired without a person: one of the answers was wrong."""


def check_head(connection: duckdb.DuckDBPyConnection, node: Node, head: Header) -> None:
    """Refuse a head that is further ahead than the time since the newest stored block, or any genesis, allows.

    Raises:
        ImplausibleHead: it is; names the definition's field that says how fast the network may be.
    """
    network = node.network
    row = connection.execute(
        "select block_number, block_time from raw.blocks where network = ? order by block_number desc limit 1",
        [network.name],
    ).fetchone()
    number, time = (row[0], row[1].replace(tzinfo=UTC)) if row else (0, node.oldest_genesis)
    seconds = max(int((head.time - time).total_seconds()), 0)
    if network.block_milliseconds is None:
        newest = number + _BURST + seconds * _MOST_PER_SECOND
    else:
        newest = number + _BURST + seconds * 1_000 * _TOLERANCE // network.block_milliseconds
    if head.number > newest:
        known = f"block {number}, the newest stored one" if row else "the oldest possible genesis block"
        raise ImplausibleHead(
            network.name,
            node.header_call,
            head.number,
            head.number,
            f"the node's head is implausible: {seconds} s after {known}, the newest possible block is {newest}; if the "
            "chain is faster, correct block_milliseconds in the network's definition",
        )


def repair_tail(connection: duckdb.DuckDBPyConnection, node: Node, head: Header, batch_id: int) -> int | None:
    """Compare the stored tail with the node and remove what is orphaned; return the common ancestor when there was.

    One or two headers settle the usual case: stored blocks of the tail are linked by parent hash, so when the newest is
    canonical, all before it are. History stores headers as well, which may lie ahead of a tail that is orphaned.

    Raises:
        StaleHead: the node has not got what it had, or is further back than a reorganisation goes.
        FinalBlockChanged: no stored block of the tail is canonical.
    """
    network = node.network.name
    stored = _Stored(connection, network)
    if stored.newest is None:
        return None
    newest_number, _ = stored.newest
    if head.number < newest_number - node.network.finality_depth:
        raise StaleHead(
            network,
            node.header_call,
            head.number,
            newest_number,
            "the node's head is far behind the newest collected block",
        )
    if head.number < newest_number and stored.hashes(head.number, head.number).get(head.number, head.hash) == head.hash:
        raise StaleHead(
            network,
            node.header_call,
            head.number,
            newest_number,
            "the node's head is behind the newest collected block",
        )
    if head.number >= newest_number:
        newest = dict((stored.newest, stored.newest_linked or stored.newest))
        if _canonical(node, newest) == newest:
            return None
    last = head.number
    while known := stored.hashes(0, last):
        canonical = _canonical(node, known)
        orphans = [number for number in known if canonical[number] != known[number]]
        first_orphan = min(orphans, default=last + 1)
        ancestor = max((number for number in known if number < first_orphan), default=None)
        if ancestor is not None:
            orphaned, orphaned_hash = stored.first_after(ancestor)
            (canonical_hash,) = node.headers([orphaned])["block_hash"] if orphaned <= head.number else (head.hash,)
            remove_orphaned(connection, network, ancestor, orphaned_hash, canonical_hash, batch_id)
            return int(ancestor)
        last = min(known) - 1
    raise FinalBlockChanged(
        network,
        node.header_call,
        last + 1,
        newest_number,
        "no stored block of the tail is on the node's chain",
    )


def _canonical(node: Node, numbers: Collection[int]) -> dict[int, str]:
    return dict(node.headers(sorted(numbers)).select("block_number", "block_hash").iter_rows())


class _Stored:
    """The stored headers of a network from its final block on."""

    def __init__(self, connection: duckdb.DuckDBPyConnection, network: str) -> None:
        self._connection = connection
        self._network = network
        self.newest = next(iter(self._rows("true", "block_number desc limit 1")), None)
        self.newest_linked = next(iter(self._rows("is_tail is distinct from false", "block_number desc limit 1")), None)

    def _rows(self, condition: str, order: str, **parameters: int) -> list[tuple[int, str]]:
        return self._connection.execute(
            f"""
            select block_number, block_hash
            from raw.blocks
            where
                network = $network
                and block_number >= (
                    select coalesce(max(final_number), -1) from raw.network_states where network = $network
                )
                and {condition}
            order by {order}
            """,
            {"network": self._network, **parameters},
        ).fetchall()

    def hashes(self, first: int, last: int) -> dict[int, str]:
        """The newest ones of a range of numbers, some of them, with their hashes."""
        condition = "block_number between $first and $last"
        return dict(self._rows(condition, f"block_number desc limit {_STEP}", first=first, last=last))

    def first_after(self, number: int) -> tuple[int, str]:
        """The first one after a number."""
        return self._rows("block_number > $number", "block_number limit 1", number=number)[0]


def _moved(node: Node, number: int) -> ChainReorganised:
    detail = "the chain moved while it was read"
    return ChainReorganised(node.network.name, node.header_call, number, number, detail, block_number=number)


def extend_tail(
    connection: duckdb.DuckDBPyConnection, node: Node, head: Header, final_number: int, batch_id: int
) -> int:
    """Store the headers after the newest stored one, or after the final block, up to the head; return how many.

    Of a longer tail, only its newest part: a chain that is not final for days, or a node that says so, costs no more.

    Raises:
        ChainReorganised: the headers do not join the stored ones, or do not end in the head; nothing is written.
    """
    # History stores headers too, where its ranges end: one may lie behind blocks that a killed cycle did not store.
    row = connection.execute(
        """
        select block_number, block_hash from raw.blocks
        where network = ? and is_tail is distinct from false
        order by block_number desc
        limit 1
        """,
        [node.network.name],
    ).fetchone()
    newest_number, newest_hash = row or (-1, None)
    first = max(newest_number + 1, min(final_number + 1, head.number), head.number - MOST_TAIL_BLOCKS + 1)
    if first > head.number:
        return 0
    headers = node.headers(range(first, head.number + 1))
    if row and first == newest_number + 1 and headers["parent_hash"][0] != newest_hash:
        raise _moved(node, first)
    if headers["block_hash"][-1] != head.hash:
        raise _moved(node, head.number)
    stored = dict(
        connection.execute(
            "select block_number, block_hash from raw.blocks where network = ? and block_number between ? and ?",
            [node.network.name, first, head.number],
        ).fetchall()
    )
    for number, block_hash in headers.select("block_number", "block_hash").iter_rows():
        if stored.get(number, block_hash) != block_hash:
            raise _moved(node, number)
    if final_number < newest_number < first - 1:
        # What lies between was not read: nothing else shows that the two parts are of one chain.
        (current,) = node.headers([newest_number])["block_hash"]
        if current != newest_hash:
            raise _moved(node, newest_number)
    store_headers(connection, node, headers, batch_id, is_tail=True)
    return headers.height
