"""Collection of missing segments: reads the rows of some addresses over a range, and stores them part by part."""

import logging
import time
from collections.abc import Generator, Iterable, Sequence
from dataclasses import dataclass, field

import duckdb
import polars as pl

from control.ranges import BlockRange
from pipelines.chain.headers import hashes_of, missing_headers
from pipelines.chain.rows import HashMismatchError, store_segment
from pipelines.chain.states import record_collection, record_failure
from pipelines.chain.times import store_headers
from pipelines.extract.errors import ExtractError
from pipelines.extract.family import Node, Part
from pipelines.raw.database import family_sql
from pipelines.raw.frames import registered
from pipelines.raw.usage import record_usage
from pipelines.rows import Origin, Segment, UsageRecord, WorkClass

_LOG = logging.getLogger(__name__)


@dataclass
class NetworkReport:
    """Result of one cycle, or of one slice of history, on one network."""

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


def log_words(error: ExtractError) -> None:
    """Log the provider's words of an error. Tenants do not read this log."""
    if error.words:
        _LOG.warning("%s", error.for_the_log())


def record_others(connection: duckdb.DuckDBPyConnection, node: Node, purpose: WorkClass) -> None:
    """Record the node's requests since the last record that were not for stored parts."""
    record_usage(connection, node.network.name, UsageRecord(purpose, "other", node.meter.take()))


@dataclass
class Collector:
    """Collects on one network, at one head.

    Attributes:
        capabilities: capabilities of its node.
        final_number: newest final block.
        purpose: class of work to which its requests count.
    """

    connection: duckdb.DuckDBPyConnection
    node: Node
    capabilities: frozenset[str]
    final_number: int
    batch_id: int
    report: NetworkReport
    purpose: WorkClass = WorkClass.LIVE

    def __post_init__(self) -> None:
        self.node.stored = self

    @property
    def network(self) -> str:
        """Name of the network."""
        return self.node.network.name

    def find(self, query: str, wanted: pl.DataFrame | None = None, **parameters: int | str) -> pl.DataFrame:
        """Run a query of the node's family on its stored rows; see `pipelines.extract.family.StoredRows`."""
        with registered(self.connection, **({} if wanted is None else {"wanted": wanted})):
            text = family_sql(self.node.network.family, query)
            return self.connection.execute(text, {"network": self.network, **parameters}).pl()

    def collect(self, segment: Segment) -> Generator[Segment]:
        """Collect a segment from the node, from its first block on; yield each part's blocks after storing it.

        Raises:
            ExtractError: the node gave no usable answer; the parts yielded before remain stored.
            HashMismatchError: the chain changed while it was read.
        """
        return self.take(segment, self.node.collect(segment, self.final_number), None)

    def take(
        self, segment: Segment, parts: Iterable[Part], origin: Origin | None, began: float | None = None
    ) -> Generator[Segment]:
        """Store parts of a segment with their coverage; yield the segment with the blocks of each one after storing it.

        Args:
            segment: requested addresses and blocks.
            parts: results of the request, read one by one.
            origin: source of the parts; None: the node, with the provider that it uses at each part.
            began: time on the monotonic clock at which the work for the first part began; None: now.

        Raises:
            ExtractError, HashMismatchError: as `collect`.
        """
        began = time.monotonic() if began is None else began
        for part in parts:
            written = segment._replace(covered=part.covered)
            self._store(written, part, origin or Origin(self.node.provider), began)
            for table, rows in part.rows.items():
                record_collection(self.connection, self.network, table, part.covered, rows.height, self.batch_id)
                self.report.count(table, rows.height)
            self.report.ranges.append(part.covered)
            yield written
            began = time.monotonic()

    def _store(self, written: Segment, part: Part, origin: Origin, began: float) -> None:
        """Store the rows of a part, with headers, coverage and usage; `began` is on the monotonic clock."""
        for error in part.unread:
            self.note(error, f"movements are booked by balance: {error}")
        if part.headers is not None:
            store_headers(self.connection, self.node, part.headers, self.batch_id)
        numbers = {number for rows in part.rows.values() for number in rows["block_number"].unique()}
        self.store_headers([*numbers, part.covered.last])
        spending = UsageRecord(
            self.purpose,
            origin.work or written.kind,
            self.node.meter.take(),
            part.covered.last - part.covered.first + 1,
            round((time.monotonic() - began) * 1_000),
        )
        try:
            store_segment(self.connection, self.network, written, part.rows, origin, self.batch_id, spending)
        except HashMismatchError:
            record_usage(self.connection, self.network, spending)
            raise

    def store_headers(self, numbers: Iterable[int]) -> None:
        """Store the headers of the blocks that are not stored yet."""
        missing = missing_headers(self.connection, self.network, numbers)
        if missing:
            store_headers(self.connection, self.node, self.node.headers(missing), self.batch_id)
            self.report.count("blocks", len(missing))

    def stored_hashes(self, numbers: Sequence[int]) -> dict[int, str]:
        """Make sure that the blocks' headers are stored, and return their hashes."""
        self.store_headers(numbers)
        return hashes_of(self.connection, self.network, numbers)

    def note(self, error: ExtractError, detail: str) -> None:
        """Record a failed reading; the network's status does not change."""
        log_words(error)
        blocks = (error.from_block, error.to_block)
        record_failure(self.connection, self.network, error.call, blocks, detail, self.batch_id)
