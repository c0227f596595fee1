"""Collection of missing segments: reads the rows of some addresses over a range, and stores them part by part."""

import logging
import time
from collections import deque
from collections.abc import Generator, Iterable, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import NamedTuple, cast

import duckdb
import polars as pl

from control.ranges import BlockRange, intersection
from pipelines.chain.coverage import read_coverage
from pipelines.chain.headers import hashes_of, missing_headers
from pipelines.chain.rows import HashMismatchError, replace_rows, store_segment
from pipelines.chain.states import record_collection, record_failure
from pipelines.chain.times import store_headers
from pipelines.chain.unread import SHARE, Unread
from pipelines.extract.errors import OF_ONE_UNIT, PASSING, ChainReorganised, ExtractError, MalformedAnswer
from pipelines.extract.family import Node, Part
from pipelines.extract.units import Unit
from pipelines.raw.database import family_sql
from pipelines.raw.frames import registered
from pipelines.raw.usage import record_usage
from pipelines.rows import Kind, Origin, Segment, UsageRecord, WorkClass

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


# Blocks behind a failed one that are tried until one is read.
_DISTANCES = (1, 2, 4, 8, 16, 32)


# Failures that one block may cause alone. Some may also mean that the chain moved.
_OF_ONE_BLOCK = (*OF_ONE_UNIT, ChainReorganised, HashMismatchError)


class _Piece(NamedTuple):
    """A segment to read; one that is doubtful may contain the unit at fault."""

    segment: Segment
    is_doubtful: bool = False


def _named(error: ExtractError, covered: BlockRange) -> BlockRange:
    """Return the blocks that an error names, within those that failed; all of them where it names none of these."""
    first = covered.first if error.from_block is None else error.from_block
    last = covered.last if error.from_block is None else (error.to_block or first)
    named = BlockRange(max(first, covered.first), min(last, covered.last))
    return named if named.first <= named.last else covered


