"""Sources on loopback, a stopped clock, and a guard that prevents connections to other machines."""

import ipaddress
import random
import socket
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import replace
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from control.pricing.definitions import PriceSource, load_price_sources
from pipelines.extract.prices.reference_rates import ReferenceRateClient
from tests.prices.exchange_server import ExchangeServer
from tests.prices.model import ScriptedMarket, steady, wandering
from tests.waiting import Naps

if TYPE_CHECKING:
    # Imported where it is used: every process of a test run collects this file, and ccxt takes two seconds.
    from pipelines.extract.prices.exchanges import ExchangeClient

NOW = datetime(2026, 3, 4, 10, 7, 30, 500_000, tzinfo=UTC)
EXACT = "12345678901.123456789012345678"

OpenExchange = Callable[..., "ExchangeClient"]


@pytest.fixture(autouse=True)
def only_loopback(monkeypatch: pytest.MonkeyPatch) -> None:
    real = socket.socket.connect

    def connect(self: socket.socket, address: Any) -> None:
        assert ipaddress.ip_address(address[0]).is_loopback, f"a connection to {address}"
        real(self, address)

    def resolve(host: str, *arguments: Any, **options: Any) -> Any:
        assert host in ("127.0.0.1", "localhost"), f"a look-up of {host}"
        return real_resolve(host, *arguments, **options)

    real_resolve = socket.getaddrinfo
    monkeypatch.setattr(socket.socket, "connect", connect)
    monkeypatch.setattr(socket, "getaddrinfo", resolve)


@pytest.fixture
def naps() -> Naps:
    random.seed(1)  # of the back-off
    return Naps()


@pytest.fixture
def server() -> Iterator[ExchangeServer]:
    markets = [
        ScriptedMarket("BTC", "USD", steady(EXACT), spread=Decimal("0.000000000000000001")),
        ScriptedMarket("ETH", "USD", wandering("2000", 1)),
        ScriptedMarket("ETH", "EUR", wandering("1800", 2)),
    ]
    with ExchangeServer(markets, now=lambda: NOW) as running:
        yield running


@pytest.fixture
def sources(server: ExchangeServer, tmp_path: Path) -> dict[str, PriceSource]:
    """The shipped definitions, at the server's addresses, by name."""
    path = server.write_definitions(tmp_path / "sources.toml")
    return {source.id.removeprefix("src_"): source for source in load_price_sources(path).values()}


@pytest.fixture
def open_exchange(sources: dict[str, PriceSource], naps: Naps) -> Iterator[OpenExchange]:
    with ExitStack() as stack:

        def opened(name: str, known_markets: Any = (), *, now: datetime = NOW, **fields: Any) -> "ExchangeClient":
            from pipelines.extract.prices.exchanges import ExchangeClient

            source = replace(sources[name], **fields)
            client = ExchangeClient(source, known_markets, now=lambda: now, sleep=naps.sleep, clock=naps.clock)
            stack.callback(client.close)
            return client

        yield opened


@pytest.fixture
def rates(sources: dict[str, PriceSource], naps: Naps) -> Iterator[ReferenceRateClient]:
    client = ReferenceRateClient(sources["ecb"], now=lambda: NOW, sleep=naps.sleep, clock=naps.clock)
    yield client
    client.close()
