"""Network definitions: reads and checks the TOML file that says which networks exist and how to reach them.

Probing a node (is it up, is it the right chain) does not go here; that is extraction's.
"""

import os
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import Any

from control import toml_tables as toml
from control.networks.addresses import InvalidAddress
from control.networks.families import FAMILIES, codec_for

MULTICALL3_ADDRESS = "0xca11bde05977b3631167028862be2a173976ca11"
"""Multicall3 at the address it has on almost every EVM network. Source: https://www.multicall3.com/"""

_NAME = re.compile(r"[a-z0-9][a-z0-9-]{0,62}")
_VARIABLE = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]*)\}")
_LARGEST_CHAIN_ID = 2**53 - 1  # an id beyond it would lose digits in JSON clients


class NetworksError(Exception):
    """The definitions cannot be used; the message names file, network and field, and the fix."""


class NativeMode(StrEnum):
    """How a wallet's native value is collected: from every block's transactions, or from its balances alone."""

    FULL = "full"
    BALANCE_ONLY = "balance-only"


@dataclass(frozen=True, slots=True)
class CommonToken:
    """A well-known contract of a network; `address` in stored form."""

    symbol: str
    address: str
    decimals: int


@dataclass(frozen=True, slots=True)
class PriceFeed:
    """A contract of a network that answers with the price of one asset in another; `address` in stored form.

    Its number of decimals is not defined here: the contract itself tells it.
    """

    address: str
    base: str
    quote: str


@dataclass(frozen=True, slots=True)
class Network:
    """One network as defined; `disabled_reason` is set exactly when it is not enabled."""

    name: str
    display_name: str
    family: str
    chain_id: int
    is_testnet: bool
    rpc_urls: tuple[str, ...] = field(repr=False)  # may hold provider keys
    is_enabled: bool
    disabled_reason: str | None
    native_symbol: str
    native_decimals: int
    native: NativeMode
    finality_depth: int
    poll_seconds: int
    tokens: tuple[CommonToken, ...]
    multicall_address: str | None
    max_log_range: int | None
    feeds: tuple[PriceFeed, ...] = ()
    block_milliseconds: int | None = None


def load_networks(path: Path, environ: Mapping[str, str] | None = None) -> dict[str, Network]:
    """Read and check a file of network definitions.

    `${VAR}` in an rpc entry is replaced from the environment; an entry whose variable is unset or empty is dropped,
    and a network left without one is disabled, with a reason that names the variables.

    Returns:
        Networks by name, in the order of the file.

    Raises:
        NetworksError: unreadable file, malformed TOML, unknown or missing or malformed field, duplicate name.
    """
    variables = os.environ if environ is None else environ
    top = toml.read_toml(path, "LEDGERMART_NETWORKS", NetworksError)
    entries = top.take("network", toml.tables)
    top.finish()
    networks: dict[str, Network] = {}
    for number, entry in enumerate(entries, start=1):
        network = _read_network(top.within(entry, f"network {entry.get('name', f'number {number}')!r}"), variables)
        if network.name in networks:
            raise NetworksError(f"{path}: network {network.name!r}: field 'name': is used twice; rename one")
        networks[network.name] = network
    return networks


