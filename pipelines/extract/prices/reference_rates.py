"""The European Central Bank's euro reference rates: one price of the euro in each currency per working day.

A day's rates are effective from 16:00 in Frankfurt, about when they are published. If a file has them a little
earlier, they are effective from 16:00 all the same.
Source: https://www.ecb.europa.eu/stats/policy_and_exchange_rates/euro_reference_exchange_rates/
"""

import time
from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, date, datetime, timedelta
from datetime import time as time_of_day
from xml.parsers import expat
from zoneinfo import ZoneInfo

from control.clock import utc_now
from control.pricing.definitions import PriceSource
from pipelines.extract.errors import MarketUnknown, SourceMalformed
from pipelines.extract.prices.exact import exact_price
from pipelines.extract.prices.http import HttpClient
from pipelines.extract.prices.protocol import HistoryPage, Market, MarketPrice, PollResult, Problem
from warehouse.transport import Reply

_BASE_URL = "https://www.ecb.europa.eu/stats/eurofxref"
_NEWEST = "eurofxref-daily.xml"
_LAST_90_DAYS = "eurofxref-hist-90d.xml"
_SINCE_1999 = "eurofxref-hist.xml"
_DAYS_IN_SHORT_FILE = 80  # with room: the newest day may be days old

_FRANKFURT = ZoneInfo("Europe/Berlin")
_HOUR = time_of_day(16, 0)
_EURO = "EUR"

Rates = dict[date, dict[str, str]]
"""Texts of rates by day and currency."""


class ReferenceRateClient:
    """The reference rates.

    Args:
        source: its definition.
        now, sleep, clock: replaced in tests.
    """

    def __init__(
        self,
        source: PriceSource,
        *,
        now: Callable[[], datetime] = utc_now,
        sleep: Callable[[float], None] = time.sleep,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._source = source
        self._now = now
        self._base_url = source.url or _BASE_URL
        self._http = HttpClient(source, sleep=sleep, clock=clock)

    def markets(self) -> list[Market]:
        """As `PriceClient.markets`: the euro in each currency that has a rate now."""
        newest = self._newest(self._read(_NEWEST))[1]
        return [
            Market(f"{_EURO}/{currency}", _EURO, currency, _EURO, currency, is_active=True)
            for currency in sorted(newest)
        ]

    def poll(self, wanted: Sequence[tuple[str, str]]) -> PollResult:
        """As `PriceClient.poll`; all rates are one file."""
        if not wanted:
            return PollResult([], [])
        day, newest = self._newest(self._read(_NEWEST))
        effective_from = _effective_from(day)
        prices, problems = [], []
        for market_id, price_type in dict.fromkeys(wanted):
            text = newest.get(_currency(market_id))
            try:
                if price_type not in self._source.price_types:
                    raise ValueError(f"{self._source.name} supplies no {price_type} prices")
                if text is None:
                    raise ValueError("no rate in the newest file")
                if effective_from > self._now():
                    raise ValueError(f"the rate of {day} counts from {effective_from:%H:%M} UTC")
                prices.append(MarketPrice(market_id, price_type, effective_from, None, exact_price(text)))
            except ValueError as error:
                problems.append(Problem(market_id, price_type, str(error)))
        return PollResult(prices, problems)

    def history(
        self, market_id: str, price_type: str, granularity: str, start: datetime, end: datetime
    ) -> Iterator[HistoryPage]:
        """As `PriceClient.history`, in one page; days without a rate, such as Sundays, have no price."""
        if price_type not in self._source.history_types or granularity not in self._source.granularities:
            raise ValueError(f"{self._source.id} has no history of {price_type} in steps of {granularity}")
        now = self._now()
        is_recent = start >= now - timedelta(days=_DAYS_IN_SHORT_FILE)
        rates = self._read(_LAST_90_DAYS if is_recent else _SINCE_1999)
        currency = _currency(market_id)
        if not any(currency in of_day for of_day in rates.values()):
            raise MarketUnknown(self._source.id, "history", f"there are no rates of {market_id}")
        prices, problems = [], []
        for day in sorted(rates):
            effective_from = _effective_from(day)
            text = rates[day].get(currency)
            if text is None or not start < effective_from <= min(end, now):
                continue
            try:
                prices.append(MarketPrice(market_id, price_type, effective_from, None, exact_price(text)))
            except ValueError as error:
                problems.append(Problem(market_id, price_type, f"the rate of {day}: {error}"))
        yield HistoryPage(prices, end, tuple(problems))

    def close(self) -> None:
        """Close the kept connections."""
        self._http.close()

    def _read(self, file: str) -> Rates:
        def read(reply: Reply) -> Rates:
            self._http.check_status(reply, file)
            try:
                return parse_rates(bytes(reply.body))
            except ValueError as error:
                raise SourceMalformed(self._source.id, file, str(error)) from error

        return self._http.get(f"{self._base_url}/{file}", file, read)

    def _newest(self, rates: Rates) -> tuple[date, dict[str, str]]:
        if not rates:
            raise SourceMalformed(self._source.id, _NEWEST, "no day in the file")
        day = max(rates)
        return day, rates[day]


def parse_rates(document: bytes) -> Rates:
    """Read one of the bank's files: nested `Cube` elements, one per day and in it one per currency.

    A document type, and with it every entity, is refused, so that parsing a file cannot expand or fetch anything.

    Raises:
        ValueError: it is not XML, has a document type, or is malformed; says which.
    """
    rates: Rates = {}
    days: list[date] = []

    def refuse(*_: object) -> None:
        raise ValueError("the file has a document type")

    def begin(name: str, attributes: dict[str, str]) -> None:
        if name.rpartition(":")[2] != "Cube":
            return
        if "time" in attributes:
            day = date.fromisoformat(attributes["time"])
            if day in rates:
                raise ValueError(f"day {day} appears twice")
            days.append(day)
            rates[day] = {}
        elif "currency" in attributes:
            currency = attributes["currency"]
            if not days or currency in rates[days[-1]]:
                raise ValueError(f"currency {currency[:10]!r} is twice in a day, or in none")
            rates[days[-1]][currency] = attributes["rate"]

    parser = expat.ParserCreate()
    parser.StartDoctypeDeclHandler = refuse
    parser.StartElementHandler = begin
    try:
        parser.Parse(document, True)
    except expat.ExpatError as error:
        raise ValueError(f"the file is not XML: {error}") from error
    except KeyError as error:
        raise ValueError(f"a currency lacks {error}") from error
    return rates


def _currency(market_id: str) -> str:
    return market_id.removeprefix(f"{_EURO}/") if market_id.startswith(f"{_EURO}/") else ""


def _effective_from(day: date) -> datetime:
    return datetime.combine(day, _HOUR, _FRANKFURT).astimezone(UTC)
