"""Serving files made by hand: tables and functions as the marts' contract declares them, rows from the tests."""

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import duckdb
import yaml
from jinja2 import Environment

_PROJECT = Path(__file__).resolve().parents[2] / "dbt_project"

# Until the models are there.
_PRICE_STEP = (
    "price decimal(38;18), price_text varchar, price_status varchar, source_id varchar, position integer, "
    "is_fallback boolean, effective_from timestamp, window_start timestamp, is_partial boolean, derivation varchar"
)
_AGREED = {
    name: columns.replace("(38,18)", "(38;18)")
    for name, columns in {
        "price_sources": "tenant_id varchar, source_id varchar, name varchar, kind varchar, is_enabled boolean, "
        "polled_at timestamp, poll_error varchar",
        "price_markets": "source_id varchar, market_id varchar, base varchar, quote varchar, base_code varchar, "
        "quote_code varchar, is_active boolean, last_listed_at timestamp",
        "price_market_lists": "source_id varchar, collected_at timestamp, market_count bigint, error varchar",
        "price_pairs": "tenant_id varchar, pair_key bigint, pair_id varchar, priced_as varchar, priced_in varchar, "
        "price_type varchar, max_age_seconds bigint",
        "price_routes": "tenant_id varchar, pair_key bigint, source_id varchar, position integer, status varchar, "
        "derivation varchar, detail varchar",
        "source_prices": "tenant_id varchar, pair_key bigint, source_id varchar, position integer, "
        "effective_from timestamp, window_start timestamp, price decimal(38;18), price_text varchar, "
        "is_partial boolean, derivation varchar, fresh_until timestamp, state varchar, reason varchar, "
        "price_id varchar",
        "system_prices": "tenant_id varchar, pair_key bigint, valid_from timestamp, valid_until timestamp, "
        + _PRICE_STEP,
        "token_pairs": "tenant_id varchar, network varchar, token_address varchar, pair_key bigint, pair_id varchar, "
        "priced_as varchar, priced_in varchar, origin varchar",
        "token_activity_values": "tenant_id varchar, subject_key bigint, activity_id varchar, block_number bigint, "
        "pair_key bigint, price decimal(38;18), price_text varchar, price_effective_from timestamp, "
        "source_id varchar, is_fallback boolean, value varchar, value_approx double, value_status varchar",
        "wallet_activity_values": "tenant_id varchar, subject_key bigint, activity_id varchar, block_number bigint, "
        "token_address varchar, pair_key bigint, price decimal(38;18), price_text varchar, "
        "price_effective_from timestamp, source_id varchar, is_fallback boolean, value varchar, "
        "value_approx double, value_status varchar",
        "token_prices": "tenant_id varchar, subject_key bigint, pair_key bigint, pair_id varchar, priced_as varchar, "
        "priced_in varchar, as_of_time timestamp, price_text varchar, price_status varchar, "
        "price_effective_from timestamp, source_id varchar, is_fallback boolean, market_capitalization varchar, "
        "market_capitalization_status varchar, price_24h_text varchar, change24h varchar, change24h_status varchar",
        "wallet_totals": "tenant_id varchar, subject_key bigint, total_value varchar, total_value_status varchar, "
        "value_complete boolean, unpriced varchar[], total_value_24h varchar, change24h varchar, "
        "change24h_status varchar, currency varchar",
        "token_capitalization_days": "tenant_id varchar, subject_key bigint, day date, supply_raw bignum, "
        "supply varchar, price_text varchar, price_status varchar, value varchar, value_approx double, "
        "value_status varchar",
        "wallet_value_days": "tenant_id varchar, subject_key bigint, day date, value varchar, value_approx double, "
        "value_status varchar, value_complete boolean, unpriced varchar[], holdings_complete boolean",
    }.items()
}


def contract() -> dict[str, dict[str, str]]:
    """Return the columns of every mart with their types, as the contract declares them; views are tables here."""
    declared = {
        model["name"]: {column["name"]: column["data_type"] for column in model["columns"]}
        for file in sorted((_PROJECT / "models" / "marts").rglob("*__models.yml"))
        for model in yaml.safe_load(file.read_text())["models"]
    }
    for name, columns in _AGREED.items():
        declared.setdefault(name, dict(part.replace(";", ",").split(" ", 1) for part in columns.split(", ")))
    blocks = {"network": "varchar", "block_number": "bigint", "block_hash": "varchar", "block_time": "timestamp"}
    return {"blocks": blocks} | declared


def functions() -> str:
    """Return the statements that make the functions of a marts file."""
    macros = (_PROJECT / "macros" / "exact_numbers.sql").read_text()
    rendered = Environment().from_string(macros + "{{ create_mart_functions() }}").render()
    return rendered.replace("marts_db.", "")


def publish(directory: Path, version: int, rows: Mapping[str, Iterable[Mapping[str, Any]]]) -> Path:
    """Write a version with these rows by table, and move the pointer to it."""
    directory.mkdir(parents=True, exist_ok=True)
    path = directory / f"marts-{version:012d}.duckdb"
    path.unlink(missing_ok=True)
    with duckdb.connect(str(path)) as connection:
        connection.execute(functions())
        for table, columns in contract().items():
            listed = ", ".join(f"{name} {kind}" for name, kind in columns.items())
            connection.execute(f"create table marts.{table} ({listed})")
            for row in rows.get(table, ()):
                names = [name for name in columns if name in row]
                marks = ", ".join(f"?::varchar::{columns[name]}" for name in names)
                values = [None if row[name] is None else str(row[name]) for name in names]
                connection.execute(f"insert into marts.{table} ({', '.join(names)}) values ({marks})", values)
    move_pointer(directory, version, path.name)
    return path


def move_pointer(directory: Path, version: int, file: str) -> None:
    """Name a version as the one in force, atomically."""
    pointer = {"version": version, "file": file, "publishedAt": "2026-03-01T00:00:00Z"}
    temporary = directory / f"current.json.{version}"
    temporary.write_text(json.dumps(pointer))
    temporary.rename(directory / "current.json")
