"""On-chain feeds, read from real aggregators on a real node, compared with their scripts."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from pathlib import Path

import pytest

from control.networks.definitions import Network, load_networks
from control.pricing.definitions import feeds_of
from pipelines.extract import pacing
from pipelines.extract.errors import MarketUnknown, NodeUnreachable, SourceRefused, WrongChain
from pipelines.extract.evm import feeds
from pipelines.extract.evm.feeds import FeedClient
from pipelines.extract.prices.clients import open_price_client
from pipelines.extract.prices.protocol import HistoryPage, MarketPrice
from tests.chain.conftest import GENESIS_TIME
from tests.chain.fault_proxy import FaultProxy
from tests.chain.feeds import ScriptedFeed, deploy_feed, price_path
from tests.chain.late_answers import late_answers_time_out
from tests.chain.node import AnvilNode
from tests.chain.world import World
from tests.integration.harness import LocalNetwork
from tests.integration.ways import WAYS, faults

Open = Callable[..., FeedClient]
START = datetime.fromtimestamp(GENESIS_TIME, UTC)


@pytest.fixture
def world(node: AnvilNode) -> World:
    world = World(node, wallet_count=1)
    world.place_multicall()
    return world


@pytest.fixture
def open_client(node: AnvilNode, tmp_path: Path) -> Iterator[Open]:
    with ExitStack() as stack:

        def opened(
            *scripted: ScriptedFeed, url: str = node.url, chain_id: int = 31337, **options: object
        ) -> FeedClient:
            network = network_of(tmp_path, url, *scripted, chain_id=chain_id)
            client = FeedClient(feeds_of(network), network, **options)  # type: ignore[arg-type]
            stack.callback(client.close)
            return client

        yield opened


def network_of(folder: Path, url: str, *scripted: ScriptedFeed, chain_id: int = 31337) -> Network:
    local = LocalNetwork("local", url, chain_id=chain_id)
    path = folder / "networks.toml"
    path.write_text(local.as_toml() + "".join(feed.definition() for feed in scripted))
    return load_networks(path, {local.variable: url})["local"]


def instant(seconds: int) -> datetime:
    return datetime.fromtimestamp(seconds, UTC)


def expected(feed: ScriptedFeed, after: datetime, until: datetime) -> list[tuple[datetime, Decimal]]:
    """Return the script's prices in a span."""
    inside = sorted(item for item in feed.prices.items() if after < instant(item[0]) <= until)
    return [(instant(second), price) for second, price in inside]


def collected(pages: list[HistoryPage]) -> list[tuple[datetime, Decimal]]:
    return [(price.effective_from, price.price) for page in pages for price in page.prices]


def assert_joined(pages: list[HistoryPage], after: datetime, until: datetime) -> None:
    """Assert that pages follow each other up to the end, and that each only has prices of its own span."""
    ends = [page.up_to for page in pages]
    assert ends[-1] == until
    for before, page in zip([after, *ends[:-1]], pages, strict=True):
        assert before < page.up_to
        assert all(before < price.effective_from <= page.up_to for price in page.prices)


def test_a_poll_reads_every_feed_exactly(world: World, open_client: Open) -> None:
    bitcoin = deploy_feed(world, "BTC")
    tiny = deploy_feed(world, "TINY", decimals=18)
    bare = deploy_feed(world, "GOLD", "EUR", decimals=0, proxied=False)
    bitcoin.answer("1")
    bitcoin.answer("67012.12345678")
    tiny.answer("0.000000000000000001")
    second = bare.answer("98765432109876543210")
    world.mine()
    client = open_client(bitcoin, tiny, bare)
    assert {(market.market_id, market.base, market.quote, market.is_active) for market in client.markets()} == {
        (bitcoin.address, "BTC", "USD", True),
        (tiny.address, "TINY", "USD", True),
        (bare.address, "GOLD", "EUR", True),
    }
    wanted = [(feed.address, "Market") for feed in (bare, tiny, bitcoin)]
    result = client.poll(wanted)
    assert result.problems == []
    assert result.prices == [
        MarketPrice(bare.address, "Market", instant(second), None, Decimal("98765432109876543210")),
        MarketPrice(tiny.address, "Market", instant(second), None, Decimal("0.000000000000000001")),
        MarketPrice(bitcoin.address, "Market", instant(second), None, Decimal("67012.12345678")),
    ]
    assert client.poll([]).prices == []


