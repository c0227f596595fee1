"""History from exchanges: candles compared with the script, and faulty candles."""

from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any

import pytest

from control.pricing.definitions import PriceSource
from pipelines.extract.errors import MarketUnknown, SourceMalformed, SourceRefused, SourceUnreachable
from pipelines.extract.prices.protocol import HistoryPage, Problem
from tests.chain.http_server import Reply
from tests.prices.conftest import NOW, OpenExchange
from tests.prices.exchange_server import EMPTY, EXCHANGES, ExchangeServer, malformed, rate_limited, server_error
from tests.prices.model import STEPS, Candle, ScriptedMarket, path, steady, wandering
from tests.prices.test_exchanges import IDS, every_exchange, known
from tests.waiting import Naps

HOUR = timedelta(hours=1)
DAY = timedelta(days=1)
ETHER = 1  # position in IDS
model = wandering("2000", 1)


def history(
    open_exchange: OpenExchange,
    name: str,
    granularity: str,
    start: datetime,
    end: datetime,
    market: int = ETHER,
    **fields: Any,
) -> list[HistoryPage]:
    client = open_exchange(name, known(name), **fields)
    return list(client.history(IDS[name][market], "Trade", granularity, start, end))


def prices(pages: list[HistoryPage]) -> list[tuple[datetime, datetime | None, Decimal]]:
    return [(price.effective_from, price.window_start, price.price) for page in pages for price in page.prices]


def problems(pages: list[HistoryPage]) -> list[Problem]:
    return [problem for page in pages for problem in page.problems]


def expected(start: datetime, end: datetime, step: timedelta, now: datetime = NOW) -> list[tuple[Any, ...]]:
    """Return the model's prices of all windows that end after `start`, and not after `end` or now."""
    found = []
    window = datetime(start.year, start.month, start.day, tzinfo=UTC) - DAY
    while (window := window + step) <= min(end, now):
        if window > start:
            found.append((window, window - step, model(window - timedelta(microseconds=1))))
    return found


@pytest.mark.parametrize(
    ("name", "granularity"),
    [(name, granularity) for name in EXCHANGES for granularity in STEPS if (name, granularity) != ("gemini", "1d")],
)
def test_history_has_the_last_price_of_every_finished_window(
    name: str, granularity: str, open_exchange: OpenExchange, server: ExchangeServer
) -> None:
    step = STEPS[granularity]
    end = NOW - timedelta(minutes=2)
    start = end - 400 * step
    pages = history(open_exchange, name, granularity, start, end)
    assert prices(pages) == expected(start, end, step)
    assert problems(pages) == []
    assert pages[-1].up_to == end
    assert len(server.requests) == len(pages) == (2 if name == "coinbase" else 1)


@every_exchange
def test_the_start_is_excluded_and_the_end_included(name: str, open_exchange: OpenExchange) -> None:
    noon = datetime(2026, 3, 3, 12, tzinfo=UTC)
    moment = timedelta(microseconds=1)
    for start, end, hours in (
        (noon, noon + 2 * HOUR, [13, 14]),
        (noon - moment, noon + 2 * HOUR - moment, [12, 13]),
        (noon + moment, noon + 2 * HOUR + moment, [13, 14]),
        (noon + moment, noon + 20 * moment, []),
        (noon, noon, []),
    ):
        pages = history(open_exchange, name, "1h", start, end)
        assert [effective.hour for effective, _, _ in prices(pages)] == hours
        assert pages[-1].up_to == end


@pytest.mark.parametrize("name", ["kraken", "coinbase", "binance", "bitstamp"])
def test_a_daily_close_does_not_price_its_own_day(
    name: str, server: ExchangeServer, open_exchange: OpenExchange
) -> None:
    midnight = datetime(2026, 3, 3, tzinfo=UTC)
    jumping = path({midnight - DAY: "100", midnight - timedelta(minutes=1): "900", midnight: "5000"})
    server.set_market(ScriptedMarket("ETH", "USD", jumping))
    pages = history(open_exchange, name, "1d", midnight - DAY, midnight + DAY)
    assert prices(pages) == [
        (midnight, midnight - DAY, Decimal(900)),  # from the end of the day on, and not 5000, the first of the next day
        (midnight + DAY, midnight, Decimal(5000)),
    ]


