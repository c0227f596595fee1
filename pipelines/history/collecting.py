"""History requests: past ranges that tenants requested, collected part by part while live tracking continues.

A slice fits into the time between two cycles. Every unfinished request advances by one part in turn, on any network.
Turns go on from one slice to the next: a slow network or a long request does not delay all others.
Ranges of several requests are collected once. Collected parts remain stored, so a killed slice loses only its current
part.
"""

import time
from collections import deque
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import ExitStack, closing
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple, cast

import duckdb

from control.history import Bound, BoundKind, native_mode, parse_bound
from control.networks.definitions import NativeMode, Network
from control.ranges import FIRST_BLOCK, BlockRange
from pipelines.chain.contracts import record_creation
from pipelines.chain.missing import missing_segments
from pipelines.chain.rows import HashMismatchError
from pipelines.chain.segments import Collector, NetworkReport, log_words, record_others
from pipelines.chain.states import SERVED, mark_over_budget, record_failure
from pipelines.data_sets.collecting import read_data_sets
from pipelines.extract.budget import Budget
from pipelines.extract.errors import (
    BudgetSpent,
    CallRefused,
    ChainReorganised,
    ExtractError,
    NodeUnreachable,
    RangeRefused,
    RateLimited,
    StateUnavailable,
)
from pipelines.extract.families import open_node
from pipelines.extract.family import SLOW_BALANCES, Header, Node
from pipelines.extract.headers import header_of
from pipelines.history.requests import (
    Request,
    cancel_request,
    concerned_requests,
    fail_requests,
    mark_collected,
    note_errors,
    note_network_error,
    note_unresolved,
    note_work,
    open_requests,
    resolve_request,
)
from pipelines.history.turns import in_turn, last_served, record_turn
from pipelines.lake.giving import give_or_note
from pipelines.lake.taking import has_bulk_run, take
from pipelines.raw.usage import read_budget
from pipelines.rows import Kind, Segment, WorkClass
from warehouse.lakes import Lake

# Failures of the node as a whole: no request can advance.
_OUTAGES = (NodeUnreachable, RateLimited, BudgetSpent)
# Permanent refusals: a retry would get the same answer.
_REFUSALS = (CallRefused, RangeRefused, StateUnavailable)

_LEFT = "a bulk run collects the history of this network; the request continues with its results, or after its end"
_UNREADY = "the addresses of the wallet are derived first; the request continues after that"


class _Unanswerable(Exception):
    """The request can never be resolved to blocks; says why."""


class _Resolved(NamedTuple):
    covered: BlockRange
    native: str | None
    note: str | None
    creation: int | None = None


@dataclass
class _Reading:
    """Missing segments that are read together, step by step.

    Attributes:
        segments: the segments that the reading may cover.
        steps: yields what each step stored; None if it stored nothing yet.
        is_first: it reads the lake and files; a reading of the node follows for the other blocks.
        seconds: time since the last step that stored something.
    """

    segments: Sequence[Segment]
    steps: Generator[Segment | None]
    is_first: bool = False
    seconds: float = 0.0


@dataclass
class _Work:
    """One network's share of a slice: its readings, of which each continues at each turn.

    Attributes:
        left_until: newest block that is left to a bulk run; -1 if there is no such run.
    """

    collector: Collector
    head: Header
    missing: deque[_Reading]
    budget: Budget | None
    lake: Lake | None
    left_until: int

    def add_missing(self) -> None:
        """Add a reading from the node for each segment that is still missing, without the blocks left to a bulk run.

        The first one follows, by kind and address, the one that was served last.
        """
        served = last_served(self.collector.connection, self.collector.network)
        missing = sorted(self._missing(), key=lambda segment: (_key(segment) <= served, _key(segment)))
        for segment in missing:
            first, last = segment.covered
            if last > self.left_until:
                rest = segment._replace(covered=BlockRange(max(first, self.left_until + 1), last))
                self.missing.append(_Reading([rest], self.collector.collect(rest)))

    def _missing(self) -> list[Segment]:
        collector = self.collector
        return missing_segments(collector.connection, collector.network, self.head.number, is_live=False)

    def stop(self) -> None:
        """Leave the missing segments to a later slice, and note in their requests which ones wait for a bulk run."""
        for reading in self.missing:
            reading.steps.close()
        self.missing.clear()
        connection, network = self.collector.connection, self.collector.network
        for segment in self._missing() if self.left_until >= 0 else ():
            first, last = segment.covered
            if first <= self.left_until:
                left = BlockRange(first, min(last, self.left_until))
                waiting = concerned_requests(connection, network, segment.kind, segment.addresses, left)
                note_errors(connection, dict.fromkeys(waiting, f"{network}: {_LEFT}"))
        for unit, reason in self.collector.unread.blocks():
            assert unit.block is not None
            block = BlockRange(unit.block, unit.block)
            waiting = concerned_requests(connection, network, cast(Kind, unit.part), [unit.address], block)
            note_errors(connection, dict.fromkeys(waiting, f"{network}: {reason}"))
        record_others(self.collector.connection, self.collector.node, WorkClass.HISTORY)


