"""The demo's prices: on-chain feeds and a manual net asset value, from configuration to comparison."""

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

from rich.console import Console

from control.settings import load_settings
from tests.chain.world import Token
from tests.e2e.checks import NATIVE, NATIVE_DECIMALS, Chain, Verdict
from tests.e2e.client import ApiClient
from tests.e2e.price_checks import (
    PastMoment,
    Quote,
    Timeline,
    check_activity_values,
    check_balances_then,
    check_cap_table_then,
    check_cap_table_values,
    check_capitalization,
    check_price_history,
    check_value_history,
    past_moments,
    shown_points,
    windows_of,
)
from tests.e2e.scenario import FEED_DECIMALS, Scenario

FEED_SOURCE = "src_feeds-local"
_WINDOW = timedelta(hours=4)
_MAX_AGE = timedelta(days=2)
_NAV_MAX_AGE = timedelta(days=35)
_NAVS = ("1.0325", "1.04")
_ACTIVITY_PAGE = 1000
_CHART_WIDTH = 60


@dataclass(frozen=True)
class Pricing:
    """Configured prices: pair ids by symbol, the range of the discoveries, and the manual prices."""

    pairs: Mapping[str, str]
    operations: Sequence[str]
    discovered: tuple[datetime, datetime]
    navs: Sequence[Quote]


def networks_file(folder: Path, scenario: Scenario) -> Path:
    """Write network definitions in which the network `local` has the demo's feeds."""
    text = load_settings({}).networks_file.read_text()
    feeds = "".join(
        f'\n[[network.feed]]\naddress = "{address}"\nbase = "{symbol}"\nquote = "USD"\n'
        for symbol, address in scenario.feeds.items()
    )
    before, name, after = text.partition('name = "local"\n')
    own, following, others = after.partition("\n[[network]]")
    text = before + name + own + feeds + following + others
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / "networks.toml"
    path.write_text(text)
    return path


def set_up(client: ApiClient, scenario: Scenario, tokens: Mapping[str, str], console: Console) -> Pricing:
    """Run the spec's sequences "price a token" and "manual price", and request past prices.

    Args:
        client: the tenant's client.
        scenario: the chain.
        tokens: path of each token in the API, by symbol.
        console: console for messages.
    """
    for symbol, name, item_class in (
        ("USD", "US dollar", "Currency"),
        ("ETH", "Ether", "Cryptocurrency"),
        ("GOLD", "Demo Gold", "Commodity"),
        ("RELIC", "Demo Relic", "Fund"),
    ):
        client.post("/v1/priced-items", {"name": name, "symbol": symbol, "class": item_class})
    pairs = {}
    for symbol in scenario.feeds:
        body = {"pricedAs": symbol, "priceType": "Market", "priceSources": [FEED_SOURCE], "maxAge": "P2D"}
        pairs[symbol] = str(client.post("/v2/pairs", body)["id"])
    navs = _enter_navs(client, scenario)
    pairs["RELIC"] = str(
        client.post("/v2/pairs", {"pricedAs": "RELIC", "priceType": "NAV", "priceSources": [navs[0]]})["id"]
    )
    for symbol in ("GOLD", "RELIC"):
        client.put(f"{tokens[symbol]}/priced-as", {"pricedAs": symbol})
    console.print(f"POST /v1/priced-items, /v2/pairs         {', '.join(f'{symbol}/USD' for symbol in pairs)}")
    console.print("PUT  /v1/tokens/.../priced-as            GOLD by its on-chain feed, RELIC by a manual NAV;")
    console.print("                                         ETH, the native asset, by its feed without a link")
    start, end = scenario.started_at, datetime.now(UTC).replace(microsecond=0)
    operations = []
    for symbol in scenario.feeds:
        body = {"from": _text(start), "to": _text(end), "windowSize": "hour", "multiplier": 4}
        path = f"/v2/pairs/{pairs[symbol]}/prices"
        operations.append(f"{path}/async-operations/{client.post(f'{path}/discovery', body)['id']}")
    console.print(f"POST .../prices/discovery                from {_text(start)} on, in windows of 4 hours")
    return Pricing(pairs, operations, (start, end), navs[1])


