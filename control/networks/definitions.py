"""Network definitions: reads and checks the TOML file that says which networks exist and how to reach them.

Probing a node (is it up, is it the right chain) does not go here; that is extraction's.
"""

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated

import msgspec

from control.networks.addresses import InvalidAddress, WalletAddress
from control.networks.data_sets import DataSet, check_data_set
from control.networks.families import (
    FAMILIES,
    AnyTable,
    WalletKeys,
    codec_for,
    family_of_table,
    parse_address,
    parse_keys,
    parse_wallet,
)
from control.networks.tables import DataSetTable, FamilyDefinition, FeedTable, NetworkTable, TokenTable
from control.networks.tables import NativeMode as NativeMode
from control.networks.tables import Verification as Verification
from control.toml_files import Table, is_http_url, is_public_url, one_of, read_toml

NATIVE = "native"
"""The address, in stored form, of the asset that pays a network's fees."""

_VARIABLE = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]*)\}")


class NetworksError(Exception):
    """The definitions cannot be used; the message names file, network and field, and the fix."""


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
    own: FamilyDefinition
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
    feeds: tuple[PriceFeed, ...] = ()
    block_milliseconds: int | None = None
    max_requests_per_day: int | None = None
    explorer: str | None = None
    verification: Verification | None = None
    data_sets: tuple[DataSet, ...] = ()

    @property
    def chain_id(self) -> int | None:
        """The number by which clients know the chain."""
        return self.own.chain_id

    def parse_address(self, text: str) -> str:
        """Return the stored form of an address on this network.

        Raises:
            InvalidAddress: the text is no address of this network; says why and the fix.
        """
        return parse_address(self.family, self.own, text)

    def parse_wallet(self, text: str) -> WalletAddress:
        """Return the stored form of a wallet of this network, given by its address or by its keys.

        Raises:
            InvalidAddress: the text is neither on this network, or has a private key; says why and the fix.
        """
        return parse_wallet(self.family, self.own, text)

    def parse_keys(self, text: str) -> WalletKeys | None:
        """Return the keys that a text means; None if it means an address, or the network has no wallets of keys.

        Raises:
            InvalidAddress: the text has a private key, or is not right; says why and the fix.
        """
        return parse_keys(self.own, text)

    @property
    def common_symbols(self) -> dict[str, str]:
        """Symbols of the common tokens by stored address, with that of the native asset."""
        return {token.address: token.symbol for token in self.tokens} | {NATIVE: self.native_symbol}


class _Kind(msgspec.Struct, frozen=True):
    family: Annotated[str, one_of(FAMILIES)]


class _Kinds(Table, frozen=True):
    network: list[_Kind]


class _File(Table, frozen=True):
    network: list[AnyTable]


def load_networks(path: Path, environ: Mapping[str, str] | None = None) -> dict[str, Network]:
    """Read and check a file of network definitions.

    `${VAR}` in an rpc entry or in the files of a data set is replaced from the environment. An rpc entry is dropped if
    its variable is unset or empty. A network without an rpc entry is disabled, with a reason that names the variables.

    Returns:
        Networks by name, in the order of the file.

    Raises:
        NetworksError: unreadable file, malformed TOML, unknown or missing or malformed field, duplicate name, data set
            with an unset variable.
    """
    variables = os.environ if environ is None else environ
    networks: dict[str, Network] = {}
    # The fields of a definition depend on its family, which is read first.
    read_toml(path, "LEDGERMART_NETWORKS", _Kinds, NetworksError)
    for entry in read_toml(path, "LEDGERMART_NETWORKS", _File, NetworksError).network:
        try:
            if entry.name in networks:
                raise ValueError("field 'name': is used twice; rename one")
            networks[entry.name] = _network(entry, variables)
        except ValueError as error:
            raise NetworksError(f"{path}: network {entry.name!r}: {error}") from error
    return networks


