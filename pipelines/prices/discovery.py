"""Price discoveries: past prices, read from the sources page by page in the time left between cycles."""

import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Future
from contextlib import ExitStack, closing
from dataclasses import dataclass, field

import duckdb

from control.clock import stored_now
from control.instants import read_instant_or_day
from control.pricing import discovery as requests
from control.pricing.definitions import PriceSource
from control.pricing.discovery import Window, WindowSize
from control.pricing.matching import MappingStatus
from pipelines.extract.errors import ExtractError, SourceMalformed, SourceRefused
from pipelines.extract.prices.protocol import HistoryPage, PriceClient
from pipelines.prices.asking import Asking, OpenClient, listed_markets
from pipelines.prices.discovery_store import (
    Asked,
    Discovery,
    Part,
    Reading,
    askable,
    begin_discovery,
    cancel_discovery,
    give_up,
    note_trouble,
    open_discoveries,
    open_readings,
    record_unbegun,
    store_part,
)
from pipelines.prices.windows import WindowFill, plan

# A source is given up after this many failures in a row, each after the client's own attempts and a cycle later.
_MOST_FAILURES = 5
# Seconds to wait for pending pages after the end of the slice; pages that arrive later are requested again.
GRACE_SECONDS = 5.0
_LOOK_SECONDS = 0.25


@dataclass(slots=True)
class DiscoveryReport:
    """Result of a slice of discoveries.

    Attributes:
        windows: number of prices of windows read, by source id.
        errors: reasons why a source did not advance, by source id.
        defects: failures of our own code, by source id; they are among the errors as well.
    """

    windows: dict[str, int] = field(default_factory=dict)
    errors: dict[str, str] = field(default_factory=dict)
    defects: dict[str, Exception] = field(default_factory=dict)


class _Work:
    """One market that a discovery reads: its windows, its progress, and the next pages."""

    def __init__(self, reading: Reading, windows: list[Window], source: PriceSource, client: PriceClient) -> None:
        self.reading = reading
        self.windows = windows
        self._fill = WindowFill(windows, reading.done, reading.pending)
        self._source = source
        self._client = client
        self._up_to = reading.up_to
        self._pages = self._read()

    @property
    def missing(self) -> tuple[Window, Window]:
        """Return the first and last incomplete windows."""
        return self.windows[min(self._fill.done, len(self.windows) - 1)], self.windows[-1]

    def next_page(self) -> HistoryPage | None:
        """Read the next page; None at the end."""
        return next(self._pages, None)

    def _read(self) -> Iterator[HistoryPage]:
        market_id, price_type = self.reading.market_id, self.reading.price_type
        for segment in plan(self.windows, self._source.granularities):
            start = max(segment.start, self.reading.up_to)
            if start < segment.end:
                yield from self._client.history(market_id, price_type, segment.granularity, start, segment.end)

    def take(self, page: HistoryPage | None) -> Part:
        """Fill windows from a page; None stands for the end and fills all remaining windows."""
        end = self.windows[-1].end
        if page is None:
            page = HistoryPage([], end)
        elif page.up_to <= self._up_to:
            raise SourceMalformed(self.reading.source_id, "history", f"makes no progress beyond {page.up_to}")
        prices, gaps = self._fill.take(page.prices, page.up_to)
        self._up_to = page.up_to
        return Part(
            prices,
            gaps,
            page.up_to,
            self._fill.pending,
            self._fill.done,
            page.up_to >= end,
            [problem.detail for problem in page.problems],
        )