def _enter_navs(client: ApiClient, scenario: Scenario) -> tuple[str, list[Quote]]:
    """Enter two values of RELIC, one after the other in time; return their source's id, and the prices."""
    instants = (scenario.started_at + timedelta(days=1), datetime.now(UTC).replace(microsecond=0) - timedelta(hours=1))
    quotes = [Quote(at, Decimal(nav)) for at, nav in zip(instants, _NAVS, strict=True)]
    pair = {"pricedAs": "RELIC", "pricedIn": "USD", "priceType": "NAV"}
    return enter_prices(client, "NAV desk", pair, quotes), quotes


def enter_prices(client: ApiClient, name: str, pair: dict[str, Any], quotes: Sequence[Quote]) -> str:
    """Make a manual price source, enable it and enter the prices of one pair; return the source's id."""
    source = str(client.post("/v2/price-sources", {"name": name})["id"])
    client.patch(f"/v2/price-sources/{source}/enable")
    pair_id = client.post(f"/v2/price-sources/{source}/pairs", pair)["id"]
    path = f"/v2/price-sources/{source}/pairs/{pair_id}/prices"
    for quote in quotes:
        client.post(path, {"price": str(quote.price), "effectiveFrom": _text(quote.effective_from), "note": "demo"})
    return source


def compare(
    client: ApiClient,
    scenario: Scenario,
    pricing: Pricing,
    token: tuple[str, Token],
    wallet: tuple[str, str],
    console: Console,
) -> list[tuple[Verdict, str]]:
    """Read prices and values of one token and one wallet, show them, and check each number.

    Args:
        client: the tenant's client.
        scenario: the chain.
        pricing: the configured prices.
        token: path in the API, and the token, of symbol GOLD.
        wallet: path in the API, and its address.
        console: to show them on.

    Returns:
        Each verdict with its title.
    """
    verdicts: list[tuple[Verdict, str]] = []
    timelines: dict[str, Timeline] = {"RELIC": Timeline(pricing.navs, _NAV_MAX_AGE)}
    for symbol, pair in pricing.pairs.items():
        if symbol in scenario.feeds:
            rows = _history(client, pair)
            points = _points(scenario, symbol)
            windows = windows_of(points, *pricing.discovered, _WINDOW)
            verdicts.append((check_price_history(points, windows, rows), f"prices of {symbol}/USD"))
            timelines[symbol] = Timeline([*windows, *shown_points(rows)], _MAX_AGE)
    priced = {held.address: (held.decimals or 0, timelines[str(held.symbol)]) for held in scenario.tokens
              if held.symbol in timelines}  # fmt: skip
    priced[NATIVE] = (NATIVE_DECIMALS, timelines["ETH"])
    assets = {held.address: (str(held.symbol), held.decimals or 0) for held in scenario.tokens}
    assets[NATIVE] = ("ETH", NATIVE_DECIMALS)

    path, gold = token
    pages = list(client.pages(f"{path}/activities", limit=_ACTIVITY_PAGE))
    verdicts.append((check_activity_values(priced, gold.address, pages), "values of GOLD's activities"))
    pages = list(client.pages(f"{path}/cap-table", limit=_ACTIVITY_PAGE))
    verdicts.append((check_cap_table_values(timelines["GOLD"], gold.decimals or 0, pages), "values of GOLD's holders"))
    answer = client.get(f"{path}/market-capitalization", interval="1d", **_since(scenario))
    now = answer["current"]
    verdicts.append((check_capitalization(scenario.world, gold, timelines["GOLD"], answer), "days of capitalization"))
    days = {row["date"]: row for row in answer["history"]}
    moments = past_moments(scenario.world, answer["history"], answer["asOf"])
    for moment in moments:
        pages = list(client.pages(f"{path}/cap-table", asOf=moment.text, limit=_ACTIVITY_PAGE))
        holders = [row["wallet"] for page in pages for row in page["data"]]
        held = dict(zip(holders, scenario.world.balances_of(gold, holders, moment.block), strict=True))
        truth = scenario.world.total_supply(gold, moment.block), held
        verdict = check_cap_table_then(
            timelines["GOLD"], gold.decimals or 0, moment, truth, pages, days.get(moment.text)
        )
        verdicts.append((verdict, f"GOLD's cap table at {moment.text}"))
    _chart("Market capitalization of GOLD, USD", [(row["date"], row["value"]) for row in answer["history"]], console)
    console.print(f"now {now['value']}: {now['supply']} at {now['price']}")

    verdicts += compare_wallet(client, scenario.world, wallet, assets, priced, (_since(scenario), moments), console)
    return verdicts


