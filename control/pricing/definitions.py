"""Preconfigured price sources: reads and checks the TOML file that says which exist and how to ask them.

A network that defines price feeds is a source too. Manual sources are tenants' own, in the control store; asking a
source is extraction's.
"""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any

from control.networks.definitions import Network, load_networks
from control.settings import Settings
from control.toml_files import Label, Name, Table, is_http_url, one_of, read_toml, within

ADAPTERS = ("ccxt", "feeds", "reference-rates")
"""How sources are asked; extraction has one module for each."""

POLLED_TYPES = ("Ask", "Bid", "Trade", "Market")
"""Price types that a preconfigured source can supply. NAV is manual."""

GRANULARITIES = {
    "round": 0,
    "1m": 60,
    "5m": 5 * 60,
    "15m": 15 * 60,
    "30m": 30 * 60,
    "1h": 60 * 60,
    "1d": 24 * 60 * 60,
}
"""Steps of history, finest first, with the seconds between two prices; windows begin at whole multiples, in UTC.

`round` is a feed's own irregular step. A week is no granularity: exchanges begin theirs on different days.
"""
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,99}")


class PriceSourcesError(Exception):
    """The definitions cannot be used; the message names file, source and field, and the fix."""


@dataclass(frozen=True, slots=True)
class PriceSource:
    """One preconfigured source as defined.

    Attributes:
        id: `src_<name of the definition>`, or `src_feeds-<network>`.
        name: for people.
        adapter: one of `ADAPTERS`.
        exchange: of adapter `ccxt`, the exchange's name there.
        network: for adapter `feeds`, the network of the feeds.
        price_types: types that polling supplies. Ask and Bid are the best open offers, Trade is the last trade. Market
            is the source's own price (a feed's answer, a reference rate), which no exchange supplies.
        history_types: types that discovery supplies.
        granularities: steps of its history, finest first; of `GRANULARITIES`.
        requests_per_second: most requests, over all that a client asks; None: as the node of the feeds takes them.
        timeout_seconds: to connect, and to wait for the next bytes.
        max_attempts: of one request, where the source fails or wants fewer requests.
        poll_seconds: shortest time between two polls, about the time between two new prices.
        page_candles: most candles in one answer of history; None: it answers with its newest alone, all at once.
        history_candles: how many candles back from now its history reaches at any granularity; None: to its beginning.
        url: asked in place of the source's own address; for a gateway, and for tests.
        options: of adapter `ccxt`, ccxt's own options of the exchange.
        credentials: field of the adapter and the environment variable that holds its value; each is needed.
    """

    id: str
    name: str
    adapter: str
    exchange: str | None
    network: str | None
    price_types: tuple[str, ...]
    history_types: tuple[str, ...]
    granularities: tuple[str, ...]
    requests_per_second: float | None
    timeout_seconds: float
    max_attempts: int
    poll_seconds: int
    page_candles: int | None
    history_candles: int | None
    url: str | None = field(default=None, repr=False)  # may hold a key
    options: Mapping[str, Any] = field(default_factory=dict)
    credentials: tuple[tuple[str, str], ...] = ()


def price_sources_in_force(settings: Settings) -> dict[str, PriceSource]:
    """Load the definitions: those of the file, then the feeds of each network that defines some.

    Returns:
        Sources by id, in the order of the files. A network that is disabled keeps its source: pairs may name it.

    Raises:
        PriceSourcesError: the file of sources is wrong; names file, source and field.
        NetworksError: the file of networks is wrong.
    """
    sources = load_price_sources(settings.price_sources_file)
    for network in load_networks(settings.networks_file).values():
        if network.feeds:
            feeds = feeds_of(network)
            if feeds.id in sources:
                name = feeds.id.removeprefix("src_")
                raise PriceSourcesError(
                    f"{settings.price_sources_file}: source {name!r}: field 'name': is the name of the feeds of "
                    f"network {network.name!r}; rename it"
                )
            sources[feeds.id] = feeds
    return sources