def test_invalid_prices_are_problems_and_the_others_are_stored(world: World, open_client: Open) -> None:
    good, empty, negative, zero, incomplete, future = (
        deploy_feed(world, symbol) for symbol in ("GOOD", "EMPTY", "NEG", "ZERO", "CARRY", "LATER")
    )
    nothing = ScriptedFeed(world, "NOT", "USD", 8, "0x" + "ab" * 20, [])
    long = deploy_feed(world, "LONG", decimals=30)
    now = world.node.block_time(world.node.head())
    good.answer("5")
    negative.write_round(1, -1, now)
    zero.write_round(1, 0, now)
    incomplete.write_round(1, 100, now)
    incomplete.write_round(2, 100, now, answered_in=1)
    future.write_round(1, 100, now + 10_000)
    long.write_round(1, 1, now)
    world.mine()
    feeds_wanted = (good, empty, negative, zero, incomplete, future, nothing, long)
    client = open_client(*feeds_wanted)
    result = client.poll(
        [*((feed.address, "Market") for feed in feeds_wanted), (good.address, "Bid"), ("0x0", "Market")]
    )
    assert [(price.market_id, price.price) for price in result.prices] == [(good.address, Decimal(5))]
    details = {(problem.market_id, problem.price_type): problem.detail for problem in result.problems}
    assert len(details) == len(result.problems) == 9
    for feed, words in (
        (empty, "no round"),
        (negative, "not positive"),
        (zero, "not positive"),
        (incomplete, "not complete"),
        (future, "in the future"),
        (nothing, "no round"),
        (long, "more than 18 decimals"),
    ):
        assert words in details[feed.address, "Market"]
    assert "no Bid prices" in details[good.address, "Bid"]
    assert "no such feed" in details["0x0", "Market"]
    assert {market.base: market.is_active for market in client.markets()}["EMPTY"] is False


_QUICK = ("unknown words", "a closed connection", "null")


