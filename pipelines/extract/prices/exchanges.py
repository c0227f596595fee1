"""Exchanges, through ccxt: it knows their addresses, forms and errors; requests, numbers and candles are handled here.

A further exchange is one entry in the definitions.

Ask and Bid are the best open offers. One poll requests the tickers of the wanted markets. It requests all tickers if
the exchange cannot select (Bitstamp) or if many are wanted. It also does so after a refusal, since the exchange may
no longer know one of the markets.

Trade is the last trade, at its own time. Tickers do not contain that time: they have none, or that of the answer, or
the end of a window. So trades are requested market by market.
"""

import logging
import os
import random
import re
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from control.clock import utc_now
from control.pricing.definitions import GRANULARITIES, PriceSource
from pipelines.extract.errors import MarketUnknown, PriceSourceError, SourceRateLimited, SourceRefused
from pipelines.extract.prices.ccxt_objects import (
    TICKER_FIELDS,
    market_row,
    open_exchange,
    read_credentials,
    understood,
)
from pipelines.extract.prices.exact import exact_price
from pipelines.extract.prices.http import HttpClient
from pipelines.extract.prices.protocol import HistoryPage, Market, MarketPrice, PollResult, Problem

# Their names go into the URL: 100 of them take some 2,000 characters.
_MOST_NAMED_MARKETS = 100
# Waits for the last candle to close if the exchange's clock is a little behind ours.
_SETTLING = timedelta(seconds=2)
# Limit of the time in which a poll reads last trades, each time in a random order; later polls read the other markets.
_TRADES_SECONDS = 20.0
# Time of one answer: a single market may hang.
_TRADE_SECONDS = 5.0
# Markets that fail before one answers: then the source is at fault.
_FAILING = 3
# Where ccxt's `baseId` is ccxt's own code, the exchange's code is in these fields of the answer.
_OWN_CODES = {"kraken": ("base", "quote")}
_log = logging.getLogger(__name__)
_ZERO = re.compile(r"0*\.?0*")


@dataclass(frozen=True)
class _Candle:
    """One candle, checked: aware UTC times and the text of its last price; `is_traded` unless its volume is zero."""

    start: datetime
    end: datetime
    close: str | None
    is_traded: bool


