"""Estimated requests of future work to a network's node, from the pace of past collection."""

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Literal, NamedTuple

from api.engine.rows import as_utc
from api.engine.serving import Snapshot
from api.http.calls import Call
from api.operations.reading import to_history_operation
from api.operations.rows import CollectionPaceRow, NetworkHeadRow
from api.operations.schemas import HistoryEstimate, HistoryOperation, SecondReadings
from api.subjects.rows import CoverageRow
from control import operations
from control.history import Bound, BoundKind, native_mode, parse_range
from control.networks import sampling
from control.networks.definitions import NativeMode, Network, Verification
from control.subjects import Kind, SubjectRow
from control.tracking import Tracking

_MILLION = 1_000_000
_MICROSECOND = timedelta(microseconds=1)
# Requests for a range, and for a stretch of a sample, while requests still cover few blocks.
_REQUESTS_PER_RANGE = 5
_REQUESTS_PER_STRETCH = 3
# The genesis block has no transactions.
_FIRST_BLOCK = 1


class Cost(NamedTuple):
    """Cost of work at the node: requests, bytes of responses, and seconds of reading; all rounded up."""

    requests: int
    answer_bytes: int
    seconds: int


class _Range(NamedTuple):
    first: int
    last: int
    is_at_most: bool


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
        covered = _range(snapshot, network, subject, first, last, creation)
    except _Unknown as error:
        return _estimate(network, "RangeUnknown", str(error))
    missing = _missing(snapshot, subject, covered)
    mode = None
    work: dict[str, int] = {subject.kind: missing}
    if subject.kind is Kind.WALLET:
        mode = native_mode(native, covered.last - covered.first + 1, network.native)
        if mode is NativeMode.FULL:
            work["native"] = missing
    cost = cost_of(snapshot, network.name, work)
    details = []
    if covered.is_at_most:
        details.append(
            "the block of the contract's creation is not known yet; all blocks from the first one on are counted"
        )
    if cost is None:
        details.append(f"no past range of this kind was collected from the node of {network.name} yet")
    status: Literal["Estimated", "AtMost", "NothingObserved"] = "AtMost" if covered.is_at_most else "Estimated"
    read_once = cost_of(snapshot, network.name, {subject.kind: missing})
    return _estimate(
        network,
        "NothingObserved" if cost is None else status,
        "; ".join(details) or None,
        covered,
        missing,
        mode,
        cost,
        None if read_once is None else _second_readings(network, subject.kind, missing, read_once.requests),
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
    missing: int | None = None,
    mode: NativeMode | None = None,
    cost: Cost | None = None,
    second_readings: SecondReadings | None = None,
) -> HistoryEstimate:
    is_empty = covered is None or covered.last < covered.first
    return HistoryEstimate(
        status=status,
        detail=detail,
        from_block=None if covered is None or is_empty else covered.first,
        to_block=None if covered is None or is_empty else covered.last,
        blocks=missing,
        native=None if mode is None else mode.value,
        requests=None if cost is None else cost.requests,
        bytes=None if cost is None else cost.answer_bytes,
        seconds=None if cost is None else cost.seconds,
        second_readings=second_readings,
        max_requests_per_day=None if network is None else network.max_requests_per_day,
    )


def _range(
    snapshot: Snapshot, network: Network, subject: SubjectRow, first: Bound, last: Bound, creation: int | None
) -> _Range:
    """Return the blocks of a request up to the head; the range is empty if no block is between its bounds."""
    heads = snapshot.rows("network_head", NetworkHeadRow, network=network.name)
    if not heads or heads[0].head_number is None or heads[0].head_time is None:
        raise _Unknown(f"the head of {network.name} is not known yet")
    head = heads[0]
    head_number = heads[0].head_number
    is_at_most = first.kind is BoundKind.CREATION and subject.kind is Kind.TOKEN and creation is None
    if first.kind is BoundKind.CREATION:
        begin = creation or _FIRST_BLOCK
    else:
        begin = first.block if first.block is not None else _block_at(network, head, head_number, first)
    if last.kind is BoundKind.NOW:
        end = head_number
    else:
        end = last.block if last.block is not None else _block_at(network, head, head_number, last) - 1
    return _Range(max(begin, _FIRST_BLOCK), min(end, head_number), is_at_most)


def _block_at(network: Network, head: NetworkHeadRow, head_number: int, bound: Bound) -> int:
    """Return the approximate first block at or after an instant; for later instants, the block after the head."""
    instant, head_time = bound.instant, as_utc(head.head_time)
    if instant is None or head_time is None:
        raise _Unknown(f"{bound.text} is no instant")
    if instant > head_time:
        return head_number + 1
    blocks, passed = _spacing(network, head, head_number, head_time)
    return max(head_number - (head_time - instant) // _MICROSECOND * blocks // passed, 0)


def _spacing(network: Network, head: NetworkHeadRow, head_number: int, head_time: datetime) -> tuple[int, int]:
    """Return a number of blocks, and the microseconds between the first and the last of them."""
    tail_time = as_utc(head.tail_time)
    if tail_time is not None and head.tail_number is not None and tail_time < head_time:
        return head_number - head.tail_number, (head_time - tail_time) // _MICROSECOND
    if network.block_milliseconds is None:
        raise _Unknown(f"the time between blocks of {network.name} is not known yet")
    return 1, network.block_milliseconds * 1_000


def _missing(snapshot: Snapshot, subject: SubjectRow, covered: _Range) -> int:
    """Return the number of blocks of a range that are not collected for the subject."""
    rows: Sequence[CoverageRow] = snapshot.rows(
        "coverage", CoverageRow, subject_key=subject.subject_key, tenant_id=subject.tenant_id
    )
    collected = sum(
        max(min(covered.last, row.to_block) - max(covered.first, row.from_block) + 1, 0)
        for row in rows
        if row.is_covered and row.to_block is not None
    )
    return max(covered.last - covered.first + 1, 0) - collected