def _key(segment: Segment) -> str:
    """Return the name of a segment in the order of turns."""
    return f"{segment.kind} {segment.addresses[0]}"


def collect_history(
    connection: duckdb.DuckDBPyConnection,
    networks: Mapping[str, Network],
    batch_id: int,
    is_over: Callable[[], bool],
    on_progress: Callable[[], None],
    make_budget: Callable[[], Budget] | None = None,
    staging: Path | None = None,
    lakes: Mapping[str, Lake] | None = None,
    *,
    is_bulk: bool = False,
) -> list[NetworkReport]:
    """Resolve new requests, and collect for all unfinished ones until the time is over or nothing is missing.

    If a network fails, its requests keep their state and get the reason; the other networks continue. The same holds
    for a network without remaining requests of the day: its node gets no call.

    Args:
        connection: the open warehouse, after a cycle: the slice uses the heads and tails that the cycle stored.
        networks: definitions of the networks to work on.
        batch_id: the slice's own batch, after the cycle's.
        is_over: called before each part; the slice ends when it returns True.
        on_progress: called after each part.
        make_budget: creates the budget of one network for one part; None: without bound.
        staging: folder for rows of files until they are stored; None: data sets are not read.
        lakes: of networks that have one.
        is_bulk: this is the bulk run, to which shards leave the history of a network.
    """
    with ExitStack() as stack:
        works: list[_Work] = []
        for network in in_turn(connection, networks):
            if works and is_over():
                break
            requests = [
                request
                for request in open_requests(connection, network.name)
                if not _is_ended(connection, request, batch_id)
            ]
            if requests and not _waits(connection, network.name):
                lake = (lakes or {}).get(network.name)
                budget = None if make_budget is None else make_budget()
                node = stack.enter_context(closing(open_node(network, budget=budget)))
                record_turn(connection, network.name)
                if work := _begin(connection, node, requests, batch_id, budget, staging, lake, is_bulk=is_bulk):
                    works.append(work)
                    # Even if the time is over: the next slice begins with another network.
                    if work.missing:
                        _advance(connection, work)
                on_progress()
        while not is_over() and any(work.missing for work in works):
            for work in works:
                if work.missing and not is_over():
                    _advance(connection, work)
                    on_progress()
        for work in works:
            work.stop()
            if work.lake is not None:
                give_or_note(connection, work.collector.node.network, work.lake, batch_id)
        return [work.collector.report for work in works]


def _is_ended(connection: duckdb.DuckDBPyConnection, request: Request, batch_id: int) -> bool:
    """End the request if it was cancelled; return whether it was."""
    if request.is_cancelled:
        cancel_request(connection, request, batch_id)
    return request.is_cancelled


def _waits(connection: duckdb.DuckDBPyConnection, network: str) -> bool:
    return read_budget(connection, network).waits_until is not None


