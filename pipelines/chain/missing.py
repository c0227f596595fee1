"""Block ranges in views that coverage lacks."""

from collections import defaultdict
from collections.abc import Mapping
from itertools import pairwise

import duckdb

from control.ranges import BlockRange, difference
from pipelines.chain.coverage import Watched, read_coverage
from pipelines.rows import Kind, Segment


def missing_segments(
    connection: duckdb.DuckDBPyConnection, network: str, head_number: int, *, is_live: bool
) -> list[Segment]:
    """Return the blocks in all tenants' views that coverage lacks: tokens first, in block order.

    Live segments are those of windows, and of complete history that lost blocks to a reorganisation. The others belong
    to unfinished history requests. Addresses that lack the same blocks share a segment, so that one request collects
    them together. A wallet with native value in full has separate segments for transactions (`native`) and for token
    transfers (`wallet`).
    """
    wanted: dict[Watched, list[BlockRange]] = defaultdict(list)
    for kind, address, first, last, native in connection.execute(
        """
        select
            subjects.kind, subjects.address, ranges.from_block, least(coalesce(ranges.to_block, $head), $head),
            ranges.native
        from raw.view_ranges as ranges
        inner join raw.control_subjects as subjects on ranges.subject_key = subjects.subject_key
        left join raw.history_requests as requests
            on ranges.origin = 'History' and ranges.origin_key = requests.operation_key
        where
            subjects.network = $network
            and (ranges.origin = 'Window' or requests.status != 'Running') = $is_live
            and ($is_live or subjects.tenant_id not in (select tenant_id from raw.control_held_tenants))
        """,
        {"head": head_number, "network": network, "is_live": is_live},
    ).fetchall():
        if first <= last:
            wanted[Watched(kind, address)].append(BlockRange(first, last))
            if native == "full":
                wanted[Watched("native", address)].append(BlockRange(first, last))
    return segments_of(wanted, _covered_or_left_out(connection, network))


def _covered_or_left_out(connection: duckdb.DuckDBPyConnection, network: str) -> dict[Watched, list[BlockRange]]:
    ranges = read_coverage(connection, network)
    for kind, address, number in connection.execute(
        "select part, address, block_number from raw.unread_units where network = ? and unit_kind = 'block'", [network]
    ).fetchall():
        watched = Watched(kind, address)
        ranges[watched] = sorted([*ranges.get(watched, []), BlockRange(number, number)])
    return ranges


def segments_of(
    wanted: Mapping[Watched, list[BlockRange]], covered: Mapping[Watched, list[BlockRange]]
) -> list[Segment]:
    """Return the uncovered parts of the wanted ranges, by kind and in block order."""
    holes: dict[Kind, dict[BlockRange, list[str]]] = defaultdict(lambda: defaultdict(list))
    for watched, ranges in wanted.items():
        for hole in difference(ranges, covered.get(watched, [])):
            holes[watched.kind][hole].append(watched.address)
    kinds: tuple[Kind, ...] = ("token", "wallet", "native")
    return [segment for kind in kinds for segment in _segments(kind, holes[kind])]


def _segments(kind: Kind, holes: dict[BlockRange, list[str]]) -> list[Segment]:
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
            segments.append(Segment(kind, BlockRange(first, end - 1), tuple(addresses)))
    return segments
