"""The node's head, the unfinalised tail (headers linked by parent hash), and its repair after a reorganisation.

The rules against false heads and false final blocks, with their reasons, are in docs/adr/0019-false-heads-end.md.
"""

from collections.abc import Collection
from datetime import UTC, datetime
from typing import NamedTuple

import duckdb

from pipelines.chain.finality import (
    Contradiction,
    KnownChain,
    read_known_chain,
    record_contradiction,
    record_genesis,
)
from pipelines.chain.headers import MOST_TAIL_BLOCKS
from pipelines.chain.reorganisations import remove_orphaned
from pipelines.chain.times import store_headers
from pipelines.extract.errors import (
    CallRefused,
    ChainReorganised,
    ExtractError,
    MalformedAnswer,
    StateUnavailable,
)
from pipelines.extract.family import Header, Node

# For networks without a defined block time: no network makes more blocks.
_MOST_PER_SECOND = 100
# A network may make blocks faster than its defined block time by this factor: definitions follow later.
_TOLERANCE = 4
# Number of blocks that may come at once: timestamps are whole seconds, and blocks come in bursts.
_BURST = 1_000
# Stored headers that are compared with the node in one step back.
_STEP = 1_000
# Consecutive cycles that must find the same other chain before blocks are removed that no reorganisation reaches.
CONFIRMING_CYCLES = 3
_GENESIS = 0
_LINKED = "(is_tail is distinct from false or block_number = $settled)"


class StaleHead(ExtractError):
    """The node's head is behind the newest stored block, on the same chain or far back: the node is unhealthy."""


class ImplausibleHead(ExtractError):
    """The node's head is further ahead than the network can have come since the newest stored block."""


class ContradictedBlocks(ExtractError):
    """The node's chain lacks more stored blocks than a reorganisation replaces; not enough cycles confirm it yet."""


class ChainReset(ExtractError):
    """Genesis or a settled block has another hash now: another chain. Only an operator resets the network."""


class _Newest(NamedTuple):
    number: int
    hash: str
    time: datetime


def _blocks_since(node: Node, since: datetime, until: datetime) -> int:
    """Return the number of blocks that the network can have made between two instants, without a burst."""
    seconds = max(int((until - since).total_seconds()), 0)
    milliseconds = node.network.block_milliseconds
    return seconds * _MOST_PER_SECOND if milliseconds is None else seconds * 1_000 * _TOLERANCE // milliseconds


def check_head(connection: duckdb.DuckDBPyConnection, node: Node, head: Header) -> None:
    """Refuse a head that is further ahead than the time since the newest stored block, or any genesis, allows.

    Raises:
        ImplausibleHead: the head is too far ahead; names the field of the definition that sets the network's speed.
    """
    network = node.network
    row = connection.execute(
        "select block_number, block_time from raw.blocks where network = ? order by block_number desc limit 1",
        [network.name],
    ).fetchone()
    number, time = (row[0], row[1].replace(tzinfo=UTC)) if row else (0, node.oldest_genesis)
    newest = number + _BURST + _blocks_since(node, time, head.time)
    if head.number > newest:
        seconds = max(int((head.time - time).total_seconds()), 0)
        known = f"block {number}, the newest stored one" if row else "the oldest possible genesis block"
        raise ImplausibleHead(
            network.name,
            node.header_call,
            head.number,
            head.number,
            f"the node's head is implausible: {seconds} s after {known}, the newest possible block is {newest}; if the "
            "chain is faster, correct block_milliseconds in the network's definition",
        )


def final_number(connection: duckdb.DuckDBPyConnection, node: Node, head: Header, batch_id: int) -> int:
    """Return the number of the newest final block; call it after `repair_tail`.

    A block that the node calls final counts only if an earlier cycle saw it too. Otherwise it must be `finality_depth`
    behind the head, and behind the newest block that the defined block time allows. The number never decreases here.
    """
    told = node.final_number(head)
    newest, depth = head.number, node.network.finality_depth
    row = connection.execute(
        """
        select block_number, block_time from raw.blocks
        where network = ? and is_tail is distinct from false and batch_id < ?
        order by block_number desc
        limit 1
        """,
        [node.network.name, batch_id],
    ).fetchone()
    seen = -1
    if row is not None:
        seen = row[0]
        newest = min(newest, seen + _blocks_since(node, row[1].replace(tzinfo=UTC), head.time))
    known = read_known_chain(connection, node.network.name)
    return max(min(told, max(seen, newest - depth)), known.final_number)