def collect_discoveries(
    connection: duckdb.DuckDBPyConnection,
    sources: Mapping[str, PriceSource],
    open_client: OpenClient,
    batch_id: int,
    is_over: Callable[[], bool],
    cancelled: Callable[[], set[int]],
    on_progress: Callable[[], None],
) -> DiscoveryReport:
    """Begin new discoveries, and read for all unfinished ones until the time is over or nothing is left.

    Sources are read concurrently, each one page at a time and its discoveries in turn. If a source fails, its
    discoveries keep their progress and get the reason, and continue in the next slice. A reading that the source
    refuses, or that failed several times in a row, is given up, and its windows are missing. A page is stored together
    with the progress, so a slice may be killed at any time.

    Args:
        connection: the open warehouse, after a cycle: the slice uses the cycle's routes.
        sources: the definitions in force, by id.
        open_client: opens a source.
        batch_id: the slice's own batch, after the cycle's.
        is_over: called before each page; the slice ends when it returns True.
        cancelled: returns the keys of cancelled discoveries; called after each page.
        on_progress: called after each page.
    """
    report = DiscoveryReport()
    windows = {d.operation_key: _settle(connection, sources, d) for d in open_discoveries(connection)}
    on_progress()
    with ExitStack() as stack:
        works = _open_works(connection, sources, open_client, windows, stack, report)
        calls = stack.enter_context(closing(Asking[HistoryPage | None]()))
        asked: dict[str, _Work] = {}
        failed: set[str] = set()
        deadline = None
        while True:
            if not is_over():
                for source_id, waiting in works.items():
                    if waiting and source_id not in asked:
                        asked[source_id] = waiting.popleft()
                        calls.ask(source_id, asked[source_id].next_page)
            elif deadline is None:
                deadline = time.monotonic() + GRACE_SECONDS
            if not asked or (deadline is not None and time.monotonic() >= deadline):
                return report
            for source_id, answer in calls.answers(_LOOK_SECONDS):
                unwanted = _cancel(connection, works, asked, cancelled())
                work = asked.pop(source_id)
                if work.reading.operation_key not in unwanted:
                    _store(connection, work, works[source_id], answer, batch_id, report, failed)
                on_progress()


def _settle(
    connection: duckdb.DuckDBPyConnection, sources: Mapping[str, PriceSource], discovery: Discovery
) -> list[Window]:
    """Begin or cancel a discovery, or record why it must wait; return its windows."""
    if discovery.is_cancelled:
        if discovery.is_begun:
            cancel_discovery(connection, discovery.operation_key)
        else:
            record_unbegun(connection, discovery, "Cancelled", None)
        return []
    windows = list(
        requests.windows(
            read_instant_or_day("from", discovery.from_text),
            read_instant_or_day("to", discovery.to_text),
            WindowSize(discovery.window_size),
            discovery.multiplier,
        )
    )
    if not discovery.is_begun:
        _begin(connection, sources, discovery, windows)
    return windows


def _begin(
    connection: duckdb.DuckDBPyConnection,
    sources: Mapping[str, PriceSource],
    discovery: Discovery,
    windows: list[Window],
) -> None:
    """Choose the markets to read: those of all enabled sources of the pair with a history of its price type."""
    asked = [way for way in askable(connection, discovery.pair_key) if _has_history(sources, way)]
    if not asked:
        error = "no enabled source of the pair has a history of its price type any more"
        record_unbegun(connection, discovery, "Failed", error)
        return
    waiting = [way for way in asked if way.status == MappingStatus.PENDING and way.list_failures < _MOST_FAILURES]
    if waiting:
        reasons = "; ".join(way.list_error or f"{way.source_id}: {way.detail}" for way in waiting)
        record_unbegun(connection, discovery, "Pending", reasons)
        return
    markets = [(way.source_id, way.market_id, way.leg_type) for way in asked if way.market_id and way.leg_type]
    failures = {way.source_id: way.list_error or f"{way.source_id}: {way.detail}" for way in asked if not way.market_id}
    bounds = (windows[0].start, windows[-1].end)
    begin_discovery(connection, discovery, bounds, len(windows), dict.fromkeys(markets), failures)


def _has_history(sources: Mapping[str, PriceSource], way: Asked) -> bool:
    source = sources.get(way.source_id)
    return source is not None and (way.leg_type or way.price_type) in source.history_types