@every_exchange
def test_an_unfinished_window_is_never_returned(name: str, open_exchange: OpenExchange) -> None:
    hour = NOW.replace(minute=0, second=0, microsecond=0)
    for now, last in (
        (hour - timedelta(microseconds=1), hour - HOUR),
        (hour, hour),
        (hour + HOUR / 2, hour),
    ):
        pages = history(open_exchange, name, "1h", hour - 3 * HOUR, hour + 5 * HOUR, now=now)
        assert prices(pages)[-1][0] == last


@every_exchange
def test_a_window_that_ended_just_now_is_waited_for(name: str, open_exchange: OpenExchange, naps: Naps) -> None:
    hour = NOW.replace(minute=0, second=0, microsecond=0)
    history(open_exchange, name, "1h", hour - HOUR, hour, now=hour + timedelta(milliseconds=500))
    assert naps.taken[0] == pytest.approx(1.5)
    naps.taken.clear()
    history(open_exchange, name, "1h", hour - HOUR, hour, now=hour + timedelta(seconds=3), requests_per_second=1000)
    assert naps.taken == []


@pytest.mark.parametrize(("name", "page"), [("coinbase", 300), ("binance", 1000), ("bitstamp", 1000)])
def test_long_histories_come_in_pages_that_join_and_resume(
    name: str, page: int, server: ExchangeServer, open_exchange: OpenExchange
) -> None:
    end = NOW.replace(second=0, microsecond=0) - timedelta(minutes=3)
    start = end - 2_500 * timedelta(minutes=1)
    pages = history(open_exchange, name, "1m", start, end)
    assert [len(piece.prices) for piece in pages] == [min(page, 2_500 - done) for done in range(0, 2_500, page)]
    assert prices(pages) == expected(start, end, timedelta(minutes=1))
    ends = [start, *(piece.up_to for piece in pages)]
    for before, piece in zip(ends, pages, strict=False):
        assert before < piece.up_to
        assert all(before < price.effective_from <= piece.up_to for price in piece.prices)
    assert ends[-1] == end
    rest = history(open_exchange, name, "1m", pages[0].up_to, end)
    assert prices(pages[:1]) + prices(rest) == prices(pages)


@pytest.mark.parametrize(("name", "reach"), [("kraken", 720), ("gemini", 1344)])
def test_windows_before_an_exchanges_reach_are_requested_and_absent(
    name: str, reach: int, sources: dict[str, PriceSource], server: ExchangeServer, open_exchange: OpenExchange
) -> None:
    end = NOW - timedelta(minutes=2)
    start = end - timedelta(days=3)
    pages = history(open_exchange, name, "1m", start, end)
    assert sources[name].history_candles == reach
    assert [page.up_to for page in pages] == [end]
    times = [effective for effective, _, _ in prices(pages)]
    assert reach - 4 <= len(times) <= reach
    assert prices(pages) == expected(times[0] - timedelta(minutes=1), end, timedelta(minutes=1))


@every_exchange
def test_before_a_market_began_there_is_nothing(name: str, server: ExchangeServer, open_exchange: OpenExchange) -> None:
    began = datetime(2026, 3, 3, 12, tzinfo=UTC)
    server.set_market(ScriptedMarket("ETH", "USD", model, listed_from=began))
    pages = history(open_exchange, name, "1h", began - DAY, began + 3 * HOUR)
    assert prices(pages) == expected(began, began + 3 * HOUR, HOUR)


@every_exchange
def test_a_window_without_a_trade_has_no_price(name: str, server: ExchangeServer, open_exchange: OpenExchange) -> None:
    """Some exchanges leave it out; others repeat the last price with a volume of zero, which is no trade either."""
    start = datetime(2026, 3, 3, tzinfo=UTC)
    server.set_market(ScriptedMarket("ETH", "USD", model, quiet=lambda opened, _: opened.hour in (2, 3)))
    pages = history(open_exchange, name, "1h", start, start + 5 * HOUR)
    assert [effective.hour for effective, _, _ in prices(pages)] == [1, 2, 5]
    assert problems(pages) == []


