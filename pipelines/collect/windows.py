"""Tracking windows become block ranges, and block ranges become what is still to be collected."""

from collections import defaultdict
from datetime import UTC, datetime
from itertools import pairwise
from typing import NamedTuple

import duckdb

from pipelines.extract.evm.blocks import Header, find_first_block_at_or_after
from pipelines.extract.evm.rpc import RpcClient
from pipelines.load.coverage import SubjectKind, Watched, read_coverage
from pipelines.load.ranges import BlockRange, difference
from pipelines.load.warehouse import transaction


class Segment(NamedTuple):
    """A range that the same addresses miss."""

    covered: BlockRange
    addresses: tuple[str, ...]


def resolve_windows(
    connection: duckdb.DuckDBPyConnection, client: RpcClient, network: str, head: Header, batch_id: int
) -> int:
    """Resolve new and newly closed windows to block ranges; return how many.

    A window begins with the first block whose time is at or after its opening and ends before the first block at or
    after its closing. Where the head has not reached that moment yet, the window waits for a later cycle.

    Raises:
        ExtractError: a header could not be read; nothing is written.
    """
    pending = connection.execute(
        """
        select windows.window_key, windows.subject_key, windows.opened_at, windows.closed_at, ranges.from_block
        from raw.control_windows as windows
        inner join raw.control_subjects as subjects on windows.subject_key = subjects.subject_key
        left join raw.window_ranges as ranges on windows.window_key = ranges.window_key
        where
            subjects.network = ?
            and (ranges.window_key is null or (windows.closed_at is not null and ranges.to_block is null))
        order by windows.window_key
        """,
        [network],
    ).fetchall()
    blocks: dict[datetime, int | None] = {}

    def block_at(instant: datetime) -> int | None:
        if instant not in blocks:
            blocks[instant] = find_first_block_at_or_after(client, instant.replace(tzinfo=UTC), head)
        return blocks[instant]

    resolved = []
    for window_key, subject_key, opened_at, closed_at, known_from in pending:
        first = known_from if known_from is not None else block_at(opened_at)
        end = block_at(closed_at) if closed_at is not None else None
        if first is None or (known_from is not None and end is None):
            continue
        resolved.append((window_key, subject_key, network, first, None if end is None else end - 1))
    with transaction(connection):
        connection.execute(
            """
            delete from raw.window_ranges
            where network = ? and window_key not in (select window_key from raw.control_windows)
            """,
            [network],
        )
        for row in resolved:
            connection.execute("delete from raw.window_ranges where window_key = ?", [row[0]])
            connection.execute("insert into raw.window_ranges values (?, ?, ?, ?, ?)", row)
            connection.execute("insert into raw.changes values (?, ?, 0, null, 'View')", [batch_id, row[1]])
    return len(resolved)


def missing_segments(
    connection: duckdb.DuckDBPyConnection, network: str, kind: SubjectKind, head_number: int
) -> list[Segment]:
    """What the union of all tenants' windows asks for and coverage lacks, in block order.

    Addresses that miss the same blocks share a segment, so that they are asked for together.
    """
    wanted: dict[str, list[BlockRange]] = defaultdict(list)
    for address, first, last in connection.execute(
        """
        select subjects.address, ranges.from_block, least(coalesce(ranges.to_block, ?), ?)
        from raw.window_ranges as ranges
        inner join raw.control_subjects as subjects on ranges.subject_key = subjects.subject_key
        where subjects.network = ? and subjects.kind = ?
        """,
        [head_number, head_number, network, kind],
    ).fetchall():
        if first <= last:
            wanted[address].append(BlockRange(first, last))
    covered = read_coverage(connection, network)
    holes: dict[BlockRange, list[str]] = defaultdict(list)
    for address, ranges in wanted.items():
        for hole in difference(ranges, covered.get(Watched(kind, address), [])):
            holes[hole].append(address)
    edges = sorted({edge for hole in holes for edge in (hole.first, hole.last + 1)})
    segments = []
    for first, end in pairwise(edges):
        addresses = sorted(
            address
            for hole, group in holes.items()
            if hole.first <= first and end <= hole.last + 1
            for address in group
        )
        if addresses:
            segments.append(Segment(BlockRange(first, end - 1), tuple(addresses)))
    return segments