class ExchangeClient:
    """One exchange.

    Args:
        source: its definition.
        known_markets: listed markets, where they are known: the client then does not request them.
        now, sleep, clock: replaced in tests.

    Raises:
        SourceRefused: the definition does not fit the exchange, or a credential's variable is unset.
    """

    def __init__(
        self,
        source: PriceSource,
        known_markets: Sequence[Market] = (),
        *,
        now: Callable[[], datetime] = utc_now,
        sleep: Callable[[float], None] = time.sleep,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        credentials = read_credentials(source, os.environ)
        self._source = source
        self._now = now
        self._sleep = sleep
        self._clock = clock
        self._http = HttpClient(source, tuple(credentials.values()), sleep=sleep, clock=clock)
        self._exchange = open_exchange(source, credentials, self._http)
        self._markets: dict[str, Market] | None = None
        if known_markets:
            self._remember(known_markets)

    def markets(self) -> list[Market]:
        """As `PriceClient.markets`. A listed market that does not say whether it trades counts as active."""
        with self._calling("fetchMarkets"):
            rows = self._exchange.fetch_markets()
            listed = [market for row in rows if row and (market := self._market(row))]
        uses = Counter(market.market_id for market in listed)
        found = {market.market_id: market for market in listed if uses[market.market_id] == 1}
        for market_id in uses.keys() - found.keys():
            _log.warning("%s: market %.200r is left out: it is listed twice", self._source.id, market_id)
        self._remember(list(found.values()))
        return [found[market_id] for market_id in sorted(found)]

    def poll(self, wanted: Sequence[tuple[str, str]]) -> PollResult:
        """As `PriceClient.poll`: offers are effective from the moment of the answer, a trade from its own time."""
        problems: dict[tuple[str, str], str] = {}
        known = self._known() if wanted else {}
        for market_id, price_type in wanted:
            if price_type not in self._source.price_types:
                problems[market_id, price_type] = f"{self._source.name} supplies no {price_type} prices"
            elif market_id not in known:
                problems[market_id, price_type] = "the market is not listed (any more)"
            elif not known[market_id].is_active:
                problems[market_id, price_type] = "the market is not open for trading"
        asked = [key for key in dict.fromkeys(wanted) if key not in problems]
        found = self._offers([key for key in asked if key[1] in TICKER_FIELDS])
        found |= self._last_trades([key for key in asked if key[1] not in TICKER_FIELDS])
        prices = []
        for key in asked:
            answer = found[key]
            if isinstance(answer, str):
                problems[key] = answer
            else:
                prices.append(answer)
        return PollResult(prices, [Problem(*key, problems[key]) for key in dict.fromkeys(wanted) if key in problems])

    def history(
        self, market_id: str, price_type: str, granularity: str, start: datetime, end: datetime
    ) -> Iterator[HistoryPage]:
        """As `PriceClient.history`: the last price of each candle, from its end on.

        A candle without any trade has no price, although some exchanges repeat the previous one. Candles that are not
        over yet are omitted.
        """
        if price_type not in self._source.history_types or granularity not in self._source.granularities:
            raise ValueError(f"{self._source.id} has no history of {price_type} in steps of {granularity}")
        if market_id not in self._known():
            raise MarketUnknown(self._source.id, "fetchOHLCV", f"market {market_id} is not listed (any more)")
        step = timedelta(seconds=GRANULARITIES[granularity])
        opens = _floor(start, step)  # its end is the first after start
        last_end = _floor(end, step)
        self._let_settle(last_end)
        page_length = (last_end - opens) if self._source.page_candles is None else step * self._source.page_candles
        while opens < last_end:
            page_end = min(opens + page_length, last_end)
            prices, problems = self._candle_prices(market_id, price_type, granularity, opens, page_end)
            yield HistoryPage(prices, end if page_end == last_end else page_end, tuple(problems))
            opens = page_end
        if _floor(start, step) >= last_end:
            yield HistoryPage([], end)

    def close(self) -> None:
        """Close the kept connections."""
        self._http.close()

    @contextmanager
    def _calling(self, call: str, patience: float | None = None) -> Iterator[None]:
        self._exchange._call, self._http.patience = call, patience
        with understood(self._http, call):
            yield

    def _market(self, row: Mapping[str, Any]) -> Market | None:
        """Return a listed spot market; None where it is none, or lacks a code."""
        # A spot market with another symbol is a synthetic duplicate of the real one.
        if not row["spot"] or row["symbol"] != f"{row['base']}/{row['quote']}":
            return None
        fields = _OWN_CODES.get(str(self._source.exchange))
        base_code, quote_code = (
            (row["baseId"], row["quoteId"])
            if fields is None
            else (row["info"].get(fields[0]), row["info"].get(fields[1]))
        )
        texts = (row["id"], row["base"], row["quote"], base_code, quote_code)
        if not all(isinstance(text, str) and text for text in texts):
            _log.warning("%s: market %.200r is left out: it lacks a code", self._source.id, row["id"])
            return None
        return Market(*texts, is_active=row["active"] is not False)

    def _known(self) -> dict[str, Market]:
        if self._markets is None:
            self.markets()
        assert self._markets is not None
        return self._markets

    def _remember(self, markets: Sequence[Market]) -> None:
        """Store listed markets, each with a symbol of its own: if two shared one, ccxt would know only one of them."""
        self._markets = {market.market_id: market for market in markets}
        uses = Counter(_symbol(market) for market in markets)
        self._symbols = {
            market.market_id: _symbol(market) if uses[_symbol(market)] == 1 else market.market_id for market in markets
        }
        self._told: set[str] = set()

    def _tell(self, market_ids: Iterable[str]) -> None:
        """Define the markets of the next request in ccxt: all 3,000 of an exchange would take it half a second."""
        if not self._told.issuperset(market_ids):
            self._told.update(market_ids)
            told = [self._known()[market_id] for market_id in sorted(self._told)]
            rows = [market_row(self._exchange, market, self._symbols[market.market_id]) for market in told]
            self._exchange.set_markets(rows)

    def _offers(self, asked: Sequence[tuple[str, str]]) -> dict[tuple[str, str], MarketPrice | str]:
        """Return the best offer of each market and type, or why there is none."""
        tickers = self._tickers(list(dict.fromkeys(market_id for market_id, _ in asked))) if asked else {}
        received = self._now()
        found: dict[tuple[str, str], MarketPrice | str] = {}
        for market_id, price_type in asked:
            ticker = tickers.get(market_id)
            text = None if ticker is None else ticker.get(TICKER_FIELDS[price_type])
            try:
                if ticker is None:
                    raise ValueError("no ticker in the answer")
                if text is None:
                    raise ValueError(f"no {price_type} price in the ticker")
                price = MarketPrice(market_id, price_type, received, None, exact_price(text))
            except ValueError as error:
                found[market_id, price_type] = str(error)
            else:
                found[market_id, price_type] = price
        return found

    def _last_trades(self, asked: Sequence[tuple[str, str]]) -> dict[tuple[str, str], MarketPrice | str]:
        """Return the last trade of each market, or why there is none."""
        found: dict[tuple[str, str], MarketPrice | str] = {}
        failures: list[PriceSourceError] = []
        until, answered = self._clock() + _TRADES_SECONDS, False
        for key in random.sample(asked, len(asked)):  # nosec B311 # no secret
            if self._clock() >= until:
                found[key] = f"its last trade could not be read within {_TRADES_SECONDS:g} s"
                continue
            try:
                found[key] = self._last_trade(*key, [market_id for market_id, _ in asked])
                answered = True
            except (ValueError, MarketUnknown) as error:
                found[key] = str(error)
                answered = True
            except PriceSourceError as error:
                found[key] = str(error)
                failures.append(error)
                if isinstance(error, SourceRateLimited):
                    # The others wait for the next poll.
                    until = self._clock()
                # Of one market alone, unless others fail too.
                if not answered and len(failures) >= min(_FAILING, len(asked)):
                    raise failures[0] from None
        return found

    def _last_trade(self, market_id: str, price_type: str, asked: Sequence[str]) -> MarketPrice:
        with self._calling("fetchTrades", _TRADE_SECONDS):
            self._tell(asked)
            trades = self._exchange.fetch_trades(self._symbols[market_id], None, 1)
            traded = [(trade["timestamp"], trade["price"]) for trade in trades]
        received = self._now()
        if not traded:
            raise ValueError("no trade in the answer")
        milliseconds, text = traded[-1]
        if text is None:
            raise ValueError("no price in the last trade")
        price = exact_price(text)
        if not isinstance(milliseconds, int) or not 0 <= milliseconds < 10**14:
            raise ValueError(f"the last trade has no valid time: {milliseconds}")
        at = datetime.fromtimestamp(milliseconds // 1000, UTC) + timedelta(milliseconds=milliseconds % 1000)
        if at > received + _SETTLING:
            raise ValueError(f"the last trade is in the future: {at:%Y-%m-%dT%H:%M:%SZ}")
        return MarketPrice(market_id, price_type, min(at, received), None, price)

    def _tickers(self, market_ids: Sequence[str]) -> dict[str, Mapping[str, Any]]:
        """Return the tickers found, by market id."""
        named = [self._symbols[market_id] for market_id in market_ids]
        with self._calling("fetchTickers"):
            self._tell(market_ids)
            try:
                found = self._exchange.fetch_tickers(named if len(named) <= _MOST_NAMED_MARKETS else None)
            except SourceRefused:
                # The exchange refuses the whole batch if it no longer knows one of the markets.
                found = self._exchange.fetch_tickers()
        named_here = set(self._symbols.values())
        tickers = {}
        for market_id in market_ids:
            market = self._known()[market_id]
            # Bitstamp names its tickers by its own codes, which may be another market's symbol.
            own = f"{market.base_code}/{market.quote_code}"
            for name in (self._symbols[market_id], own if own not in named_here else None):
                if name in found:
                    tickers[market_id] = found[name]
                    break
        return tickers

    def _let_settle(self, last_end: datetime) -> None:
        """Wait until the exchange's clock has passed the end of the last candle too, if ours has just passed it."""
        remaining = last_end + _SETTLING - self._now()
        if timedelta(0) < remaining <= _SETTLING:
            self._sleep(remaining.total_seconds())

    def _candle_prices(
        self, market_id: str, price_type: str, granularity: str, opens: datetime, page_end: datetime
    ) -> tuple[list[MarketPrice], list[Problem]]:
        """Return the prices of the candles from `opens` to `page_end`, oldest first, and problems of the others."""
        step = timedelta(seconds=GRANULARITIES[granularity])
        limit = None if self._source.page_candles is None else (page_end - opens) // step
        with self._calling("fetchOHLCV"):
            self._tell([market_id])
            rows = self._exchange.fetch_ohlcv(
                self._symbols[market_id], granularity, int(opens.timestamp()) * 1000, limit
            )
        now = self._now()
        closes: dict[datetime, list[object]] = defaultdict(list)
        problems = []
        for row in rows:
            try:
                candle = _read_candle(row, step)
                if candle.start > now:
                    raise ValueError(f"the candle of {candle.start:%Y-%m-%dT%H:%M:%SZ} is in the future")
            except ValueError as error:
                problems.append(Problem(market_id, price_type, str(error)))
                continue
            if opens <= candle.start < page_end and candle.end <= now and candle.is_traded:
                closes[candle.end].append(candle.close)
        prices = []
        for end, texts in sorted(closes.items()):
            try:
                different = {exact_price(text) for text in texts}
                if len(different) > 1:
                    raise ValueError(f"it has {len(different)} different last prices")
                prices.append(MarketPrice(market_id, price_type, end, end - step, different.pop()))
            except ValueError as error:
                detail = f"the candle of {end - step:%Y-%m-%dT%H:%M:%SZ}: {error}"
                problems.append(Problem(market_id, price_type, detail))
        return prices, problems


def _symbol(market: Market) -> str:
    return f"{market.base}/{market.quote}"


def _read_candle(row: Sequence[Any], step: timedelta) -> _Candle:
    """Read ccxt's [opening in milliseconds, open, high, low, close, volume].

    Raises:
        ValueError: the opening time is missing, or is no whole multiple of the candle's length.
    """
    opened, close, volume = row[0], row[4], row[5]
    if not isinstance(opened, int):
        raise ValueError("a candle has no opening time")
    if not 0 <= opened < 10**14:
        raise ValueError(f"a candle opens at {opened}, which is not a time in milliseconds")
    start = datetime.fromtimestamp(opened // 1000, UTC) + timedelta(milliseconds=opened % 1000)
    if start != _floor(start, step):
        raise ValueError(f"the candle of {start:%Y-%m-%dT%H:%M:%SZ} does not begin at a whole multiple of {step}")
    return _Candle(start, start + step, close, not (isinstance(volume, str) and _ZERO.fullmatch(volume)))


def _floor(instant: datetime, step: timedelta) -> datetime:
    epoch = datetime(1970, 1, 1, tzinfo=UTC)
    return epoch + (instant - epoch) // step * step
