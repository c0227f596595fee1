"""Estimated requests of future work to a network's node, from the pace of past collection."""

from bisect import bisect_left
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime, time, timedelta
from operator import attrgetter
from typing import Literal, NamedTuple

from api.engine.rows import as_utc
from api.engine.serving import Snapshot
from api.http.calls import Call
from api.operations.reading import to_history_operation
from api.operations.rows import CollectionPaceRow, DataFilesRow, NetworkHeadRow
from api.operations.schemas import FilesEstimate, HistoryEstimate, HistoryOperation, SecondReadings
from api.subjects.rows import CoverageRow
from control import operations
from control.history import Bound, BoundKind, native_mode, parse_range
from control.networks import sampling
from control.networks.definitions import NativeMode, Network, Verification
from control.ranges import FIRST_BLOCK, BlockRange, difference
from control.subjects import Kind, SubjectRow
from control.tracking import Tracking

_MILLION = 1_000_000
_MICROSECOND = timedelta(microseconds=1)
# Requests for a range, and for a stretch of a sample, while requests still cover few blocks.
_REQUESTS_PER_RANGE = 5
_REQUESTS_PER_STRETCH = 3


class Cost(NamedTuple):
    """Cost of work at the node: requests, bytes of responses, and seconds of reading; all rounded up."""

    requests: int
    answer_bytes: int
    seconds: int


class _Range(NamedTuple):
    first: int
    last: int
    is_at_most: bool


class _Head(NamedTuple):
    """Newest block of a network.

    Attributes:
        spacing: a number of blocks, and the microseconds between the first and the last of them; None if unknown.
    """

    network: str
    number: int
    time: datetime
    spacing: tuple[int, int] | None


class _Unknown(Exception):
    """The blocks of a request cannot be determined; the message says why."""


def read_estimate(
    call: Call, subject: SubjectRow, first: Bound, last: Bound, native: str | None = None
) -> HistoryEstimate:
    """Estimate the uncollected part of a history request; for the arguments see `estimate_history`."""
    with call.store.read() as session:
        creation = operations.known_creation(session, subject)
    network = call.services.networks.get(subject.network)
    if network is None:
        return _estimate(None, "RangeUnknown", f"{subject.network} is no longer defined")
    with call.snapshot() as snapshot:
        return estimate_history(snapshot, network, subject, first, last, native, creation)


def to_tracking_history(call: Call, tracking: Tracking) -> tuple[HistoryOperation | None, HistoryEstimate | None]:
    """Return the history request made together with tracking; for a dry run, return its estimate instead."""
    asked = tracking.history
    if asked is None:
        return None, None
    if not tracking.is_dry_run:
        return to_history_operation(asked), None
    return None, read_estimate(call, tracking.subject, *parse_range(asked.from_text, asked.to_text))


