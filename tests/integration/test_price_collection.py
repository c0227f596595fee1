"""Prices from real clients over real sockets to the raw tables, compared with the sources' scripts."""

import json
import random
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from pathlib import Path

import pytest

from control.operations import Status
from tests import CHECKOUT
from tests.chain.feeds import deploy_feed, price_path
from tests.chain.http_server import Reply
from tests.chain.node import AnvilNode
from tests.chain.world import World
from tests.integration.harness import LocalNetwork, Service
from tests.integration.price_service import PriceService
from tests.prices.exchange_server import ExchangeServer
from tests.prices.model import ScriptedMarket, steady, wandering

HOUR = timedelta(hours=1)
START = datetime(2026, 3, 2, tzinfo=UTC)
NOW = datetime(2026, 3, 9, 10, 30, tzinfo=UTC)
# Same as the markets of the model.
TRADED = NOW - timedelta(milliseconds=2345)
_MOMENT = timedelta(microseconds=1)
# Fewer statements than a discovery of two markets in small pages, so every kill happens before its end.
_STATEMENTS = 400

BTC = ScriptedMarket("BTC", "USD", wandering("67012.12", 1))
ETH = ScriptedMarket("ETH", "USD", wandering("3010.5", 2))
EUR = ScriptedMarket("EUR", "USD", steady("1.0834"))
FINE = ScriptedMarket("FINE", "USD", steady("0.000000000012345678"))

Sources = Callable[..., tuple[ExchangeServer, PriceService]]


@pytest.fixture
def sources(tmp_path: Path) -> Iterator[Sources]:
    """Make a server with these markets, and a service with the named sources of it."""
    with ExitStack() as stack:

        def make(
            *markets: ScriptedMarket, named: tuple[str, ...] = ("kraken", "binance"), folder: str = "service"
        ) -> tuple[ExchangeServer, PriceService]:
            server = stack.enter_context(ExchangeServer(markets, now=lambda: NOW))
            fields = {"requests_per_second": 100, "max_attempts": 1, "timeout_seconds": 60}
            definitions = server.write_definitions(tmp_path / "sources.toml", named, **fields)
            service = PriceService(tmp_path / folder, definitions)
            stack.callback(service.close)
            return server, service

        yield make


def routes(service: Service) -> list[tuple[object, ...]]:
    return service.query(
        "select source_id, status, derivation, market_id, price_type, is_inverted from raw.pair_routes order by all"
    )


def polled(service: Service) -> list[tuple[object, ...]]:
    """The newest price of each market."""
    return service.query(
        """
        select source_id, market_id, price_type, arg_max(price, effective_from) from raw.prices
        where origin = 'Poll' group by all order by all
        """
    )


def expected_windows(
    service: PriceService, market: ScriptedMarket, named: dict[str, str], end: datetime, hours: int
) -> list[tuple[str, str, datetime, datetime, Decimal, bool]]:
    """Computed from the script alone: the last trade before each window's end."""
    rows = []
    for source_id, market_id in named.items():
        opened = START
        while opened < end:
            closed = min(opened + hours * HOUR, end)
            window = (opened.replace(tzinfo=None), closed.replace(tzinfo=None))
            is_partial = closed - opened < hours * HOUR
            rows.append((source_id, market_id, *window, market.last(closed - _MOMENT), is_partial))
            opened = closed
    return sorted(rows)


@pytest.mark.ci
def test_the_first_cycle_lists_markets_finds_routes_and_polls(sources: Sources) -> None:
    server, service = sources(BTC, ETH, EUR, FINE)
    tenant = service.tenant()
    service.pair(tenant, "BTC/USD", ["src_kraken", "src_binance"])
    service.pair(tenant, "ETH/EUR", ["src_kraken"], "Ask", allow_inverse=True, bridge="USD")
    service.pair(tenant, "FINE/USD", ["src_binance"])
    report = service.price_cycle()
    assert (report.list_errors, report.poll_errors) == ({}, {})
    assert routes(service) == [
        ("src_binance", "Resolved", "Direct", "BTCUSD", "Trade", False),
        ("src_binance", "Resolved", "Direct", "FINEUSD", "Trade", False),
        ("src_kraken", "Resolved", "Bridge", "XETHZUSD", "Ask", False),
        ("src_kraken", "Resolved", "Bridge", "ZEURZUSD", "Bid", True),
        ("src_kraken", "Resolved", "Direct", "XXBTZUSD", "Trade", False),
    ]
    assert polled(service) == [
        ("src_binance", "BTCUSD", "Trade", BTC.last(TRADED)),
        ("src_binance", "FINEUSD", "Trade", Decimal("0.000000000012345678")),
        ("src_kraken", "XETHZUSD", "Ask", ETH.last(NOW) + ETH.spread),
        ("src_kraken", "XXBTZUSD", "Trade", BTC.last(TRADED)),
        ("src_kraken", "ZEURZUSD", "Bid", Decimal("1.0834") - EUR.spread),
    ]
    asked = [(request.source, request.path) for request in server.requests]
    assert sum(path.endswith("Ticker") for source, path in asked if source == "kraken") == 1
    # The next cycle needs no list: one request for all offers of a source, and one for each last trade.
    service.pass_time()
    before = len(server.requests)
    service.price_cycle()
    assert sorted((request.source, request.path.rpartition("/")[2]) for request in server.requests[before:]) == [
        ("binance", "aggTrades"),
        ("binance", "aggTrades"),
        ("kraken", "Ticker"),
        ("kraken", "Trades"),
    ]


