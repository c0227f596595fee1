"""Second readings: read collected ranges again, compare the rows, and judge differences.

A node behind a load balancer can omit rows without an error, and a node can lie. So each range is read a second time
once it is final: in a later cycle, on another connection, and in other pieces. With several providers, the second
reading comes from another one. The later reading is not right just because it is later. The block decides: its
receipts, recomputed to its hash. Without them, a third reading in a later cycle decides, two against one. Until then
nothing is removed or added, and the network's status is Inconsistent.

The network's `verification` sets the extent: everything, or a sample that no node can foresee.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from itertools import islice
from typing import NamedTuple

import polars as pl

from control.networks import sampling
from control.networks.definitions import Verification
from control.ranges import FIRST_BLOCK, BlockRange, difference, intersection
from pipelines.chain.comparison import differing_blocks, fingerprint, height, of_segment, sample, within
from pipelines.chain.coverage import Watched, read_coverage, read_verified, record_verified, tracked_kind
from pipelines.chain.disputes import (
    Answer,
    read_answers,
    read_disputed,
    read_doubted,
    read_seed,
    read_tracked,
    record_answer,
    record_verification,
)
from pipelines.chain.missing import segments_of
from pipelines.chain.rows import Replaced, read_rows, replace_rows
from pipelines.chain.segments import Collector, record_others
from pipelines.extract.errors import OF_ONE_UNIT, PASSING, ExtractError, MalformedAnswer, NotProvable
from pipelines.extract.family import PROVABLE, Node
from pipelines.raw.database import transaction
from pipelines.raw.usage import read_budget
from pipelines.rows import Segment, WorkClass
from pipelines.tables.families import ROW_TABLES

# Number and length of the ranges that one cycle verifies at most: live tracking does not wait for the rest.
RANGES_PER_CYCLE = 20
BLOCKS_PER_RANGE = sampling.BLOCKS_PER_RANGE
# A reading of native value reads whole blocks and their traces.
NATIVE_RANGES_PER_CYCLE = 5
NATIVE_BLOCKS_PER_RANGE = 100
# Judging a block costs a request for its receipts.
_BLOCKS_JUDGED_PER_CYCLE = 200


class _Piece(NamedTuple):
    """A range that is read in one go.

    Attributes:
        segment: the blocks to read.
        wanted: the blocks of the segment to compare.
    """

    segment: Segment
    wanted: list[BlockRange]
    is_sampled: bool = False


@dataclass
class _Verdict:
    """Judgements of the blocks of a part in which two readings differ.

    Attributes:
        open: by address, the blocks without a judgement.
        judges: the ways in which the other blocks were judged.
        removed, added: numbers of rows.
    """

    open: dict[str, list[int]] = field(default_factory=lambda: defaultdict(list))
    judges: set[str] = field(default_factory=set)
    removed: int = 0
    added: int = 0

    def count(self, judge: str, replaced: Replaced) -> None:
        """Count the rows that one judgement replaced."""
        self.judges.add(judge)
        self.removed += replaced.removed
        self.added += replaced.added


def verify(collector: Collector) -> None:
    """Verify some of the final ranges that earlier cycles collected and that are not verified yet.

    A failed second reading is recorded and retried in a later cycle; it stops no other. No piece is read after the
    network's requests of the day are used up.
    """
    connection, network = collector.connection, collector.network
    pending = _pending_pieces(collector)
    if not pending:
        return
    record_others(connection, collector.node, collector.purpose)
    with closing(collector.node.other()) as second:
        verifier = _Verifier(collector, second)
        try:
            for piece in pending:
                if read_budget(connection, network).waits_until is not None:
                    return
                try:
                    verifier.verify(piece)
                except OF_ONE_UNIT as error:
                    if isinstance(error, PASSING):
                        raise
                    collector.note(error, f"second reading: {error}")
                record_others(connection, second, WorkClass.SECOND_READING)
        except ExtractError as error:
            collector.note(error, f"second reading: {error}")
        finally:
            record_others(connection, second, WorkClass.SECOND_READING)
            record_others(connection, collector.node, WorkClass.SECOND_READING)


def _pending_pieces(collector: Collector) -> list[_Piece]:
    """Choose the pieces of this cycle. Disputed blocks have a quarter of the places, so that other pieces advance."""
    connection, network = collector.connection, collector.network
    mode = collector.node.network.verification
    in_full, verified = read_verified(connection, network)
    # Most addresses have nothing left, and cost no more than this.
    left = {
        watched: missing
        for watched, ranges in read_coverage(connection, network).items()
        if watched.kind in collector.node.reread_kinds
        and (missing := difference(_up_to(ranges, collector.final_number), in_full.get(watched, [])))
    }
    if not left:
        return []
    disputed = read_disputed(connection, network)
    tracked = read_tracked(connection, network)
    has_samples = any(intersection(ranges, verified.get(watched, [])) for watched, ranges in left.items())
    doubted = read_doubted(connection, network) if has_samples and mode is not Verification.OFF else {}
    wanted: dict[Watched, list[BlockRange]] = {}
    sampled: dict[Watched, list[BlockRange]] = {}
    open_: dict[Watched, list[BlockRange]] = {}
    for watched, ranges in left.items():
        open_[watched] = intersection(ranges, disputed.get(watched, []))
        wanted[watched] = intersection(ranges, doubted.get(watched, []))
        if mode is Verification.FULL:
            wanted[watched] = ranges
        elif mode is None:
            of_subject = Watched(tracked_kind(watched.kind), watched.address)
            wanted[watched] += intersection(ranges, tracked.get(of_subject, []))
        sampled[watched] = [] if mode is Verification.OFF else difference(ranges, [*wanted[watched], *open_[watched]])
        wanted[watched] = difference(wanted[watched], open_[watched])
    most_open = max(RANGES_PER_CYCLE // 4, 1)
    pieces = list(islice(_pieces(segments_of(open_, in_full), BLOCKS_PER_RANGE), most_open))
    most_native = NATIVE_RANGES_PER_CYCLE
    for piece in _pieces(segments_of(wanted, in_full), BLOCKS_PER_RANGE):
        if len(pieces) == RANGES_PER_CYCLE:
            return pieces
        most_native -= piece.segment.kind == "native"
        if most_native >= 0 or piece.segment.kind != "native":
            pieces.append(piece)
    samples = _pieces(segments_of(sampled, verified), sampling.BLOCKS_PER_SAMPLE)
    return pieces + [piece._replace(is_sampled=True) for piece in islice(samples, RANGES_PER_CYCLE - len(pieces))]


def _up_to(ranges: Iterable[BlockRange], last: int) -> list[BlockRange]:
    return [BlockRange(one.first, min(one.last, last)) for one in ranges if one.first <= last]


def _pieces(segments: Iterable[Segment], width: int) -> Iterator[_Piece]:
    """Cut segments to a width, and join neighbouring parts within it to one piece."""
    piece: _Piece | None = None
    widest = width
    for segment in segments:
        width = min(widest, NATIVE_BLOCKS_PER_RANGE) if segment.kind == "native" else widest
        for first in range(segment.covered.first, segment.covered.last + 1, width):
            part = BlockRange(first, min(first + width - 1, segment.covered.last))
            if piece is not None and (piece.segment.kind, piece.segment.addresses) == (segment.kind, segment.addresses):
                hull = BlockRange(piece.segment.covered.first, part.last)
                if hull.first <= part.first and hull.last - hull.first < width:
                    piece = _Piece(segment._replace(covered=hull), [*piece.wanted, part])
                    continue
            if piece is not None:
                yield piece
            piece = _Piece(segment._replace(covered=part), [part])
    if piece is not None:
        yield piece


class _Verifier:
    """Reader of pieces; it counts the cycle's judgements."""

    def __init__(self, collector: Collector, second: Node) -> None:
        self.collector = collector
        self.second = second
        self.judged = 0
        self.is_told = False

    def verify(self, piece: _Piece) -> None:
        """Read a piece, compare and judge it, and record it as verified; a sample that differs is read in full."""
        if not piece.is_sampled:
            self._read(piece.segment, piece.wanted, is_recorded=True)
            return
        covered = piece.segment.covered
        seed = read_seed(self.collector.connection, self.collector.network)
        is_equal = True
        for chosen in sample(covered, seed):
            is_equal &= self._read(piece.segment._replace(covered=chosen), [chosen], is_recorded=False)
        if not is_equal:
            self.verify(piece._replace(is_sampled=False))
            return
        segment = piece.segment
        record_verified(
            self.collector.connection,
            self.collector.network,
            segment.kind,
            segment.addresses,
            covered,
            is_sampled=True,
        )

    def _read(self, segment: Segment, wanted: Sequence[BlockRange], *, is_recorded: bool) -> bool:
        """Read a segment and compare the wanted blocks; return whether nothing differs.

        It begins one block early, so that the request never equals the one of the first reading.
        """
        first, last = segment.covered
        earlier = max(first - 1, FIRST_BLOCK)
        if any(unit.block == earlier for unit, _ in self.collector.unread.blocks()):
            earlier = first
        asked = segment._replace(covered=BlockRange(earlier, last))
        is_equal = True
        for part in self.second.collect(asked, self.collector.final_number):
            untraced = [BlockRange(number, number) for number in part.untraced]
            blocks = difference(intersection(wanted, [part.covered]), untraced)
            if not blocks or part.unread:
                continue
            of_part = segment._replace(covered=BlockRange(blocks[0].first, blocks[-1].last))
            read = {name: within(frame, blocks) for name, frame in part.rows.items()}
            stored = {
                name: within(
                    read_rows(self.collector.connection, self.collector.network, ROW_TABLES[name], of_part), blocks
                )
                for name in read
            }
            differing = differing_blocks(of_part, stored, read)
            is_equal &= not differing
            if is_recorded:
                self._record(of_part, blocks, stored, read, self._judge(of_part, differing, stored, read))
        return is_equal

    def _judge(
        self,
        segment: Segment,
        differing: Mapping[int, list[str]],
        stored: Mapping[str, pl.DataFrame],
        read: Mapping[str, pl.DataFrame],
    ) -> _Verdict:
        verdict = _Verdict()
        blocks = sorted(differing)
        judged = blocks[: _BLOCKS_JUDGED_PER_CYCLE - self.judged]
        self.judged += len(judged)
        if len(judged) < len(blocks):
            # A later cycle reads the others again.
            for address in segment.addresses:
                verdict.open[address] += blocks[len(judged) :]
        hashes = self.collector.stored_hashes(judged)
        for block in judged:
            one = segment._replace(covered=BlockRange(block, block))
            proven = self._proven(one, hashes)
            if proven is None:
                self._vote(one, differing[block], hashes[block], stored, read, verdict)
            else:
                verdict.count("Proof", self._replace(one, proven))
        return verdict

    def _proven(self, segment: Segment, hashes: Mapping[int, str]) -> Mapping[str, pl.DataFrame] | None:
        """Read the rows of a block from any provider that can prove them; None where none can."""
        if segment.kind == "native":
            return None
        node, block = self.collector.node, segment.covered.first
        judges = [node] if PROVABLE in self.collector.capabilities else []
        if self.second.provider != node.provider:
            judges.append(self.second)
        for judge in judges:
            try:
                return judge.proven(segment, {block: hashes[block]})
            except NotProvable as error:
                if not self.is_told:
                    self.collector.note(error, f"second reading: {error}")
                # One error for all blocks is enough.
                self.is_told = True
        return None

    def _replace(self, segment: Segment, rows: Mapping[str, pl.DataFrame]) -> Replaced:
        return replace_rows(self.collector.connection, self.collector.network, segment, rows, self.collector.batch_id)

    def _vote(
        self,
        segment: Segment,
        addresses: Sequence[str],
        block_hash: str,
        stored: Mapping[str, pl.DataFrame],
        read: Mapping[str, pl.DataFrame],
        verdict: _Verdict,
    ) -> None:
        """Accept the rows of one block if two readings agree; the stored rows are the first reading."""
        collector, block = self.collector, segment.covered.first
        for address in addresses:
            of_address = segment._replace(addresses=(address,))
            given = {name: of_segment(frame, name, of_address) for name, frame in read.items()}
            if any((frame["block_hash"] != block_hash).any() for frame in given.values()):
                detail = f"rows of block {block} name another hash than its stored header"
                raise MalformedAnswer(collector.network, self.second.header_call, block, block, detail)
            known = {name: of_segment(frame, name, of_address) for name, frame in stored.items()}
            answer = Answer(Watched(segment.kind, address), block, fingerprint(given), height(known), height(given))
            earlier = read_answers(collector.connection, collector.network, answer, collector.batch_id)
            if answer.fingerprint in earlier:
                verdict.count("Majority", self._replace(of_address, given))
                continue
            record_answer(collector.connection, collector.network, answer, self.second.provider, collector.batch_id)
            verdict.open[address].append(block)

    def _record(
        self,
        segment: Segment,
        blocks: Sequence[BlockRange],
        stored: Mapping[str, pl.DataFrame],
        read: Mapping[str, pl.DataFrame],
        verdict: _Verdict,
    ) -> None:
        """Record the verified blocks of a part, and the differences."""
        collector = self.collector
        by_open: dict[tuple[int, ...], list[str]] = defaultdict(list)
        for address in segment.addresses:
            by_open[tuple(sorted(verdict.open.get(address, ())))].append(address)
        with transaction(collector.connection):
            for numbers, addresses in by_open.items():
                for range_ in difference(blocks, [BlockRange(number, number) for number in numbers]):
                    record_verified(
                        collector.connection, collector.network, segment.kind, addresses, range_, is_sampled=False
                    )
            if verdict.judges or verdict.open:
                collector.report.corrected_ranges += bool(verdict.removed or verdict.added)
                record_verification(
                    collector.connection,
                    collector.network,
                    segment.covered,
                    self.second.provider,
                    (height(stored), height(read)),
                    (verdict.removed, verdict.added),
                    "Open" if verdict.open else " and ".join(sorted(verdict.judges)),
                    collector.batch_id,
                )
