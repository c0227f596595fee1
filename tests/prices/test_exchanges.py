"""Every exchange through its real ccxt class over a real socket: markets, polls, and their faults."""

import json
from datetime import UTC, datetime, timedelta
from decimal import Decimal, localcontext
from typing import Any

import pytest

from control.pricing.definitions import PriceSource
from pipelines.extract.errors import (
    MarketUnknown,
    PriceSourceError,
    SourceMalformed,
    SourceRateLimited,
    SourceRefused,
    SourceUnreachable,
)
from pipelines.extract.prices.http import HttpClient
from pipelines.extract.prices.protocol import Market, MarketPrice
from tests.chain.http_server import Reply
from tests.prices.conftest import EXACT, NOW, OpenExchange
from tests.prices.exchange_server import (
    EMPTY,
    EXCHANGES,
    ExchangeServer,
    hanging,
    malformed,
    rate_limited,
    server_error,
)
from tests.prices.model import ScriptedMarket, steady, wandering
from tests.waiting import Naps

IDS = {
    "kraken": ("XXBTZUSD", "XETHZUSD", "XETHZEUR"),
    "coinbase": ("BTC-USD", "ETH-USD", "ETH-EUR"),
    "gemini": ("btcusd", "ethusd", "etheur"),
    "binance": ("BTCUSD", "ETHUSD", "ETHEUR"),
    "bitstamp": ("btcusd", "ethusd", "etheur"),
}
every_exchange = pytest.mark.parametrize("name", EXCHANGES)


def known(name: str) -> list[Market]:
    """The server's three markets, as `markets` lists them."""
    codes = {"BTC": "XXBT", "ETH": "XETH", "USD": "ZUSD", "EUR": "ZEUR"} if name == "kraken" else {}
    pairs = (("BTC", "USD"), ("ETH", "USD"), ("ETH", "EUR"))
    return [
        Market(market_id, base, quote, codes.get(base, base), codes.get(quote, quote), True)
        for market_id, (base, quote) in zip(IDS[name], pairs, strict=True)
    ]


def bitcoin_trade(name: str) -> list[tuple[str, str]]:
    return [(IDS[name][0], "Trade")]


@every_exchange
def test_the_market_list_is_every_spot_market(name: str, server: ExchangeServer, open_exchange: OpenExchange) -> None:
    server.suspend("ETH/EUR")
    listed = open_exchange(name).markets()
    assert {market.market_id: market.is_active for market in listed} == {
        market_id: market_id != (IDS[name][2]) or name == "gemini"  # Gemini's list has no such flag
        for market_id in IDS[name]
    }
    assert [market.market_id for market in listed] == sorted(IDS[name])
    by_id = {market.market_id: market for market in listed}
    for market in known(name)[:2]:
        assert by_id[market.market_id] == market


@every_exchange
def test_a_poll_is_exact_and_a_trade_has_its_own_time(
    name: str, sources: dict[str, PriceSource], server: ExchangeServer, open_exchange: OpenExchange
) -> None:
    client = open_exchange(name, known(name))
    types = sources[name].price_types
    wanted = [(market_id, price_type) for market_id in IDS[name] for price_type in types]
    result = client.poll(wanted)
    assert result.problems == []
    # One for all offers, and one for each last trade.
    assert len(server.requests) == ("Ask" in types) + len(IDS[name])
    assert [(price.market_id, price.price_type) for price in result.prices] == wanted
    traded = datetime(2026, 3, 4, 10, 7, 28, 0 if name == "bitstamp" else 155_000, tzinfo=UTC)
    with localcontext(prec=60):
        tiny = Decimal("0.000000000000000001")
        bitcoin = {"Ask": Decimal(EXACT) + tiny, "Bid": Decimal(EXACT) - tiny, "Trade": Decimal(EXACT)}
    ether = {"Ask": Decimal("0.01"), "Bid": Decimal("-0.01"), "Trade": Decimal(0)}
    for price in result.prices:
        at = traded if price.price_type == "Trade" else NOW
        assert (price.effective_from, price.window_start) == (at, None)
        if price.market_id == IDS[name][0]:
            assert price.price == bitcoin[price.price_type]
        else:
            model = wandering("2000", 1) if price.market_id == IDS[name][1] else wandering("1800", 2)
            assert price.price == model(NOW) + ether[price.price_type]