@pytest.mark.proof("a price source that fails does not stop the others")
def test_a_failed_source_is_named_and_does_not_affect_others(sources: Sources) -> None:
    server, service = sources(BTC)
    service.pair(service.tenant(), "BTC/USD", ["src_kraken", "src_binance"])
    server.always_reply("kraken", Reply(status=503))
    report = service.price_cycle()
    assert report.list_errors.keys() == {"src_kraken"}
    assert report.prices == {"src_binance": 1}
    assert [row[:2] for row in routes(service)] == [("src_binance", "Resolved"), ("src_kraken", "Pending")]
    server.always_reply("kraken", None)
    service.pass_time()
    assert service.price_cycle().prices.keys() == {"src_kraken", "src_binance"}
    server.always_reply("kraken", Reply(status=503))
    service.pass_time()
    report = service.price_cycle()
    assert (report.poll_errors.keys(), report.prices.keys()) == ({"src_kraken"}, {"src_binance"})
    ((error, failures),) = service.query(
        "select error, failures_in_a_row from raw.price_polls where source_id = 'src_kraken'"
    )
    assert (failures, "src_kraken" in error) == (1, True)
    # Earlier prices stay.
    assert len(polled(service)) == 2


@pytest.mark.proof("a discovery stores exactly the prices of the source")
def test_a_discovery_is_the_script_window_by_window(sources: Sources) -> None:
    _, service = sources(BTC, named=("kraken", "coinbase", "gemini", "binance", "bitstamp"))
    tenant = service.tenant()
    named = {
        "src_kraken": "XXBTZUSD",
        "src_coinbase": "BTC-USD",
        "src_binance": "BTCUSD",
        "src_bitstamp": "btcusd",
        "src_gemini": "btcusd",
    }
    pair = service.pair(tenant, "BTC/USD", list(named))
    asked = service.discover(tenant, pair, "2026-03-02", "2026-03-09T10:30:00Z", "hour", "12")
    service.price_cycle()
    report = service.price_slot()
    assert report.errors == {}
    assert service.windows(pair) == expected_windows(service, BTC, named, NOW, 12)
    running = service.discovery(asked)
    assert (running.status, running.progress_done, running.progress_total) == (Status.RUNNING, 15 * 5, 15 * 5)
    service.publish()
    ended = service.discovery(asked)
    assert (ended.status, ended.result, ended.error) == (Status.SUCCEEDED, {"pricesStored": 75, "missing": []}, None)


def test_a_market_without_history_delays_no_discovery_of_another(sources: Sources) -> None:
    server, service = sources(BTC, ETH, named=("kraken",))
    tenant = service.tenant()
    asked = [
        service.discover(tenant, service.pair(tenant, name, ["src_kraken"]), "2026-03-06", "2026-03-09", "day")
        for name in ("BTC/USD", "ETH/USD")
    ]
    server.spoil = lambda request, reply: (
        Reply(status=500) if request.query.get("pair") == "XXBTZUSD" and "OHLC" in request.path else reply
    )
    service.price_cycle()
    service.price_slot()
    service.publish()
    spoilt, other = (service.discovery(one) for one in asked)
    assert (other.status, other.result) == (Status.SUCCEEDED, {"pricesStored": 3, "missing": []})
    assert (spoilt.status, "HTTP 500" in str(spoilt.error)) == (Status.RUNNING, True)