def keep_genesis(connection: duckdb.DuckDBPyConnection, node: Node) -> None:
    """Store the hash of the chain's first block, once."""
    if read_known_chain(connection, node.network.name).genesis_hash is None:
        record_genesis(connection, node.network.name, _hash_of(node, _GENESIS) or "")


def _hash_of(node: Node, number: int) -> str | None:
    """Return the hash of the node's block; None if the node lacks it."""
    try:
        return str(node.headers([number])["block_hash"][0])
    except (MalformedAnswer, CallRefused, StateUnavailable):
        return None


def repair_tail(connection: duckdb.DuckDBPyConnection, node: Node, head: Header, batch_id: int) -> int | None:
    """Compare the stored tail with the node and remove orphaned blocks; return the common ancestor if there are any.

    One or two headers are enough in the usual case. Stored blocks of the tail are linked by parent hash, so if the
    newest is canonical, all before it are too. History stores headers as well, which may be after an orphaned tail.

    A reorganisation cannot reach two kinds of blocks: final ones, and those far ahead of a head that is younger than
    all of them. They are removed too, back to the settled block, if several cycles confirm that the chain lacks them.

    Raises:
        StaleHead: the node's head is older than the newest stored block, and no reorganisation explains it.
        ContradictedBlocks: more cycles must confirm first.
        ChainReset: the settled block, or genesis, has another hash.
    """
    network = node.network.name
    known = read_known_chain(connection, network)
    stored = _Stored(connection, network, known)
    newest = stored.newest
    if newest is None:
        return None
    is_far = head.number < newest.number - node.network.finality_depth
    if head.number < newest.number and head.time <= newest.time:
        here = stored.hashes(head.number, head.number).get(head.number, head.hash)
        if is_far or here == head.hash:
            if is_far:
                _check_genesis(node, known)
            raise StaleHead(
                network,
                node.header_call,
                head.number,
                newest.number,
                f"the node's head is {'far ' if is_far else ''}behind the newest collected block",
            )
    if head.number >= newest.number:
        expected = dict((newest[:2], stored.newest_linked or newest[:2]))
        if _canonical(node, expected) == expected:
            if known.contradiction is not None:
                record_contradiction(connection, network, None)
            return None
    ancestor = _common_ancestor(node, head, stored)
    if ancestor is None:
        _check_genesis(node, known)
        if stored.settled >= 0:
            raise _reset(connection, node, head, stored.settled)
        ancestor = -1
    is_beyond = is_far or ancestor < max(stored.final, 0)
    if is_beyond and not _is_confirmed(connection, node, head, known.contradiction, batch_id):
        raise ContradictedBlocks(
            network,
            node.header_call,
            ancestor + 1,
            newest.number,
            f"the node's chain lacks these stored blocks, more than a reorganisation replaces: it lies, or its earlier "
            f"answers were false; once its head has advanced in {CONFIRMING_CYCLES} cycles in a row on the chain "
            "without them, they are removed and read again",
        )
    orphaned, orphaned_hash = stored.first_after(ancestor)
    (canonical_hash,) = node.headers([orphaned])["block_hash"] if orphaned <= head.number else (head.hash,)
    remove_orphaned(connection, network, ancestor, orphaned_hash, canonical_hash, batch_id, was_false=is_beyond)
    return ancestor


def _common_ancestor(node: Node, head: Header, stored: "_Stored") -> int | None:
    """Return the newest stored block, not before the settled one, that is on the node's chain with all before it."""
    last = head.number
    # An ordinary reorganisation ends after the final block; only others need the headers before that. If the final
    # block was false, only headers of the tail are linked to all before them.
    for first, condition in ((stored.final, "true"), (stored.settled, _LINKED)):
        while known := stored.hashes(first, last, condition):
            canonical = _canonical(node, known)
            first_orphan = min((number for number in known if canonical[number] != known[number]), default=last + 1)
            ancestor = max((number for number in known if number < first_orphan), default=None)
            if ancestor is not None:
                return ancestor
            last = min(known) - 1
    return None


def _is_confirmed(
    connection: duckdb.DuckDBPyConnection, node: Node, head: Header, earlier: Contradiction | None, batch_id: int
) -> bool:
    """Count the consecutive cycles in which the node's head advanced on a chain without the stored blocks."""
    network = node.network.name
    cycles = 1
    if earlier is not None:
        if earlier.batch_id == batch_id or (earlier.head_number, earlier.head_hash) == (head.number, head.hash):
            return earlier.cycles >= CONFIRMING_CYCLES
        if earlier.head_number < head.number and _hash_of(node, earlier.head_number) == earlier.head_hash:
            cycles = earlier.cycles + 1
    record_contradiction(connection, network, Contradiction(cycles, head.number, head.hash, batch_id))
    return cycles >= CONFIRMING_CYCLES


