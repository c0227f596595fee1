"""ccxt's object of one exchange, with overrides: our requests, exact numbers, our errors.

`exchanges` calls it and handles the answers.
"""

import functools
import json
import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from decimal import Decimal
from typing import Any, TypeAlias
from urllib.parse import urlsplit

import ccxt  # type: ignore[import-untyped]

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
from pipelines.extract.prices.protocol import Market
from warehouse.transport import Reply

_log = logging.getLogger(__name__)

TICKER_FIELDS = {"Ask": "ask", "Bid": "bid"}
"""The fields of ccxt's ticker that hold offers."""

# Rows of an answer in JSON, and some of them with their names or places.
_Rows: TypeAlias = dict[str, Any] | list[Any]
_Named: TypeAlias = list[tuple[Any, Any]]
_UNREADABLE = (KeyError, IndexError, TypeError, ValueError, AttributeError, ArithmeticError, RecursionError)


class _Exact:
    """Overrides of every ccxt class: our requests, and numbers as the exchange wrote them."""

    number = str  # ccxt's own is float
    _http: HttpClient
    _base_url: str | None
    _call = "request"
    _answers: dict[str, Any] | None = None
    """Answers by URL that are given again, where a call is repeated over parts of them."""

    def fetch(self, url: str, method: str = "GET", headers: Mapping[str, str] | None = None, body: Any = None) -> Any:
        """Replace ccxt's transport; ccxt still reads the exchange's errors."""
        source_id = self._http.source_id
        if self._answers is not None and url in self._answers:
            return self._answers[url]
        if method != "GET" or (self._base_url is not None and not url.startswith(self._base_url)):
            raise SourceRefused(source_id, self._call, f"the request {method} {urlsplit(url).hostname} is not allowed")
        answer = self._http.get(url, self._call, functools.partial(self._read, url), headers)
        if self._answers is not None:
            self._answers[url] = answer
        return answer

    def _read(self, url: str, reply: Reply) -> Any:
        body = bytes(reply.body)
        try:
            answer = json.loads(body, parse_float=str, parse_int=str, parse_constant=str)
        except (ValueError, RecursionError):
            answer = None
        with understood(self._http, self._call):
            text = body.decode("utf-8", "replace")
            self.handle_errors(reply.status, "", url, "GET", {}, text, answer, {}, None)  # type: ignore[attr-defined]
        self._http.check_status(reply, self._call)
        if not isinstance(answer, dict | list):
            raise SourceUnreachable(self._http.source_id, self._call, "the answer was cut off or is not JSON")
        return answer

    def safe_ticker(self, ticker: dict[str, Any], market: Any = None) -> dict[str, Any]:
        """Add nothing: ccxt would derive a missing last price from others."""
        return ticker

    def safe_trade(self, trade: dict[str, Any], market: Any = None) -> dict[str, Any]:
        """Add nothing, as to a ticker."""
        return trade

    def safe_timestamp(self, row: Any, key: Any, default_value: Any = None) -> Any:
        """Return seconds as milliseconds; ccxt would convert them through float."""
        seconds = self.safe_string(row, key)  # type: ignore[attr-defined]
        return default_value if seconds is None else int(Decimal(seconds) * 1000)

    def parse_ohlcvs(self, ohlcvs: Sequence[Any], market: Any = None, *ignored: Any, **also: Any) -> list[Any]:
        """Neither sort nor omit candles: ccxt would cut one off the end for each duplicate."""
        return [self.parse_ohlcv(candle, market) for candle in ohlcvs]  # type: ignore[attr-defined]

    def filter_by_array(self, rows: Any, key: Any, values: Any = None, indexed: bool = True) -> Any:
        """Omit no ticker: our code assigns tickers to markets."""
        return super().filter_by_array(rows, key, None, indexed)  # type: ignore[misc]

    def fetch_markets(self, *arguments: Any) -> Any:
        """Omit the markets that ccxt cannot read: the answer is halved down to them."""
        fetch = functools.partial(super().fetch_markets, *arguments)  # type: ignore[misc]
        self._answers = {}
        try:
            return fetch()
        except _UNREADABLE:
            for rows in _rows_in(list(self._answers.values())):
                whole: _Named = [*rows.items()] if isinstance(rows, dict) else [*enumerate(rows)]
                is_at_fault = _is_readable(fetch, rows, [])
                _refill(rows, self._readable(fetch, rows, whole) if is_at_fault else whole)
                if is_at_fault:
                    return fetch()
            raise
        finally:
            self._answers = None

    def _readable(self, fetch: Callable[[], Any], rows: _Rows, some: _Named) -> _Named:
        """Return those of some rows that ccxt can read."""
        if _is_readable(fetch, rows, some):
            return some
        if len(some) == 1:
            _log.warning("%s: market %.200r is left out", self._http.source_id, some[0][1])
            return []
        half = len(some) // 2
        return [*self._readable(fetch, rows, some[:half]), *self._readable(fetch, rows, some[half:])]

    def parse_market(self, market: Any) -> Any:
        """Omit the one market that ccxt cannot read, such as one in a currency that it does not know."""
        try:
            return super().parse_market(market)  # type: ignore[misc]
        except _UNREADABLE as error:
            return self._left_out(market, error)

    def parse_ticker(self, ticker: Any, market: Any = None) -> Any:
        """Omit the one ticker that ccxt cannot read."""
        try:
            return super().parse_ticker(ticker, market)  # type: ignore[misc]
        except _UNREADABLE as error:
            return self._left_out(ticker, error)

    def _left_out(self, row: Any, error: Exception) -> dict[str, Any]:
        _log.warning("%s: %.200r is left out: %r", self._http.source_id, row, error)
        return {}


