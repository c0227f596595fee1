"""Missing past of tokens and wallets from the files of data sets, one unit of files after the other.

A unit is staged, checked against the node, and stored part by part, each part with its coverage in one transaction. A
refused unit leaves nothing behind, and its blocks are read from the node. A unit that the store lists and does not
give is left out, and tried again later; the node gives its blocks.
"""

import time
from collections import defaultdict
from collections.abc import Generator, Iterable, Iterator
from datetime import UTC, date
from pathlib import Path

import duckdb

from control.networks.data_sets import DataSet
from control.networks.definitions import Network
from control.ranges import BlockRange, intersection
from pipelines.chain.coverage import Watched, record_verified
from pipelines.chain.finality import read_known_chain
from pipelines.chain.missing import missing_segments, segments_of
from pipelines.chain.segments import Collector, log_words
from pipelines.chain.states import record_failure
from pipelines.data_sets.checking import check
from pipelines.data_sets.errors import FileRefused, FilesUnreadable
from pipelines.data_sets.listing import Unit, list_units
from pipelines.data_sets.reader import Reader, open_reader
from pipelines.data_sets.records import (
    due_data_sets,
    has_listed,
    known_blocks,
    note_listing,
    record_blocks,
    record_listing,
    record_read,
    record_refused,
    refused_files,
)
from pipelines.data_sets.staged import Staged
from pipelines.data_sets.staging import (
    Wanted,
    drop_staged,
    is_checked,
    note_checked,
    read_claims,
    stage,
)
from pipelines.extract.families import family_of
from pipelines.extract.family import Header, Part
from pipelines.extract.units import Unit as NetworkUnit
from pipelines.raw.database import transaction
from pipelines.rows import Kind, Origin, Segment

_CALL = "files"
# Units in a row that the store does not give.
_MOST_FAILING = 3


def read_data_sets(collector: Collector, head: Header, staging: Path) -> Generator[Segment | None]:
    """Read the missing past of a network from its data sets, in steps.

    Args:
        collector: collects on the network.
        head: newest block of the node.
        staging: folder for rows until they are checked and stored.

    Yields:
        After each step: the blocks that were stored, or None where a step stored nothing yet.

    Raises:
        FilesUnreadable: a store of files does not answer; nothing is known about the blocks.
        ExtractError: the node gave no usable answer to a check.
        HashMismatchError: the chain changed while it was read.
    """
    data_sets = collector.node.network.data_sets
    with open_reader(_database(staging, collector.network), collector.network, data_sets) as reader:
        for data_set in data_sets:
            yield from _DataSetReading(collector, head, reader, data_set).steps()


def list_due_data_sets(
    connection: duckdb.DuckDBPyConnection, networks: Iterable[Network], staging: Path, batch_id: int
) -> None:
    """Record the files of data sets that were not listed for an hour, for estimates; a failure is recorded, too."""
    for network in networks:
        due = due_data_sets(connection, network.name, network.data_sets)
        if not due:
            continue
        with open_reader(_database(staging, network.name), network.name, due) as reader:
            for data_set in due:
                try:
                    _listed(connection, network, reader, data_set, batch_id)
                except FilesUnreadable as error:
                    log_words(error)
                    note_listing(connection, network.name, data_set.name, str(error))


def _database(staging: Path, network: str) -> Path:
    return staging / f"{network}.staged"


def _listed(
    connection: duckdb.DuckDBPyConnection, network: Network, reader: Reader, data_set: DataSet, batch_id: int
) -> list[Unit]:
    """List the units of a data set that may be used, and record all of them.

    Raises:
        FilesUnreadable: the store does not answer, or lists no files although it did before.
    """
    try:
        units = _units_of(network, reader, data_set)
    except FileRefused as error:
        record_failure(connection, network.name, _CALL, (None, None), f"{data_set.name}: {error}", batch_id)
        note_listing(connection, network.name, data_set.name, str(error))
        return []
    if not units and has_listed(connection, network.name, data_set):
        # An error of the store, or a folder that is not mounted, looks like this.
        detail = f"{data_set.name} lists no files, but had some; if they are gone, remove it from the definition"
        raise FilesUnreadable(network.name, _CALL, detail=detail)
    record_listing(connection, network.name, data_set.name, units)
    note_listing(connection, network.name, data_set.name, None)
    refused = refused_files(connection, network.name, data_set.name)
    return [unit for unit in units if refused.isdisjoint(file.path for file in unit.files)]


def _units_of(network: Network, reader: Reader, data_set: DataSet) -> list[Unit]:
    form = family_of(network).data_set_forms[data_set.form]
    return list_units(reader, data_set, next(iter(form.rows.values())).name)


