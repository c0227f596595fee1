"""Identity of each network's chain (genesis and settled block), and the head that contradicts stored blocks."""

from datetime import datetime, timedelta
from typing import NamedTuple

import duckdb

# A false answer of a node is never settled if it lasts for less than this.
SETTLED_AFTER = timedelta(hours=1)


class Contradiction(NamedTuple):
    """Consecutive cycles in which the node's chain lacked stored blocks, and the node's head in the last of them."""

    cycles: int
    head_number: int
    head_hash: str
    batch_id: int


class KnownChain(NamedTuple):
    """Stored facts about a network's chain.

    Attributes:
        final_number: the newest final block of earlier cycles, -1 before there is one.
        settled_number: the newest settled block, -1 before there is one. It was final for `SETTLED_AFTER`, and no
            answer of a node removes it.
        genesis_hash: hash of block 0; "" if the node lacked it, None before it was read.
        contradiction: the contradiction of the last cycles; None if the last cycle had none.
    """

    final_number: int
    settled_number: int
    genesis_hash: str | None
    contradiction: Contradiction | None


def read_known_chain(connection: duckdb.DuckDBPyConnection, network: str) -> KnownChain:
    """Read the stored facts about a network's chain."""
    (row,) = connection.execute(
        """
        select
            coalesce((select max(final_number) from raw.network_states where network = $network), -1),
            coalesce(max(settled_number), -1),
            max(genesis_hash),
            max(contradicting_cycles),
            max(contradicting_number),
            max(contradicting_hash),
            max(contradicting_batch)
        from raw.known_chains
        where network = $network
        """,
        {"network": network},
    ).fetchall()
    final_number, settled_number, genesis_hash, *contradicting = row
    contradiction = None if contradicting[0] is None else Contradiction(*contradicting)
    return KnownChain(final_number, settled_number, genesis_hash, contradiction)


def settle(connection: duckdb.DuckDBPyConnection, network: str, final_number: int, now: datetime) -> None:
    """Settle the block that became final long enough before `now`, and record the next candidate."""
    row = connection.execute(
        "select settling_number, settling_since from raw.known_chains where network = ?", [network]
    ).fetchone()
    settling, since = row or (None, None)
    if since is not None and abs(now - since) < SETTLED_AFTER:
        return
    if since is not None and since > now:
        # The clock was ahead, so the age of the candidate is unknown.
        settling = None
    # Only a stored block can be compared later.
    newest = connection.execute(
        "select max(block_number) from raw.blocks where network = ? and block_number <= ?", [network, final_number]
    ).fetchone()
    if newest is None or newest[0] is None:
        return
    _update(
        connection,
        network,
        "settled_number = coalesce(?, settled_number), settling_number = ?, settling_since = ?",
        [settling, newest[0], now],
    )


def record_settled(connection: duckdb.DuckDBPyConnection, network: str, number: int) -> None:
    """Record that a stored block is settled, because another shard has settled it."""
    _update(connection, network, "settled_number = ?", [number])


def record_genesis(connection: duckdb.DuckDBPyConnection, network: str, block_hash: str) -> None:
    """Store the hash of block 0; "" if the node lacks it."""
    _update(connection, network, "genesis_hash = ?", [block_hash])


def record_contradiction(connection: duckdb.DuckDBPyConnection, network: str, found: Contradiction | None) -> None:
    """Replace the contradiction; None removes it."""
    _update(
        connection,
        network,
        "contradicting_cycles = ?, contradicting_number = ?, contradicting_hash = ?, contradicting_batch = ?",
        list(found or (None,) * len(Contradiction._fields)),
    )


def withdraw_final(connection: duckdb.DuckDBPyConnection, network: str, ancestor: int, *, was_false: bool) -> int:
    """Withdraw a final block after the common ancestor, inside the transaction that removes the orphaned blocks.

    Args:
        ancestor: number of the common ancestor.
        was_false: the node's chain was false, so the final block at or before the ancestor is withdrawn, too.

    Returns:
        The block after which activities may be shown with another status or content: the ancestor, or the settled
        block where the final block was false.
    """
    changed_after = ancestor
    known = read_known_chain(connection, network)
    if was_false or known.final_number > ancestor:
        changed_after = min(known.settled_number, ancestor)
        connection.execute(
            "update raw.network_states set final_number = nullif(?, -1) where network = ?", [changed_after, network]
        )
        drop_unfinished_attestations(connection, network, ancestor)
    for column, others in (("settled_number", ""), ("settling_number", ", settling_since = null")):
        connection.execute(
            f"update raw.known_chains set {column} = null{others} where network = ? and {column} > ?",
            [network, ancestor],
        )
    record_contradiction(connection, network, None)
    return changed_after


def drop_unfinished_attestations(connection: duckdb.DuckDBPyConnection, network: str, ancestor: int) -> None:
    """Delete attestations after a block that are not finished; their requests resolve to a block again.

    A finished attestation remains: the marts supersede it, because its block has another hash.
    """
    connection.execute(
        """
        delete from raw.attestation_requests
        where
            status in ('Pending', 'Running')
            and block_number > ?
            and subject_key in (select subject_key from raw.control_subjects where network = ?)
        """,
        [ancestor, network],
    )
    connection.execute(
        "delete from raw.attestations where network = ? and block_number > ? and attested_at is null",
        [network, ancestor],
    )


def _update(connection: duckdb.DuckDBPyConnection, network: str, changes: str, values: list[object]) -> None:
    connection.execute(
        """
        insert into raw.known_chains (network)
        select $network where not exists (select 1 from raw.known_chains where network = $network)
        """,
        {"network": network},
    )
    connection.execute(f"update raw.known_chains set {changes} where network = ?", [*values, network])
