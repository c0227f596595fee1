"""Reading once more what was collected before it was final, and comparing it row by row.

A node behind a balancer can leave rows out without an error, and a node can lie. So each range is read a second time
once it is final: in a later cycle than the first time, on another connection, from another provider where several are
configured, and in other pieces. What differs is collected anew and reported.
"""

import time
from contextlib import closing
from itertools import islice

import duckdb

from pipelines.collect.segments import Collector, record_others
from pipelines.collect.views import segments_of
from pipelines.extract.errors import ExtractError
from pipelines.extract.family import Node
from pipelines.load.chain import read_rows, record_verification
from pipelines.load.coverage import read_coverage, read_verified
from pipelines.load.spending import read_budget
from pipelines.ranges import BlockRange
from pipelines.rows import Purpose, Segment
from pipelines.tables.families import ROW_TABLES

# Ranges that one cycle verifies at most, each of at most so many blocks: live tracking does not wait for the rest.
_RANGES_PER_CYCLE = 20
_BLOCKS_PER_RANGE = 2_000


def verify(collector: Collector) -> None:
    """Verify some of the final ranges that are not verified yet.

    A second reading that fails is noted and made up for later; it stops nothing. It waits where the network's budget of
    requests is used up.
    """
    connection, network = collector.connection, collector.network
    owed = _owed(connection, network, collector.final_number)
    if not owed:
        return
    with closing(collector.node.other()) as second:
        try:
            for segment in owed:
                if read_budget(connection, network).waits_until is not None:
                    return
                _verify(collector, second, segment)
                record_others(connection, second, Purpose.SECOND_READING)
        except ExtractError as error:
            collector.note(error, f"second reading: {error}")
        finally:
            record_others(connection, second, Purpose.SECOND_READING)


def _owed(connection: duckdb.DuckDBPyConnection, network: str, final_number: int) -> list[Segment]:
    verified = read_verified(connection, network)
    wanted = {
        watched: [BlockRange(first, min(last, final_number)) for first, last in ranges if first <= final_number]
        for watched, ranges in read_coverage(connection, network).items()
        if watched.kind != "native"
    }
    pieces = (
        segment._replace(covered=BlockRange(first, min(first + _BLOCKS_PER_RANGE - 1, segment.covered.last)))
        for segment in segments_of(wanted, verified)
        for first in range(segment.covered.first, segment.covered.last + 1, _BLOCKS_PER_RANGE)
    )
    return list(islice(pieces, _RANGES_PER_CYCLE))


def _verify(collector: Collector, second: Node, segment: Segment) -> None:
    began = time.monotonic()
    for part in second.collect(segment, collector.final_number):
        asked = segment._replace(covered=part.covered)
        stored_rows, is_equal = 0, True
        for name, read in part.rows.items():
            stored = read_rows(collector.connection, collector.network, ROW_TABLES[name], asked)
            stored_rows += stored.height
            is_equal &= read.sort(read.columns).equals(stored.sort(read.columns))
        if not is_equal:
            collector.store(segment, part, second.provider, began)
            collector.report.corrected_ranges += 1
        record_verification(
            collector.connection,
            collector.network,
            asked,
            second.provider,
            stored_rows,
            sum(read.height for read in part.rows.values()),
            is_equal,
            collector.batch_id,
        )
