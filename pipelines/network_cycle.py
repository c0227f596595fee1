"""One cycle of one network, from the head to the readings."""

from collections.abc import Sequence

import duckdb

from control.clock import stored_now
from pipelines.balances.observations import observe
from pipelines.balances.searches import begin_searches, search_holders
from pipelines.balances.surveys import survey
from pipelines.chain.checks import DECIMALS, run_check
from pipelines.chain.coverage import reopen
from pipelines.chain.derived import store_derived
from pipelines.chain.disputes import disputed_detail
from pipelines.chain.finality import settle
from pipelines.chain.missing import missing_segments
from pipelines.chain.rows import HashMismatchError
from pipelines.chain.segments import Collector, NetworkReport, log_words, record_others
from pipelines.chain.states import record_healthy, record_unhealthy
from pipelines.chain.tail import (
    ChainReset,
    ContradictedBlocks,
    ImplausibleHead,
    StaleHead,
    check_head,
    extend_tail,
    final_number,
    keep_genesis,
    repair_tail,
)
from pipelines.chain.times import repair_times
from pipelines.chain.verification import verify
from pipelines.data_sets.records import refused_detail
from pipelines.extract.errors import (
    OF_ONE_UNIT,
    PASSING,
    BudgetSpent,
    ChainReorganised,
    ExtractError,
    FalseBlockTime,
    WrongChain,
)
from pipelines.extract.family import Header, Node
from pipelines.history.requests import waiting_detail
from pipelines.lake.giving import give_or_note
from pipelines.lake.taking import LakeUnreadable, take
from pipelines.rows import Segment, WorkClass
from pipelines.tenants.windows import resolve_windows
from warehouse.lakes import Lake

# A reorganisation during a reading triggers a retry; a chain that changes on every attempt is reported.
_ATTEMPTS = 3


def _run(
    connection: duckdb.DuckDBPyConnection, node: Node, batch_id: int, report: NetworkReport, lake: Lake | None
) -> None:
    network = node.network.name
    capabilities = node.probe()
    head = node.head()
    ancestor = repair_times(connection, node, head, batch_id)
    if ancestor is not None:
        report.reorganised_after = ancestor
    final = _follow(connection, node, head, batch_id, report)
    keep_genesis(connection, node)
    collector = Collector(connection, node, capabilities, final, batch_id, report)
    store_derived(collector)
    resolve_windows(connection, node, head, batch_id)
    _reopen(collector)
    # Before new blocks are read: a second reading belongs to a later cycle than the first one.
    verify(collector)
    unopened = _collect_missing(collector, head, lake)
    surveyed = survey(collector, head, unopened)
    if surveyed is not None:
        if surveyed.head.number > head.number:
            head = surveyed.head
            collector.final_number = final = _follow(connection, node, head, batch_id, report)
        _collect_missing(collector, head, None)
    collector.try_again()
    begin_searches(connection, network, batch_id)
    reading = observe(collector, head, frozenset() if surveyed is None else surveyed.wallets)
    report.count("token_metadata", reading.contracts)
    report.count("balance_observations", reading.balances + search_holders(collector, head))
    report.count("supply_observations", reading.supplies)
    report.unavailable_readings = reading.unavailable
    disputes = disputed_detail(connection, network)
    report.head, report.final = head.number, final
    settle(connection, network, final, stored_now())
    record_healthy(
        connection,
        network,
        {
            "head_number": head.number,
            "head_hash": head.hash,
            "head_time": head.time.replace(tzinfo=None),
            "capabilities": sorted(capabilities),
            "detail": _joined(
                disputes,
                collector.unread.blame_the_node(),
                collector.unread.detail(),
                _detail(connection, network, batch_id),
            ),
        },
        final,
        batch_id,
        "Inconsistent" if disputes or collector.unread.addresses_of("difference") else "Healthy",
    )
    if lake is not None:
        give_or_note(connection, node.network, lake, batch_id)


def _follow(
    connection: duckdb.DuckDBPyConnection, node: Node, head: Header, batch_id: int, report: NetworkReport
) -> int:
    """Bring the stored tail up to a head; return the newest final block."""
    check_head(connection, node, head)
    ancestor = repair_tail(connection, node, head, batch_id)
    if ancestor is not None:
        report.reorganised_after = ancestor
    final = final_number(connection, node, head, batch_id)
    report.count("blocks", extend_tail(connection, node, head, final, batch_id))
    return final


def _reopen(collector: Collector) -> None:
    """Have wallets collected again that have more addresses than before, or rows that two scans contradict."""
    connection, network, batch_id = collector.connection, collector.network, collector.batch_id
    reopen(connection, network, collector.node.outgrown(), batch_id)
    contradicted = collector.unread.addresses_of("difference", is_repeated=True)
    if contradicted:
        reopen(connection, network, sorted(contradicted), batch_id, has_false_rows=True)
        collector.unread.forget("difference", contradicted)