@every_exchange
def test_an_empty_history_is_empty_and_not_an_error(
    name: str, server: ExchangeServer, open_exchange: OpenExchange
) -> None:
    server.always_reply(name, EMPTY)
    pages = history(open_exchange, name, "1h", NOW - DAY, NOW - HOUR)
    assert (prices(pages), problems(pages), pages[-1].up_to) == ([], [], NOW - HOUR)


@every_exchange
@pytest.mark.parametrize(
    "edit",
    [
        lambda rows: rows[::-1],
        lambda rows: rows[1::2] + rows[::2],
        lambda rows: [row for row in rows for _ in range(2)],
        lambda rows: rows + rows[:3],
    ],
    ids=["reversed", "shuffled", "doubled", "repeated at the end"],
)
def test_candles_out_of_order_and_duplicates_are_corrected(
    name: str,
    edit: Callable[[list[Candle]], list[Candle]],
    server: ExchangeServer,
    open_exchange: OpenExchange,
) -> None:
    start = datetime(2026, 3, 3, tzinfo=UTC)
    server.edit_candles = edit
    pages = history(open_exchange, name, "1h", start, start + 20 * HOUR)
    if name == "bitstamp" and len(edit([1, 2])) > 2:  # type: ignore[list-item]
        # Bitstamp cuts its own answer at the limit: windows may be missing, but no price is wrong.
        assert set(prices(pages)) <= set(expected(start, start + 20 * HOUR, HOUR))
    else:
        assert prices(pages) == expected(start, start + 20 * HOUR, HOUR)
    assert problems(pages) == []


@every_exchange
def test_a_candle_with_two_different_prices_is_a_problem(
    name: str, server: ExchangeServer, open_exchange: OpenExchange
) -> None:
    start = datetime(2026, 3, 3, tzinfo=UTC)

    def contradict(rows: list[Candle]) -> list[Candle]:
        return [*rows[:1], *(replace(row, close=row.close + 1) for row in rows[:1]), *rows[1:]]

    server.edit_candles = lambda rows: contradict([row for row in rows if row.start >= start])
    pages = history(open_exchange, name, "1h", start, start + 4 * HOUR)
    assert set(prices(pages)) <= set(expected(start + HOUR, start + 4 * HOUR, HOUR))
    assert len(prices(pages)) >= 2
    assert [problem.detail for problem in problems(pages)] == [
        "the candle of 2026-03-03T00:00:00Z: it has 2 different last prices"
    ]


@every_exchange
@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"close": Decimal(0)}, "not positive"),
        ({"close": Decimal("-5")}, "not positive"),
        ({"close": Decimal("NaN")}, "not a number"),
        ({"close": Decimal("1.0000000000000000001")}, "more than 18 decimals"),
        ({"start": datetime(2026, 3, 3, 0, 0, 7, tzinfo=UTC)}, "does not begin at a whole multiple"),
        ({"start": NOW + timedelta(days=3)}, "whole multiple|in the future"),
        ({"start": datetime(2027, 1, 1, tzinfo=UTC)}, "in the future"),
    ],
)
def test_a_wrong_candle_is_a_problem_and_the_others_are_returned(
    name: str, change: dict[str, Any], words: str, server: ExchangeServer, open_exchange: OpenExchange
) -> None:
    start = datetime(2026, 3, 3, tzinfo=UTC)

    def spoil(rows: list[Candle]) -> list[Candle]:
        return [replace(row, **change) if row.start == start else row for row in rows]

    server.edit_candles = spoil
    if name == "kraken" and "start" in change:
        server.edit_candles = lambda rows: spoil([row for row in rows if row.start >= start])
    pages = history(open_exchange, name, "1h", start, start + 4 * HOUR)
    assert prices(pages) == expected(start + HOUR, start + 4 * HOUR, HOUR)
    (problem,) = problems(pages)
    assert (problem.market_id, problem.price_type) == (IDS[name][ETHER], "Trade")
    assert any(word in problem.detail for word in words.split("|"))