def feeds_of(network: Network) -> PriceSource:
    """Return the source that a network's feeds are; its node is paced as for everything else that it is asked."""
    return PriceSource(
        id=f"src_feeds-{network.name}",
        name=f"{network.display_name} price feeds",
        adapter="feeds",
        exchange=None,
        network=network.name,
        price_types=("Market",),
        history_types=("Market",),
        granularities=("round",),
        requests_per_second=None,
        timeout_seconds=30.0,
        # A feed that cannot be read is searched among the others while the poll waits.
        max_attempts=3,
        poll_seconds=network.poll_seconds,
        page_candles=None,
        history_candles=None,
    )


class _Source(Table, frozen=True):
    name: Name
    display_name: Label
    adapter: Annotated[str, one_of(tuple(name for name in ADAPTERS if name != "feeds"))]  # feeds are their network's
    price_types: list[Annotated[str, one_of(POLLED_TYPES)]]
    history_types: list[Annotated[str, one_of(POLLED_TYPES)]]
    granularities: list[Annotated[str, one_of(tuple(GRANULARITIES))]]
    requests_per_second: Annotated[float, within(0.01, 1_000)]
    exchange: Name | None = None
    timeout_seconds: Annotated[float, within(0.1, 300)] = 10.0
    max_attempts: Annotated[int, within(1, 20)] = 4
    poll_seconds: Annotated[int, within(1, 86_400)] = 1
    page_candles: Annotated[int, within(1, 10_000)] | None = None
    history_candles: Annotated[int, within(1, 1_000_000)] | None = None
    url: str | None = None
    options: dict[str, Any] = {}
    credentials: dict[str, str] = {}

    def __post_init__(self) -> None:
        if self.adapter == "ccxt" and self.exchange is None:
            raise ValueError("field 'exchange': is missing; add the exchange's name in ccxt")
        if self.adapter != "ccxt" and (self.exchange is not None or self.options):
            raise ValueError("field 'exchange' or 'options': belongs to adapter 'ccxt'; remove it")
        if bool(self.history_types) != bool(self.granularities):
            raise ValueError("field 'granularities': belongs together with 'history_types'; set both or neither")
        if self.url is not None and not is_http_url(self.url):
            # Not named: it may hold a key.
            raise ValueError("field 'url': is not an http:// or https:// address; correct it")
        for key, variable in self.credentials.items():
            if _VARIABLE.fullmatch(variable) is None:
                # Not named: it may be the value.
                place = f"field 'credentials': field {key!r}"
                raise ValueError(f"{place}: is not the name of an environment variable; write the name, not the value")


class _File(Table, frozen=True):
    source: list[_Source] = []


def load_price_sources(path: Path) -> dict[str, PriceSource]:
    """Read and check a file of source definitions.

    Returns:
        Sources by id, in the order of the file.

    Raises:
        PriceSourcesError: unreadable file, malformed TOML, unknown or missing or malformed field, duplicate name.
    """
    sources: dict[str, PriceSource] = {}
    for entry in read_toml(path, "LEDGERMART_PRICE_SOURCES", _File, PriceSourcesError).source:
        source = _price_source(entry)
        if source.id in sources:
            raise PriceSourcesError(f"{path}: source {entry.name!r}: field 'name': is used twice; rename one")
        sources[source.id] = source
    return sources


def _price_source(entry: _Source) -> PriceSource:
    return PriceSource(
        id=f"src_{entry.name}",
        name=entry.display_name,
        adapter=entry.adapter,
        exchange=entry.exchange,
        network=None,
        price_types=_ordered(entry.price_types, POLLED_TYPES),
        history_types=_ordered(entry.history_types, POLLED_TYPES),
        granularities=_ordered(entry.granularities, GRANULARITIES),
        requests_per_second=entry.requests_per_second,
        timeout_seconds=entry.timeout_seconds,
        max_attempts=entry.max_attempts,
        poll_seconds=entry.poll_seconds,
        page_candles=entry.page_candles,
        history_candles=entry.history_candles,
        url=None if entry.url is None else entry.url.rstrip("/"),
        options=entry.options,
        credentials=tuple(entry.credentials.items()),
    )


def _ordered(words: list[str], known: Iterable[str]) -> tuple[str, ...]:
    return tuple(word for word in known if word in words)
