"""The control store's snapshot and the network definitions, as the warehouse keeps them for the cycle."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import astuple
from datetime import datetime
from typing import Any

import duckdb
import polars as pl

from control.networks.definitions import Network
from control.pricing.definitions import PriceSource
from control.pricing.snapshot import SnapshotManualPrice
from control.snapshot import ControlSnapshot
from pipelines.load.price_control import replace_pricing
from pipelines.load.warehouse import transaction, utc_now

_TEXT, _KEY, _TIME = pl.String(), pl.Int64(), pl.Datetime("us")
_SCHEMAS: dict[str, dict[str, pl.DataType]] = {
    "control_revisions": {"revision": _KEY},
    "control_tenants": {"tenant_id": _TEXT, "tenant_name": _TEXT},
    "control_ledgers": dict.fromkeys(("ledger_id", "tenant_id", "network", "ledger_name", "display_name"), _TEXT),
    "control_subjects": {
        "subject_key": _KEY,
        **dict.fromkeys(("subject_id", "kind", "tenant_id", "ledger_id", "network", "address"), _TEXT),
        **dict.fromkeys(("symbol", "name", "external_id"), _TEXT),
        "pair_key": _KEY,
        "created_at": _TIME,
    },
    "control_windows": {"window_key": _KEY, "subject_key": _KEY, "opened_at": _TIME, "closed_at": _TIME},
    "control_history_requests": {
        "operation_key": _KEY,
        "subject_key": _KEY,
        **dict.fromkeys(("from_text", "to_text", "native", "status"), _TEXT),
        "is_cancelled": pl.Boolean(),
        "created_at": _TIME,
    },
    "networks": {
        **dict.fromkeys(("network", "display_name", "family"), _TEXT),
        "chain_id": _KEY,
        "is_testnet": pl.Boolean(),
        "is_enabled": pl.Boolean(),
        "disabled_reason": _TEXT,
        "native_symbol": _TEXT,
        "native_decimals": pl.Int32(),
    },
    "common_tokens": {**dict.fromkeys(("network", "token_address", "symbol"), _TEXT), "decimals": pl.Int32()},
}


def open_batch(connection: duckdb.DuckDBPyConnection, run_id: str) -> int:
    """Begin a cycle and return its batch id, greater than all before it."""
    row = connection.execute(
        "insert into raw.batches select nextval('raw.batch_ids'), ?, ?, null returning batch_id", [run_id, utc_now()]
    ).fetchone()
    assert row is not None
    return int(row[0])


def batch_of_run(connection: duckdb.DuckDBPyConnection, run_id: str) -> int:
    """Return the batch that the run opened.

    Raises:
        LookupError: the run opened none.
    """
    row = connection.execute("select max(batch_id) from raw.batches where run_id = ?", [run_id]).fetchone()
    if row is None or row[0] is None:
        raise LookupError(f"run {run_id} has not taken its control snapshot")
    return int(row[0])


def _rows(records: Iterable[Any]) -> list[tuple[Any, ...]]:
    return [
        tuple(value.replace(tzinfo=None) if isinstance(value, datetime) else value for value in astuple(record))
        for record in records
    ]


def _frames(snapshot: ControlSnapshot, networks: Mapping[str, Network]) -> dict[str, pl.DataFrame]:
    rows: dict[str, list[tuple[Any, ...]]] = {
        "control_revisions": [(snapshot.revision,)],
        "control_tenants": _rows(snapshot.tenants),
        "control_ledgers": _rows(snapshot.ledgers),
        "control_subjects": _rows(snapshot.subjects),
        "control_windows": _rows(snapshot.windows),
        "control_history_requests": _rows(snapshot.history_requests),
        "networks": [
            tuple(getattr(network, "name" if column == "network" else column) for column in _SCHEMAS["networks"])
            for network in networks.values()
        ],
        "common_tokens": [(n.name, t.address, t.symbol, t.decimals) for n in networks.values() for t in n.tokens],
    }
    return {name: pl.DataFrame(rows[name], schema=schema, orient="row") for name, schema in _SCHEMAS.items()}


def replace_control(
    connection: duckdb.DuckDBPyConnection,
    snapshot: ControlSnapshot,
    networks: Mapping[str, Network],
    batch_id: int,
    sources: Mapping[str, PriceSource] | None = None,
    manual_prices: Sequence[SnapshotManualPrice] = (),
) -> dict[str, int]:
    """Replace the snapshot and the definitions, and mark in `raw.changes` what that changes for the marts.

    Marked are subjects that are new, subjects with a window that is new or newly closed, and those on a network whose
    native asset or common tokens are defined otherwise now. Those that are gone need no mark: the marts drop what is no
    longer in the snapshot. What of prices changes is marked by `price_control.replace_pricing`.

    Args:
        connection: the open warehouse.
        snapshot: the configuration.
        networks: definitions of the networks in force.
        batch_id: the cycle's batch.
        sources: definitions of the price sources in force; None is none.
        manual_prices: those entered after `price_control.newest_manual_price`.

    Returns:
        Row count by table.
    """
    frames = _frames(snapshot, networks)
    with transaction(connection):
        for name, frame in frames.items():
            connection.register(f"incoming_{name}", frame)
        connection.execute(
            """
            insert into raw.changes
            select ?, changed.subject_key, 0, null, 'View'
            from (
                select subject_key from incoming_control_subjects
                except select subject_key from raw.control_subjects
                union
                select subject_key
                from (select * from incoming_control_windows except select * from raw.control_windows)
            ) as changed
            """,
            [batch_id],
        )
        connection.execute(
            """
            insert into raw.changes
            select ?, subjects.subject_key, 0, null, 'Metadata'
            from incoming_control_subjects as subjects
            where subjects.network in (
                select network from (
                    select network, native_symbol, native_decimals from incoming_networks
                    except select network, native_symbol, native_decimals from raw.networks
                )
                union
                select network from (select * from incoming_common_tokens except select * from raw.common_tokens)
                union
                select network from (select * from raw.common_tokens except select * from incoming_common_tokens)
            )
            """,
            [batch_id],
        )
        for name in frames:
            connection.execute(f"delete from raw.{name}")
            connection.execute(f"insert into raw.{name} by name select * from incoming_{name}")
            connection.unregister(f"incoming_{name}")
        priced = replace_pricing(connection, snapshot.tenants, snapshot.pricing, manual_prices, sources or {}, batch_id)
    return {name: frame.height for name, frame in frames.items()} | priced