def test_each_exchange_declares_what_its_tickers_hold(sources: dict[str, PriceSource]) -> None:
    assert {name: sources[name].price_types for name in EXCHANGES} == {
        "kraken": ("Ask", "Bid", "Trade"),
        "coinbase": ("Trade",),
        "gemini": ("Trade",),
        "binance": ("Ask", "Bid", "Trade"),
        "bitstamp": ("Ask", "Bid", "Trade"),
    }


@pytest.mark.parametrize("name", ["coinbase", "gemini"])
def test_types_that_are_declared_wrongly_get_no_price(name: str, open_exchange: OpenExchange) -> None:
    """These two exchanges have no offers in their tickers: declared offers become problems, never invented prices."""
    client = open_exchange(name, known(name), price_types=("Ask", "Bid", "Trade"))
    result = client.poll([(IDS[name][0], price_type) for price_type in ("Ask", "Bid", "Trade")])
    assert [price.price_type for price in result.prices] == ["Trade"]
    assert [problem.detail for problem in result.problems] == [
        "no Ask price in the ticker",
        "no Bid price in the ticker",
    ]


@every_exchange
def test_without_known_markets_the_list_is_asked_for_once(
    name: str, server: ExchangeServer, open_exchange: OpenExchange
) -> None:
    client = open_exchange(name)
    client.poll(bitcoin_trade(name))
    before = len(server.requests)
    client.poll(bitcoin_trade(name))
    assert len(server.requests) == before + 1


@every_exchange
def test_a_market_without_a_trade_has_no_price_and_an_old_one_an_old_price(
    name: str, server: ExchangeServer, open_exchange: OpenExchange
) -> None:
    old = NOW - timedelta(minutes=40)
    server.set_market(ScriptedMarket("ETH", "USD", steady("7"), traded_at=lambda now: None))
    server.set_market(ScriptedMarket("ETH", "EUR", steady("9"), traded_at=lambda now: old))
    result = open_exchange(name, known(name)).poll([(market_id, "Trade") for market_id in IDS[name][1:]])
    expected = old.replace(microsecond=0) if name == "bitstamp" else old
    assert result.prices == [MarketPrice(IDS[name][2], "Trade", expected, None, Decimal(9))]
    assert [(problem.market_id, problem.detail) for problem in result.problems] == [
        (IDS[name][1], "no trade in the answer")
    ]


@every_exchange
def test_a_trade_is_never_later_than_its_answer(name: str, server: ExchangeServer, open_exchange: OpenExchange) -> None:
    for ahead, words in ((timedelta(seconds=1.5), None), (timedelta(hours=1), "the last trade is in the future")):
        at = NOW + ahead
        server.set_market(ScriptedMarket("BTC", "USD", steady("7"), traded_at=lambda now, at=at: at))
        result = open_exchange(name, known(name)).poll(bitcoin_trade(name))
        if words is None:
            assert [price.effective_from for price in result.prices] == [NOW]
        else:
            assert result.prices == []
            assert words in result.problems[0].detail


def test_last_trades_are_asked_for_as_long_as_a_poll_may_take(
    server: ExchangeServer, open_exchange: OpenExchange
) -> None:
    for number in range(50):
        server.set_market(ScriptedMarket(f"C{number}", "USD", steady(str(number + 1))))
    client = open_exchange("kraken")
    wanted = [(market.market_id, "Trade") for market in client.markets() if market.base.startswith("C")]
    seen: set[str] = set()
    for _ in range(30):
        server.requests.clear()
        result = client.poll(wanted)
        assert len(server.requests) == len(result.prices) <= 21
        assert len(result.problems) == 50 - len(result.prices)
        assert {problem.detail for problem in result.problems} == {"its last trade could not be read within 20 s"}
        seen.update(price.market_id for price in result.prices)
    # Another order each time: all of them have their turn.
    assert len(seen) == 50