def _check_genesis(node: Node, known: KnownChain) -> None:
    """Raise ChainReset if block 0 has another hash than when the network was first collected."""
    if known.genesis_hash:
        told = _hash_of(node, _GENESIS)
        if told is not None and told != known.genesis_hash:
            raise _other_hash(node, _GENESIS, known.genesis_hash, told)


def _reset(connection: duckdb.DuckDBPyConnection, node: Node, head: Header, settled: int) -> ChainReset:
    """Return the error for a chain without the settled block; it names that block or the newest of a shorter chain."""
    rows = connection.execute(
        """
        select block_number, block_hash from raw.blocks
        where network = ? and block_number in (
            select max(block_number) from raw.blocks where network = ? and block_number <= least(?, ?)
            union all
            select ?
        )
        order by block_number
        """,
        [node.network.name, node.network.name, settled, head.number, settled],
    ).fetchall()
    for number, block_hash in rows:
        told = _hash_of(node, number) if number <= head.number else None
        if told != block_hash:
            break
    return _other_hash(node, number, block_hash, told)


def _other_hash(node: Node, number: int, stored: str, told: str | None) -> ChainReset:
    now = "the node has no such block" if told is None else f"the node now says {told}"
    return ChainReset(
        node.network.name,
        node.header_call,
        number,
        number,
        f"block {number} was final with the hash {stored}, and {now}: this is another chain with the same id; correct "
        f"the node's URL, or run `ledgermart network reset {node.network.name}` if the chain was restarted",
    )


def _canonical(node: Node, numbers: Collection[int]) -> dict[int, str]:
    return dict(node.headers(sorted(numbers)).select("block_number", "block_hash").iter_rows())


class _Stored:
    """The stored headers of a network from its settled block on."""

    def __init__(self, connection: duckdb.DuckDBPyConnection, network: str, known: KnownChain) -> None:
        self._connection = connection
        self._network = network
        self.settled = known.settled_number
        self.final = max(known.final_number, self.settled)
        newest = next(iter(self._rows("true", "block_number desc limit 1")), None)
        self.newest = newest and _Newest(newest[0], newest[1], newest[2].replace(tzinfo=UTC))
        linked = next(iter(self._rows("is_tail is distinct from false", "block_number desc limit 1")), None)
        self.newest_linked = linked and linked[:2]

    def _rows(self, condition: str, order: str, **parameters: int) -> list[tuple[int, str, datetime]]:
        return self._connection.execute(
            f"""
            select block_number, block_hash, block_time
            from raw.blocks
            where network = $network and block_number >= $settled and {condition}
            order by {order}
            """,
            {"network": self._network, "settled": self.settled, **parameters},
        ).fetchall()

    def hashes(self, first: int, last: int, condition: str = "true") -> dict[int, str]:
        """Return the newest stored blocks of a range that meet a condition, at most `_STEP`: hash by number."""
        condition = f"block_number between $first and $last and {condition}"
        rows = self._rows(condition, f"block_number desc limit {_STEP}", first=first, last=last)
        return {number: block_hash for number, block_hash, _ in rows}

    def first_after(self, number: int) -> tuple[int, str]:
        """Return the first stored block after a number."""
        return self._rows("block_number > $number", "block_number limit 1", number=number)[0][:2]


def _moved(node: Node, number: int) -> ChainReorganised:
    detail = "the chain moved while it was read"
    return ChainReorganised(node.network.name, node.header_call, number, number, detail, block_number=number)


def extend_tail(
    connection: duckdb.DuckDBPyConnection, node: Node, head: Header, final_number: int, batch_id: int
) -> int:
    """Store the headers after the newest stored one, or after the final block, up to the head; return their number.

    Store only the newest part of a longer tail: a chain without finality for days must not cost more.

    Raises:
        ChainReorganised: the headers do not join the stored ones, or do not end in the head; nothing is written.
    """
    # History stores the headers at the ends of its ranges, perhaps after blocks that a killed cycle did not store.
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
    # Read together with the first of the others, the newest stored one shows that both parts belong to one chain.
    joint = [newest_number] if 0 <= newest_number < first - 1 else []
    headers = node.headers([*joint, *range(first, head.number + 1)])
    if joint and headers["block_hash"][0] != newest_hash:
        raise _moved(node, newest_number)
    headers = headers.slice(len(joint))
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
    store_headers(connection, node, headers, batch_id, is_tail=True)
    return headers.height
