"""From a definition to a client: each adapter by its name, and the client that it opens."""

import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from control.networks.definitions import load_networks
from control.pricing import definitions
from control.pricing.definitions import PriceSource, feeds_of, load_price_sources
from pipelines.extract.errors import SourceRefused
from pipelines.extract.evm.feeds import FeedClient
from pipelines.extract.prices.clients import ADAPTERS, open_price_client
from tests import CHECKOUT
from tests.prices.exchange_server import ExchangeServer
from tests.prices.test_exchanges import known

NETWORK = """
[[network]]
name = "local"
display_name = "Local"
family = "evm"
chain_id = 31337
rpc = ["${LOCAL_RPC_URL}"]
native = { symbol = "ETH", decimals = 18 }
finality_depth = 1
poll_seconds = 1
[[network.feed]]
base = "BTC"
quote = "USD"
address = "0xF4030086522a5bEEa4988F8cA5B36dbC97BeE88c"
"""


def test_every_adapter_that_can_be_defined_can_be_opened() -> None:
    assert tuple(ADAPTERS) == definitions.ADAPTERS


def test_each_source_opens_its_client(sources: dict[str, PriceSource], tmp_path: Path, server: ExchangeServer) -> None:
    (tmp_path / "networks.toml").write_text(NETWORK)
    network = load_networks(tmp_path / "networks.toml", {"LOCAL_RPC_URL": "http://127.0.0.1:1"})["local"]
    exchanges = ("kraken", "coinbase", "gemini", "binance", "bitstamp")
    kinds = {**dict.fromkeys(exchanges, "ExchangeClient"), "ecb": "ReferenceRateClient"}
    assert set(kinds) == set(sources)
    for name, source in sources.items():
        client = open_price_client(source, None)
        assert type(client).__name__ == kinds[name]
        client.close()
    client = open_price_client(feeds_of(network), network)
    assert type(client) is FeedClient
    client.close()
    assert server.requests == []  # opening sends no request


def test_known_markets_spare_the_list(sources: dict[str, PriceSource], server: ExchangeServer) -> None:
    client = open_price_client(sources["kraken"], None, known("kraken"))
    assert client.poll([("XXBTZUSD", "Trade")]).problems == []
    assert [request.path for request in server.requests] == ["0/public/Trades"]
    client.close()


def test_an_unusable_source_is_refused_with_the_fix(sources: dict[str, PriceSource], tmp_path: Path) -> None:
    (tmp_path / "networks.toml").write_text(NETWORK)
    disabled = load_networks(tmp_path / "networks.toml", {})["local"]
    with pytest.raises(SourceRefused, match=r"src_feeds-local: open: network 'local' is disabled.*set LOCAL_RPC_URL"):
        open_price_client(feeds_of(disabled), disabled)
    with pytest.raises(SourceRefused, match="needs network 'local', which is not defined"):
        open_price_client(feeds_of(disabled), None)
    with pytest.raises(SourceRefused, match="set LEDGERMART_TEST_NO_SUCH_VARIABLE"):
        open_price_client(
            replace(sources["kraken"], credentials=(("apiKey", "LEDGERMART_TEST_NO_SUCH_VARIABLE"),)), None
        )


def test_the_example_of_the_guide_is_a_source(tmp_path: Path) -> None:
    section = (
        (CHECKOUT / "docs" / "reference" / "price-sources.md")
        .read_text(encoding="utf-8")
        .split("## Define a source")[1]
    )
    example = section.split("```toml\n")[1].split("```")[0]
    (tmp_path / "sources.toml").write_text(example)
    (source,) = load_price_sources(tmp_path / "sources.toml").values()
    client = open_price_client(source, None)  # checks it against ccxt's class
    assert type(client).__name__ == "ExchangeClient"
    client.close()


@pytest.mark.ci
def test_ccxt_is_not_imported_without_an_exchange() -> None:
    script = """
import sys
import pipelines.definitions, cli.cycle
from pipelines.extract.prices.clients import open_price_client
from control.pricing.definitions import load_price_sources
from control.settings import load_settings
sources = load_price_sources(load_settings({}).price_sources_file)
open_price_client(sources["src_ecb"], None).close()
assert "ccxt" not in sys.modules
open_price_client(sources["src_kraken"], None).close()
assert "ccxt" in sys.modules
"""
    subprocess.run([sys.executable, "-c", script], cwd=CHECKOUT, check=True)
