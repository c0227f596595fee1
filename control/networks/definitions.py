"""Network definitions: reads and checks the TOML file that says which networks exist and how to reach them.

Probing a node (is it up, is it the right chain) does not go here; that is extraction's.
"""

import os
import re
import tomllib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import urlsplit

from control.networks.addresses import InvalidAddress
from control.networks.families import FAMILIES, codec_for

MULTICALL3_ADDRESS = "0xca11bde05977b3631167028862be2a173976ca11"
"""Multicall3 at the address it has on almost every EVM network. Source: https://www.multicall3.com/"""

_NAME = re.compile(r"[a-z0-9][a-z0-9-]{0,62}")
_VARIABLE = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]*)\}")
_LARGEST_CHAIN_ID = 2**53 - 1  # an id beyond it would lose digits in JSON clients
_MISSING = object()

Value = TypeVar("Value")


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
    try:
        document = tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise NetworksError(f"{path}: cannot be read ({error.strerror}); set LEDGERMART_NETWORKS to a file") from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise NetworksError(f"{path}: is not TOML: {error}") from error
    top = _Table(document, f"{path}")
    entries = top.take("network", _tables)
    top.finish()
    networks: dict[str, Network] = {}
    for number, entry in enumerate(entries, start=1):
        network = _read_network(_Table(entry, f"{path}: network {entry.get('name', f'number {number}')!r}"), variables)
        if network.name in networks:
            raise NetworksError(f"{path}: network {network.name!r}: field 'name': is used twice; rename one")
        networks[network.name] = network
    return networks


def _read_network(table: "_Table", variables: Mapping[str, str]) -> Network:
    name = table.take("name", _matching(_NAME, "lower-case letters, digits and hyphens, at most 63"))
    family = table.take("family", _one_of(FAMILIES))
    rpc_urls, unset = _read_rpc_urls(table, variables)
    native = _Table(table.take("native", _table), f"{table.place}: field 'native'")
    native_symbol, native_decimals = native.take("symbol", _label), native.take("decimals", _integer(0, 255))
    native_mode = NativeMode(native.take("collect", _one_of(tuple(NativeMode)), default=NativeMode.FULL))
    native.finish()
    network = Network(
        name=name,
        display_name=table.take("display_name", _label),
        family=family,
        chain_id=table.take("chain_id", _integer(1, _LARGEST_CHAIN_ID)),
        is_testnet=table.take("is_testnet", _boolean, default=False),
        rpc_urls=rpc_urls,
        is_enabled=bool(rpc_urls),
        disabled_reason=None if rpc_urls else _disabled_reason(unset),
        native_symbol=native_symbol,
        native_decimals=native_decimals,
        native=native_mode,
        finality_depth=table.take("finality_depth", _integer(0, 1_000_000)),
        poll_seconds=table.take("poll_seconds", _integer(1, 86_400)),
        tokens=_read_tokens(table, family),
        multicall_address=table.take("multicall_address", _address_or_none(family), default=MULTICALL3_ADDRESS),
        max_log_range=table.take("max_log_range", _integer(1, 1_000_000_000), default=None),
    )
    table.finish()
    return network


def _read_rpc_urls(table: "_Table", variables: Mapping[str, str]) -> tuple[tuple[str, ...], list[str]]:
    """Return the usable addresses, and the names of unset variables that dropped others."""
    urls: list[str] = []
    unset: list[str] = []
    for entry in table.take("rpc", _strings):
        missing = [name for name in _VARIABLE.findall(entry) if not variables.get(name)]
        if missing:
            unset.extend(name for name in missing if name not in unset)
            continue
        url = _VARIABLE.sub(lambda found: variables[found.group(1)], entry)
        if not _is_http_url(url):
            # The entry as written is named, not its value: that may hold a provider's key.
            raise table.error("rpc", f"{entry!r} does not give an http:// or https:// address; correct it")
        urls.append(url)
    return tuple(urls), unset


def _disabled_reason(unset: list[str]) -> str:
    if not unset:
        return "no node address is defined: add one to rpc"
    return f"no node address: set {' or '.join(unset)}"


