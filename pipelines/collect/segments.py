"""Collecting what is missing, segment by segment: the rows of some addresses over a range, write by write."""

from collections.abc import Generator, Iterable, Iterator
from dataclasses import dataclass, field

import duckdb
import polars as pl

from control.networks.definitions import Network
from pipelines.collect.times import store_headers
from pipelines.collect.views import Segment
from pipelines.extract.errors import ExtractError, StateUnavailable
from pipelines.extract.evm.blocks import TRANSACTION_SCHEMA, read_headers, read_wallet_transactions
from pipelines.extract.evm.blooms import confirm_empty_blocks
from pipelines.extract.evm.logs import TransferFilter, Transfers, fetch_transfers
from pipelines.extract.evm.probe import NodeFacts
from pipelines.extract.evm.rpc import RpcClient
from pipelines.extract.evm.traces import INTERNAL_TRANSFER_SCHEMA, read_internal_transfers
from pipelines.load.chain import (
    missing_headers,
    note_failure,
    record_collection,
    replace_native_range,
    replace_token_range,
    replace_wallet_range,
)
from pipelines.load.coverage import record_verified
from pipelines.ranges import BlockRange

# One write holds at most about this many transfers: 25,000 rows are some 15 MB decoded, and the cost of a transaction
# (a few milliseconds) disappears beside them. 50,000 cost no less CPU and 20 MiB more at the peak.
ROWS_PER_WRITE = 25_000
# ... and about this many blocks, so that a long range with few rows is not read in vain when its end fails.
_BLOCKS_PER_WRITE = 10_000
# Headers with their blooms that are looked at together: a tail may be long.
_BLOOMS_PER_CHECK = 1_000
# Where whole blocks with their transactions are read: some 100 kB each on a busy network.
_FULL_BLOCKS_PER_WRITE = 500


@dataclass
class NetworkReport:
    """What one cycle, or one slice of history, did on one network."""

    network: str
    head: int | None = None
    final: int | None = None
    rows: dict[str, int] = field(default_factory=dict)
    ranges: list[BlockRange] = field(default_factory=list)
    reorganised_after: int | None = None
    unavailable_readings: int = 0
    corrected_ranges: int = 0
    error: str | None = None
    defect: Exception | None = None

    def count(self, table: str, rows: int) -> None:
        """Add to the rows written to a table."""
        self.rows[table] = self.rows.get(table, 0) + rows


