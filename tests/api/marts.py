"""Handmade serving files: tables from the marts' contract, functions and views from the dbt project.

Tests supply the rows, including those of the views that show values.
"""

import json
import pickle
import tempfile
from collections.abc import Iterable, Mapping
from dataclasses import asdict
from functools import cache, lru_cache
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import yaml  # type: ignore[import-untyped]
from jinja2 import Environment

from control.networks.families import codec_for
from figures.cap_table import parse_balances, summarize

_PROJECT = Path(__file__).resolve().parents[2] / "dbt_project"
_BETWEEN = "\n-- the next text\n"
_MODELS = {
    "cap_tables": "",
    "token_supplies": "",
    "token_capitalization_days": "values/",
    "address_names": "",
    "token_holder_days": "",
}
VIEWS = tuple(_MODELS)
"""Views created from their dbt models; all other views are tables here."""


def _completed(table: str, row: Mapping[str, Any]) -> dict[str, Any]:
    """Return a handmade row with the columns that it leaves out and that are never null."""
    if table != "wallet_activities":
        return dict(row)
    is_known = row.get("counterparty_address") is not None
    status = "Known" if is_known else "None"
    return {"fee_status": "Separate", "counterparty_count": int(is_known), "counterparty_status": status, **row}


@cache
def contract() -> dict[str, dict[str, str]]:
    """Return the columns of every mart with their types, as the contract declares them."""
    blocks = {"network": "varchar", "block_number": "bigint", "block_hash": "varchar", "block_time": "timestamp"}
    return {"blocks": blocks} | _declared("data_type")


@cache
def descriptions() -> dict[str, dict[str, str]]:
    """Return the columns of every mart with their descriptions."""
    return _declared("description")


def _declared(key: str) -> dict[str, dict[str, str]]:
    return {
        model["name"]: {column["name"]: column[key] for column in model["columns"]}
        for file in sorted((_PROJECT / "models" / "marts").rglob("*__models.yml"))
        for model in yaml.safe_load(file.read_text())["models"]
    }


@cache
def functions() -> str:
    """Return the statements that create the functions of a marts file."""
    (created,) = _rendered(["{{ create_mart_functions() }} {{ create_reconciliation_functions() }}"])
    return created.replace("marts_db.", "")


@cache
def views() -> str:
    """Return the statements that create the views, from the models' SQL."""
    marts, bi = _PROJECT / "models" / "marts", _PROJECT / "models" / "bi"
    files = {f"marts.{name}": marts / f"{folder}{name}.sql" for name, folder in _MODELS.items()}
    files |= {f"bi.{file.stem.removeprefix('bi_')}": file for file in sorted(bi.glob("*.sql"))}
    queries = _rendered([file.read_text() for file in files.values()])
    made = [f"create view {name} as ({query});" for name, query in zip(files, queries, strict=True)]
    return "\n".join(["create schema bi;", *made])


def _said(**_: Any) -> str:
    return ""


def _in_marts(name: str) -> str:
    return f"marts.{name}"


def _rendered(texts: Iterable[str]) -> list[str]:
    """Render texts with the project's macros; compile the macros once, because that is the slow part."""
    files = ("exact_numbers", "ownership", "reconciliation", "values")
    macros = "".join((_PROJECT / "macros" / f"{name}.sql").read_text() for name in files)
    template = Environment().from_string(macros + _BETWEEN.join(texts))
    return template.render(config=_said, ref=str, beside=_in_marts, in_marts=_in_marts).split(_BETWEEN)