def _begin(
    connection: duckdb.DuckDBPyConnection,
    node: Node,
    requests: Sequence[Request],
    batch_id: int,
    budget: Budget | None,
    staging: Path | None,
    lake: Lake | None,
    *,
    is_bulk: bool,
) -> _Work | None:
    """Resolve requests and list missing blocks; None, with the reason noted, where the network's last cycle failed."""
    network = node.network.name
    state = connection.execute(
        "select head_number, final_number, status, detail from raw.network_states where network = ?", [network]
    ).fetchone()
    head_number, final_number, status, detail = state or (None, None, None, "the node was not probed yet")
    if status not in SERVED:
        note_network_error(connection, network, detail or f"{network}: the node is {status}")
        return None
    report = NetworkReport(network)
    try:
        capabilities = node.probe()
        head = header_of(node.headers([head_number]).row(0))
        collector = Collector(connection, node, capabilities, final_number, batch_id, report, WorkClass.HISTORY)
        unready = set(node.unready())
        for request in requests:
            if not request.is_resolved and request.address in unready:
                note_unresolved(connection, request, network, f"{network}: {_UNREADY}")
            elif not request.is_resolved and not _waits(connection, network):
                try:
                    _settle(connection, node, capabilities, head, request, batch_id)
                except ExtractError as error:
                    if isinstance(error, _OUTAGES):
                        raise
                    # This request waits for the next slice; the others continue.
                    _note(connection, report, error, batch_id)
                    note_unresolved(connection, request, network, str(error))
                record_others(connection, node, WorkClass.HISTORY)
        is_left = lake is not None and not is_bulk and has_bulk_run(network, lake)
    except ExtractError as error:
        _note(connection, report, error, batch_id)
        # Omit the block: only one of the requests may contain it.
        note_network_error(connection, network, error.told_of(None, None))
        if isinstance(error, BudgetSpent):
            mark_over_budget(connection, network, error.told_of(None, None))
        return None
    finally:
        record_others(connection, node, WorkClass.HISTORY)
    work = _Work(collector, head, deque(), budget, lake, final_number if is_left else -1)
    if is_left:
        staging = None
    missing = missing_segments(connection, network, head_number, is_live=False)
    if missing:
        # The node is asked for the rest afterwards.
        work.missing.append(_Reading(missing, _read_stored(collector, head, missing, staging, lake), is_first=True))
    return work


def _read_stored(
    collector: Collector, head: Header, missing: Sequence[Segment], staging: Path | None, lake: Lake | None
) -> Generator[Segment | None]:
    """Read missing blocks from the lake, then from files, in steps."""
    if lake is not None:
        yield from take(collector, lake, missing)
    if staging is not None and collector.node.network.data_sets:
        yield from read_data_sets(collector, head, staging)


def _advance(connection: duckdb.DuckDBPyConnection, work: _Work) -> None:
    """Take the next step of the network's next reading, which then is the last in turn."""
    if _waits(connection, work.collector.network):
        work.stop()
        return
    reading = work.missing.popleft()
    record_turn(connection, work.collector.network, None if reading.is_first else _key(reading.segments[0]))
    # Each part has the whole budget: networks take turns, and another network must not use up this one's.
    if work.budget is not None:
        work.budget.restart()
    started = time.monotonic()
    name, batch_id = work.collector.network, work.collector.batch_id
    try:
        stored = next(reading.steps)
    except StopIteration:
        if reading.is_first:
            work.add_missing()
            # The end of the first reading is no step: a slice may have time for one step alone.
            if work.missing:
                _advance(connection, work)
        return
    except (ChainReorganised, HashMismatchError) as error:
        # The next cycle repairs the tail first.
        note_errors(connection, _told(connection, name, reading, error, error.block_number, None))
        record_others(connection, work.collector.node, WorkClass.HISTORY)
        return
    except ExtractError as error:
        record_others(connection, work.collector.node, WorkClass.HISTORY)
        _note(connection, work.collector.report, error, batch_id)
        told = _told(connection, name, reading, error, error.from_block, error.to_block)
        if isinstance(error, _REFUSALS):
            fail_requests(connection, told, batch_id)
        else:
            note_errors(connection, told)
        if isinstance(error, BudgetSpent):
            # The other networks need not wait for it again, neither in this slice nor in the next ones.
            mark_over_budget(connection, name, error.told_of(None, None))
            work.stop()
        return
    reading.seconds += time.monotonic() - started
    work.missing.append(reading)
    if stored is not None:
        note_work(connection, name, stored.kind, stored.addresses, stored.covered, reading.seconds)
        mark_collected(connection, name, stored.kind, stored.addresses, stored.covered, batch_id)
        reading.seconds = 0.0


