"""Reading once more what was collected before it was final, and comparing it by count and fingerprint.

A node behind a balancer can leave logs out without an error. Once blocks are final, each range is read a second time:
from another provider where several are configured, else from the same one unless it was final already when it was
collected. What differs is collected anew and reported.
"""

from contextlib import closing
from itertools import islice

import duckdb
import polars as pl

from pipelines.collect.segments import Collector, transfer_filters
from pipelines.collect.views import Segment, segments_of
from pipelines.extract.errors import ExtractError
from pipelines.extract.evm.digests import digest_transfers
from pipelines.extract.evm.endpoint import other_urls
from pipelines.extract.evm.logs import fetch_transfers
from pipelines.extract.evm.rpc import RpcClient
from pipelines.load.chain import (
    note_failure,
    read_transfers,
    record_verification,
    replace_token_range,
    replace_wallet_range,
)
from pipelines.load.coverage import read_coverage, read_verified
from pipelines.ranges import BlockRange

# Ranges that one cycle verifies at most, each of at most so many blocks: live tracking does not wait for the rest.
_RANGES_PER_CYCLE = 20
_BLOCKS_PER_RANGE = 2_000


def verify(collector: Collector) -> None:
    """Verify some of the final ranges that are not verified yet.

    A second reading that fails is noted and made up for later; it stops nothing.
    """
    owed = _owed(collector.connection, collector.network.name, collector.final_number)
    if not owed:
        return
    urls = other_urls(collector.network.rpc_urls, collector.client.provider)
    try:
        with closing(RpcClient(collector.network.name, urls or collector.network.rpc_urls)) as second:
            second.expect_chain(collector.network.chain_id)
            for segment in owed:
                _verify(collector, second, segment)
    except ExtractError as error:
        note_failure(
            collector.connection,
            collector.network.name,
            error.call,
            (error.from_block, error.to_block),
            f"second reading: {error}",
            collector.batch_id,
        )


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


def _verify(collector: Collector, second: RpcClient, segment: Segment) -> None:
    network, covered = collector.network, segment.covered
    parts = fetch_transfers(
        second, transfer_filters(segment), covered.first, covered.last, max_range=network.max_log_range
    )
    read = pl.concat([part.rows for part in parts])
    stored = read_transfers(collector.connection, network.name, segment.kind, segment.addresses, covered)
    is_equal = digest_transfers(read) == digest_transfers(stored)
    if not is_equal:
        # A log that one of them names is in its block, whose hash is final: what either left out is added.
        united = pl.concat([read, stored.select(read.columns)]).unique(["block_number", "log_index"])
        rows = united.sort("block_number", "log_index")
        collector.store_headers([*rows["block_number"].unique(), covered.last])
        replace = replace_token_range if segment.kind == "token" else replace_wallet_range
        replace(
            collector.connection,
            network.name,
            segment.addresses,
            covered,
            rows,
            second.provider,
            collector.batch_id,
        )
        collector.report.corrected_ranges += 1
    record_verification(
        collector.connection,
        network.name,
        segment.kind,
        segment.addresses,
        covered,
        second.provider,
        stored.height,
        read.height,
        is_equal,
        collector.batch_id,
    )