@cache
def _empty() -> bytes:
    """Create an empty file with every table and view, once: this takes longer than inserting most rows."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "empty.duckdb"  # `marts` is already the name of the schema
        with duckdb.connect(str(path)) as connection:
            connection.execute(functions())
            for table, columns in contract().items():
                if table not in VIEWS:
                    listed = ", ".join(f"{name} {kind}" for name, kind in columns.items())
                    connection.execute(f"create table marts.{table} ({listed})")
            connection.execute(views())
        return path.read_bytes()


def publish(
    directory: Path, version: int, rows: Mapping[str, Iterable[Mapping[str, Any]]], epoch: str = "first"
) -> Path:
    """Write a version with these rows by table, and point to it."""
    assert not rows.keys() & set(VIEWS)
    directory.mkdir(parents=True, exist_ok=True)
    path = directory / f"marts-{version:012d}.duckdb"
    path.unlink(missing_ok=True)
    content = {table: [_completed(table, row) for row in told] for table, told in rows.items()}
    path.write_bytes(_written(pickle.dumps((version, content, epoch))))
    move_pointer(directory, version, path.name)
    return path


# Tests of a file often publish the same rows; a version takes some 0.4 CPU seconds.
@lru_cache(maxsize=16)
def _written(pickled: bytes) -> bytes:
    """Return the file of a version, from its number, rows by table and epoch."""
    version, rows, epoch = pickle.loads(pickled)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "version.duckdb"
        path.write_bytes(_empty())
        with duckdb.connect(str(path)) as connection:
            _insert(connection, rows)
            if "addresses" not in rows:
                show_addresses(connection)
            count_holders(connection)
            if "cap_table_summaries" not in rows:
                _summarize_cap_tables(connection)
            _count_versions(connection, version, rows)
            connection.execute("create table marts.publication as select ? as version, ? as epoch", [version, epoch])
        return path.read_bytes()


def _insert(connection: duckdb.DuckDBPyConnection, rows: Mapping[str, Iterable[Mapping[str, Any]]]) -> None:
    for table, content in rows.items():
        columns = contract()[table]
        told = [{name: None if value is None else str(value) for name, value in row.items()} for row in content]
        if told:
            # One statement: ten thousand single inserts take half a minute.
            lines = pa.Table.from_pylist(told, schema=pa.schema([(name, pa.string()) for name in columns]))
            connection.register("lines", lines)
            connection.execute(f"insert into marts.{table} select * from lines")
            connection.unregister("lines")


def show_addresses(connection: duckdb.DuckDBPyConnection) -> None:
    """Add the display form of every address in the rows."""
    connection.execute("delete from marts.addresses")
    columns = connection.execute(
        "select table_name, column_name from duckdb_columns() where schema_name = 'marts' and data_type = 'VARCHAR' "
        "and column_name like '%address' and table_name in (select table_name from duckdb_tables())"
    ).fetchall()
    met = " union ".join(f"select {column} as address from marts.{table}" for table, column in columns)
    found = connection.execute(f"select address from ({met}) where address similar to '0x[0-9a-f]{{40}}'").fetchall()
    present = codec_for("evm").present
    shown = [
        {"address_key": key, "address": address, "display_address": present(address)}
        for key, (address,) in enumerate(found)
    ]
    if shown:
        connection.register("shown", pa.Table.from_pylist(shown))
        connection.execute("insert into marts.addresses by name select * from shown")
        connection.unregister("shown")


def _summarize_cap_tables(connection: duckdb.DuckDBPyConnection) -> None:
    """Compute the figures of each token's cap table."""
    tokens = connection.execute(
        """select subject_key, total_supply_raw::varchar, total_supply_status, coalesce(opens_without_holders, false),
            (
                select string_agg(quantity_raw::varchar, ' ') from marts.token_holders as holders
                where holders.subject_key = tokens.subject_key
            )
        from marts.tokens as tokens"""
    ).fetchall()
    for subject_key, supply, status, opens_without_holders, quantities in tokens:
        found = summarize(
            parse_balances(quantities or ""),
            None if supply is None else int(supply),
            status or "Unknown",
            opens_without_holders=opens_without_holders,
        )
        figures = asdict(found.concentration) | {
            "top10_percentage": found.concentration.top10,
            "holders_status": found.holders_status,
            "unattributed_raw": None if found.unattributed is None else str(found.unattributed),
            "unattributed_percentage": found.unattributed_percentage,
            "unattributed_status": found.unattributed_status,
        }
        del figures["top10"]
        numbers = ("unattributed_percentage", "top10_percentage", "hhi", "gini")
        connection.execute(
            f"""insert into marts.cap_table_summaries by name
            select figures.* replace (unattributed_raw::bignum as unattributed_raw, nakamoto::bigint as nakamoto),
                tenant_id, subject_key, total_supply_raw, total_supply, total_supply::double as total_supply_approx,
                total_supply_status as supply_status, holder_count,
                marts.to_amount(unattributed_raw::bignum, decimals) as unattributed,
                unattributed::double as unattributed_approx,
                {", ".join(f"{name}::double as {name}_approx" for name in numbers)}
            from marts.tokens
            cross join (select {", ".join(f"${name}::varchar as {name}" for name in figures)}) as figures
            where subject_key = {subject_key}""",
            figures,
        )


def _count_versions(
    connection: duckdb.DuckDBPyConnection, version: int, rows: Mapping[str, Iterable[Mapping[str, Any]]]
) -> None:
    """Add missing rows: every version is a data version of every tenant, and every tenant sees the node's head."""
    tenants = "select distinct tenant_id, network from (from marts.tokens union all by name from marts.wallets)"
    if "tenant_versions" not in rows:
        connection.execute(
            f"""insert into marts.tenant_versions by name
            select distinct tenant_id, number as data_version, number - 1 as after_version, now() as raised_at
            from ({tenants}), range(1, {version + 1}) as numbers(number)"""
        )
    if "tenant_heads" not in rows:
        connection.execute(
            f"""insert into marts.tenant_heads by name
            select tenant_id, network, head_number, final_number
            from ({tenants}) inner join marts.networks using (network) where head_number is not null"""
        )


def count_holders(connection: duckdb.DuckDBPyConnection) -> None:
    """Compute the columns of handmade balances that depend on the previous balance in the same range."""
    connection.execute(
        """update marts.balance_changes as changes
        set holder_change = counted.is_held::tinyint - coalesce(counted.was_held, false)::tinyint,
            is_first = counted.was_held is null
        from (
            select rowid as place, balance_raw <> 0::bignum as is_held, lag(balance_raw <> 0::bignum) over (
                partition by subject_key, range_from_block, token_address, holder_address order by block_number
            ) as was_held
            from marts.balance_changes
        ) as counted where changes.rowid = counted.place"""
    )


def move_pointer(directory: Path, version: int, file: str) -> None:
    """Make a version current, atomically."""
    pointer = {"version": version, "file": file, "publishedAt": "2026-03-01T00:00:00Z"}
    temporary = directory / f"current.json.{version}"
    temporary.write_text(json.dumps(pointer))
    temporary.rename(directory / "current.json")