def _another_word(result: str) -> str:
    return "0x" + "00" * ((len(result) - 2) // 2)


@pytest.mark.proof("a feed that cannot be read hides no price of another feed")
@pytest.mark.parametrize(
    "way", [pytest.param(way, marks=[pytest.mark.release] * (way not in _QUICK), id=way) for way in WAYS]
)
def test_a_feed_that_cannot_be_read_hides_no_other(
    way: str, world: World, open_client: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pacing, "BASE_SECONDS", 0.01)
    spoilt, *others = (deploy_feed(world, symbol) for symbol in ("BAD", "ONE", "TWO"))
    for number, feed in enumerate((spoilt, *others)):
        feed.answer(str(number + 1))
    world.mine()
    wanted = [(feed.address, "Market") for feed in (spoilt, *others)]
    with late_answers_time_out(), FaultProxy(world.node.url) as proxy:
        client = open_client(spoilt, *others, url=proxy.url)
        about = {"eth_call": lambda feed, params: feed.address[2:] in str(params)}
        proxy.inject(*faults(spoilt, about, way, _another_word))
        result = client.poll(wanted)
        assert [price.price for price in result.prices if price.market_id != spoilt.address] == [2, 3]
        told = {problem.market_id: problem.detail for problem in result.problems}
        if way in ("late once", "works the second time"):
            result = client.poll(wanted)
            assert result.problems == []
        else:
            assert told.keys() == {spoilt.address}
            assert told[spoilt.address]
        assert {market.market_id for market in client.markets()} == {address for address, _ in wanted}
        proxy.clear()
        assert [price.price for price in client.poll(wanted).prices] == [1, 2, 3]


def test_a_price_is_never_later_than_our_own_clock(world: World, open_client: Open) -> None:
    feed = deploy_feed(world, "BTC")
    second = feed.answer("5")
    world.mine()
    early = open_client(feed, now=lambda: instant(second) - timedelta(microseconds=1))
    assert "in the future" in early.poll([(feed.address, "Market")]).problems[0].detail
    assert open_client(feed, now=lambda: instant(second)).poll([(feed.address, "Market")]).problems == []


@pytest.mark.proof("the history of a price feed has every round")
@pytest.mark.parametrize("proxied", [True, False])
def test_history_is_every_round_of_the_span(world: World, open_client: Open, proxied: bool) -> None:
    feed = deploy_feed(world, "ETH", proxied=proxied)
    rounds = [f"{2000 + number}.{number:08}" for number in range(2_300)]
    feed.answer_many(price_path(rounds, START - timedelta(days=30), 600))
    world.mine()
    client = open_client(feed)
    times = sorted(map(instant, feed.prices))
    for after, until in (
        (times[0] - timedelta(days=1), START),  # all
        (times[700], times[1900]),  # first excluded, last included
        (times[1200], times[1201]),
        (times[1200], times[1201] - timedelta(microseconds=1)),  # nothing between
        (times[10] + timedelta(seconds=1), times[2200] + timedelta(microseconds=5)),
        (times[-1], START),
        (times[0] - timedelta(days=9), times[0] - timedelta(days=1)),
    ):
        pages = list(client.history(feed.address, "Market", "round", after, until))
        assert collected(pages) == expected(feed, after, until)
        assert_joined(pages, after, until)
    assert client.poll([(feed.address, "Market")]).prices[0].price == feed.at(START)


def test_history_resumes_where_a_page_ended(world: World, open_client: Open) -> None:
    feed = deploy_feed(world, "ETH")
    feed.answer_many(price_path([str(number + 1) for number in range(1_300)], START - timedelta(days=30), 60))
    world.mine()
    client = open_client(feed)
    after = START - timedelta(days=31)
    first = next(client.history(feed.address, "Market", "round", after, START))
    rest = list(client.history(feed.address, "Market", "round", first.up_to, START))
    assert 0 < len(first.prices) < len(feed.prices)
    assert collected([first, *rest]) == expected(feed, after, START)


def test_any_page_may_be_the_last_before_a_kill(
    world: World, open_client: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(feeds, "ROUNDS_PER_BATCH", 4)
    feed = deploy_feed(world, "ETH")
    second = int(START.timestamp()) - 1_000
    times = [*range(0, 30, 3), 28, 28, 28, 28, 28, 29, *range(30, 60, 2)]
    skipped = 0
    for number, offset in enumerate(times, start=1):
        skipped += 6 if number == 5 else 0  # ids without a round: more than a batch of them
        feed.write_round(number + skipped, number * 10**8, second + offset)
    world.mine()
    client = open_client(feed)
    after, pages = instant(second - 5), list[HistoryPage]()
    while after < START:
        page = next(client.history(feed.address, "Market", "round", after, START))
        assert_joined([page], after, page.up_to)
        pages.append(page)
        after = page.up_to
    answered = {offset: number for number, offset in enumerate(times, start=1)}
    assert collected(pages) == [(instant(second + offset), Decimal(answered[offset])) for offset in sorted(answered)]
    assert len(pages) > 5


def test_rounds_with_wrong_times_hide_no_others(
    world: World, open_client: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(feeds, "ROUNDS_PER_BATCH", 4)
    feed = deploy_feed(world, "ETH")
    second = int(START.timestamp()) - 1_000
    for number in range(1, 21):
        feed.write_round(number, number * 10**8, second + number)
    feed.write_round(7, 10**8, second + 10**8)  # from the future
    feed.write_round(15, 10**8, second + 2)  # older than those before it
    world.mine()
    pages = list(open_client(feed).history(feed.address, "Market", "round", instant(second), START))
    expected_numbers = [number for number in range(1, 21) if number not in (7, 15)]
    assert collected(pages) == [(instant(second + number), Decimal(number)) for number in expected_numbers]
    assert [problem.detail for page in pages for problem in page.problems] == [
        "round 18446744073709551631: updatedAt is before that of an earlier round"
    ]
    assert_joined(pages, instant(second), START)


@pytest.mark.ci
def test_the_search_reads_little_of_a_long_history(
    world: World, open_client: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    feed = deploy_feed(world, "ETH")
    feed.answer_many(price_path(["7"] * 20_000, START - timedelta(days=30), 60))
    world.mine()
    read: list[int] = []
    real = feeds.read_state

    def counted(client: object, calls: list[object], *rest: object) -> object:
        read.append(len(calls))
        return real(client, calls, *rest)  # type: ignore[arg-type]

    monkeypatch.setattr(feeds, "read_state", counted)
    after = START - timedelta(days=20)
    until = after + timedelta(hours=2)
    pages = list(open_client(feed).history(feed.address, "Market", "round", after, until))
    assert collected(pages) == expected(feed, after, until)
    assert sum(read) < 1_500


def test_phases_follow_each_other_and_do_not_overlap(world: World, open_client: Open) -> None:
    feed = deploy_feed(world, "LINK")
    hours = [START - timedelta(hours=back) for back in range(40, 0, -1)]
    seconds = [int(hour.timestamp()) for hour in hours]
    feed.answer_many({second: f"1{number}" for number, second in enumerate(seconds[:20])})
    # The old aggregator keeps answering for five hours after the new one has begun.
    overlap = dict.fromkeys(seconds[15:20], "999")
    feed.prices = {second: price for second, price in feed.prices.items() if second < seconds[15]}
    assert overlap
    feed.begin_phase()
    feed.answer_many({second: f"2{number}" for number, second in enumerate(seconds[15:30], start=15)})
    feed.begin_phase()
    feed.answer_many({second: f"3{number}" for number, second in enumerate(seconds[30:], start=30)})
    world.mine()
    client = open_client(feed)
    for after, until in ((hours[0] - timedelta(hours=1), START), (hours[3], hours[17]), (hours[22], hours[35])):
        pages = list(client.history(feed.address, "Market", "round", after, until))
        assert collected(pages) == expected(feed, after, until)
        assert all(page.problems == () for page in pages)


def test_of_rounds_in_one_second_the_last_counts(
    world: World, open_client: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(feeds, "ROUNDS_PER_BATCH", 3)  # so that a second's rounds are in two batches
    feed = deploy_feed(world, "FAST")
    second = int(START.timestamp()) - 1_000
    for number, offset in enumerate((0, 1, 2, 2, 2, 2, 3, 4, 4, 5), start=1):
        feed.write_round(number, number * 10**8, second + offset)
    world.mine()
    pages = list(open_client(feed).history(feed.address, "Market", "round", instant(second - 1), START))
    assert collected(pages) == [
        (instant(second + offset), Decimal(price))
        for offset, price in ((0, 1), (1, 2), (2, 6), (3, 7), (4, 9), (5, 10))
    ]


def test_rounds_without_an_answer_are_named_and_hide_no_others(
    world: World, open_client: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(feeds, "ROUNDS_PER_BATCH", 5)
    monkeypatch.setattr(feeds, "PROBES", 3)
    feed = deploy_feed(world, "GAPS")
    second = int(START.timestamp()) - 10_000
    present = [*range(20, 60), *range(100, 140)]  # the first ones, and some between, were never answered
    for number in present:
        feed.write_round(number, number * 10**8, second + number)
    feed.write_round(120, -5, second + 120)
    world.mine()
    client = open_client(feed)
    for low, high in ((0, 200), (30, 110), (57, 58), (99, 100), (61, 101), (118, 122)):
        pages = list(client.history(feed.address, "Market", "round", instant(second + low), instant(second + high)))
        answered = [number for number in present if low < number <= high and number != 120]
        assert collected(pages) == [(instant(second + number), Decimal(number)) for number in answered]
        assert_joined(pages, instant(second + low), instant(second + high))
    details = [problem.detail for page in pages for problem in page.problems]
    assert any("not positive" in detail for detail in details)
    everything = list(client.history(feed.address, "Market", "round", instant(second), START))
    assert any("have no answer" in problem.detail for page in everything for problem in page.problems)


def test_errors_name_what_to_do(world: World, open_client: Open, tmp_path: Path) -> None:
    feed = deploy_feed(world, "BTC")
    client = open_client(feed)
    with pytest.raises(MarketUnknown, match="0xabc"):
        next(client.history("0xabc", "Market", "round", START, START + timedelta(days=1)))
    with pytest.raises(ValueError, match="no history of Trade in steps of 1d"):
        next(client.history(feed.address, "Trade", "1d", START, START + timedelta(days=1)))
    with pytest.raises(WrongChain):
        open_client(feed, chain_id=5).poll([(feed.address, "Market")])
    world.node.stop()
    source = feeds_of(network_of(tmp_path, world.node.url, feed))
    with pytest.raises(SourceRefused, match="not defined"):
        open_price_client(source, None)
    local = LocalNetwork("local", None)
    (tmp_path / "networks.toml").write_text(local.as_toml() + feed.definition())
    disabled = load_networks(tmp_path / "networks.toml", {})["local"]
    with pytest.raises(SourceRefused, match="set LOCAL_RPC_URL"):
        open_price_client(source, disabled)


def test_a_node_that_is_down_is_an_error_and_no_empty_answer(
    world: World, open_client: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    feed = deploy_feed(world, "BTC")
    client = open_client(feed)
    monkeypatch.setattr(pacing, "BASE_SECONDS", 0.01)
    world.node.stop()
    with pytest.raises(NodeUnreachable):
        client.poll([(feed.address, "Market")])
