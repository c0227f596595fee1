"""The central bank's rates, over a real socket, against the script."""

from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal

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
from pipelines.extract.prices.protocol import MarketPrice
from pipelines.extract.prices.reference_rates import ReferenceRateClient, parse_rates
from tests.chain.http_server import Reply
from tests.prices.conftest import NOW
from tests.prices.exchange_server import EMPTY, ExchangeServer, hanging, rate_limited, server_error
from tests.prices.model import rates_on
from tests.waiting import Naps

TODAY = NOW.date()
# 4 March 2026 is a Wednesday, 10:07 UTC: the newest rates in force are those of the 3rd.
YESTERDAY = TODAY - timedelta(days=1)
PUBLISHED = {"winter": 15, "summer": 14}  # 16:00 in Frankfurt, in UTC


def published(day: date) -> datetime:
    """16:00 in Frankfurt, by the rule of the European Union: summer time from the last Sunday of March to October's."""

    def last_sunday(month: int) -> date:
        last = date(day.year, month, 31)
        return last - timedelta(days=(last.weekday() + 1) % 7)

    season = "summer" if last_sunday(3) <= day < last_sunday(10) else "winter"
    return datetime(day.year, day.month, day.day, PUBLISHED[season], tzinfo=UTC)


@pytest.fixture
def late(server: ExchangeServer, sources: dict[str, PriceSource], naps: Naps) -> Iterator[ReferenceRateClient]:
    """A client in the evening, when today's rates are in force."""
    evening = NOW.replace(hour=20)
    client = ReferenceRateClient(sources["ecb"], now=lambda: evening, sleep=naps.sleep, clock=naps.clock)
    yield client
    client.close()


def test_the_markets_are_the_euro_in_each_currency(rates: ReferenceRateClient) -> None:
    assert [(market.market_id, market.base, market.quote, market.is_active) for market in rates.markets()] == [
        ("EUR/GBP", "EUR", "GBP", True),
        ("EUR/JPY", "EUR", "JPY", True),
        ("EUR/USD", "EUR", "USD", True),
    ]


def test_a_poll_is_one_file_and_its_prices_count_from_their_publication(
    late: ReferenceRateClient, server: ExchangeServer
) -> None:
    result = late.poll(
        [("EUR/USD", "Market"), ("EUR/JPY", "Market"), ("EUR/XYZ", "Market"), ("USD", "Market"), ("EUR/GBP", "Bid")]
    )
    expected = rates_on(TODAY)
    assert expected is not None
    assert result.prices == [
        MarketPrice("EUR/USD", "Market", published(TODAY), None, expected["USD"]),
        MarketPrice("EUR/JPY", "Market", published(TODAY), None, expected["JPY"]),
    ]
    assert [problem.detail for problem in result.problems] == [
        "no rate in the newest file",
        "no rate in the newest file",
        "ECB euro reference rates supplies no Bid prices",
    ]
    assert [request.path for request in server.requests] == ["eurofxref-daily.xml"]
    assert late.poll([]).prices == []


def test_a_file_that_is_early_waits_for_its_hour(
    rates: ReferenceRateClient, late: ReferenceRateClient, server: ExchangeServer
) -> None:
    assert rates.poll([("EUR/USD", "Market")]).problems[0].detail == "the rate of 2026-03-04 counts from 15:00 UTC"
    assert late.poll([("EUR/USD", "Market")]).prices[0].effective_from == datetime(2026, 3, 4, 15, tzinfo=UTC)


@pytest.mark.parametrize(("days", "file"), [(20, "eurofxref-hist-90d.xml"), (400, "eurofxref-hist.xml")])
def test_history_is_every_published_day(
    days: int, file: str, rates: ReferenceRateClient, server: ExchangeServer
) -> None:
    start = published(TODAY - timedelta(days=days))
    (page,) = rates.history("EUR/USD", "Market", "1d", start, NOW)
    expected = []
    for back in range(days - 1, -1, -1):  # the start, a day's publication, is excluded
        day = TODAY - timedelta(days=back)
        of_day = rates_on(day)
        if of_day is not None and published(day) <= NOW:
            expected.append(MarketPrice("EUR/USD", "Market", published(day), None, of_day["USD"]))
    assert page.prices == expected
    assert (page.up_to, page.problems) == (NOW, ())
    assert [request.path for request in server.requests] == [file]
    hours = {price.effective_from.hour for price in page.prices}
    assert hours == ({14, 15} if days == 400 else {15})