def _network(entry: NetworkTable, variables: Mapping[str, str]) -> Network:
    rpc_urls, unset = _rpc_urls(entry.rpc, variables)
    family, own = family_of_table(entry), entry.own()
    if (entry.token or entry.feed) and not codec_for(family).has_tokens:
        raise ValueError(f"field {'token' if entry.token else 'feed'!r}: networks of this family have none; remove it")
    return Network(
        name=entry.name,
        display_name=entry.display_name,
        family=family,
        own=own,
        is_testnet=entry.is_testnet,
        rpc_urls=rpc_urls,
        is_enabled=bool(rpc_urls),
        disabled_reason=None if rpc_urls else _disabled_reason(unset),
        native_symbol=entry.native.symbol,
        native_decimals=entry.native.decimals,
        native=NativeMode(entry.native.collect),
        finality_depth=entry.finality_depth,
        poll_seconds=entry.poll_seconds,
        tokens=_tokens(entry.token, family, own),
        feeds=_feeds(entry.feed, family, own),
        block_milliseconds=entry.block_milliseconds,
        max_requests_per_day=entry.max_requests_per_day,
        explorer=_explorer(entry.explorer),
        verification=None if entry.verification is None else Verification(entry.verification),
        data_sets=_data_sets(entry.data_set, family, variables),
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


def _data_sets(entries: list[DataSetTable], family: str, variables: Mapping[str, str]) -> tuple[DataSet, ...]:
    data_sets: list[DataSet] = []
    for entry in entries:
        place = f"data_set {entry.name!r}"
        if any(entry.name == other.name for other in data_sets):
            raise ValueError(f"{place}: field 'name': is used twice; rename one")
        if unset := [name for name in _VARIABLE.findall(entry.files) if not variables.get(name)]:
            # Left out, it would send its requests to the node without a word.
            raise ValueError(
                f"{place}: field 'files': {' and '.join(unset)} is not set; set it, or remove the data set"
            )
        files = _VARIABLE.sub(lambda found: variables[found.group(1)], entry.files)
        data_set = DataSet(entry.name, entry.form, files, entry.columns)
        try:
            check_data_set(data_set, codec_for(family).data_set_forms)
        except ValueError as error:
            raise ValueError(f"{place}: {error}") from None
        data_sets.append(data_set)
    return tuple(data_sets)


def _explorer(url: str | None) -> str | None:
    """Return the address that links to the explorer begin with, without a slash at its end."""
    if url is None:
        return None
    if not is_public_url(url):
        raise ValueError("field 'explorer': is not a plain https:// address; write it without user, query and fragment")
    return url.rstrip("/")


def _disabled_reason(unset: list[str]) -> str:
    if not unset:
        return "no node address is defined: add one to rpc"
    return f"no node address: set {' or '.join(unset)}"


def _tokens(entries: list[TokenTable], family: str, own: FamilyDefinition) -> tuple[CommonToken, ...]:
    tokens: list[CommonToken] = []
    for entry in entries:
        place = f"token {entry.symbol!r}: field 'address'"
        token = CommonToken(entry.symbol, _address(family, own, entry.address, place), entry.decimals)
        if any(token.address == other.address for other in tokens):
            raise ValueError(f"{place}: is listed twice; keep one")
        tokens.append(token)
    return tuple(tokens)


def _feeds(entries: list[FeedTable], family: str, own: FamilyDefinition) -> tuple[PriceFeed, ...]:
    feeds: list[PriceFeed] = []
    for number, entry in enumerate(entries, start=1):
        place = f"feed number {number}: field"
        feed = PriceFeed(_address(family, own, entry.address, f"{place} 'address'"), entry.base, entry.quote)
        if any(feed.address == other.address for other in feeds):
            raise ValueError(f"{place} 'address': is listed twice; keep one")
        if any((feed.base, feed.quote) == (other.base, other.quote) for other in feeds):
            raise ValueError(f"{place} 'base': {feed.base}/{feed.quote} has two feeds; keep one")
        feeds.append(feed)
    return tuple(feeds)


def _address(family: str, own: FamilyDefinition, text: str, place: str) -> str:
    try:
        return parse_address(family, own, text)
    except InvalidAddress as error:
        raise ValueError(f"{place}: is invalid: {error}") from error