@pytest.mark.parametrize(
    ("rows", "is_refused"),
    [
        ("[[1772496000000]]", False),
        ('[["soon", "1", "2", "3", "4", "5"]]', False),
        ('[[null, "1", "2", "3", "4", "5"]]', False),
        ('[[1772496000000, "1", "2", "3", null, "5"]]', False),
        ('{"code": 1}', True),
        ('"candles"', True),
        ("[3]", False),
    ],
)
def test_candles_of_another_form(
    rows: str, is_refused: bool, server: ExchangeServer, open_exchange: OpenExchange
) -> None:
    server.always_reply("binance", Reply(rows.encode()))
    start = datetime(2026, 3, 3, tzinfo=UTC)
    if is_refused:
        with pytest.raises((SourceMalformed, SourceRefused, SourceUnreachable)):
            history(open_exchange, "binance", "1h", start, start + HOUR)
    else:
        pages = history(open_exchange, "binance", "1h", start, start + HOUR)
        assert prices(pages) == []
        assert len(problems(pages)) == 1


@every_exchange
def test_a_fault_in_the_middle_keeps_the_pages_before(
    name: str, sources: dict[str, PriceSource], server: ExchangeServer, open_exchange: OpenExchange
) -> None:
    end = NOW.replace(second=0, microsecond=0) - timedelta(minutes=3)
    client = open_exchange(name, known(name), max_attempts=2)
    pages = client.history(IDS[name][ETHER], "Trade", "1m", end - 1_200 * timedelta(minutes=1), end)
    first = next(pages)
    assert first.prices
    server.always_reply(name, server_error())
    if sources[name].page_candles is None:
        assert list(pages) == []
    else:
        with pytest.raises(SourceUnreachable):
            next(pages)


@every_exchange
@pytest.mark.parametrize("fault", [rate_limited(), server_error(), malformed()])
def test_one_fault_is_tried_again(name: str, fault: Reply, server: ExchangeServer, open_exchange: OpenExchange) -> None:
    start = datetime(2026, 3, 3, tzinfo=UTC)
    server.next_replies(name, fault)
    pages = history(open_exchange, name, "1h", start, start + 3 * HOUR)
    assert prices(pages) == expected(start, start + 3 * HOUR, HOUR)


@every_exchange
def test_a_market_that_is_not_there_is_an_error(name: str, server: ExchangeServer, open_exchange: OpenExchange) -> None:
    client = open_exchange(name, known(name))
    with pytest.raises(MarketUnknown, match="nothing"):
        next(client.history("nothing", "Trade", "1h", NOW - DAY, NOW))
    server.delist("ETH/USD")
    with pytest.raises(SourceRefused):
        next(client.history(IDS[name][ETHER], "Trade", "1h", NOW - DAY, NOW))


def test_only_declared_history_can_be_asked_for(open_exchange: OpenExchange) -> None:
    client = open_exchange("gemini", known("gemini"))
    for price_type, granularity in (("Bid", "1h"), ("Trade", "1d"), ("Trade", "1w")):
        with pytest.raises(ValueError, match="no history of"):
            next(client.history("btcusd", price_type, granularity, NOW - DAY, NOW))


def test_the_exact_price_survives_every_exchange(open_exchange: OpenExchange) -> None:
    for name in EXCHANGES:
        pages = history(open_exchange, name, "1h", NOW - 2 * HOUR, NOW - HOUR, market=0)
        assert [str(price) for _, _, price in prices(pages)] == ["12345678901.123456789012345678"]


def test_the_script_itself_jumps_and_stands_still() -> None:
    """The test's own measure."""
    noon = datetime(2026, 3, 3, 12, tzinfo=UTC)
    at = path({noon: "1", noon + HOUR: "2"})
    assert [at(noon - HOUR), at(noon), at(noon + HOUR - timedelta(microseconds=1)), at(noon + HOUR)] == [1, 1, 1, 2]
    assert steady("3")(noon) == 3
    assert model(noon) == model(noon + timedelta(seconds=59)) != model(noon + timedelta(minutes=1))
