"""Price source definitions: the shipped file, and faults refused in other files."""

from pathlib import Path

import pytest
from eth_utils.address import to_checksum_address

from control.networks.definitions import NetworksError, PriceFeed, load_networks
from control.pricing.definitions import (
    GRANULARITIES,
    PriceSource,
    PriceSourcesError,
    load_price_sources,
    price_sources_in_force,
)
from control.settings import load_settings

SHIPPED = load_settings({}).price_sources_file

EXAMPLE = """
[[source]]
name = "example"
display_name = "Example"
adapter = "ccxt"
exchange = "example"
price_types = ["Trade", "Ask"]
history_types = ["Trade"]
granularities = ["1d", "1m"]
requests_per_second = 2.5
timeout_seconds = 3
max_attempts = 7
poll_seconds = 30
page_candles = 100
history_candles = 500
url = "http://127.0.0.1:1/example/"
options = { fetchMarkets = { types = ["spot"] } }
credentials = { apiKey = "EXAMPLE_KEY", secret = "EXAMPLE_SECRET" }
"""
LEAST = """
[[source]]
name = "rates"
display_name = "Rates"
adapter = "reference-rates"
price_types = ["Market"]
history_types = []
granularities = []
requests_per_second = 1
"""
NETWORK = """
[[network]]
name = "example"
display_name = "Example"
family = "evm"
chain_id = 5
rpc = ["${EXAMPLE_URL}"]
native = { symbol = "EX", decimals = 18 }
finality_depth = 10
poll_seconds = 2
"""
FEED = """
[[network.feed]]
base = "BTC"
quote = "USD"
address = "0xF4030086522a5bEEa4988F8cA5B36dbC97BeE88c"
"""


def load(tmp_path: Path, text: str) -> dict[str, PriceSource]:
    path = tmp_path / "sources.toml"
    path.write_text(text, encoding="utf-8")
    return load_price_sources(path)


def test_the_shipped_file_has_the_sources() -> None:
    sources = load_price_sources(SHIPPED)
    assert list(sources) == ["src_kraken", "src_coinbase", "src_gemini", "src_binance", "src_bitstamp", "src_ecb"]
    for source_id, source in sources.items():
        assert source.id == source_id
        assert source.url is None
        assert source.credentials == ()
        assert source.history_types
        assert source.granularities
        assert set(source.granularities) <= set(GRANULARITIES)


def test_every_field_is_read(tmp_path: Path) -> None:
    assert load(tmp_path, EXAMPLE + LEAST) == {
        "src_example": PriceSource(
            id="src_example",
            name="Example",
            adapter="ccxt",
            exchange="example",
            network=None,
            price_types=("Ask", "Trade"),
            history_types=("Trade",),
            granularities=("1m", "1d"),  # finest first
            requests_per_second=2.5,
            timeout_seconds=3.0,
            max_attempts=7,
            poll_seconds=30,
            page_candles=100,
            history_candles=500,
            url="http://127.0.0.1:1/example",
            options={"fetchMarkets": {"types": ["spot"]}},
            credentials=(("apiKey", "EXAMPLE_KEY"), ("secret", "EXAMPLE_SECRET")),
        ),
        "src_rates": PriceSource(
            id="src_rates",
            name="Rates",
            adapter="reference-rates",
            exchange=None,
            network=None,
            price_types=("Market",),
            history_types=(),
            granularities=(),
            requests_per_second=1.0,
            timeout_seconds=10.0,
            max_attempts=4,
            poll_seconds=1,
            page_candles=None,
            history_candles=None,
        ),
    }


def test_url_may_contain_a_key_and_is_not_shown(tmp_path: Path) -> None:
    source = load(tmp_path, EXAMPLE.replace("/example/", "/hush/"))["src_example"]
    assert "hush" not in repr(source)
    with pytest.raises(PriceSourcesError) as caught:
        load(tmp_path, EXAMPLE.replace("http://127.0.0.1:1/example/", "ftp://hush"))
    assert "field 'url'" in str(caught.value)
    assert "hush" not in str(caught.value)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        (
            'name = "example"',
            'name = "Example"',
            "field 'name': is 'Example'; Expected `str` matching regex '^[a-z0-9]",
        ),
        ('adapter = "ccxt"', 'adapter = "feeds"', "field 'adapter': is 'feeds'; write one of ccxt, reference-rates"),
        ('exchange = "example"', "", "field 'exchange': is missing"),
        ('["Trade", "Ask"]', '["NAV"]', "field 'price_types': is 'NAV'; write one of Ask, Bid, Trade, Market"),
        ('["1d", "1m"]', '["1w"]', "field 'granularities': is '1w'; write one of round, 1m"),
        ('["1d", "1m"]', "[]", "field 'granularities': belongs together with 'history_types'"),
        ('history_types = ["Trade"]', "history_types = []", "set both or neither"),
        (
            "requests_per_second = 2.5",
            "requests_per_second = 0",
            "field 'requests_per_second': is 0; Expected `float` >= 0.01",
        ),
        (
            "requests_per_second = 2.5",
            "requests_per_second = true",
            "field 'requests_per_second': Expected `float`, got `bool`",
        ),
        ("max_attempts = 7", "max_attempts = 0", "field 'max_attempts': is 0"),
        ("max_attempts = 7", "max_attempt = 7", "field 'max_attempt': is unknown"),
        (
            '"EXAMPLE_KEY"',
            '"not a variable"',
            "field 'credentials': field 'apiKey': is not the name of an environment variable",
        ),
        ("[[source]]", "[[sources]]", "field 'sources': is unknown"),
    ],
)
def test_faults_of_definitions_are_named(old: str, new: str, message: str, tmp_path: Path) -> None:
    assert old in EXAMPLE
    with pytest.raises(PriceSourcesError) as caught:
        load(tmp_path, EXAMPLE.replace(old, new))
    assert message in str(caught.value)
    assert "sources.toml" in str(caught.value)


