"""Network definitions: reads and checks the TOML file that says which networks exist and how to reach them.

Probing a node (is it up, is it the right chain) does not go here; that is extraction's.
"""

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import Annotated

from control.networks.addresses import InvalidAddress
from control.networks.families import FAMILIES, codec_for
from control.toml_files import Label, Name, Table, is_http_url, one_of, read_toml, within

MULTICALL3_ADDRESS = "0xca11bde05977b3631167028862be2a173976ca11"
"""Multicall3 at the address it has on almost every EVM network. Source: https://www.multicall3.com/"""

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


class _Token(Table, frozen=True):
    symbol: Label
    address: str
    decimals: Annotated[int, within(0, 255)]


class _Feed(Table, frozen=True):
    address: str
    base: Label
    quote: Label


class _Native(Table, frozen=True):
    symbol: Label
    decimals: Annotated[int, within(0, 255)]
    collect: Annotated[str, one_of(tuple(NativeMode))] = NativeMode.FULL


class _Network(Table, frozen=True):
    name: Name
    display_name: Label
    family: Annotated[str, one_of(FAMILIES)]
    chain_id: Annotated[int, within(1, _LARGEST_CHAIN_ID)]
    rpc: list[str]
    native: _Native
    finality_depth: Annotated[int, within(0, 1_000_000)]
    poll_seconds: Annotated[int, within(1, 86_400)]
    is_testnet: bool = False
    token: list[_Token] = []
    multicall_address: str = MULTICALL3_ADDRESS
    max_log_range: Annotated[int, within(1, 1_000_000_000)] | None = None
    feed: list[_Feed] = []
    block_milliseconds: Annotated[int, within(1, 86_400_000)] | None = None


class _File(Table, frozen=True):
    network: list[_Network]


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
    networks: dict[str, Network] = {}
    for entry in read_toml(path, "LEDGERMART_NETWORKS", _File, NetworksError).network:
        try:
            if entry.name in networks:
                raise ValueError("field 'name': is used twice; rename one")
            networks[entry.name] = _network(entry, variables)
        except ValueError as error:
            raise NetworksError(f"{path}: network {entry.name!r}: {error}") from error
    return networks


def _network(entry: _Network, variables: Mapping[str, str]) -> Network:
    rpc_urls, unset = _rpc_urls(entry.rpc, variables)
    return Network(
        name=entry.name,
        display_name=entry.display_name,
        family=entry.family,
        chain_id=entry.chain_id,
        is_testnet=entry.is_testnet,
        rpc_urls=rpc_urls,
        is_enabled=bool(rpc_urls),
        disabled_reason=None if rpc_urls else _disabled_reason(unset),
        native_symbol=entry.native.symbol,
        native_decimals=entry.native.decimals,
        native=NativeMode(entry.native.collect),
        finality_depth=entry.finality_depth,
        poll_seconds=entry.poll_seconds,
        tokens=_tokens(entry.token, entry.family),
        # An empty text says that the network has no such contract; TOML has no null.
        multicall_address=_address(entry.family, entry.multicall_address, "field 'multicall_address'")
        if entry.multicall_address
        else None,
        max_log_range=entry.max_log_range,
        feeds=_feeds(entry.feed, entry.family),
        block_milliseconds=entry.block_milliseconds,
    )


def _rpc_urls(entries: list[str], variables: Mapping[str, str]) -> tuple[tuple[str, ...], list[str]]:
    """Return the usable addresses, and the names of unset variables that dropped others."""
    urls: list[str] = []
    unset: list[str] = []
    for entry in entries:
        missing = [name for name in _VARIABLE.findall(entry) if not variables.get(name)]
        if missing:
            unset.extend(name for name in missing if name not in unset)
            continue
        url = _VARIABLE.sub(lambda found: variables[found.group(1)], entry)
        if not is_http_url(url):
            # The entry as written is named, not its value: that may hold a provider's key.
            raise ValueError(f"field 'rpc': {entry!r} does not give an http:// or https:// address; correct it")
        urls.append(url)
    return tuple(urls), unset


def _disabled_reason(unset: list[str]) -> str:
    if not unset:
        return "no node address is defined: add one to rpc"
    return f"no node address: set {' or '.join(unset)}"


def _tokens(entries: list[_Token], family: str) -> tuple[CommonToken, ...]:
    tokens: list[CommonToken] = []
    for entry in entries:
        place = f"token {entry.symbol!r}: field 'address'"
        token = CommonToken(entry.symbol, _address(family, entry.address, place), entry.decimals)
        if any(token.address == other.address for other in tokens):
            raise ValueError(f"{place}: is listed twice; keep one")
        tokens.append(token)
    return tuple(tokens)


def _feeds(entries: list[_Feed], family: str) -> tuple[PriceFeed, ...]:
    feeds: list[PriceFeed] = []
    for number, entry in enumerate(entries, start=1):
        place = f"feed number {number}: field"
        feed = PriceFeed(_address(family, entry.address, f"{place} 'address'"), entry.base, entry.quote)
        if any(feed.address == other.address for other in feeds):
            raise ValueError(f"{place} 'address': is listed twice; keep one")
        if any((feed.base, feed.quote) == (other.base, other.quote) for other in feeds):
            raise ValueError(f"{place} 'base': {feed.base}/{feed.quote} has two feeds; keep one")
        feeds.append(feed)
    return tuple(feeds)


def _address(family: str, text: str, place: str) -> str:
    try:
        return codec_for(family).parse(text)
    except InvalidAddress as error:
        raise ValueError(f"{place}: is not right: {error}") from error