class _DataSetReading:
    """Reading of one data set."""

    def __init__(self, collector: Collector, head: Header, reader: Reader, data_set: DataSet) -> None:
        self.collector = collector
        self.head = head
        self.reader = reader
        self.data_set = data_set
        self.form = family_of(collector.node.network).data_set_forms[data_set.form]
        self.missing: dict[Watched, list[BlockRange]] = {}

    def steps(self) -> Generator[Segment | None]:
        """Read all units that have missing blocks; see `read_data_sets`."""
        collector = self.collector
        units = _listed(collector.connection, collector.node.network, self.reader, self.data_set, collector.batch_id)
        known = known_blocks(collector.connection, collector.network, self.data_set.name)
        yield None
        self.missing = self._read_missing()
        days = self._days() if any(unit.day for unit in units) else None
        unread, failing = collector.unread, 0
        gone = unread.addresses_of("file").difference(unit.files[0].path for unit in units)
        unread.forget("file", {path for path in gone if path.startswith(self.data_set.folder)})
        due = unread.due(["file"])
        for unit in units:
            if unit.day is not None and (days is None or not days[0] <= unit.day <= days[1]):
                continue
            name = NetworkUnit("file", unit.files[0].path)
            if name not in due and unread.left_out(name) is not None:
                continue
            try:
                yield from self._read(unit, unit.blocks or known.get(name.address))
            except FileRefused as error:
                self._refuse(unit, str(error))
                self.missing = self._read_missing()
                yield None
            except FilesUnreadable as error:
                failing += 1
                self._leave_out(name, error, is_last=failing == _MOST_FAILING)
                yield None
            else:
                failing = 0
                unread.worked(name)

    def _read_missing(self) -> dict[Watched, list[BlockRange]]:
        """Return the final blocks that are missing, of the kinds of rows that the form has."""
        kinds: set[Kind] = {"token", "wallet"} if self.form.coverage is None else {"token", "wallet", "native"}
        missing: dict[Watched, list[BlockRange]] = defaultdict(list)
        for segment in missing_segments(
            self.collector.connection, self.collector.network, self.head.number, is_live=False
        ):
            first, last = segment.covered
            if segment.kind in kinds and first <= self.collector.final_number:
                for address in segment.addresses:
                    blocks = BlockRange(first, min(last, self.collector.final_number))
                    missing[Watched(segment.kind, address)].append(blocks)
        return missing

    def _days(self) -> tuple[date, date] | None:
        """Return the days of the first and the last missing block; None where none is missing."""
        ranges = [one for ranges in self.missing.values() for one in ranges]
        if not ranges:
            return None
        ends = sorted({min(one.first for one in ranges), max(one.last for one in ranges)})
        times = self.collector.node.headers(ends)["block_time"]
        return times[0].replace(tzinfo=UTC).date(), times[-1].replace(tzinfo=UTC).date()

    def _read(self, unit: Unit, blocks: BlockRange | None) -> Generator[Segment | None]:
        """Read a unit; `blocks` are its blocks, None where they are not known yet."""
        began = time.monotonic()
        missing = self.missing if blocks is None else self._within(blocks)
        if not missing:
            return
        claims = read_claims(self.reader, unit, self.form)
        if claims is not None:
            missing = {watched: intersection(ranges, claims.get(watched, [])) for watched, ranges in missing.items()}
        addresses: dict[Kind, set[str]] = defaultdict(set)
        wanted_blocks: list[BlockRange] = []
        for watched, ranges in missing.items():
            if ranges:
                addresses[watched.kind].add(watched.address)
                wanted_blocks += ranges
        if not wanted_blocks:
            return
        hull = BlockRange(min(one.first for one in wanted_blocks), max(one.last for one in wanted_blocks))
        chain = read_known_chain(self.collector.connection, self.collector.network).genesis_hash or ""
        wanted = Wanted({kind: frozenset(named) for kind, named in addresses.items()}, hull, chain)
        family = self.collector.node.network.family
        staged, duplicates = stage(self.reader, family, unit, self.form, wanted, self.head.number)
        yield None
        blocks = blocks or staged.bounds()
        if blocks is not None:
            record_blocks(self.collector.connection, self.collector.network, unit, blocks)
            held = {watched: intersection(ranges, [blocks]) for watched, ranges in missing.items()}
            yield from self._store(unit, staged, segments_of(held, {}), duplicates, began)
            # Two units may hold the same blocks.
            self.missing = self._read_missing()
        drop_staged(self.reader)

    def _within(self, blocks: BlockRange) -> dict[Watched, list[BlockRange]]:
        held = {watched: intersection(ranges, [blocks]) for watched, ranges in self.missing.items()}
        return {watched: ranges for watched, ranges in held.items() if ranges}

    def _store(
        self, unit: Unit, staged: Staged, segments: list[Segment], duplicates: int, began: float
    ) -> Generator[Segment | None]:
        if not segments:
            return
        collector = self.collector
        checked = None
        if not is_checked(self.reader, segments):
            checked = check(collector, self.head, staged, segments)
            note_checked(self.reader, segments)
            yield None
        origin = Origin(f"data set {self.data_set.name}", self.data_set.name, "files")
        for segment in segments:
            for written in collector.take(segment, self._parts(staged, segment), origin, began):
                # The comparison with the node was a second reading of a sample.
                with transaction(collector.connection):
                    record_verified(
                        collector.connection,
                        collector.network,
                        written.kind,
                        written.addresses,
                        written.covered,
                        is_sampled=True,
                    )
                yield written
            began = time.monotonic()
        record_read(
            collector.connection,
            collector.network,
            unit,
            checked or "compared with the node in an earlier cycle",
            staged.row_count(),
            duplicates,
        )

    def _parts(self, staged: Staged, segment: Segment) -> Iterator[Part]:
        for covered in staged.parts(segment):
            rows = staged.rows(segment._replace(covered=covered))
            yield Part(covered, rows, headers=staged.headers(covered))

    def _leave_out(self, name: NetworkUnit, error: FilesUnreadable, *, is_last: bool) -> None:
        """Leave out a unit that the store does not give until its next try.

        Args:
            is_last: with this unit, as many failed in a row as mean that the store is at fault.

        Raises:
            FilesUnreadable: the store is at fault.
        """
        collector = self.collector
        drop_staged(self.reader)
        if is_last:
            raise error
        _units_of(collector.node.network, self.reader, self.data_set)
        log_words(error)
        collector.unread.failed(name, error, is_proven=False)

    def _refuse(self, unit: Unit, reason: str) -> None:
        collector = self.collector
        drop_staged(self.reader)
        detail = f"{self.data_set.name}: {unit.name}: {reason}"
        record_refused(collector.connection, collector.network, unit, detail)
        record_failure(
            collector.connection, collector.network, _CALL, unit.blocks or (None, None), detail, collector.batch_id
        )