def _told(
    connection: duckdb.DuckDBPyConnection,
    network: str,
    reading: _Reading,
    error: ExtractError | HashMismatchError,
    first: int | None,
    last: int | None,
) -> dict[int, str]:
    """Return the error texts for the requests that contain the failed blocks of a reading, by operation.

    Each text names only the request's own blocks.
    """
    told: dict[int, str] = {}
    for segment in reading.segments:
        blocks = segment.covered if first is None else BlockRange(first, first if last is None else last)
        concerned = concerned_requests(connection, network, segment.kind, segment.addresses, blocks)
        if first is None or isinstance(error, HashMismatchError):
            told |= dict.fromkeys(concerned, str(error))
        else:
            told |= {operation_key: error.told_of(*own) for operation_key, own in concerned.items()}
    return told


def _note(connection: duckdb.DuckDBPyConnection, report: NetworkReport, error: ExtractError, batch_id: int) -> None:
    log_words(error)
    report.error = str(error)
    record_failure(connection, report.network, error.call, (error.from_block, error.to_block), str(error), batch_id)


def _settle(
    connection: duckdb.DuckDBPyConnection,
    node: Node,
    capabilities: frozenset[str],
    head: Header,
    request: Request,
    batch_id: int,
) -> None:
    network = node.network.name
    try:
        resolved = _resolve(node, capabilities, head, request)
    except _Unanswerable as error:
        resolve_request(connection, request, network, None, None, None, str(error), batch_id)
        return
    if resolved.creation is not None:
        record_creation(connection, network, request.address, request.tenant_id, resolved.creation, batch_id)
    resolve_request(connection, request, network, resolved.covered, resolved.native, resolved.note, None, batch_id)


def _resolve(node: Node, capabilities: frozenset[str], head: Header, request: Request) -> _Resolved:
    start = parse_bound(request.from_text)
    creation: int | None = None
    if start.kind is BoundKind.CREATION:
        creation = _creation_block(node, head, request)
        first = max(creation or FIRST_BLOCK, FIRST_BLOCK)
    else:
        first = _first_block(node, head, start)
    last = _last_block(node, head, parse_bound(request.to_text))
    if last < first:
        raise _Unanswerable(
            f"no block lies from {request.from_text} to {request.to_text}: that would be block {first} to {last}; "
            f"the newest block is {head.number}"
        )
    covered = BlockRange(first, last)
    if request.kind == "token":
        return _Resolved(covered, None, None, creation)
    blocks = last - first + 1
    cost = node.cost_of_full(blocks)
    native = str(native_mode(request.native, blocks, node.network.native))
    if request.native is None and SLOW_BALANCES in capabilities:
        # Past balances cannot be read, so a range without transactions would have nothing.
        return _Resolved(covered, str(NativeMode.FULL), cost)
    if request.native is not None:
        return _Resolved(covered, native, cost if native == NativeMode.FULL else None)
    if native != node.network.native:
        return _Resolved(
            covered,
            native,
            f"native value is collected by balance only, because the range has {blocks} blocks; request native "
            f"full to get its transactions: {cost}",
        )
    return _Resolved(covered, native, None)


def _first_block(node: Node, head: Header, bound: Bound) -> int:
    if bound.block is not None:
        number = bound.block
    else:
        assert bound.instant is not None
        found = node.block_at(bound.instant, head)
        if found is None:
            raise _Unanswerable(f"from {bound.text} is after the newest block, {head.number}")
        number = found
    return max(number, FIRST_BLOCK)


def _creation_block(node: Node, head: Header, request: Request) -> int | None:
    """Return the block of a token's creation; None means the chain's beginning, as for wallets."""
    if request.kind == "wallet":
        return None
    try:
        created = node.creation(request.address, head.number)
    except StateUnavailable:
        # The creation is unknown; reading from the chain's beginning misses nothing.
        return None
    if created is None:
        raise _Unanswerable(f"there is no contract at {request.address} at block {head.number}")
    return created


def _last_block(node: Node, head: Header, bound: Bound) -> int:
    if bound.kind is BoundKind.NOW:
        return head.number
    if bound.block is not None:
        return min(bound.block, head.number)
    assert bound.instant is not None
    end = node.block_at(bound.instant, head)
    return head.number if end is None else end - 1
