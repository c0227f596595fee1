"""Definition files with any content are read or refused with their module's error."""

import contextlib
import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from control.networks.definitions import NetworksError, load_networks
from control.pricing.definitions import PriceSourcesError, load_price_sources

NETWORK: dict[str, Any] = {
    "name": "mine",
    "display_name": "Mine",
    "family": "evm",
    "chain_id": 7,
    "rpc": ["http://127.0.0.1:1"],
    "native": {"symbol": "ETH", "decimals": 18},
    "finality_depth": 64,
    "poll_seconds": 12,
}
SOURCE: dict[str, Any] = {
    "name": "mine",
    "display_name": "Mine",
    "adapter": "ccxt",
    "exchange": "kraken",
    "price_types": ["Trade"],
    "history_types": [],
    "granularities": [],
    "requests_per_second": 1.0,
}
FILES = [
    pytest.param("network", NETWORK, load_networks, NetworksError, id="networks"),
    pytest.param("source", SOURCE, load_price_sources, PriceSourcesError, id="price-sources"),
]
PLAIN = st.characters(exclude_categories=["Cs"])
VALUES = st.recursive(
    st.text(PLAIN, max_size=30) | st.integers(-(2**63), 2**63 - 1) | st.floats() | st.booleans(),
    lambda inner: st.lists(inner, max_size=3),
    max_leaves=5,
)


def toml(value: Any) -> str:
    """Write a value in TOML."""
    if isinstance(value, dict):
        return "{" + ", ".join(f"{json.dumps(name)} = {toml(inner)}" for name, inner in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(map(toml, value)) + "]"
    if isinstance(value, float):
        return repr(value)
    # JSON has the same escapes as TOML, except for DEL.
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")


def load(path: Path, content: bytes, read: Callable[..., Any], error: type[Exception]) -> Any:
    """Return the definitions of a file; None when the module's own error refuses it."""
    path.write_bytes(content)
    with contextlib.suppress(error):
        return read(path)
    with pytest.raises(error, match=re.escape(str(path))):
        read(path)
    return None


@pytest.mark.parametrize(("table", "entry", "read", "error"), FILES)
@given(content=st.binary(max_size=200) | st.text(PLAIN, max_size=200).map(str.encode))
def test_file_with_any_content_is_read_or_refused(
    tmp_path_factory: pytest.TempPathFactory,
    table: str,
    entry: dict[str, Any],
    read: Callable[..., Any],
    error: type[Exception],
    content: bytes,
) -> None:
    del entry
    load(tmp_path_factory.getbasetemp() / f"{table}.toml", content, read, error)


@pytest.mark.parametrize(("table", "entry", "read", "error"), FILES)
@given(data=st.data())
def test_any_value_of_a_field_is_read_or_refused(
    tmp_path_factory: pytest.TempPathFactory,
    table: str,
    entry: dict[str, Any],
    read: Callable[..., Any],
    error: type[Exception],
    data: st.DataObject,
) -> None:
    name = data.draw(st.sampled_from([*entry, "token", "feed", "options", "credentials", "url", "explorer", "other"]))
    changed = entry | {name: data.draw(VALUES)}
    text = f"[[{table}]]\n" + "\n".join(f"{key} = {toml(value)}" for key, value in changed.items())
    path = tmp_path_factory.getbasetemp() / f"{table}-field.toml"
    found = load(path, text.encode(), read, error)
    if found is not None:
        (one,) = found.values()
        if name == "display_name":
            assert one.display_name == changed["display_name"] if hasattr(one, "display_name") else one.name


@pytest.mark.parametrize(("table", "entry", "read", "error"), FILES)
def test_the_plain_entry_is_read(
    tmp_path: Path, table: str, entry: dict[str, Any], read: Callable[..., Any], error: type[Exception]
) -> None:
    text = f"[[{table}]]\n" + "\n".join(f"{key} = {toml(value)}" for key, value in entry.items())
    found = load(tmp_path / "file.toml", text.encode(), read, error)
    assert [one.name for one in found.values()] == [entry["name"] if table == "network" else entry["display_name"]]