@pytest.mark.parametrize("name", ["kraken", "binance", "bitstamp"])
def test_100_markets_and_more_are_one_request(name: str, server: ExchangeServer, open_exchange: OpenExchange) -> None:
    for number in range(250):
        server.set_market(ScriptedMarket(f"C{number}", "USD", steady(str(number + 1)), spread=Decimal(0)))
    client = open_exchange(name)
    markets = [market for market in client.markets() if market.base.startswith("C")]
    server.requests.clear()
    for count in (100, 250):
        result = client.poll([(market.market_id, "Bid") for market in markets[:count]])
        assert result.problems == []
        assert [price.price for price in result.prices] == [
            Decimal(int(market.base[1:]) + 1) for market in markets[:count]
        ]
    assert len(server.requests) == 2


@every_exchange
def test_an_empty_answer_is_a_problem_for_each_market(
    name: str, server: ExchangeServer, open_exchange: OpenExchange
) -> None:
    server.always_reply(name, EMPTY)
    result = open_exchange(name, known(name)).poll([(market_id, "Trade") for market_id in IDS[name]])
    assert result.prices == []
    assert [problem.detail for problem in result.problems] == ["no trade in the answer"] * 3
    assert open_exchange(name).markets() == []


@every_exchange
def test_429_is_waited_out_as_asked(name: str, server: ExchangeServer, open_exchange: OpenExchange, naps: Naps) -> None:
    server.next_replies(name, rate_limited("7"), rate_limited("11"))
    result = open_exchange(name, known(name)).poll(bitcoin_trade(name))
    assert [price.price for price in result.prices] == [Decimal(EXACT)]
    assert len(server.requests) == 3
    assert sum(naps.taken) == pytest.approx(7 + 11)


@every_exchange
def test_429_for_ever_is_an_error_after_bounded_attempts(
    name: str, server: ExchangeServer, open_exchange: OpenExchange
) -> None:
    server.always_reply(name, rate_limited())
    with pytest.raises(SourceRateLimited, match=f"src_{name}: fetchTrades: HTTP 429$") as caught:
        open_exchange(name, known(name), max_attempts=3).poll(bitcoin_trade(name))
    assert caught.value.retry_after == 1
    assert len(server.requests) == 3


def test_a_wait_that_no_call_may_take_is_not_begun(
    server: ExchangeServer, open_exchange: OpenExchange, naps: Naps
) -> None:
    server.always_reply("kraken", rate_limited("3600"))
    # No pause is longer than a minute, no call than two. After this second a second minute would end behind the call;
    # without it just at its end, and the request would have no time left for its answer.
    server.next_replies("kraken", rate_limited("1"))
    with pytest.raises(SourceRateLimited, match="asked for a longer pause than a call may take"):
        open_exchange("kraken", known("kraken")).poll(bitcoin_trade("kraken"))
    assert sum(naps.taken) == 1 + 60
    assert len(server.requests) == 3


@every_exchange
@pytest.mark.parametrize(
    "fault", [server_error(502), server_error(503), malformed(), Reply(b"", 200), Reply(b"{}", cut_after=1)]
)
def test_one_fault_is_tried_again(
    name: str, fault: Reply, server: ExchangeServer, open_exchange: OpenExchange, naps: Naps
) -> None:
    server.next_replies(name, fault)
    result = open_exchange(name, known(name)).poll(bitcoin_trade(name))
    assert [price.price for price in result.prices] == [Decimal(EXACT)]
    assert len(server.requests) == 2
    assert 0 < sum(naps.taken) < 3


@every_exchange
@pytest.mark.parametrize(
    ("fault", "words"),
    [
        (server_error(500), "HTTP 500"),
        (malformed(), "not JSON"),
        (Reply(b"<html>maintenance</html>"), "not JSON"),
        (Reply(b"{}", cut_after=1), "cut off"),
    ],
)
def test_permanent_faults_are_errors(
    name: str, fault: Reply, words: str, server: ExchangeServer, open_exchange: OpenExchange
) -> None:
    server.always_reply(name, fault)
    for ask in (lambda client: client.poll(bitcoin_trade(name)), lambda client: client.markets()):
        server.requests.clear()
        with pytest.raises(SourceUnreachable, match=words):
            ask(open_exchange(name, known(name), max_attempts=2))
        assert len(server.requests) == 2


