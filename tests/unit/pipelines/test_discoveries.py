"""Price discoveries over sources in memory: every window is read once and in order, despite interruptions."""

import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from decimal import Decimal

import duckdb
import pytest

from control.pricing.definitions import PriceSource
from control.snapshot import ControlSnapshot
from pipelines.extract.errors import MarketUnknown, SourceUnreachable
from pipelines.extract.prices.protocol import HistoryPage, Market, MarketPrice, PollResult, Problem
from pipelines.prices import discovery as collecting
from pipelines.prices import discovery_store as stored
from pipelines.prices.discovery import DiscoveryReport, collect_discoveries
from pipelines.prices.discovery_store import Missing, discovery_states
from pipelines.prices.routes import update_routes
from pipelines.prices.store import replace_markets
from tests.unit.pipelines.pricing import SOURCES, Raw, discovery, listed, pair, pricing, raw_warehouse, switched_off

HOUR = timedelta(hours=1)
DAY = datetime(2026, 4, 1, tzinfo=UTC)


def instant(hours: float) -> datetime:
    return DAY + timedelta(hours=hours)


def text(hours: float) -> str:
    return instant(hours).isoformat()


def price_at(moment: datetime, market_id: str = "BTCUSD") -> Decimal:
    """Return the scripted price: it changes every minute, for each market."""
    minute = (moment - DAY) // timedelta(minutes=1)
    return Decimal(1_000 * (1 + len(market_id)) + minute) / 100