@pytest.mark.release
def test_a_killed_discovery_resumes_without_gap_or_duplicate(sources: Sources, tmp_path: Path) -> None:
    _, service = sources(BTC, ETH)
    # Many small pages: a kill finds some stored and some not.
    definitions = service.settings.price_sources_file
    definitions.write_text(definitions.read_text().replace("page_candles = 1000", "page_candles = 7"))
    tenant = service.tenant()
    named = {"src_kraken": "XXBTZUSD", "src_binance": "BTCUSD"}
    pair = service.pair(tenant, "BTC/USD", list(named))
    asked = service.discover(tenant, pair, "2026-03-02", "2026-03-09T10:00:00Z", "hour", "1")
    service.price_cycle()
    kills, chance, stored = 2, random.Random(2), []
    command = [sys.executable, "-m", "tests.integration.price_service", str(tmp_path / "service"), str(definitions)]
    for _ in range(kills):
        statements = chance.randrange(_STATEMENTS // kills)
        done = subprocess.run([*command, str(statements)], cwd=CHECKOUT, check=False)
        assert done.returncode == -signal.SIGKILL
        stored.append(len(service.windows(pair)))
    service.price_slot()
    service.publish()
    total = 178
    assert any(0 < count < 2 * total for count in stored), stored
    assert service.windows(pair) == expected_windows(service, BTC, named, datetime(2026, 3, 9, 10, tzinfo=UTC), 1)
    ended = service.discovery(asked)
    assert ended.result == {"pricesStored": 2 * total, "missing": []}
    assert ended.status == Status.SUCCEEDED


def test_feeds_on_a_node_are_polled_and_read_back(node: AnvilNode, tmp_path: Path) -> None:
    world = World(node, wallet_count=1)
    world.place_multicall()
    feed = deploy_feed(world, "BTC")
    begin = datetime.fromtimestamp(node.block_time(node.head()), UTC).replace(minute=0, second=0) - 10 * HOUR
    # Six rounds in nine hours: some hours have none.
    path = price_path(["60000", "60100.5", "59000.00000001", "61000", "61234.5678", "62000"], begin, 5400)
    feed.answer_many(path)
    world.mine()
    server = ExchangeServer([])
    with server:
        definitions = server.write_definitions(tmp_path / "sources.toml", ("ecb",))
        network = LocalNetwork("local", node.url)
        service = PriceService(tmp_path / "service", definitions, network, [feed])
        tenant = service.tenant()
        pair = service.pair(tenant, "BTC/USD", ["src_feeds-local"], "Market", max_age=None)
        end = begin + 8 * HOUR
        asked = service.discover(tenant, pair, begin.isoformat(), end.isoformat(), "hour")
        report = service.price_cycle()
        assert report.poll_errors == {}
        assert polled(service) == [("src_feeds-local", feed.address, "Market", Decimal(62000))]
        service.price_slot()
        service.publish()
        rows, missing = [], []
        for number in range(8):
            opened, closed = begin + number * HOUR, begin + (number + 1) * HOUR
            inside = [s for s in path if opened < datetime.fromtimestamp(s, UTC) <= closed]
            if inside:
                window = (opened.replace(tzinfo=None), closed.replace(tzinfo=None))
                rows.append(("src_feeds-local", feed.address, *window, Decimal(path[max(inside)]), False))
            else:
                missing.append(number)
        assert service.windows(pair) == rows
        assert len(rows) == 5
        result = service.discovery(asked).result or {}
        assert result["pricesStored"] == 5
        assert sum(
            (datetime.fromisoformat(gap["to"]) - datetime.fromisoformat(gap["from"])) / HOUR
            for gap in result["missing"]
        ) == len(missing)
        service.close()


@pytest.mark.ci
def test_the_command_collects_prices_and_reports_failures(sources: Sources, ready_service: Service) -> None:
    # One store at a time: closing a file drops SQLite's locks of the whole process on it.
    ready_service.close()
    server, service = sources(BTC, folder=ready_service.settings.data_dir.parent.name)
    tenant = service.tenant()
    pair = service.pair(tenant, "BTC/USD", ["src_kraken", "src_binance"])
    asked = service.discover(tenant, pair, "2026-03-02", "2026-03-04", "day")
    assert cycle(service)["exitCode"] == 0
    assert [(row[1], row[2]) for row in polled(service)] == [("BTCUSD", "Trade"), ("XXBTZUSD", "Trade")]
    assert service.discovery(asked).status == Status.RUNNING
    (at_work,) = json.loads(service.ledgermart("status", "--json").stdout)["operations"]
    assert (at_work["operation"], at_work["kind"], at_work["done"]) == (asked.id, "PriceDiscovery", at_work["total"])
    # The second cycle publishes the windows that the first one read after its publication, even if a source fails.
    server.always_reply("kraken", Reply(status=503))
    failed = cycle(service)
    assert failed["exitCode"] != 0
    assert "src_kraken" in str(failed["error"])
    ended = service.discovery(asked)
    assert (ended.status, ended.result) == (Status.SUCCEEDED, {"pricesStored": 4, "missing": []})
    binance, kraken = json.loads(service.ledgermart("status", "--json").stdout)["priceSources"]
    assert (binance["priceSource"], binance["prices"], binance["error"]) == ("src_binance", 1, None)
    assert kraken["priceSource"] in kraken["error"]
    assert "src_kraken" in service.ledgermart("status").stdout


def cycle(service: Service) -> dict[str, object]:
    """Run the command and return the one object that it prints."""
    done = service.ledgermart("cycle", "--json")
    printed: dict[str, object] = json.loads(done.stdout)
    return printed