@every_exchange
def test_an_exchange_that_hangs_is_given_up(name: str, server: ExchangeServer, open_exchange: OpenExchange) -> None:
    server.always_reply(name, hanging(60))
    client = open_exchange(name, known(name), timeout_seconds=0.1, max_attempts=2)
    with pytest.raises(SourceUnreachable, match="no complete answer in time"):
        client.poll(bitcoin_trade(name))


@every_exchange
def test_a_refused_connection_is_an_error(name: str, server: ExchangeServer, open_exchange: OpenExchange) -> None:
    client = open_exchange(name, known(name))
    server.stop()
    with pytest.raises(SourceUnreachable, match="no connection"):
        client.poll(bitcoin_trade(name))


@every_exchange
@pytest.mark.parametrize(
    "text", ['{"result": 3, "products": 4}', "[1, 2]", '{"error": {}, "data": []}', '[["a"]]', "[null]"]
)
def test_an_answer_of_another_form_is_no_price(
    name: str, text: str, server: ExchangeServer, open_exchange: OpenExchange
) -> None:
    """Either the whole answer is refused, or each market has a problem; there are no other errors and no prices."""
    server.always_reply(name, Reply(text.encode()))
    try:
        result = open_exchange(name, known(name)).poll(bitcoin_trade(name))
    except PriceSourceError as error:
        assert isinstance(error, SourceMalformed | SourceRefused), error  # noqa: PT017
    else:
        assert result.prices == []
        assert len(result.problems) == 1
    server.requests.clear()
    try:
        assert open_exchange(name).markets() == []
    except PriceSourceError as error:
        assert isinstance(error, SourceMalformed | SourceRefused), error  # noqa: PT017


@every_exchange
@pytest.mark.parametrize("status", [400, 401, 403, 404, 451])
def test_a_refusal_is_not_repeated(name: str, status: int, server: ExchangeServer, open_exchange: OpenExchange) -> None:
    server.always_reply(name, Reply(b"<html>not for you</html>", status))
    with pytest.raises(SourceRefused, match=f"HTTP {status}"):
        open_exchange(name).markets()
    assert len(server.requests) == 1


@every_exchange
def test_redirects_are_not_followed(name: str, server: ExchangeServer, open_exchange: OpenExchange) -> None:
    server.always_reply(name, Reply(b"", 302, {"Location": "http://192.0.2.1/"}))
    with pytest.raises(SourceRefused, match="HTTP 302"):
        open_exchange(name).markets()


@every_exchange
def test_a_market_that_vanished_is_a_problem_of_its_own(
    name: str, server: ExchangeServer, open_exchange: OpenExchange
) -> None:
    server.delist("ETH/USD")
    result = open_exchange(name, known(name)).poll([(market_id, "Trade") for market_id in IDS[name]])
    assert [price.market_id for price in result.prices] == [IDS[name][0], IDS[name][2]]
    assert [problem.market_id for problem in result.problems] == [IDS[name][1]]
    assert len(server.requests) == 3


@pytest.mark.parametrize("name", ["kraken", "binance", "bitstamp"])
def test_a_market_that_vanished_leaves_the_others_their_offers(
    name: str, server: ExchangeServer, open_exchange: OpenExchange
) -> None:
    server.delist("ETH/USD")
    result = open_exchange(name, known(name)).poll([(market_id, "Ask") for market_id in IDS[name]])
    assert [price.market_id for price in result.prices] == [IDS[name][0], IDS[name][2]]
    assert [(problem.market_id, problem.detail) for problem in result.problems] == [
        (IDS[name][1], "no ticker in the answer")
    ]
    assert len(server.requests) <= 2  # the batch, and all markets where it was refused


@every_exchange
def test_unlisted_closed_and_unsupplied_markets_are_not_requested(
    name: str, sources: dict[str, PriceSource], server: ExchangeServer, open_exchange: OpenExchange
) -> None:
    markets = known(name)
    closed = Market(markets[1].market_id, "ETH", "USD", "ETH", "USD", is_active=False)
    client = open_exchange(name, [markets[0], closed])
    wanted = [("nothing", "Trade"), (closed.market_id, "Trade"), (markets[0].market_id, "Market")]
    result = client.poll(wanted)
    assert result.prices == []
    assert [(problem.market_id, problem.price_type) for problem in result.problems] == wanted
    assert [problem.detail.split(" (")[0] for problem in result.problems] == [
        "the market is not listed",
        "the market is not open for trading",
        f"{sources[name].name} supplies no Market prices",
    ]
    assert client.poll([]).problems == []
    assert server.requests == []