@dataclass
class Collector:
    """Collects on one network, at one head.

    Attributes:
        capabilities: capabilities of its node.
        final_number: newest final block.
        purpose: class of work to which its requests count.
        unread: units that cannot be read.
    """

    connection: duckdb.DuckDBPyConnection
    node: Node
    capabilities: frozenset[str]
    final_number: int
    batch_id: int
    report: NetworkReport
    purpose: WorkClass = WorkClass.LIVE

    def __post_init__(self) -> None:
        self.unread = Unread(self.connection, self.network, self.batch_id)
        self.node.stored, self.node.unread = self, self.unread

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

        A block that cannot be read, while the node reads others, is left out for the addresses concerned.

        Raises:
            ExtractError: the node gave no usable answer for other blocks either; the parts yielded before remain
                stored.
            HashMismatchError: the chain changed while it was read.
        """
        pieces = deque([_Piece(segment)])
        while pieces:
            piece = pieces.popleft()
            done = piece.segment.covered.first - 1
            self.node.hurry(piece.is_doubtful)
            try:
                for written in self._from_node(piece.segment):
                    done = written.covered.last
                    yield written
            except _OF_ONE_BLOCK as raised:
                error = self._unless_moved(raised)
                if not error.is_divisible:
                    raise
                covered = BlockRange(done + 1, piece.segment.covered.last)
                yield from self._apart(piece.segment._replace(covered=covered), error, pieces, segment.covered.last)
            finally:
                self.node.hurry(False)

    def _from_node(self, segment: Segment) -> Generator[Segment]:
        return self.take(segment, self.node.collect(segment, self.final_number), None)

    def _unless_moved(self, error: ExtractError | HashMismatchError) -> ExtractError:
        """Return the error of a block; if its rows name another block, and the chain did not move, they are malformed.

        Raises:
            ChainReorganised, HashMismatchError: a stored block left the chain.
        """
        if not isinstance(error, ChainReorganised | HashMismatchError):
            return error
        number = error.block_number
        row = self.connection.execute("select max(block_number) from raw.blocks where network = ?", [self.network])
        ((newest,),) = row.fetchall()
        stored = hashes_of(self.connection, self.network, sorted({number, number if newest is None else newest}))
        read = self.node.headers(sorted(stored)) if stored else None
        if read is not None and dict(read.select("block_number", "block_hash").iter_rows()) != stored:
            raise error
        call = error.call if isinstance(error, ChainReorganised) else self.node.header_call
        return MalformedAnswer(self.network, call, number, number, "the answer is of another block")

    def _apart(self, failed: Segment, error: ExtractError, pieces: deque["_Piece"], end: int) -> Generator[Segment]:
        """Put the parts of a failed segment before the other pieces, or leave out a single block of one address.

        Raises:
            ExtractError: the node does not read neighbouring blocks either.
        """
        first, last = failed.covered
        try:
            self._check_neighbours(failed, end)
        except OF_ONE_UNIT:
            raise error from None
        if first < last:
            named = _named(error, failed.covered)
            middle = (named.first + named.last) // 2
            edges = sorted({first, named.first, middle + 1, named.last + 1, last + 1})
            parts = [
                _Piece(failed._replace(covered=BlockRange(low, high - 1)), is_doubtful=named.first <= low <= named.last)
                for low, high in pairwise(edges)
            ]
        elif len(failed.addresses) > 1 and self._is_readable(failed):
            half = len(failed.addresses) // 2
            halves = (failed.addresses[:half], failed.addresses[half:])
            parts = [_Piece(failed._replace(addresses=addresses), is_doubtful=True) for addresses in halves]
        else:
            yield from self._leave_out(failed, error)
            return
        pieces.extendleft(reversed(parts))

    def _check_neighbours(self, failed: Segment, last: int) -> None:
        """Read a block before the failed ones, and one behind them up to `last`, where there is any.

        Raises:
            ExtractError: the node cannot read these either.
        """
        unread = {unit.block for unit, _ in self.unread.blocks()}
        below = failed.covered.first - 1
        while below in unread:
            below -= 1
        above = [failed.covered.last + distance for distance in _DISTANCES if failed.covered.last + distance <= last]
        self.node.hurry(True)
        if below >= 0:
            self.node.check(failed.kind, below, failed.addresses)
        for number in above:
            try:
                self.node.check(failed.kind, number, failed.addresses)
                return
            except OF_ONE_UNIT:
                if number == above[-1]:
                    raise

    def _is_readable(self, segment: Segment) -> bool:
        """Return whether the node reads a single block for an unused address."""
        try:
            self.node.check(segment.kind, segment.covered.first)
        except OF_ONE_UNIT:
            return False
        return True

    def _leave_out(self, block: Segment, error: ExtractError) -> Generator[Segment]:
        """Read a block once more where waiting cannot help; if it fails again, leave it out for its addresses."""
        is_proven = not isinstance(error, PASSING)
        if is_proven:
            try:
                yield from self._from_node(block)
                return
            except _OF_ONE_BLOCK as again:
                error = self._unless_moved(again)
        self.note(error, f"left out, and tried again: {error}")
        number = block.covered.first
        for address in block.addresses:
            unit = Unit("block", address, block.kind, number)
            self.unread.failed(unit, error, is_proven=is_proven, is_final=number <= self.final_number)

    def try_again(self) -> None:
        """Read blocks that are due for another try, within a small part of the network's time.

        Raises:
            ExtractError, HashMismatchError: as `collect`, about the node or the chain.
        """
        until = time.monotonic() + SHARE * self.node.seconds
        self.node.hurry(True)
        try:
            for unit in self.unread.due(("block", "traces")):
                if time.monotonic() >= until:
                    return
                assert unit.block is not None
                try:
                    if unit.kind == "block":
                        self._read_block(unit)
                    else:
                        self._trace(unit)
                except _OF_ONE_BLOCK as raised:
                    is_final = unit.block <= self.final_number
                    self.unread.failed(unit, self._unless_moved(raised), is_proven=False, is_final=is_final)
                else:
                    self.unread.worked(unit)
        finally:
            self.node.hurry(False)

    def _read_block(self, unit: Unit) -> None:
        assert unit.block is not None
        kind = cast(Kind, unit.part)
        for _ in self._from_node(Segment(kind, BlockRange(unit.block, unit.block), (unit.address,))):
            pass

    def _trace(self, unit: Unit) -> None:
        """Trace a block again for the wallets that have its other rows."""
        assert unit.block is not None
        block = BlockRange(unit.block, unit.block)
        wallets = [
            watched.address
            for watched, ranges in read_coverage(self.connection, self.network).items()
            if watched.kind == "native" and intersection(ranges, [block])
        ]
        if not wallets:
            return
        segment = Segment("native", block, tuple(wallets))
        for part in self.node.collect(segment, self.final_number):
            for error in (*part.unread, *part.untraced.values()):
                raise error
            self.store_headers([unit.block])
            replace_rows(self.connection, self.network, segment, part.rows, self.batch_id)

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
        for error in (*part.unread, *part.untraced.values()):
            self.note(error, f"movements are booked by balance: {error}")
        for number, error in part.untraced.items():
            is_final = number <= self.final_number
            is_proven = not isinstance(error, PASSING)
            self.unread.failed(Unit("traces", "", "", number), error, is_proven=is_proven, is_final=is_final)
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
