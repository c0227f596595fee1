"""A loopback server that speaks the wire formats of Kraken, Coinbase, Gemini, Binance, Bitstamp and the ECB.

All answers come from one scripted model; requested faults happen on the wire. The formats follow the exchanges' own
documents: https://docs.kraken.com/api/, https://docs.cdp.coinbase.com/api-reference/advanced-trade-api/,
https://docs.gemini.com/rest/, https://developers.binance.com/docs/binance-spot-api-docs/, https://www.bitstamp.net/api/.
"""

import threading
from collections import defaultdict, deque
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal, localcontext
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import parse_qs, urlsplit

import msgspec

from control.clock import utc_now
from tests import CHECKOUT
from tests.chain.http_server import LoopbackServer, Reply
from tests.prices.model import STEPS, Candle, ScriptedMarket, candles, rates_on

_SHIPPED = CHECKOUT / "control" / "pricing" / "sources.toml"
# Prices are numbers in JSON where the exchange writes them so; a float would round them.
_JSON = msgspec.json.Encoder(decimal_format="number")

EXCHANGES = ("kraken", "coinbase", "gemini", "binance", "bitstamp")
EMPTY = "empty"
"""Fault: success, and nothing in it."""


class Request(NamedTuple):
    """A received request: `path` after the exchange's name, and `query` with the last value of each name."""

    source: str
    path: str
    query: dict[str, str]