def _open_works(
    connection: duckdb.DuckDBPyConnection,
    sources: Mapping[str, PriceSource],
    open_client: OpenClient,
    windows: Mapping[int, list[Window]],
    stack: ExitStack,
    report: DiscoveryReport,
) -> dict[str, deque[_Work]]:
    """Open the sources of unfinished readings; return the works of each source, the oldest discovery first."""
    readings: dict[str, list[Reading]] = {}
    for reading in open_readings(connection):
        readings.setdefault(reading.source_id, []).append(reading)
    works: dict[str, deque[_Work]] = {}
    for source_id, of_source in readings.items():
        try:
            if source_id not in sources:
                raise SourceRefused(source_id, "open", "is not defined any more")
            known = listed_markets(connection, source_id)
            client = stack.enter_context(closing(open_client(sources[source_id], known)))
        except Exception as error:  # noqa: BLE001 - one source stops no other; a defect fails the run
            for reading in of_source:
                missing = _missing(windows[reading.operation_key], reading)
                _note(connection, reading, missing, len(windows[reading.operation_key]), error, report)
        else:
            works[source_id] = deque(
                _Work(reading, windows[reading.operation_key], sources[source_id], client) for reading in of_source
            )
    return works


def _missing(windows: list[Window], reading: Reading) -> tuple[Window, Window]:
    return windows[min(reading.done, len(windows) - 1)], windows[-1]


def _store(
    connection: duckdb.DuckDBPyConnection,
    work: _Work,
    waiting: deque[_Work],
    answer: Future[HistoryPage | None],
    batch_id: int,
    report: DiscoveryReport,
    failed: set[str],
) -> None:
    """Store the page of a reading; the reading is then the last of its source in turn.

    Args:
        failed: sources of which the last page failed. After a second failure in a row, the next slice asks them again.
    """
    source_id = work.reading.source_id
    try:
        part = work.take(answer.result())
    except Exception as error:  # noqa: BLE001 - one source stops no other; a defect fails the run
        _note(connection, work.reading, work.missing, len(work.windows), error, report)
        if not isinstance(error, SourceRefused):
            if source_id in failed:
                waiting.clear()
            failed.add(source_id)
        return
    failed.discard(source_id)
    store_part(connection, work.reading, part, stored_now(), batch_id)
    report.windows[source_id] = report.windows.get(source_id, 0) + len(part.prices)
    if not part.is_finished:
        waiting.append(work)


def _note(
    connection: duckdb.DuckDBPyConnection,
    reading: Reading,
    missing: tuple[Window, Window],
    total: int,
    error: Exception,
    report: DiscoveryReport,
) -> None:
    """Record why a reading does not advance; give it up after a refusal or several failures in a row."""
    words = str(error)
    if not isinstance(error, ExtractError):
        words = f"{reading.source_id}: {type(error).__name__}: {error}"
        report.defects[reading.source_id] = error
    report.errors[reading.source_id] = words
    failures = note_trouble(connection, reading, words)
    if isinstance(error, SourceRefused) or failures >= _MOST_FAILURES:
        first, last = missing
        give_up(connection, reading, (first.start, last.end), total, words)


def _cancel(
    connection: duckdb.DuckDBPyConnection,
    works: Mapping[str, deque[_Work]],
    asked: Mapping[str, _Work],
    cancelled: set[int],
) -> set[int]:
    """End discoveries that were cancelled meanwhile, and drop their readings; return them."""
    under_way = [*asked.values(), *(work for waiting in works.values() for work in waiting)]
    ended = {work.reading.operation_key for work in under_way} & cancelled
    for operation_key in ended:
        cancel_discovery(connection, operation_key)
    for waiting in works.values() if ended else ():
        kept = [work for work in waiting if work.reading.operation_key not in ended]
        waiting.clear()
        waiting.extend(kept)
    return ended
