"""Results of second readings: disputed answers, differences, and blocks that must be read again."""

import secrets
from collections import defaultdict
from typing import NamedTuple

import duckdb

from control.clock import stored_now
from control.ranges import BlockRange
from pipelines.chain.coverage import Watched
from pipelines.raw.builds import has_relation
from pipelines.raw.database import sql

# Disputed blocks that a network's detail names at most.
_DISPUTES_NAMED = 3


class Answer(NamedTuple):
    """A reading of an address in a block that differs from the stored rows.

    Attributes:
        fingerprint: hash of its rows.
        stored_rows, read_rows: numbers of stored rows and of rows in the reading.
    """

    watched: Watched
    block_number: int
    fingerprint: str
    stored_rows: int
    read_rows: int


def read_tracked(connection: duckdb.DuckDBPyConnection, network: str) -> dict[Watched, list[BlockRange]]:
    """Read the blocks of all tenants' tracking windows, by address."""
    return _ranges(
        connection,
        """
        select subjects.kind, subjects.address, ranges.from_block, coalesce(ranges.to_block, $last)
        from raw.view_ranges as ranges
        inner join raw.control_subjects as subjects on ranges.subject_key = subjects.subject_key
        where subjects.network = $network and ranges.origin = 'Window'
        """,
        {"network": network, "last": 2**62},
    )


def read_disputed(connection: duckdb.DuckDBPyConnection, network: str) -> dict[Watched, list[BlockRange]]:
    """Read the blocks with differing readings and without a judgement, by address."""
    return _ranges(
        connection,
        "select subject_kind, address, block_number, block_number from raw.disputed_answers where network = $network",
        {"network": network},
    )


def read_doubted(connection: duckdb.DuckDBPyConnection, network: str) -> dict[Watched, list[BlockRange]]:
    """Read the blocks in which a balance does not match its movements in the newest build, by address."""
    if not has_relation(connection, "requests__readings"):
        return {}
    return _ranges(connection, sql("doubted_blocks"), {"network": network})


def _ranges(
    connection: duckdb.DuckDBPyConnection, query: str, parameters: dict[str, object]
) -> dict[Watched, list[BlockRange]]:
    ranges: dict[Watched, list[BlockRange]] = defaultdict(list)
    for kind, address, first, last in connection.execute(query, parameters).fetchall():
        if first <= last:
            ranges[Watched(kind, address)].append(BlockRange(first, last))
    return ranges


def read_seed(connection: duckdb.DuckDBPyConnection, network: str) -> str:
    """Return the secret that chooses the samples of a network; the first call creates it."""
    known = connection.execute("select seed from raw.sample_seeds where network = ?", [network]).fetchone()
    if known is not None:
        return str(known[0])
    seed = secrets.token_hex(16)
    connection.execute("insert into raw.sample_seeds values (?, ?)", [network, seed])
    return seed


def read_answers(connection: duckdb.DuckDBPyConnection, network: str, answer: Answer, batch_id: int) -> frozenset[str]:
    """Return the fingerprints of earlier cycles' readings of the same address and block."""
    rows = connection.execute(
        """
        select fingerprint
        from raw.disputed_answers
        where network = ? and subject_kind = ? and address = ? and block_number = ? and batch_id < ?
        """,
        [network, *answer.watched, answer.block_number, batch_id],
    ).fetchall()
    return frozenset(fingerprint for (fingerprint,) in rows)


def record_answer(
    connection: duckdb.DuckDBPyConnection, network: str, answer: Answer, provider: str, batch_id: int
) -> None:
    """Store an answer until another one agrees with it or with the stored rows."""
    (kind, address), block_number, fingerprint, stored_rows, read_rows = answer
    connection.execute(
        """
        insert into raw.disputed_answers
        select $network, $kind, $address, $block, $fingerprint, $stored, $read, $provider, $batch, $now
        where not exists (
            select 1 from raw.disputed_answers
            where
                network = $network
                and subject_kind = $kind
                and address = $address
                and block_number = $block
                and batch_id = $batch
        )
        """,
        {
            "network": network,
            "kind": kind,
            "address": address,
            "block": block_number,
            "fingerprint": fingerprint,
            "stored": stored_rows,
            "read": read_rows,
            "provider": provider,
            "batch": batch_id,
            "now": stored_now(),
        },
    )


def disputed_detail(connection: duckdb.DuckDBPyConnection, network: str) -> str | None:
    """Describe the blocks with differing readings and without a judgement; None where there is none."""
    rows = connection.execute(
        """
        select
            subject_kind,
            address,
            block_number,
            arg_max(stored_rows, batch_id),
            arg_max(read_rows, batch_id),
            count(*) over ()
        from raw.disputed_answers
        where network = ?
        group by subject_kind, address, block_number
        order by block_number, subject_kind, address
        limit ?
        """,
        [network, _DISPUTES_NAMED],
    ).fetchall()
    if not rows:
        return None
    named = "; ".join(
        f"block {block}, {kind} {address}: {stored} rows are stored, another reading gave {read}"
        for kind, address, block, stored, read, _ in rows
    )
    more = f"; and {rows[0][-1] - len(rows)} more" if rows[0][-1] > len(rows) else ""
    return f"readings differ: {named}{more}. Nothing is removed or added until a third reading agrees with one of them"


def record_verification(
    connection: duckdb.DuckDBPyConnection,
    network: str,
    covered: BlockRange,
    provider: str,
    rows: tuple[int, int],
    replaced: tuple[int, int],
    judged_by: str,
    batch_id: int,
) -> None:
    """Record a second reading that differs from the stored rows; runs inside the caller's transaction.

    Args:
        rows: numbers of stored rows and of rows read.
        replaced: numbers of removed and of added rows.
    """
    connection.execute(
        "insert into raw.verifications values (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
        [batch_id, network, *covered, provider, *rows, stored_now(), *replaced, judged_by],
    )