def _collect_missing(collector: Collector, head: Header, lake: Lake | None) -> set[str]:
    """Collect what views lack, from the lake first; return the wallets that cannot be collected before a survey."""
    connection, network = collector.connection, collector.network
    segments = missing_segments(connection, network, head.number, is_live=True)
    if lake is not None and _take(collector, lake, segments):
        segments = missing_segments(connection, network, head.number, is_live=True)
    unopened: set[str] = set()
    for segment in segments:
        waiting = collector.node.unopened(segment)
        unopened |= waiting
        ready = tuple(address for address in segment.addresses if address not in waiting)
        if ready:
            _collect(collector, segment._replace(addresses=ready), head)
    return unopened


def _collect(collector: Collector, segment: Segment, head: Header) -> None:
    """Collect a segment; where the node refuses it alone, note the error, and go on.

    Raises:
        ExtractError: the node answers nothing of this kind at its head either.
    """
    try:
        for _ in collector.collect(segment):
            pass
    except OF_ONE_UNIT as error:
        if isinstance(error, PASSING) or not error.is_divisible:
            raise
        try:
            collector.node.check(segment.kind, head.number)
        except OF_ONE_UNIT:
            raise error from None
        collector.note(error, str(error))


def _take(collector: Collector, lake: Lake, segments: Sequence[Segment]) -> bool:
    """Store the parts of missing segments that the lake covers; return whether any was.

    Live data does not wait for an unreadable lake.
    """
    has_taken = False
    try:
        for _ in take(collector, lake, segments):
            has_taken = True
    except LakeUnreadable as error:
        collector.note(error, str(error))
    return has_taken


def _detail(connection: duckdb.DuckDBPyConnection, network: str, batch_id: int) -> str | None:
    """Return messages about a healthy network, such as wrong decimals in definitions; None without any."""
    # Wrong symbols have a separate check: a tenant may have renamed the token.
    told = (
        run_check(connection, DECIMALS, network, batch_id).example,
        waiting_detail(connection, network),
        refused_detail(connection, network),
    )
    return _joined(*told)


def _joined(*told: str | None) -> str | None:
    return "; ".join(text for text in told if text) or None


def _status(error: ExtractError) -> str:
    if isinstance(error, WrongChain):
        return "WrongChain"
    if isinstance(error, FalseBlockTime):
        return "ClockSkew"
    if isinstance(error, ChainReset):
        return "ChainReset"
    return "Unhealthy" if isinstance(error, StaleHead | ImplausibleHead | ContradictedBlocks) else "Unreachable"


def collect_network(
    connection: duckdb.DuckDBPyConnection, node: Node, batch_id: int, lake: Lake | None = None
) -> NetworkReport:
    """Bring one network up to its node's head.

    Rows collected before a failure remain, with their coverage; the next cycle collects exactly the missing ones.
    A failure is recorded and returned in the report; it is not raised, so that the other networks continue.

    Args:
        connection: the open warehouse.
        node: node of the network.
        batch_id: the cycle's batch.
        lake: of the network; None: it has none.
    """
    network = node.network.name
    report = NetworkReport(network)
    for attempt in range(1, _ATTEMPTS + 1):
        has_progressed = False
        call: str
        covered: tuple[int | None, int | None]
        try:
            _run(connection, node, batch_id, report, lake)
            break
        except (ChainReorganised, HashMismatchError) as error:
            if attempt < _ATTEMPTS:
                continue
            report.error = str(error)
            call, covered, status = node.header_call, (error.block_number, None), "Unhealthy"
        except ExtractError as error:
            log_words(error)
            report.error = str(error)
            call, covered, status = error.call, (error.from_block, error.to_block), _status(error)
            # A network that catches up is retried after one cycle; one without progress after more and more cycles.
            has_progressed = isinstance(error, BudgetSpent) and bool(report.ranges)
        except (duckdb.IOException, duckdb.FatalException):
            # The warehouse's file or the disk is at fault, not the network.
            raise
        except Exception as error:  # noqa: BLE001 - a defect met on one network stops no other; it fails the run
            # Without the error's words: they may be the provider's.
            report.error = f"{network}: error of the service ({type(error).__name__}); its stack trace is in the log"
            report.defect = error
            call, covered, status = "collect", (None, None), "Unhealthy"
        record_unhealthy(
            connection, network, status, call, covered, report.error, batch_id, has_progressed=has_progressed
        )
        break
    record_others(connection, node, WorkClass.LIVE)
    return report