def test_the_end_is_included_and_nothing_is_in_the_future(rates: ReferenceRateClient) -> None:
    moment = timedelta(microseconds=1)
    for end, last in (
        (published(YESTERDAY), YESTERDAY),
        (published(YESTERDAY) - moment, YESTERDAY - timedelta(days=1)),
        (NOW + timedelta(days=30), YESTERDAY),
    ):
        (page,) = rates.history("EUR/USD", "Market", "1d", NOW - timedelta(days=10), end)
        assert page.prices[-1].effective_from == published(last)
        assert page.up_to == end


def test_a_currency_without_rates_is_unknown(rates: ReferenceRateClient) -> None:
    for market_id in ("EUR/XYZ", "USD", "USD/EUR"):
        with pytest.raises(MarketUnknown, match=market_id):
            next(rates.history(market_id, "Market", "1d", NOW - timedelta(days=5), NOW))
    with pytest.raises(ValueError, match="no history of Trade in steps of 1d"):
        next(rates.history("EUR/USD", "Trade", "1d", NOW - timedelta(days=5), NOW))


@pytest.mark.parametrize(
    ("reply", "kind"),
    [
        (rate_limited(), SourceRateLimited),
        (server_error(), SourceUnreachable),
        (hanging(60), SourceUnreachable),
        (Reply(b"<a/>", cut_after=2), SourceUnreachable),
        (Reply(b"no such file", 404), SourceRefused),
        (Reply(b"<html><p>unclosed"), SourceMalformed),
        (Reply(b""), SourceMalformed),
        (EMPTY, SourceMalformed),
    ],
)
def test_faults_are_errors(
    reply: Reply | str,
    kind: type[PriceSourceError],
    server: ExchangeServer,
    sources: dict[str, PriceSource],
    naps: Naps,
) -> None:

    is_slow = isinstance(reply, Reply) and reply.delay_seconds
    source = replace(sources["ecb"], timeout_seconds=0.1 if is_slow else 10.0, max_attempts=2)
    client = ReferenceRateClient(source, now=lambda: NOW, sleep=naps.sleep, clock=naps.clock)
    server.always_reply("ecb", reply)
    with pytest.raises(kind, match="src_ecb"):
        client.poll([("EUR/USD", "Market")])
    client.close()


def test_a_temporary_fault_is_waited_out(late: ReferenceRateClient, server: ExchangeServer) -> None:
    server.next_replies("ecb", rate_limited("3"), server_error())
    assert late.poll([("EUR/USD", "Market")]).problems == []


@pytest.mark.parametrize(
    ("document", "words"),
    [
        (b'<!DOCTYPE a [<!ENTITY b "c">]><a>&b;</a>', "document type"),
        (b'<!DOCTYPE a SYSTEM "http://192.0.2.1/a.dtd"><a/>', "document type"),
        (b"<Cube><Cube time='2026-03-04'/><Cube time='2026-03-04'/></Cube>", "appears twice"),
        (b"<Cube><Cube time='2026-03-04'>" + 2 * b"<Cube currency='USD' rate='1'/>" + b"</Cube></Cube>", "twice"),
        (b"<Cube><Cube currency='USD' rate='1'/></Cube>", "in none"),
        (b"<Cube><Cube time='2026-03-04'><Cube currency='USD'/></Cube></Cube>", "lacks 'rate'"),
        (b"<Cube><Cube time='4 March'/></Cube>", "isoformat"),
        (b"{}", "not XML"),
    ],
)
def test_a_document_of_another_form_is_refused(document: bytes, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        parse_rates(document)


def test_an_invalid_rate_is_a_problem(late: ReferenceRateClient, server: ExchangeServer) -> None:
    day = TODAY.isoformat()
    body = f"<Cube><Cube time='{day}'><Cube currency='USD' rate='0'/><Cube currency='GBP' rate='0.8'/></Cube></Cube>"
    server.always_reply("ecb", Reply(body.encode()))
    result = late.poll([("EUR/USD", "Market"), ("EUR/GBP", "Market")])
    assert [price.price for price in result.prices] == [Decimal("0.8")]
    assert "not positive" in result.problems[0].detail
    (page,) = late.history("EUR/USD", "Market", "1d", NOW - timedelta(days=3), NOW + timedelta(days=1))
    assert (page.prices, len(page.problems)) == ([], 1)