def _read_network(table: toml.Table, variables: Mapping[str, str]) -> Network:
    name = table.take("name", toml.matching(_NAME, "lower-case letters, digits and hyphens, at most 63"))
    family = table.take("family", toml.one_of(FAMILIES))
    rpc_urls, unset = _read_rpc_urls(table, variables)
    native = table.within(table.take("native", toml.table), "field 'native'")
    native_symbol, native_decimals = native.take("symbol", toml.label), native.take("decimals", toml.integer(0, 255))
    native_mode = NativeMode(native.take("collect", toml.one_of(tuple(NativeMode)), default=NativeMode.FULL))
    native.finish()
    network = Network(
        name=name,
        display_name=table.take("display_name", toml.label),
        family=family,
        chain_id=table.take("chain_id", toml.integer(1, _LARGEST_CHAIN_ID)),
        is_testnet=table.take("is_testnet", toml.boolean, default=False),
        rpc_urls=rpc_urls,
        is_enabled=bool(rpc_urls),
        disabled_reason=None if rpc_urls else _disabled_reason(unset),
        native_symbol=native_symbol,
        native_decimals=native_decimals,
        native=native_mode,
        finality_depth=table.take("finality_depth", toml.integer(0, 1_000_000)),
        poll_seconds=table.take("poll_seconds", toml.integer(1, 86_400)),
        tokens=_read_tokens(table, family),
        multicall_address=table.take("multicall_address", _address_or_none(family), default=MULTICALL3_ADDRESS),
        max_log_range=table.take("max_log_range", toml.integer(1, 1_000_000_000), default=None),
        feeds=_read_feeds(table, family),
        block_milliseconds=table.take("block_milliseconds", toml.integer(1, 86_400_000), default=None),
    )
    table.finish()
    return network


def _read_rpc_urls(table: toml.Table, variables: Mapping[str, str]) -> tuple[tuple[str, ...], list[str]]:
    """Return the usable addresses, and the names of unset variables that dropped others."""
    urls: list[str] = []
    unset: list[str] = []
    for entry in table.take("rpc", toml.strings):
        missing = [name for name in _VARIABLE.findall(entry) if not variables.get(name)]
        if missing:
            unset.extend(name for name in missing if name not in unset)
            continue
        url = _VARIABLE.sub(lambda found: variables[found.group(1)], entry)
        if not toml.is_http_url(url):
            # The entry as written is named, not its value: that may hold a provider's key.
            raise table.error("rpc", f"{entry!r} does not give an http:// or https:// address; correct it")
        urls.append(url)
    return tuple(urls), unset


def _disabled_reason(unset: list[str]) -> str:
    if not unset:
        return "no node address is defined: add one to rpc"
    return f"no node address: set {' or '.join(unset)}"


def _read_tokens(table: toml.Table, family: str) -> tuple[CommonToken, ...]:
    tokens: list[CommonToken] = []
    for number, entry in enumerate(table.take("token", toml.tables, default=[]), start=1):
        row = table.within(entry, f"token {entry.get('symbol', f'number {number}')!r}")
        token = CommonToken(
            symbol=row.take("symbol", toml.label),
            address=row.take("address", _address(family)),
            decimals=row.take("decimals", toml.integer(0, 255)),
        )
        row.finish()
        if any(token.address == other.address for other in tokens):
            raise row.error("address", "is listed twice; keep one")
        tokens.append(token)
    return tuple(tokens)


def _read_feeds(table: toml.Table, family: str) -> tuple[PriceFeed, ...]:
    feeds: list[PriceFeed] = []
    for number, entry in enumerate(table.take("feed", toml.tables, default=[]), start=1):
        row = table.within(entry, f"feed number {number}")
        feed = PriceFeed(
            address=row.take("address", _address(family)),
            base=row.take("base", toml.label),
            quote=row.take("quote", toml.label),
        )
        row.finish()
        if any(feed.address == other.address for other in feeds):
            raise row.error("address", "is listed twice; keep one")
        if any((feed.base, feed.quote) == (other.base, other.quote) for other in feeds):
            raise row.error("base", f"{feed.base}/{feed.quote} has two feeds; keep one")
        feeds.append(feed)
    return tuple(feeds)


def _address(family: str) -> Callable[[Any], str]:
    def read(value: Any) -> str:
        try:
            return codec_for(family).parse(toml.string(value))
        except InvalidAddress as error:
            raise ValueError(f"is not right: {error}") from error

    return read


def _address_or_none(family: str) -> Callable[[Any], str | None]:
    """An empty text says that the network has no such contract; TOML has no null."""
    read_address = _address(family)
    return lambda value: None if value == "" else read_address(value)