def _is_http_url(url: str) -> bool:
    if any(character.isspace() for character in url) or "${" in url:
        return False
    try:
        parts = urlsplit(url)
        _ = parts.port  # raises on a malformed port
    except ValueError:
        return False
    return parts.scheme in ("http", "https") and bool(parts.hostname)


def _read_tokens(table: "_Table", family: str) -> tuple[CommonToken, ...]:
    tokens: list[CommonToken] = []
    for number, entry in enumerate(table.take("token", _tables, default=[]), start=1):
        row = _Table(entry, f"{table.place}: token {entry.get('symbol', f'number {number}')!r}")
        token = CommonToken(
            symbol=row.take("symbol", _label),
            address=row.take("address", _address(family)),
            decimals=row.take("decimals", _integer(0, 255)),
        )
        row.finish()
        if any(token.address == other.address for other in tokens):
            raise row.error("address", "is listed twice; keep one")
        tokens.append(token)
    return tuple(tokens)


class _Table:
    """One TOML table being read: hands out each field once and refuses what is left over."""

    def __init__(self, values: Mapping[str, Any], place: str) -> None:
        self._values = dict(values)
        self.place = place

    def error(self, field_name: str, problem: str) -> NetworksError:
        return NetworksError(f"{self.place}: field {field_name!r}: {problem}")

    def take(self, field_name: str, read: Callable[[Any], Value], default: Any = _MISSING) -> Value:
        value = self._values.pop(field_name, _MISSING)
        if value is _MISSING:
            if default is _MISSING:
                raise self.error(field_name, "is missing; add it")
            taken: Value = default
            return taken
        try:
            return read(value)
        except ValueError as error:
            raise self.error(field_name, str(error)) from error

    def finish(self) -> None:
        for field_name in self._values:
            raise self.error(field_name, "is unknown; remove it or correct its spelling")


def _table(value: Any) -> Mapping[str, Any]:
    if not isinstance(value, dict):
        raise ValueError("is not a table")
    return value


def _tables(value: Any) -> list[dict[str, Any]]:
    if not (isinstance(value, list) and all(isinstance(item, dict) for item in value)):
        raise ValueError("is not an array of tables; write it with double brackets")
    return value


def _strings(value: Any) -> list[str]:
    if not (isinstance(value, list) and all(isinstance(item, str) for item in value)):
        raise ValueError("is not an array of strings")
    return value


def _string(value: Any) -> str:
    if not isinstance(value, str):
        raise ValueError(f"is {value!r}; write a string")
    return value


def _label(value: Any) -> str:
    text = _string(value)
    if not (0 < len(text) <= 100 and text.isprintable() and text == text.strip()):
        raise ValueError(f"is {text!r}; write 1 to 100 printable characters")
    return text


def _boolean(value: Any) -> bool:
    if not isinstance(value, bool):
        raise ValueError(f"is {value!r}; write true or false")
    return value


def _integer(lowest: int, highest: int) -> Callable[[Any], int]:
    def read(value: Any) -> int:
        if type(value) is int and lowest <= value <= highest:  # a bool is an int too, but no number here
            return value
        raise ValueError(f"is {value!r}; write a whole number from {lowest} to {highest}")

    return read


def _matching(pattern: re.Pattern[str], meaning: str) -> Callable[[Any], str]:
    def read(value: Any) -> str:
        text = _string(value)
        if pattern.fullmatch(text) is None:
            raise ValueError(f"is {text!r}; write {meaning}")
        return text

    return read


def _one_of(names: tuple[str, ...]) -> Callable[[Any], str]:
    def read(value: Any) -> str:
        text = _string(value)
        if text not in names:
            raise ValueError(f"is {text!r}; write one of {', '.join(names)}")
        return text

    return read


def _address(family: str) -> Callable[[Any], str]:
    def read(value: Any) -> str:
        try:
            return codec_for(family).parse(_string(value))
        except InvalidAddress as error:
            raise ValueError(f"is not right: {error}") from error

    return read


def _address_or_none(family: str) -> Callable[[Any], str | None]:
    """An empty text says that the network has no such contract; TOML has no null."""
    read_address = _address(family)
    return lambda value: None if value == "" else read_address(value)