@pytest.mark.parametrize(
    ("price", "words"),
    [
        ('"0"', "not positive"),
        ('"-1"', "not positive"),
        ('"1.0000000000000000001"', "more than 18 decimals"),
        ('"123456789012345678901"', "more than 20 digits"),
        ('"abc"', "not a number"),
        ('"NaN"', "not a number"),
        ("NaN", "not a number"),
        ("Infinity", "not a number"),
        ('""', "no price in the last trade"),
        ("null", "no price in the last trade"),
        ('"1e99999"', "not a number"),
        ("[1]", "not a number"),
    ],
)
def test_a_price_that_cannot_be_kept_exactly_is_a_problem(
    price: str, words: str, server: ExchangeServer, open_exchange: OpenExchange
) -> None:
    server.next_replies("gemini", Reply(f'[{{"timestampms": 1772618848155, "price": {price}}}]'.encode()))
    result = open_exchange("gemini", known("gemini")).poll([("btcusd", "Trade")])
    assert result.prices == []
    assert words in result.problems[0].detail


def test_a_price_written_as_a_number_keeps_all_its_digits(server: ExchangeServer, open_exchange: OpenExchange) -> None:
    server.next_replies("gemini", Reply(b'[{"timestampms": 1772618848155, "price": 0.123456789012345678}]'))
    result = open_exchange("gemini", known("gemini")).poll([("btcusd", "Trade")])
    at = datetime(2026, 3, 4, 10, 7, 28, 155_000, tzinfo=UTC)
    assert result.prices == [MarketPrice("btcusd", "Trade", at, None, Decimal("0.123456789012345678"))]


@pytest.mark.parametrize("moment", ["null", '"soon"', "-1", "1e99"])
def test_a_trade_that_does_not_say_when_is_a_problem(
    moment: str, server: ExchangeServer, open_exchange: OpenExchange
) -> None:
    server.next_replies("gemini", Reply(f'[{{"timestampms": {moment}, "price": "7"}}]'.encode()))
    try:
        result = open_exchange("gemini", known("gemini")).poll([("btcusd", "Trade")])
    except SourceMalformed:
        return
    assert result.prices == []
    assert "has no valid time" in result.problems[0].detail


def test_a_missing_price_is_not_worked_out_from_others(server: ExchangeServer, open_exchange: OpenExchange) -> None:
    ticker = {"symbol": "BTCUSD", "lastPrice": "10", "askPrice": "11", "bidQty": "1", "openPrice": "10"}
    server.next_replies("binance", Reply(json.dumps([ticker]).encode()))
    result = open_exchange("binance", known("binance")).poll([("BTCUSD", "Ask"), ("BTCUSD", "Bid")])
    assert [(price.price_type, price.price) for price in result.prices] == [("Ask", Decimal(11))]
    assert result.problems[0].detail == "no Bid price in the ticker"


def test_two_markets_of_one_symbol_keep_their_own_prices(server: ExchangeServer, open_exchange: OpenExchange) -> None:
    twins = [Market(market_id, "AAA", "USD", market_id, "USD", True) for market_id in ("AAAUSD", "AAA2USD")]
    tickers = [
        {"symbol": market.market_id, "bidPrice": str(number), "bidQty": "1"} for number, market in enumerate(twins, 1)
    ]
    server.next_replies("binance", Reply(json.dumps(tickers).encode()))
    result = open_exchange("binance", twins).poll([(market.market_id, "Bid") for market in twins])
    assert [(price.market_id, price.price) for price in result.prices] == [
        ("AAAUSD", Decimal(1)),
        ("AAA2USD", Decimal(2)),
    ]


def test_a_ticker_under_the_exchange_s_own_code_is_found(server: ExchangeServer, open_exchange: OpenExchange) -> None:
    server.set_market(ScriptedMarket("UST", "USD", steady("0.02")), "bitstamp")
    client = open_exchange("bitstamp")
    market = {listed.market_id: listed for listed in client.markets()}["ustusd"]
    assert (market.base, market.base_code) == ("USTC", "UST")
    assert [price.price for price in client.poll([("ustusd", "Ask")]).prices] == [Decimal("0.03")]
    assert [price.price for price in client.poll([("ustusd", "Trade")]).prices] == [Decimal("0.02")]