def cost_of(snapshot: Snapshot, network: str, work: Mapping[str, int]) -> Cost | None:
    """Return the cost of a number of units of each kind of work; None if the network has no observations of a kind."""
    paces = {row.work: row for row in snapshot.rows("collection_paces", CollectionPaceRow, network=network)}
    asked = {kind: units for kind, units in work.items() if units}
    if not asked.keys() <= paces.keys():
        return None
    requests = sum(units * paces[kind].requests_per_million for kind, units in asked.items())
    answer_bytes = sum(units * paces[kind].answer_bytes_per_million for kind, units in asked.items())
    milliseconds = sum(units * paces[kind].milliseconds_per_million for kind, units in asked.items())
    return Cost(-(-requests // _MILLION), -(-answer_bytes // _MILLION), -(-milliseconds // (1_000 * _MILLION)))


def estimate_history(
    snapshot: Snapshot,
    network: Network,
    subject: SubjectRow,
    first: Bound,
    last: Bound,
    native: str | None,
    creation: int | None,
) -> HistoryEstimate:
    """Estimate the uncollected part of a history request.

    Args:
        snapshot: the version in force.
        network: the definition of the subject's network.
        subject: the token or wallet.
        first: start of the range.
        last: end of the range.
        native: requested mode for native value.
        creation: first block of the subject; None if it is unknown.
    """
    try:
        head = _read_head(snapshot, network)
        covered = _range(head, subject, first, last, creation)
    except _Unknown as error:
        return _estimate(network, "RangeUnknown", str(error))
    missing = _missing(snapshot, subject, covered)
    files, without_files = _files(snapshot, network, head, missing)
    blocks, blocks_of_node = _count(missing), _count(without_files)
    mode = None
    work: dict[str, int] = {subject.kind: blocks_of_node}
    if subject.kind is Kind.WALLET:
        mode = native_mode(native, covered.last - covered.first + 1, network.native)
        if mode is NativeMode.FULL:
            work["native"] = blocks
    cost = cost_of(snapshot, network.name, work)
    details = []
    if covered.is_at_most:
        details.append(
            "the block of the contract's creation is not known yet; all blocks from the first one on are counted"
        )
    if cost is None:
        details.append(f"no past range of this kind was collected from the node of {network.name} yet")
    status: Literal["Estimated", "AtMost", "NothingObserved"] = "AtMost" if covered.is_at_most else "Estimated"
    read_once = cost_of(snapshot, network.name, {subject.kind: blocks_of_node})
    return _estimate(
        network,
        "NothingObserved" if cost is None else status,
        "; ".join(details) or None,
        covered,
        blocks,
        mode,
        cost,
        None if read_once is None else _second_readings(network, subject.kind, blocks_of_node, read_once.requests),
        files,
    )


def _second_readings(network: Network, kind: Kind, blocks: int, requests: int) -> SecondReadings:
    """Estimate the requests of a second reading of transfers from those of the first one.

    Requests cover few blocks at the start of each range. A wallet needs two: as sender and as recipient.
    """
    alternatives = 2 if kind is Kind.WALLET else 1
    ranges = -(-blocks // sampling.BLOCKS_PER_RANGE)
    samples = -(-blocks // sampling.BLOCKS_PER_SAMPLE)
    stretches = -(-blocks // (sampling.STRETCH * sampling.STRETCHES_PER_CHOSEN))
    sampled = max(stretches * _REQUESTS_PER_STRETCH * alternatives, -(-requests // sampling.STRETCHES_PER_CHOSEN))
    full = max(ranges * _REQUESTS_PER_RANGE * alternatives, requests)
    return SecondReadings(
        mode=(network.verification or Verification.SAMPLE).value,
        full=full,
        sample=min(samples * 2 * alternatives + sampled, full),
        off=0,
    )


def _estimate(
    network: Network | None,
    status: Literal["Estimated", "AtMost", "RangeUnknown", "NothingObserved"],
    detail: str | None,
    covered: _Range | None = None,
    blocks: int | None = None,
    mode: NativeMode | None = None,
    cost: Cost | None = None,
    second_readings: SecondReadings | None = None,
    files: FilesEstimate | None = None,
) -> HistoryEstimate:
    is_empty = covered is None or covered.last < covered.first
    return HistoryEstimate(
        status=status,
        detail=detail,
        from_block=None if covered is None or is_empty else covered.first,
        to_block=None if covered is None or is_empty else covered.last,
        blocks=blocks,
        native=None if mode is None else mode.value,
        requests=None if cost is None else cost.requests,
        bytes=None if cost is None else cost.answer_bytes,
        seconds=None if cost is None else cost.seconds,
        second_readings=second_readings,
        files=files,
        max_requests_per_day=None if network is None else network.max_requests_per_day,
    )


def _read_head(snapshot: Snapshot, network: Network) -> _Head:
    heads = snapshot.rows("network_head", NetworkHeadRow, network=network.name)
    if not heads or heads[0].head_number is None or heads[0].head_time is None:
        raise _Unknown(f"the head of {network.name} is not known yet")
    row = heads[0]
    number, head_time, tail_time = heads[0].head_number, as_utc(heads[0].head_time), as_utc(row.tail_time)
    spacing = None if network.block_milliseconds is None else (1, network.block_milliseconds * 1_000)
    if tail_time is not None and row.tail_number is not None and tail_time < head_time:
        spacing = number - row.tail_number, (head_time - tail_time) // _MICROSECOND
    return _Head(network.name, number, head_time, spacing)


def _range(head: _Head, subject: SubjectRow, first: Bound, last: Bound, creation: int | None) -> _Range:
    """Return the blocks of a request up to the head; the range is empty if no block is between its bounds."""
    is_at_most = first.kind is BoundKind.CREATION and subject.kind is Kind.TOKEN and creation is None
    if first.kind is BoundKind.CREATION:
        begin = creation or FIRST_BLOCK
    else:
        begin = first.block if first.block is not None else _block_at(head, first.instant)
    if last.kind is BoundKind.NOW:
        end = head.number
    else:
        end = last.block if last.block is not None else _block_at(head, last.instant) - 1
    return _Range(max(begin, FIRST_BLOCK), min(end, head.number), is_at_most)


def _block_at(head: _Head, instant: datetime | None) -> int:
    """Return the approximate first block at or after an instant; for later instants, the block after the head."""
    if instant is None:
        raise _Unknown("a bound is no instant")
    if instant > head.time:
        return head.number + 1
    if head.spacing is None:
        raise _Unknown(f"the time between blocks of {head.network} is not known yet")
    blocks, passed = head.spacing
    return max(head.number - (head.time - instant) // _MICROSECOND * blocks // passed, 0)


def _missing(snapshot: Snapshot, subject: SubjectRow, covered: _Range) -> list[BlockRange]:
    """Return the blocks of a range that are not collected for the subject."""
    if covered.last < covered.first:
        return []
    rows: Sequence[CoverageRow] = snapshot.rows(
        "coverage", CoverageRow, subject_key=subject.subject_key, tenant_id=subject.tenant_id
    )
    collected = [
        BlockRange(row.from_block, row.to_block) for row in rows if row.is_covered and row.to_block is not None
    ]
    return difference([BlockRange(covered.first, covered.last)], collected)


def _files(
    snapshot: Snapshot, network: Network, head: _Head, missing: list[BlockRange]
) -> tuple[FilesEstimate | None, list[BlockRange]]:
    """Estimate the files for missing blocks; return also the blocks that no file has.

    A data set is read only for blocks that those before it in the definition lack. All of them are taken to have
    transfers alone: the estimate ignores native value in files of the form `ledgermart`.
    """
    rows = snapshot.rows("data_files", DataFilesRow, network=network.name) if network.data_sets else []
    names: list[str] = []
    used: list[DataFilesRow] = []
    rest = missing
    for data_set in network.data_sets:
        found = {
            row: covered
            for row in rows
            if row.data_set == data_set.name
            and (covered := _blocks_of(row, head)) is not None
            and _overlaps(covered, rest)
        }
        if found:
            names.append(data_set.name)
            used += found
            rest = difference(rest, found.values())
    if not used:
        return None, missing
    blocks = _count(missing) - _count(rest)
    cost = cost_of(snapshot, network.name, {"files": blocks})
    days = {row.day for row in used} - {None}
    return FilesEstimate(
        data_sets=names,
        files=sum(row.file_count for row in used),
        bytes=sum(row.byte_count for row in used),
        days=len(days) or None,
        blocks=blocks,
        requests=len(used) * sampling.REQUESTS_PER_UNIT if cost is None else cost.requests,
        seconds=None if cost is None else cost.seconds,
    ), rest


def _blocks_of(row: DataFilesRow, head: _Head) -> BlockRange | None:
    """Return the blocks of files, approximate for an unread day; None if it has none or they cannot be estimated."""
    first, last = row.from_block, row.to_block
    if (first is None or last is None) and row.day is not None and head.spacing is not None:
        begin = datetime.combine(row.day, time(), UTC)
        first, last = _block_at(head, begin), _block_at(head, begin + timedelta(days=1)) - 1
    return None if first is None or last is None or last < first else BlockRange(first, last)


def _overlaps(blocks: BlockRange, ranges: Sequence[BlockRange]) -> bool:
    """Return whether blocks are in one of several ranges, which are in order and do not overlap."""
    place = bisect_left(ranges, blocks.first, key=attrgetter("last"))
    return place < len(ranges) and ranges[place].first <= blocks.last


def _count(ranges: Iterable[BlockRange]) -> int:
    return sum(blocks.last - blocks.first + 1 for blocks in ranges)