class ExchangeServer(LoopbackServer):
    """Every exchange lists the same markets; the ECB has its own rates.

    Args:
        markets: by unified codes.
        now: the exchanges' clock.
        rates: of the ECB, by day; None: no rates that day.
    """

    def __init__(
        self,
        markets: Iterable[ScriptedMarket],
        *,
        now: Callable[[], datetime] = utc_now,
        rates: Callable[[date], dict[str, Decimal] | None] = rates_on,
    ) -> None:
        super().__init__()
        self.now = now
        self.rates = rates
        self.requests: list[Request] = []
        self.edit_candles: Callable[[list[Candle]], list[Candle]] = list
        """Applied to the candles of every answer, oldest first, before they are written."""
        self.spoil: Callable[[Request, Reply], Reply] = lambda request, reply: reply
        """Applied to every answer of the script."""
        self._lock = threading.Lock()
        self._markets: dict[str, dict[str, ScriptedMarket]] = {
            name: {market.name: market for market in markets} for name in EXCHANGES
        }
        self._once: defaultdict[str, deque[Reply | str]] = defaultdict(deque)
        self._always: dict[str, Reply | str] = {}

    # The script

    def set_market(self, market: ScriptedMarket, *exchanges: str) -> None:
        """List or replace a market at some exchanges; default: all."""
        for name in exchanges or EXCHANGES:
            self._markets[name][market.name] = market

    def delist(self, name: str, *exchanges: str) -> None:
        """Remove a market at some exchanges; default: all."""
        for exchange in exchanges or EXCHANGES:
            del self._markets[exchange][name]

    def suspend(self, name: str, *exchanges: str) -> None:
        """Leave a market listed, and stop trading."""
        for exchange in exchanges or EXCHANGES:
            self._markets[exchange][name] = replace(self._markets[exchange][name], is_active=False)

    def next_replies(self, source: str, *replies: Reply | str) -> None:
        """Answer the next requests to a source with these replies; `EMPTY` is a success without content."""
        self._once[source].extend(replies)

    def always_reply(self, source: str, reply: Reply | str | None) -> None:
        """Answer every request to a source with this reply; None: from the script again."""
        if reply is None:
            self._always.pop(source, None)
        else:
            self._always[source] = reply

    def url_of(self, source: str) -> str:
        """Return the address that replaces a source's own; `source` is an exchange, or `ecb`."""
        return f"{self.url}/{source}"

    def write_definitions(self, path: Path, sources: Sequence[str] = (*EXCHANGES, "ecb"), **fields: Any) -> Path:
        """Write the shipped definitions of some sources with this server's addresses; `fields` are set in each."""
        tables = []
        for table in _SHIPPED.read_text(encoding="utf-8").split("[[source]]\n")[1:]:
            name = table.split('name = "')[1].split('"')[0]
            if name in sources:
                kept = [line for line in table.splitlines() if line.split(" = ")[0] not in fields]
                added = [f'url = "{self.url_of(name)}"', *(f"{field} = {value}" for field, value in fields.items())]
                tables.append("\n".join(["[[source]]", *kept, *added]))
        path.write_text("\n\n".join(tables) + "\n", encoding="utf-8")
        return path

    # Answers on the wire

    def answer(self, body: bytes) -> Reply:
        """Refuse POST: prices are asked for by GET."""
        return Reply(status=405)

    def answer_get(self, target: str) -> Reply:
        """Answer as the source of the path's first part would."""
        parts = urlsplit(target)
        source, _, path = parts.path.strip("/").partition("/")
        repeated = parse_qs(parts.query)
        request = Request(source, path, {name: values[-1] for name, values in repeated.items()})
        with self._lock:
            self.requests.append(request)
            reply = self._once[source].popleft() if self._once[source] else self._always.get(source)
        if isinstance(reply, Reply):
            return reply
        if source == "ecb":
            return self._ecb(path, is_empty=reply == EMPTY)
        if source not in EXCHANGES:
            return Reply(status=404)
        markets = {} if reply == EMPTY else self._markets[source]
        return self.spoil(request, _WRITERS[source](self, path, repeated, markets))

    def _candles(self, market: ScriptedMarket, step: timedelta, first: datetime, last: datetime) -> list[Candle]:
        return self.edit_candles(candles(market, step, first, last, self.now()))

    def _newest_candles(self, market: ScriptedMarket, step: timedelta, count: int) -> list[Candle]:
        return self._candles(market, step, self.now() - count * step, self.now())

    def _trades(self, market: ScriptedMarket | None) -> list[tuple[datetime, Decimal]]:
        """The last trade and its price, if there was any."""
        at = None if market is None else market.traded_at(self.now())
        return [] if market is None or at is None else [(at, market.last(at))]

    def _kraken(self, path: str, query: dict[str, list[str]], markets: dict[str, ScriptedMarket]) -> Reply:
        by_id = {_kraken_id(market): market for market in markets.values()}
        match path.removeprefix("0/public/"):
            case "AssetPairs":
                rows = {name: _kraken_market(market) for name, market in by_id.items()}
                # One of them also in its synthetic form.
                return _kraken_result(rows | {f"{name}:BTNL": row for name, row in list(rows.items())[:1]})
            case "Ticker":
                names = query["pair"][0].split(",") if "pair" in query else list(by_id)
                if by_id and not set(names) <= set(by_id):
                    return _kraken_error("EQuery:Unknown asset pair")
                tickers = {name: self._kraken_ticker(by_id[name]) for name in names if name in by_id}
                return _kraken_result(tickers)
            case "Trades":
                name = query["pair"][0]
                if by_id and name not in by_id:
                    return _kraken_error("EQuery:Unknown asset pair")
                rows = [
                    [_text(price), "0.5", Decimal(_milliseconds(at)) / 1000, "b", "l", "", 7]
                    for at, price in self._trades(by_id.get(name))
                ]
                return _kraken_result({name: rows, "last": "1541390792763000000"})
            case "OHLC":
                name, step = query["pair"][0], timedelta(minutes=int(query["interval"][0]))
                if not by_id:
                    return _kraken_result({name: [], "last": 0})
                if name not in by_id:
                    return _kraken_error("EQuery:Unknown asset pair")
                since = _seconds(query["since"][0]) if "since" in query else datetime.min.replace(tzinfo=UTC)
                # Its newest 720, of which `since` leaves out the older ones.
                rows = [
                    [
                        int(row.start.timestamp()),
                        *map(_text, (row.open, row.high, row.low, row.close, row.close, row.volume)),
                        3,
                    ]
                    for row in self._newest_candles(by_id[name], step, 719)
                    if row.start > since
                ]
                return _kraken_result({name: rows, "last": rows[-1][0] if rows else 0})
        return _kraken_error("EGeneral:Unknown method")

    def _kraken_ticker(self, market: ScriptedMarket) -> dict[str, Any]:
        bid, last, ask = _offers(market, self.now())
        return {
            "a": [ask, "1", "1.000"],
            "b": [bid, "1", "1.000"],
            "c": [last, "0.001"],
            "v": ["10.5", "20.5"],
            "p": [last, last],
            "t": [10, 20],
            "l": [last, last],
            "h": [last, last],
            "o": last,
        }

    def _coinbase(self, path: str, query: dict[str, list[str]], markets: dict[str, ScriptedMarket]) -> Reply:
        by_id = {f"{market.base}-{market.quote}": market for market in markets.values()}
        _, _, rest = path.partition("brokerage/market/products")
        if not rest:
            if query.get("product_type") == ["FUTURE"]:
                by_id = {}
            names = query.get("product_ids", list(by_id))
            products = [_coinbase_product(by_id[name], self.now()) for name in names if name in by_id]
            return _json({"products": products, "num_products": len(products)})
        name, _, what = rest.strip("/").partition("/")
        if markets and name not in by_id:
            return _json({"error": "NOT_FOUND", "error_details": "valid product_id is required", "message": ""}, 404)
        if what == "ticker":
            trades = [
                {
                    "trade_id": "10209805",
                    "product_id": name,
                    "price": _text(price),
                    "size": "0.1",
                    "time": at.isoformat().replace("+00:00", "Z"),
                    "side": "BUY",
                    "bid": "",
                    "ask": "",
                }
                for at, price in self._trades(by_id.get(name))
            ]
            return _json({"trades": trades, "best_bid": "1", "best_ask": "2"})
        if not markets:
            return _json({"candles": []})
        first, last = _seconds(query["start"][0]), _seconds(query["end"][0])
        step = _COINBASE_STEPS[query["granularity"][0]]
        if (last - first) // step > 350:
            return _json({"error": "INVALID_ARGUMENT", "message": "start and end argument is too large"}, 400)
        rows = [
            {
                "start": str(int(row.start.timestamp())),
                "low": _text(row.low),
                "high": _text(row.high),
                "open": _text(row.open),
                "close": _text(row.close),
                "volume": _text(row.volume),
            }
            for row in reversed(self._candles(by_id[name], step, first, last))
            if row.volume  # Coinbase leaves out candles without a trade
        ]
        return _json({"candles": rows})

    def _gemini(self, path: str, query: dict[str, list[str]], markets: dict[str, ScriptedMarket]) -> Reply:
        by_id = {f"{market.base}{market.quote}".lower(): market for market in markets.values()}
        match path.split("/"):
            case ["v1", "symbols"]:
                # The list also has a perpetual, and a market in an unknown currency.
                return _json([*by_id, "btcgusdperp", "abcxyz"] if by_id else [])
            case ["v1", "pricefeed"]:
                return _json(
                    [
                        {"pair": name.upper(), "price": _text(market.last(self.now())), "percentChange24h": "0.0123"}
                        for name, market in by_id.items()
                    ]
                )
            case ["v1", "trades", name]:
                if markets and name not in by_id:
                    message = f"Supplied value '{name}' is not a valid symbol"
                    return _json({"result": "error", "reason": "InvalidSymbol", "message": message}, 400)
                return _json(
                    [
                        {
                            "timestamp": _milliseconds(at) // 1000,
                            "timestampms": _milliseconds(at),
                            "tid": 14122489752,
                            "price": _text(price),
                            "amount": "28.407209",
                            "exchange": "gemini",
                            "type": "buy",
                        }
                        for at, price in self._trades(by_id.get(name))
                    ]
                )
            case ["v2", "candles", name, timeframe]:
                if not markets:
                    return _json([])
                if name not in by_id:
                    message = f"Supplied value '{name}' is not a valid symbol"
                    return _json({"result": "error", "reason": "InvalidSymbol", "message": message}, 400)
                step = _GEMINI_STEPS[timeframe]
                # Newest first, and prices are numbers.
                rows = [
                    [int(row.start.timestamp()) * 1000, row.open, row.high, row.low, row.close, row.volume]
                    for row in reversed(self._newest_candles(by_id[name], step, 1343))
                ]
                return _json(rows)
        return _json({"result": "error", "reason": "EndpointNotFound", "message": "API entry point not found"}, 404)

    def _binance(self, path: str, query: dict[str, list[str]], markets: dict[str, ScriptedMarket]) -> Reply:
        by_id = {f"{market.base}{market.quote}": market for market in markets.values()}
        match path.removeprefix("api/v3/"):
            case "exchangeInfo":
                symbols = [_binance_symbol(market) for market in by_id.values()]
                return _json({"timezone": "UTC", "serverTime": 0, "rateLimits": [], "symbols": symbols})
            case "ticker/24hr":
                names = msgspec.json.decode(query["symbols"][0]) if "symbols" in query else list(by_id)
                if markets and not set(names) <= set(by_id):
                    return _json({"code": -1121, "msg": "Invalid symbol."}, 400)
                return _json([_binance_ticker(by_id[name], self.now()) for name in names if name in by_id])
            case "aggTrades":
                name = query["symbol"][0]
                if markets and name not in by_id:
                    return _json({"code": -1121, "msg": "Invalid symbol."}, 400)
                return _json(
                    [
                        {
                            "a": 26129,
                            "p": _text(price),
                            "q": "4.7",
                            "f": 27781,
                            "l": 27781,
                            "T": _milliseconds(at),
                            "m": True,
                            "M": True,
                        }
                        for at, price in self._trades(by_id.get(name))
                    ]
                )
            case "klines":
                name, step = query["symbol"][0], STEPS[query["interval"][0]]
                if not markets:
                    return _json([])
                if name not in by_id:
                    return _json({"code": -1121, "msg": "Invalid symbol."}, 400)
                limit = int(query.get("limit", ["500"])[0])
                first = _seconds(query["startTime"][0], 1000)
                found = self._candles(by_id[name], step, first, first + (limit - 1) * step)
                return _json([_binance_kline(row, step) for row in found])
        return Reply(status=404)

    def _bitstamp(self, path: str, query: dict[str, list[str]], markets: dict[str, ScriptedMarket]) -> Reply:
        by_id = {f"{market.base}{market.quote}".lower(): market for market in markets.values()}
        match path.removeprefix("api/v2/").strip("/").split("/"):
            case ["markets"]:
                rows = [_bitstamp_market(name, market) for name, market in by_id.items()]
                return _json(
                    [*rows, *({**row, "market_type": "PERPETUAL", "market_symbol": "perp"} for row in rows[:1])]
                )
            case ["ticker"]:
                return _json([_bitstamp_ticker(market, self.now()) for market in by_id.values()])
            case ["transactions", name]:
                if markets and name not in by_id:
                    return _json({"status": "error", "reason": "Invalid market symbol.", "code": "400.001"}, 404)
                # Trades of the last hour, in whole seconds, newest first.
                return _json(
                    [
                        {
                            "date": str(_milliseconds(at - back) // 1000),
                            "tid": str(83035355 - number),
                            "amount": "0.03",
                            "type": "0",
                            "price": _text(Decimal(number) or price),
                        }
                        for at, price in self._trades(by_id.get(name))
                        for number, back in enumerate((timedelta(0), timedelta(minutes=20)))
                        if self.now() - at < timedelta(hours=1)
                    ]
                )
            case ["ohlc", name]:
                if not markets:
                    return _json({"data": {"pair": name, "ohlc": []}})
                if name not in by_id:
                    return _json({"status": "error", "reason": "Invalid market symbol.", "code": "400.001"}, 404)
                step, limit = timedelta(seconds=int(query["step"][0])), int(query["limit"][0])
                first = _seconds(query["start"][0])
                last = _seconds(query["end"][0]) if "end" in query else self.now()
                rows = [
                    {
                        "timestamp": str(int(row.start.timestamp())),
                        "open": _text(row.open),
                        "high": _text(row.high),
                        "low": _text(row.low),
                        "close": _text(row.close),
                        "volume": _text(row.volume),
                    }
                    for row in self._candles(by_id[name], step, first, last)[:limit]
                ]
                return _json({"data": {"pair": by_id[name].name, "ohlc": rows}})
        return Reply(b"<html><h1>Not Found</h1></html>", 404)

    def _ecb(self, path: str, *, is_empty: bool) -> Reply:
        days = {"eurofxref-daily.xml": 1, "eurofxref-hist-90d.xml": 90, "eurofxref-hist.xml": 3 * 365}
        if path not in days:
            return Reply(status=404)
        today = self.now().date()
        dated = [
            (day, rates) for back in range(days[path] + 7) if (rates := self.rates(day := today - timedelta(back)))
        ]
        if path == "eurofxref-daily.xml":
            dated = dated[:1]
        cubes = "".join(
            f"<Cube time='{day}'>"
            + "".join(f"<Cube currency='{currency}' rate='{_text(rate)}'/>" for currency, rate in rates.items())
            + "</Cube>"
            for day, rates in ([] if is_empty else dated)
        )
        return Reply(
            (
                '<?xml version="1.0" encoding="UTF-8"?>\n'
                '<gesmes:Envelope xmlns:gesmes="http://www.gesmes.org/xml/2002-08-01" '
                'xmlns="http://www.ecb.int/vocabulary/2002-08-01/eurofxref">'
                "<gesmes:subject>Reference rates</gesmes:subject>"
                "<gesmes:Sender><gesmes:name>European Central Bank</gesmes:name></gesmes:Sender>"
                f"<Cube>{cubes}</Cube></gesmes:Envelope>"
            ).encode()
        )


_WRITERS: dict[str, Callable[..., Reply]] = {
    "kraken": ExchangeServer._kraken,
    "coinbase": ExchangeServer._coinbase,
    "gemini": ExchangeServer._gemini,
    "binance": ExchangeServer._binance,
    "bitstamp": ExchangeServer._bitstamp,
}

_COINBASE_STEPS = {
    "ONE_MINUTE": STEPS["1m"],
    "FIVE_MINUTE": STEPS["5m"],
    "FIFTEEN_MINUTE": STEPS["15m"],
    "THIRTY_MINUTE": STEPS["30m"],
    "ONE_HOUR": STEPS["1h"],
    "ONE_DAY": STEPS["1d"],
}
_GEMINI_STEPS = {**STEPS, "1hr": STEPS["1h"], "1day": STEPS["1d"]}
_KRAKEN_CODES = {"BTC": "XXBT", "ETH": "XETH", "USD": "ZUSD", "EUR": "ZEUR", "GBP": "ZGBP"}


def rate_limited(retry_after: str = "1") -> Reply:
    """Return HTTP 429 with the source's `Retry-After`."""
    return Reply(b'{"message": "Too many requests"}', 429, {"Retry-After": retry_after})


def server_error(status: int = 503) -> Reply:
    """A gateway's page in place of an answer."""
    return Reply(b"<html><body>Service unavailable</body></html>", status)


def malformed() -> Reply:
    """JSON that ends too early, under a length that is right."""
    return Reply(b'{"error": [], "result": {"XXBTZUSD": {"a": ["30')


def hanging(seconds: float) -> Reply:
    """Nothing, for a while."""
    return Reply(b"{}", delay_seconds=seconds)


def _json(value: Any, status: int = 200) -> Reply:
    return Reply(_JSON.encode(value), status)


def _text(number: Decimal) -> str:
    return format(number, "f")


def _offers(market: ScriptedMarket, now: datetime) -> tuple[str, str, str]:
    last = market.last(now)
    with localcontext(prec=60):
        return _text(last - market.spread), _text(last), _text(last + market.spread)


def _seconds(text: str, parts: int = 1) -> datetime:
    return datetime.fromtimestamp(int(text) // parts, UTC)


def _milliseconds(instant: datetime) -> int:
    return (instant - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(milliseconds=1)


def _kraken_result(result: Any) -> Reply:
    return _json({"error": [], "result": result})


def _kraken_error(message: str) -> Reply:
    return _json({"error": [message]})


def _kraken_id(market: ScriptedMarket) -> str:
    return _KRAKEN_CODES.get(market.base, market.base) + _KRAKEN_CODES.get(market.quote, market.quote)


def _kraken_market(market: ScriptedMarket) -> dict[str, Any]:
    base, quote = (_KRAKEN_CODES.get(code, code) for code in (market.base, market.quote))
    short = [code[1:] if len(code) == 4 and code[0] in "XZ" else code for code in (base, quote)]
    return {
        "altname": "".join(short),
        "wsname": "/".join(short),
        "aclass_base": "currency",
        "base": base,
        "aclass_quote": "currency",
        "quote": quote,
        "lot": "unit",
        "cost_decimals": 5,
        "pair_decimals": 1,
        "lot_decimals": 8,
        "lot_multiplier": 1,
        "leverage_buy": [2, 3],
        "leverage_sell": [2, 3],
        "fees": [[0, 0.4], [10000, 0.35]],
        "fees_maker": [[0, 0.25], [10000, 0.2]],
        "fee_volume_currency": "ZUSD",
        "margin_call": 80,
        "margin_stop": 40,
        "ordermin": "0.00005",
        "costmin": "0.5",
        "tick_size": "0.1",
        "status": "online" if market.is_active else "cancel_only",
    }


def _coinbase_product(market: ScriptedMarket, now: datetime) -> dict[str, Any]:
    return {
        "product_id": f"{market.base}-{market.quote}",
        "price": _text(market.last(now)),
        "price_percentage_change_24h": "1.5",
        "volume_24h": "100",
        "base_increment": "0.00000001",
        "quote_increment": "0.01",
        "quote_min_size": "1",
        "quote_max_size": "150000000",
        "base_min_size": "0.00000001",
        "base_max_size": "3400",
        "base_name": market.base,
        "quote_name": market.quote,
        "status": "online",
        "cancel_only": False,
        "trading_disabled": not market.is_active,
        "product_type": "SPOT",
        "quote_currency_id": market.quote,
        "base_currency_id": market.base,
        "mid_market_price": "",
        "alias": "",
        "alias_to": [],
        "approximate_quote_24h_volume": "1000",
    }


def _binance_symbol(market: ScriptedMarket) -> dict[str, Any]:
    return {
        "symbol": f"{market.base}{market.quote}",
        "status": "TRADING" if market.is_active else "BREAK",
        "baseAsset": market.base,
        "baseAssetPrecision": 8,
        "quoteAsset": market.quote,
        "quotePrecision": 8,
        "quoteAssetPrecision": 8,
        "orderTypes": ["LIMIT", "MARKET"],
        "isSpotTradingAllowed": True,
        "isMarginTradingAllowed": False,
        "filters": [
            {"filterType": "PRICE_FILTER", "minPrice": "0.01", "maxPrice": "1000000.00", "tickSize": "0.01"},
            {"filterType": "LOT_SIZE", "minQty": "0.00001", "maxQty": "9000.0", "stepSize": "0.00001"},
        ],
        "permissions": [],
        "permissionSets": [["SPOT"]],
    }


def _binance_ticker(market: ScriptedMarket, now: datetime) -> dict[str, Any]:
    bid, last, ask = _offers(market, now)
    closed = int(now.timestamp() * 1000)
    return {
        "symbol": f"{market.base}{market.quote}",
        "priceChange": "10.0",
        "priceChangePercent": "0.5",
        "weightedAvgPrice": last,
        "prevClosePrice": last,
        "lastPrice": last,
        "lastQty": "0.01",
        "bidPrice": bid,
        "bidQty": "1.0",
        "askPrice": ask,
        "askQty": "1.0",
        "openPrice": last,
        "highPrice": last,
        "lowPrice": last,
        "volume": "100.0",
        "quoteVolume": "1000.0",
        "openTime": closed - 86_400_000,
        "closeTime": closed,
        "firstId": 1,
        "lastId": 2,
        "count": 2,
    }


def _binance_kline(row: Candle, step: timedelta) -> list[Any]:
    opened = int(row.start.timestamp()) * 1000
    prices = [_text(price) for price in (row.open, row.high, row.low, row.close)]
    closed = opened + int(step.total_seconds()) * 1000 - 1
    return [opened, *prices, _text(row.volume), closed, "1.0", 3, "1.0", "1.0", "0"]


def _bitstamp_market(name: str, market: ScriptedMarket) -> dict[str, Any]:
    return {
        "name": market.name,
        "market_symbol": name,
        "base_currency": market.base,
        "base_decimals": 8,
        "counter_currency": market.quote,
        "counter_decimals": 2,
        "minimum_order_value": "10",
        "trading": "Enabled" if market.is_active else "Disabled",
        "instant_and_market_orders": "Enabled",
        "description": market.name,
        "market_type": "SPOT",
    }


def _bitstamp_ticker(market: ScriptedMarket, now: datetime) -> dict[str, Any]:
    bid, last, ask = _offers(market, now)
    return {
        "timestamp": str(int(now.timestamp())),
        "open": last,
        "high": last,
        "low": last,
        "last": last,
        "volume": "12.5",
        "vwap": last,
        "bid": bid,
        "ask": ask,
        "side": "0",
        "open_24": last,
        "percent_change_24": "0.10",
        "pair": market.name,
        "market": market.name,
        "market_type": "SPOT",
    }