def test_a_name_is_used_once(tmp_path: Path) -> None:
    with pytest.raises(PriceSourcesError, match="field 'name': is used twice"):
        load(tmp_path, EXAMPLE + EXAMPLE)


def test_missing_or_malformed_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(PriceSourcesError, match="set LEDGERMART_PRICE_SOURCES to a file"):
        load_price_sources(tmp_path / "none.toml")
    with pytest.raises(PriceSourcesError, match="is not TOML"):
        load(tmp_path, "[[source")


def test_network_with_feeds_is_a_source_even_while_disabled(tmp_path: Path) -> None:
    (tmp_path / "networks.toml").write_text(NETWORK + FEED)
    (tmp_path / "sources.toml").write_text(LEAST)
    settings = load_settings(
        {
            "LEDGERMART_NETWORKS": str(tmp_path / "networks.toml"),
            "LEDGERMART_PRICE_SOURCES": str(tmp_path / "sources.toml"),
        }
    )
    sources = price_sources_in_force(settings)
    assert list(sources) == ["src_rates", "src_feeds-example"]
    feeds = sources["src_feeds-example"]
    assert (feeds.network, feeds.adapter, feeds.price_types) == ("example", "feeds", ("Market",))
    assert (feeds.history_types, feeds.granularities) == (("Market",), ("round",))
    (tmp_path / "sources.toml").write_text(LEAST.replace('"rates"', '"feeds-example"'))
    with pytest.raises(PriceSourcesError, match="is the name of the feeds of network 'example'"):
        price_sources_in_force(settings)
    (tmp_path / "networks.toml").write_text(NETWORK)
    (tmp_path / "sources.toml").write_text(LEAST)
    assert list(price_sources_in_force(settings)) == ["src_rates"]


def networks_of(tmp_path: Path, text: str) -> tuple[PriceFeed, ...]:
    path = tmp_path / "networks.toml"
    path.write_text(text)
    return load_networks(path, {})["example"].feeds


def test_feeds_are_read_with_their_network(tmp_path: Path) -> None:
    address = "0xF4030086522a5bEEa4988F8cA5B36dbC97BeE88c"
    assert networks_of(tmp_path, NETWORK + FEED) == (PriceFeed(address.lower(), "BTC", "USD"),)
    assert networks_of(tmp_path, NETWORK) == ()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (FEED + FEED, "feed number 2: field 'address': is listed twice"),
        (FEED + FEED.replace("F4030086522a5bEEa4988F8cA5B36dbC97BeE88c", "12" * 20), "BTC/USD has two feeds"),
        (FEED.replace("0xF4", "0xf4"), "field 'address': is invalid"),
        (FEED.replace('base = "BTC"\n', ""), "field 'base': is missing"),
        (FEED + "decimals = 8\n", "field 'decimals': is unknown"),
    ],
)
def test_a_feed_that_is_wrong_is_named(text: str, message: str, tmp_path: Path) -> None:
    with pytest.raises(NetworksError) as caught:
        networks_of(tmp_path, NETWORK + text)
    assert message in str(caught.value)


def test_shipped_feeds_name_the_network_s_common_tokens() -> None:
    networks = load_networks(load_settings({}).networks_file, {})
    ethereum = networks["ethereum"]
    symbols = {token.symbol for token in ethereum.tokens} | {ethereum.native_symbol}
    bases = {feed.base for feed in ethereum.feeds}
    assert symbols - bases == {"WETH"}
    text = load_settings({}).networks_file.read_text()
    for feed in ethereum.feeds:
        assert to_checksum_address(feed.address) in text


def test_a_credential_in_place_of_its_variable_is_not_shown(tmp_path: Path) -> None:
    with pytest.raises(PriceSourcesError) as caught:
        load(tmp_path, EXAMPLE.replace('"EXAMPLE_KEY"', '"s3cret/hush"'))
    assert "write the name, not the value" in str(caught.value)
    assert "hush" not in str(caught.value)


def test_field_of_another_adapter_is_refused(tmp_path: Path) -> None:
    with pytest.raises(
        PriceSourcesError, match="source 'rates': field 'exchange' or 'options': belongs to adapter 'ccxt'"
    ):
        load(tmp_path, LEAST + 'exchange = "kraken"\n')