def test_requests_keep_the_declared_distance(open_exchange: OpenExchange, naps: Naps) -> None:
    client = open_exchange("binance", known("binance"), requests_per_second=2)
    for _ in range(5):
        client.poll(bitcoin_trade("binance"))
    assert naps.taken == pytest.approx([0.5] * 4)


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"exchange": "krakn"}, "ccxt has no exchange 'krakn'"),
        ({"exchange": "base"}, "ccxt has no exchange 'base'"),
        ({"exchange": "bit2c"}, "ccxt's bit2c has no fetchTickers"),
        ({"granularities": ("round",)}, "no candles of round"),
        ({"price_types": ("Market",)}, "an exchange supplies no Market prices"),
        ({"history_types": ("Bid",)}, "candles are of Trade prices"),
        ({"credentials": (("apiKey", "LEDGERMART_TEST_NO_SUCH_VARIABLE"),)}, "set LEDGERMART_TEST_NO_SUCH_VARIABLE"),
    ],
)
def test_a_definition_that_does_not_fit_is_refused(
    fields: dict[str, Any], words: str, open_exchange: OpenExchange
) -> None:
    with pytest.raises(SourceRefused, match=words):
        open_exchange("kraken", **fields)


def ccxt_exchange(source: PriceSource) -> Any:
    """Return ccxt's object under our requests and numbers."""
    from pipelines.extract.prices import ccxt_objects

    return ccxt_objects.open_exchange(source, {}, HttpClient(source))


@pytest.mark.parametrize("method", ["fetchTickers", "fetchTrades", "fetchOHLCV"])
@every_exchange
def test_ccxt_supports_the_declared_methods_and_granularities(
    name: str, method: str, sources: dict[str, PriceSource]
) -> None:
    exchange = ccxt_exchange(sources[name])
    assert exchange.has[method] is True
    assert set(sources[name].granularities) <= set(exchange.timeframes)


def test_no_error_shows_a_credential(
    server: ExchangeServer, open_exchange: OpenExchange, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SOME_KEY", "hush-hush")
    server.always_reply("kraken", Reply(b'{"error": ["EGeneral:Permission denied for hush-hush"]}'))
    client = open_exchange("kraken", known("kraken"), credentials=(("apiKey", "SOME_KEY"),))
    with pytest.raises(SourceRefused) as caught:
        client.poll(bitcoin_trade("kraken"))
    assert "hush-hush" not in caught.value.for_the_log()
    assert "Permission denied for ***" in caught.value.for_the_log()
    assert "denied" not in str(caught.value)


@pytest.mark.parametrize(
    ("message", "kind"),
    [
        ("EAPI:Rate limit exceeded", SourceRateLimited),
        ("EGeneral:Too many requests", SourceRateLimited),
        ("EService:Unavailable", SourceUnreachable),
        ("EService:Busy", SourceUnreachable),
        ("EQuery:Unknown asset", MarketUnknown),
        ("EGeneral:Permission denied", SourceRefused),
    ],
)
def test_errors_within_a_success_are_understood(
    message: str, kind: type[PriceSourceError], server: ExchangeServer, open_exchange: OpenExchange
) -> None:
    server.always_reply("kraken", Reply(json.dumps({"error": [message]}).encode()))
    with pytest.raises(kind) as caught:
        open_exchange("kraken", known("kraken"), max_attempts=3).poll([(IDS["kraken"][0], "Bid")])
    assert type(caught.value) is kind
    assert message in caught.value.for_the_log()
    is_retried = kind in (SourceRateLimited, SourceUnreachable)
    assert len(server.requests) == (3 if is_retried else 2)  # once more for all markets where the batch was refused


def test_ccxt_sends_requests_only_to_the_configured_address(sources: dict[str, PriceSource]) -> None:
    exchange = ccxt_exchange(sources["kraken"])
    with pytest.raises(SourceRefused, match=r"example\.org"):
        exchange.fetch("https://example.org/0/public/Ticker")
    with pytest.raises(SourceRefused, match="POST"):
        exchange.fetch("http://127.0.0.1/", "POST")