@dataclass
class FakeSource:
    """A source with the history of `price_at`, in pages of some candles; `fails` is called before each page."""

    quiet: Callable[[datetime], bool] = lambda _: False
    candles_per_page: int = 5
    fails: Callable[[], None] = lambda: None
    asked: list[tuple[str, str, str, datetime, datetime]] = field(default_factory=list)
    pages: int = 0

    def markets(self) -> list[Market]:
        raise NotImplementedError

    def poll(self, wanted: Sequence[tuple[str, str]]) -> PollResult:
        raise NotImplementedError

    def history(
        self, market_id: str, price_type: str, granularity: str, start: datetime, end: datetime
    ) -> Iterator[HistoryPage]:
        self.asked.append((market_id, price_type, granularity, start, end))
        step = {"1m": timedelta(minutes=1), "1h": HOUR, "1d": 24 * HOUR}[granularity]
        reached = start
        while reached < end:
            self.fails()
            up_to = min(end, reached + self.candles_per_page * step)
            first = DAY + ((reached - DAY) // step + 1) * step
            moments = [first + number * step for number in range(self.candles_per_page + 1)]
            prices = [
                MarketPrice(market_id, price_type, moment, moment - step, price_at(moment, market_id))
                for moment in moments
                if reached < moment <= up_to and not self.quiet(moment)
            ]
            self.pages += 1
            reached = up_to
            yield HistoryPage(prices, up_to)

    def close(self) -> None:
        pass


@dataclass
class World:
    """A warehouse with sources in memory."""

    raw: Raw
    fakes: dict[str, FakeSource]
    opened: list[Sequence[Market]] = field(default_factory=list)

    def open(self, source: PriceSource, markets: Sequence[Market]) -> FakeSource:
        self.opened.append(markets)
        return self.fakes[source.id]

    def begin(self, set_up: ControlSnapshot, *, lists: Sequence[str] = ("src_kraken", "src_gemini")) -> None:
        """A cycle up to its slot for discoveries."""
        self.raw.snapshot(set_up)
        markets = [listed(base, "USD") for base in ("BTC", "ETH", "EUR")]
        for source_id in lists:
            replace_markets(self.raw.connection, source_id, markets, self.raw.batch)
        update_routes(self.raw.connection, SOURCES, self.raw.batch)
        self.raw.batch += 1

    def collect(self, pages: int | None = None, cancelled: Callable[[], set[int]] = lambda: set()) -> DiscoveryReport:
        """Run one slice, to the end or for a number of pages."""
        before = sum(fake.pages for fake in self.fakes.values())

        def is_over() -> bool:
            return pages is not None and sum(fake.pages for fake in self.fakes.values()) - before >= pages

        return collect_discoveries(
            self.raw.connection, SOURCES, self.open, self.raw.batch, is_over, cancelled, lambda: None
        )

    def publish(self) -> None:
        """Mark everything collected so far as published."""
        self.raw.query("insert into raw.publications values (1, ?, now()::timestamp)", self.raw.batch)

    def state(self, key: int = 1) -> stored.DiscoveryState:
        return {state.operation_key: state for state in discovery_states(self.raw.connection)}[key]

    def windows(self, source_id: str = "src_kraken", pair_key: int = 1) -> list[tuple[object, ...]]:
        """Return market, window and price of a source as visible to the pair; each row of raw.prices is used once."""
        rows = self.raw.query(
            """
            select seen.market_id, seen.window_start, seen.effective_from, prices.price, prices.is_partial
            from raw.pair_windows as seen
            inner join raw.prices using (source_id, market_id, price_type, window_start, effective_from)
            where seen.source_id = ? and seen.pair_key = ?
            order by all
            """,
            source_id,
            pair_key,
        )
        assert len(set(rows)) == len(rows)
        return rows


@pytest.fixture
def world() -> Iterator[World]:
    with raw_warehouse() as raw:
        yield World(raw, {"src_kraken": FakeSource(), "src_gemini": FakeSource(candles_per_page=7)})


def expected(
    first: float, last: float, hours: float = 1.0, market_id: str = "BTCUSD", missing: Sequence[float] = ()
) -> list[tuple[object, ...]]:
    """Return windows from `first` to `last`, each with the price at its end."""
    rows, start = [], first
    while start < last:
        end = min(start + hours, last)
        window = tuple(instant(bound).replace(tzinfo=None) for bound in (start, end))
        if start not in missing:
            rows.append((market_id, *window, price_at(instant(end), market_id), end - start < hours))
        start += hours
    return rows


def test_windows_have_their_last_price_and_succeed_once_published(world: World) -> None:
    world.begin(pricing(pair(1), discoveries=[discovery(1, 1, text(0), text(30))]))
    world.collect()
    assert world.windows() == expected(0, 30)
    assert world.raw.changes() == {1: instant(1)}
    assert {asked[2] for asked in world.fakes["src_kraken"].asked} == {"1h"}
    running = world.state()
    assert (running.status, running.done, running.total, running.prices_stored) == ("Running", 30, 30, 30)
    world.publish()
    assert world.state() == stored.DiscoveryState(1, "Succeeded", 30, 30, 30, (), None)
    assert [[market.market_id for market in markets] for markets in world.opened] == [["BTCUSD", "ETHUSD", "EURUSD"]]


def test_every_source_is_read_and_gaps_are_reported_per_source(world: World) -> None:
    world.fakes["src_gemini"].quiet = lambda moment: moment <= instant(2) or instant(5) < moment <= instant(8)
    asked = [discovery(1, 1, text(0), text(12), "hour", "1")]
    world.begin(pricing(pair(1), sources=("src_kraken", "src_gemini"), discoveries=asked))
    world.collect()
    world.publish()
    state = world.state()
    assert world.windows("src_kraken") == expected(0, 12)
    assert world.windows("src_gemini") == expected(0, 12, missing=(0, 1, 5, 6, 7))
    assert (state.status, state.done, state.total, state.prices_stored) == ("Succeeded", 24, 24, 19)
    assert state.missing == (
        Missing("src_gemini", instant(0), instant(2)),
        Missing("src_gemini", instant(5), instant(8)),
    )


def test_bridge_reads_both_markets_and_lacks_gaps_of_either(world: World) -> None:
    bridged = pair(1, "ETH", "EUR", bridge="USD", allow_inverse=True)
    world.begin(pricing(bridged, discoveries=[discovery(1, 1, text(0), text(6), "hour", "2")]))
    world.collect()
    assert world.windows() == [*expected(0, 6, 2, "ETHUSD"), *expected(0, 6, 2, "EURUSD")]
    assert (world.state().done, world.state().total, world.state().prices_stored) == (3, 3, 6)


def test_only_the_cut_window_is_partial_and_read_in_fine_steps(world: World) -> None:
    world.begin(pricing(pair(1), discoveries=[discovery(1, 1, text(0), text(50.5), "day")]))
    world.collect()
    assert world.windows() == expected(0, 50.5, 24)
    assert [asked[2:] for asked in world.fakes["src_kraken"].asked] == [
        ("1d", instant(0), instant(48)),
        ("1m", instant(48), instant(50.5)),
    ]


@pytest.mark.ci
@pytest.mark.parametrize("pages", [1, 2, 3, 6, 8])
def test_next_slice_resumes_where_the_last_one_ended(world: World, pages: int) -> None:
    world.begin(pricing(pair(1), discoveries=[discovery(1, 1, text(0), text(33.5), "hour", "3")]))
    slices = 0
    while world.state().done < 12:
        world.collect(pages)
        slices += 1
    assert slices > 1 or pages >= 8
    assert world.windows() == expected(0, 33.5, 3)
    # Each page was read once.
    assert world.fakes["src_kraken"].pages == 7 + 6


def test_window_keeps_its_price_across_slices(world: World) -> None:
    # Pages end at 5 and 10 o'clock; the window from 9 to 12 has its last price at 10.
    world.fakes["src_kraken"].quiet = lambda moment: instant(10) < moment <= instant(12)
    world.begin(pricing(pair(1), discoveries=[discovery(1, 1, text(0), text(15), "hour", "3")]))
    world.collect(2)
    assert world.state().done == 3
    world.collect()
    assert world.windows()[3][3] == price_at(instant(10))
    assert world.state().missing == ()


class _Killed(BaseException):
    """Simulated end of the process."""


@pytest.mark.ci
@pytest.mark.parametrize("statement", range(1, 22))
def test_kill_at_any_statement_leaves_no_gap_and_no_duplicate(
    world: World, statement: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    world.fakes["src_kraken"].quiet = lambda moment: instant(4) < moment <= instant(6)
    world.begin(pricing(pair(1), discoveries=[discovery(1, 1, text(0), text(9))]))
    real, left = world.raw.connection, statement

    class Dying:
        """A connection that fails after a number of statements."""

        def execute(self, *arguments: object) -> duckdb.DuckDBPyConnection:
            nonlocal left
            left -= 1
            if left == 0:
                raise _Killed
            return real.execute(*arguments)  # type: ignore[arg-type]

        def __getattr__(self, name: str) -> object:
            return getattr(real, name)

    world.raw.connection = Dying()  # type: ignore[assignment]
    with pytest.raises(_Killed):
        world.collect()
    world.raw.connection = real
    world.collect()
    assert world.windows() == expected(0, 9, missing=(4, 5))
    assert world.state().missing == (Missing("src_kraken", instant(4), instant(6)),)
    assert (world.state().done, world.state().prices_stored) == (9, 7)
    assert left < 1


def test_repeated_discovery_stores_and_marks_nothing(world: World) -> None:
    first = discovery(1, 1, text(0), text(9))
    world.begin(pricing(pair(1), discoveries=[first]))
    world.collect()
    before = world.raw.query("select * exclude (last_collected_at) from raw.prices order by all")
    world.begin(pricing(pair(1), discoveries=[first, discovery(2, 1, text(0), text(9))]))
    world.publish()
    world.collect()
    assert world.raw.query("select * exclude (last_collected_at) from raw.prices order by all") == before
    assert world.windows() == expected(0, 9)
    assert world.raw.changes() == {}
    # There is nothing to wait for.
    assert (world.state(2).status, world.state(2).prices_stored) == ("Succeeded", 9)


def test_windows_of_two_tenants_are_stored_once_and_visible_to_both(world: World) -> None:
    mine, yours = pair(1), pair(2, tenant_id="ten_b")
    world.begin(pricing(mine, yours, discoveries=[discovery(1, 1, text(0), text(6))]))
    world.collect()
    assert world.windows(pair_key=2) == []
    world.begin(pricing(mine, yours, discoveries=[discovery(2, 2, text(2), text(4))]))
    world.collect()
    assert world.windows(pair_key=2) == expected(2, 4)
    assert world.raw.changes() == {2: instant(3)}
    assert world.raw.query("select count(*) from raw.prices") == [(6,)]


def test_corrected_window_marks_all_pairs_that_see_it_from_there_on(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    both = (pair(1), pair(2, tenant_id="ten_b"))
    asked = [discovery(1, 1, text(0), text(6)), discovery(2, 2, text(0), text(6))]
    world.begin(pricing(*both, discoveries=asked))
    world.collect()
    corrected = {instant(4): Decimal("77.25")}
    original = price_at
    monkeypatch.setattr(
        f"{__name__}.price_at", lambda moment, market_id="BTCUSD": corrected.get(moment, original(moment, market_id))
    )
    world.begin(pricing(*both, discoveries=[discovery(3, 1, text(0), text(6))]))
    world.collect()
    assert world.raw.changes() == {1: instant(4), 2: instant(4)}
    assert world.windows(pair_key=2) == expected(0, 6)
    assert world.raw.query("select count(*) from raw.prices") == [(6,)]


def test_failing_source_is_retried_in_later_slices_then_given_up(world: World) -> None:
    def fail() -> None:
        if world.fakes["src_gemini"].pages == 1:
            raise SourceUnreachable("src_gemini", "history", "HTTP 503")

    world.fakes["src_gemini"].fails = fail
    asked = [discovery(1, 1, text(0), text(12))]
    world.begin(pricing(pair(1), sources=("src_kraken", "src_gemini"), discoveries=asked))
    for _ in range(4):
        assert world.collect().errors == {"src_gemini": "src_gemini: history: HTTP 503"}
        world.publish()
        assert world.state().status == "Running"
        assert world.state().error == "src_gemini: history: HTTP 503"
    world.collect()
    state = world.state()
    # The other source is complete; the rest of this one is missing, with the reason in the error.
    assert (state.status, state.error) == ("Succeeded", "src_gemini: history: HTTP 503")
    assert state.missing == (Missing("src_gemini", instant(7), instant(12)),)
    assert (state.done, state.total, state.prices_stored) == (24, 24, 12 + 7)


def test_recovered_source_resumes_where_it_stopped(world: World) -> None:
    failures = [True, True, True, True]

    def fail() -> None:
        if world.fakes["src_kraken"].pages == 1 and failures:
            failures.pop()
            raise SourceUnreachable("src_kraken", "history", "HTTP 503")

    world.fakes["src_kraken"].fails = fail
    world.begin(pricing(pair(1), discoveries=[discovery(1, 1, text(0), text(12))]))
    for _ in range(5):
        world.collect()
    assert world.windows() == expected(0, 12)
    assert (world.state().error, world.state().done) == (None, 12)


def test_discovery_fails_once_all_sources_are_given_up(world: World) -> None:
    def fail() -> None:
        raise MarketUnknown("src_kraken", "history", "no such market")

    world.fakes["src_kraken"].fails = fail
    world.begin(pricing(pair(1), discoveries=[discovery(1, 1, text(0), text(12))]))
    world.collect()
    state = world.state()
    assert (state.status, state.error) == ("Failed", "src_kraken: history: no such market")
    assert state.missing == (Missing("src_kraken", instant(0), instant(12)),)


def test_defect_is_reported_and_stops_no_other_source(world: World) -> None:
    def fail() -> None:
        raise KeyError("close")

    world.fakes["src_gemini"].fails = fail
    asked = [discovery(1, 1, text(0), text(12))]
    world.begin(pricing(pair(1), sources=("src_gemini", "src_kraken"), discoveries=asked))
    report = world.collect()
    assert isinstance(report.defects["src_gemini"], KeyError)
    assert world.windows("src_kraken") == expected(0, 12)


def test_malformed_prices_are_reported(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    real = FakeSource.history

    def history(self: FakeSource, *asked: object) -> Iterator[HistoryPage]:
        for page in real(self, *asked):  # type: ignore[arg-type]
            yield HistoryPage(page.prices, page.up_to, (Problem("BTCUSD", "Trade", "a candle below zero"),))

    monkeypatch.setattr(FakeSource, "history", history)
    world.begin(pricing(pair(1), discoveries=[discovery(1, 1, text(0), text(10))]))
    world.collect()
    assert world.state().error == "invalid prices in the responses: 2, for example: a candle below zero"


def test_source_without_progress_is_malformed(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    def history(self: FakeSource, *_: object) -> Iterator[HistoryPage]:
        while True:
            yield HistoryPage([], instant(2))

    monkeypatch.setattr(FakeSource, "history", history)
    world.begin(pricing(pair(1), discoveries=[discovery(1, 1, text(0), text(10))]))
    assert "makes no progress" in world.collect().errors["src_kraken"]


def test_cancelled_discovery_stops_between_pages_and_keeps_its_prices(world: World) -> None:
    asked = [discovery(1, 1, text(0), text(12)), discovery(2, 1, text(0), text(12), "hour", "0.5")]
    world.begin(pricing(pair(1), discoveries=asked))
    world.collect(cancelled=lambda: {1} if world.fakes["src_kraken"].pages >= 3 else set())
    assert world.state(1).status == "Cancelled"
    assert 0 < world.state(1).done < 12
    assert world.state(2).done == 24


def test_discovery_cancelled_before_its_start_reads_nothing(world: World) -> None:
    world.begin(pricing(pair(1), discoveries=[discovery(1, 1, text(0), text(12), cancelled=True)]))
    world.collect()
    assert (world.state().status, world.state().total) == ("Cancelled", None)
    assert world.fakes["src_kraken"].asked == []


def test_a_discovery_waits_for_the_market_list(world: World) -> None:
    asked = [discovery(1, 1, text(0), text(3))]
    world.begin(pricing(pair(1), discoveries=asked), lists=())
    world.collect()
    assert world.state().status == "Pending"
    assert "not collected yet" in (world.state().error or "")
    world.begin(pricing(pair(1), discoveries=asked))
    world.collect()
    assert world.windows() == expected(0, 3)
    assert (world.state().status, world.state().error) == ("Running", None)


def test_source_without_the_market_is_missing_entirely(world: World) -> None:
    asked = [discovery(1, 1, text(0), text(3))]
    set_up = pricing(pair(1), sources=("src_kraken", "src_gemini"), discoveries=asked)
    world.begin(set_up, lists=("src_kraken",))
    replace_markets(world.raw.connection, "src_gemini", [listed("ETH", "USD")], world.raw.batch)
    update_routes(world.raw.connection, SOURCES, world.raw.batch)
    world.collect()
    world.publish()
    state = world.state()
    assert state.status == "Succeeded"
    assert state.missing == (Missing("src_gemini", instant(0), instant(3)),)
    assert "no such spot market" in (state.error or "")


def test_disabled_sources_are_not_asked(world: World) -> None:
    switches = [switched_off("ten_a", "src_gemini")]
    asked = [discovery(1, 1, text(0), text(3))]
    world.begin(pricing(pair(1), sources=("src_kraken", "src_gemini"), switches=switches, discoveries=asked))
    world.collect()
    assert world.fakes["src_gemini"].asked == []
    assert (world.state().done, world.state().total) == (3, 3)
    switches += [switched_off("ten_a", "src_kraken")]
    again = [discovery(2, 1, text(0), text(3))]
    world.begin(pricing(pair(1), sources=("src_kraken", "src_gemini"), switches=switches, discoveries=again))
    world.collect()
    assert world.state(2).status == "Failed"
    assert "no enabled source" in (world.state(2).error or "")


def test_sources_are_read_in_parallel(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    together = threading.Barrier(2)
    for fake in world.fakes.values():
        fake.fails = together.wait  # type: ignore[assignment]
        fake.candles_per_page = 12
    asked = [discovery(1, 1, text(0), text(12))]
    world.begin(pricing(pair(1), sources=("src_kraken", "src_gemini"), discoveries=asked))
    assert world.collect().errors == {}


def test_late_page_is_dropped_and_requested_again(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(collecting, "GRACE_SECONDS", 0.1)
    released = threading.Event()
    is_slow = [True]

    def wait() -> None:
        if is_slow:
            released.wait()

    world.fakes["src_kraken"].fails = wait
    world.begin(pricing(pair(1), discoveries=[discovery(1, 1, text(0), text(12))]))
    over = iter([False] + [True] * 1_000)
    collect_discoveries(
        world.raw.connection, SOURCES, world.open, world.raw.batch, lambda: next(over), lambda: set(), lambda: None
    )
    assert world.state().done == 0
    is_slow.clear()
    released.set()
    world.collect()
    assert world.windows() == expected(0, 12)