def _rows_in(answer: Any) -> list[_Rows]:
    """Return the lists and objects in an answer, the one with the most lists and objects in it first."""
    found: list[tuple[int, _Rows]] = []

    def walk(value: Any) -> None:
        if isinstance(value, dict | list):
            inner = [one for one in (value.values() if isinstance(value, dict) else value) if one]
            found.append((sum(isinstance(one, dict | list) for one in inner), value))
            for one in inner:
                walk(one)

    walk(answer)
    return [rows for _, rows in sorted(found[1:], key=lambda one: -one[0])]


def _is_readable(fetch: Callable[[], Any], rows: _Rows, some: _Named) -> bool:
    """Return whether ccxt can read the answers with only some of the rows, which it then has."""
    _refill(rows, some)
    try:
        fetch()
    except _UNREADABLE:
        return False
    return True


def _refill(rows: _Rows, some: _Named) -> None:
    rows.clear()
    if isinstance(rows, dict):
        rows.update(some)
    else:
        rows.extend(row for _, row in some)


@contextmanager
def understood(http: HttpClient, call: str) -> Iterator[None]:
    """Turn ccxt's errors into ours; any other exception in ccxt means an answer of unexpected form."""

    def of(kind: type[PriceSourceError], error: Exception) -> PriceSourceError:
        return kind(
            http.source_id, call, f"the exchange refuses: {type(error).__name__}", words=http.redact(str(error))
        )

    try:
        yield
    except PriceSourceError:
        raise
    except ccxt.DDoSProtection as error:  # and RateLimitExceeded
        raise of(SourceRateLimited, error) from None
    except ccxt.OperationFailed as error:  # the network, the exchange down or in maintenance
        raise of(SourceUnreachable, error) from None
    except ccxt.BadSymbol as error:
        raise of(MarketUnknown, error) from None
    except ccxt.BaseError as error:
        raise of(SourceRefused, error) from None
    except _UNREADABLE as error:
        detail = f"the answer has an unexpected form ({type(error).__name__})"
        raise SourceMalformed(http.source_id, call, detail, words=http.redact(repr(error))) from error


def read_credentials(source: PriceSource, environ: Mapping[str, str]) -> dict[str, str]:
    """Return the credentials that a definition names, by field.

    Raises:
        SourceRefused: a variable is unset or empty; names it.
    """
    for _, variable in source.credentials:
        if not environ.get(variable):
            raise SourceRefused(source.id, "open", f"needs a credential; set {variable}")
    return {name: environ[variable] for name, variable in source.credentials}


def open_exchange(source: PriceSource, credentials: Mapping[str, str], http: HttpClient) -> Any:
    """Return ccxt's object of the exchange, with our overrides of its class.

    Raises:
        SourceRefused: ccxt has no such exchange, or the definition contradicts ccxt.
    """

    def refused(detail: str) -> SourceRefused:
        return SourceRefused(source.id, "open", f"{detail}; correct its definition")

    if source.exchange is None or source.exchange not in ccxt.exchanges:
        raise refused(f"ccxt has no exchange {source.exchange!r}")
    base = getattr(ccxt, source.exchange)
    # Pacing and retries are done by HttpClient.
    exchange = type(base.__name__, (_Exact, base), {})(
        {"enableRateLimit": False, "options": source.options, **credentials}
    )
    exchange._http = http
    exchange._base_url = None if source.url is None else f"{source.url}/"
    if source.url is not None:
        exchange.urls["api"] = _moved(exchange.urls["api"], source.url)
    offers = set(source.price_types) & TICKER_FIELDS.keys()
    trades = set(source.price_types) & {"Trade"}
    for types, method in ((offers, "fetchTickers"), (trades, "fetchTrades"), (source.history_types, "fetchOHLCV")):
        if types and exchange.has[method] is not True:
            raise refused(f"ccxt's {source.exchange} has no {method}")
    for price_type in source.price_types:
        if price_type not in offers | trades:
            raise refused(f"an exchange supplies no {price_type} prices")
    if not set(source.history_types) <= {"Trade"}:
        raise refused("an exchange's candles are of Trade prices")
    for granularity in source.granularities:
        if granularity not in exchange.timeframes:
            raise refused(f"ccxt's {source.exchange} has no candles of {granularity}")
    return exchange


def market_row(exchange: Any, market: Market, symbol: str) -> dict[str, Any]:
    """Return a market in ccxt's form, with the fields that requests for prices need."""
    row: dict[str, Any] = exchange.safe_market_structure(
        {
            "id": market.market_id,
            "symbol": symbol,
            "base": market.base,
            "quote": market.quote,
            "baseId": market.base_code,
            "quoteId": market.quote_code,
            "type": "spot",
            "spot": True,
            "margin": False,
            "swap": False,
            "future": False,
            "option": False,
            "contract": False,
            "active": market.is_active,
        }
    )
    return row


def _moved(urls: Any, base_url: str) -> Any:
    """Return ccxt's addresses with scheme and host replaced and with the same paths."""
    if isinstance(urls, dict):
        return {name: _moved(url, base_url) for name, url in urls.items()}
    return base_url + urlsplit(urls).path if isinstance(urls, str) else urls