def compare_wallet(
    client: ApiClient,
    chain: Chain,
    wallet: tuple[str, str],
    assets: Mapping[str, tuple[str, int]],
    priced: Mapping[str, tuple[int, Timeline]],
    period: tuple[dict[str, str], Sequence[PastMoment] | None],
    console: Console,
) -> list[tuple[Verdict, str]]:
    """Read the values of one wallet, show them, and check each number.

    Args:
        client: the tenant's client.
        chain: the chain.
        wallet: path in the API, and its address.
        assets: symbol and decimals of everything it can hold, by address.
        priced: decimals and prices by address.
        period: the start of the history as a parameter, and past moments to check (None: choose some of the history).
        console: to show them on.

    Returns:
        Each verdict with its title.
    """
    (path, address), (since, moments) = wallet, period
    pages = list(client.pages(f"{path}/activities", limit=_ACTIVITY_PAGE))
    verdicts = [(check_activity_values(priced, None, pages), "values of the wallet's movements")]
    answer = client.get(f"{path}/value-history", interval="1d", **since)
    verdicts.append((check_value_history(chain, address, assets, priced, answer), "days of the wallet's value"))
    days = {row["date"]: row for row in answer["points"]}
    for moment in past_moments(chain, answer["points"], answer["asOf"]) if moments is None else moments:
        then = client.get(f"{path}/balances", asOf=moment.text)
        true = {asset: chain.held(asset, address, moment.block) for asset in assets}
        verdict = check_balances_then(moment, true, then, days.get(moment.text))
        verdicts.append((verdict, f"the wallet at {moment.text}"))
    _chart("Value of Wallet 1, USD", [(row["date"], row["value"]) for row in answer["points"]], console)
    console.print(f"now {answer['totalValue']}, {answer['change24h']} % in 24 hours")
    unpriced = sorted({symbol for row in answer["points"] for symbol in row["unpriced"]})
    console.print(f"left out, because nobody prices them: {', '.join(unpriced) or 'nothing'}")
    return verdicts


def _history(client: ApiClient, pair: str) -> list[dict[str, Any]]:
    pages = client.pages(f"/v2/pairs/{pair}/prices/history", priceSource=FEED_SOURCE, limit=_ACTIVITY_PAGE)
    return [row for page in pages for row in page["data"]]


def _points(scenario: Scenario, symbol: str) -> list[Quote]:
    return [
        Quote(datetime.fromtimestamp(updated_at, UTC), Decimal(answer).scaleb(-FEED_DECIMALS))
        for updated_at, answer in scenario.rounds[symbol]
    ]


def _since(scenario: Scenario) -> dict[str, str]:
    return {"from": _text(scenario.started_at)}


def _text(instant: datetime) -> str:
    return f"{instant:%Y-%m-%dT%H:%M:%SZ}"


def _chart(title: str, points: Sequence[tuple[str, str | None]], console: Console) -> None:
    """Draw a bar from zero for each day with a value. Bars are rounded; the printed numbers are exact."""
    console.print(f"\n{title}")
    greatest = max((Decimal(value) for _, value in points if value is not None), default=Decimal(1)) or Decimal(1)
    for day, value in points:
        if value is None:
            console.print(f"  {day}  no value")
            continue
        length = int(Decimal(value) / greatest * _CHART_WIDTH * 8)
        bar = "█" * (length // 8) + ("", *"▏▎▍▌▋▊▉")[length % 8]
        console.print(f"  {day}  [cyan]{bar:{_CHART_WIDTH}}[/] {Decimal(value):>22,.2f}")


def wait_for(
    client: ApiClient, operations: Sequence[str], limit_seconds: float, show: Callable[[int, int], None]
) -> list[dict[str, Any]]:
    """Wait until every operation has succeeded, as long as they make progress.

    Args:
        client: the tenant's client.
        operations: paths of the operations.
        limit_seconds: longest wait without progress.
        show: called with the numbers of succeeded and of all operations.

    Returns:
        Operations that failed or have not succeeded at the limit; failed ones have the reason in `error`.
    """
    known: list[tuple[str, Any]] = []
    deadline = 0.0
    while True:
        answers = [client.get(path) for path in operations]
        left = [answer for answer in answers if answer["status"] != "Succeeded"]
        show(len(answers) - len(left), len(answers))
        if (found := [(answer["status"], answer["progress"]) for answer in answers]) != known:
            known, deadline = found, time.monotonic() + limit_seconds
        if not left or time.monotonic() > deadline or any(answer["status"] == "Failed" for answer in left):
            return left
        time.sleep(1)