@dataclass
class Collector:
    """Collects on one network, at one head.

    Attributes:
        final_number: newest final block; empty answers for later blocks are checked against the blocks' blooms, because
            a node that lags behind the one that gave the head answers nothing for them, without an error.
    """

    connection: duckdb.DuckDBPyConnection
    client: RpcClient
    network: Network
    facts: NodeFacts
    final_number: int
    batch_id: int
    report: NetworkReport

    def collect(self, segment: Segment) -> Generator[BlockRange]:
        """Collect a segment from its first block on, and give out each part once it is written with its coverage.

        Raises:
            ExtractError: the node gave no usable answer; what was given out before stays.
            HashMismatchError: the chain moved while it was read.
        """
        if segment.kind == "native":
            yield from self._collect_native(segment)
        else:
            yield from self._collect_transfers(segment)

    def store_headers(self, numbers: Iterable[int]) -> None:
        """Store the headers of the blocks that are not stored yet."""
        missing = missing_headers(self.connection, self.network.name, numbers)
        if missing:
            store_headers(self.connection, self.network.name, read_headers(self.client, missing), self.batch_id)
            self.report.count("blocks", len(missing))

    def _collected(self, table: str, covered: BlockRange, rows: int) -> None:
        record_collection(self.connection, self.network.name, table, covered, rows, self.batch_id)
        self.report.count(table, rows)
        self.report.ranges.append(covered)

    def _collect_transfers(self, segment: Segment) -> Generator[BlockRange]:
        filters = transfer_filters(segment)
        parts = fetch_transfers(
            self.client,
            filters,
            segment.covered.first,
            segment.covered.last,
            max_range=self.network.max_log_range,
        )
        replace = replace_token_range if segment.kind == "token" else replace_wallet_range
        for covered, read in _gathered(parts):
            transfers = self._confirmed(filters, covered, read)
            self.store_headers([*transfers["block_number"].unique(), covered.last])
            replace(
                self.connection,
                self.network.name,
                segment.addresses,
                covered,
                transfers,
                self.client.provider,
                self.batch_id,
            )
            if len(self.network.rpc_urls) == 1 and covered.first <= self.final_number:
                final = BlockRange(covered.first, min(covered.last, self.final_number))
                record_verified(self.connection, self.network.name, segment.kind, segment.addresses, final)
            self._collected("token_transfers", covered, transfers.height)
            yield covered

    def _confirmed(self, filters: list[TransferFilter], covered: BlockRange, read: pl.DataFrame) -> pl.DataFrame:
        frames = [read]
        for first in range(max(covered.first, self.final_number + 1), covered.last + 1, _BLOOMS_PER_CHECK):
            last = min(first + _BLOOMS_PER_CHECK - 1, covered.last)
            missing = confirm_empty_blocks(self.client, filters, first, last, read)
            if not missing.is_empty():
                frames.append(missing)
        return read if len(frames) == 1 else pl.concat(frames).sort("block_number", "log_index")

    def _collect_native(self, segment: Segment) -> Generator[BlockRange]:
        wallets = frozenset(segment.addresses)
        for first in range(segment.covered.first, segment.covered.last + 1, _FULL_BLOCKS_PER_WRITE):
            covered = BlockRange(first, min(first + _FULL_BLOCKS_PER_WRITE - 1, segment.covered.last))
            transactions = pl.concat(
                [
                    pl.DataFrame(schema=TRANSACTION_SCHEMA),
                    *read_wallet_transactions(self.client, covered.first, covered.last, wallets),
                ]
            )
            internal = self._internal_transfers(covered, wallets)
            numbers = pl.concat([transactions["block_number"], internal["block_number"]]).unique()
            self.store_headers([*numbers, covered.last])
            replace_native_range(
                self.connection,
                self.network.name,
                segment.addresses,
                covered,
                transactions,
                internal,
                self.client.provider,
                self.batch_id,
            )
            self._collected("transactions", covered, transactions.height)
            self._collected("internal_transfers", covered, internal.height)
            yield covered

    def _internal_transfers(self, covered: BlockRange, wallets: frozenset[str]) -> pl.DataFrame:
        """Read what calls moved; nothing where the node cannot say: then readings of the balances show the sums."""
        nothing = pl.DataFrame(schema=INTERNAL_TRANSFER_SCHEMA)
        if self.facts.trace_method is None:
            return nothing
        traced = read_internal_transfers(self.client, covered.first, covered.last, wallets, self.facts.trace_method)
        try:
            return pl.concat([nothing, *traced])
        except StateUnavailable as error:
            note_failure(
                self.connection,
                self.network.name,
                error.call,
                (error.from_block, error.to_block),
                f"internal transfers are booked by balance: {error}",
                self.batch_id,
            )
            return nothing


def transfer_filters(segment: Segment) -> list[TransferFilter]:
    """The filters whose transfers a segment of tokens or wallets consists of."""
    addresses = frozenset(segment.addresses)
    if segment.kind == "token":
        return [TransferFilter(tokens=addresses)]
    return [TransferFilter(senders=addresses), TransferFilter(recipients=addresses)]


def _gathered(parts: Iterable[Transfers]) -> Iterator[tuple[BlockRange, pl.DataFrame]]:
    """Join consecutive answers into writes of a bounded size; what came before a failure is given out before it."""
    frames: list[pl.DataFrame] = []
    first, last, rows = 0, 0, 0
    try:
        for part in parts:
            first = part.from_block if not frames else first
            last = part.to_block
            frames.append(part.rows)
            rows += part.rows.height
            if rows >= ROWS_PER_WRITE or last - first + 1 >= _BLOCKS_PER_WRITE:
                yield BlockRange(first, last), pl.concat(frames)
                frames, rows = [], 0
    except ExtractError:
        if frames:
            yield BlockRange(first, last), pl.concat(frames)
        raise
    if frames:
        yield BlockRange(first, last), pl.concat(frames)
