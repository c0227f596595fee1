"""The warehouse's copy of the control store's snapshot and of the network definitions, for one cycle."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import duckdb
import polars as pl

from control.clock import stored_now
from control.networks.definitions import Network
from control.networks.pins import undefined_reason
from control.pricing.definitions import PriceSource
from control.pricing.snapshot import SnapshotManualPrice
from control.snapshot import ControlSnapshot
from pipelines.raw.database import transaction
from pipelines.raw.frames import registered, to_frame
from pipelines.tables.sources import TABLES
from pipelines.tenants.price_configuration import replace_pricing


def open_batch(connection: duckdb.DuckDBPyConnection, run_id: str) -> int:
    """Begin a cycle and return its batch id, greater than all before it."""
    row = connection.execute(
        "insert into raw.batches select nextval('raw.batch_ids'), ?, ?, null returning batch_id", [run_id, stored_now()]
    ).fetchone()
    assert row is not None
    return int(row[0])


def batch_of_run(connection: duckdb.DuckDBPyConnection, run_id: str) -> int:
    """Return the batch that the run opened.

    Raises:
        LookupError: the run opened no batch.
    """
    row = connection.execute("select max(batch_id) from raw.batches where run_id = ?", [run_id]).fetchone()
    if row is None or row[0] is None:
        raise LookupError(f"run {run_id} has not taken its control snapshot")
    return int(row[0])


def _frames(snapshot: ControlSnapshot, networks: Mapping[str, Network]) -> dict[str, pl.DataFrame]:
    records: dict[str, Iterable[object]] = {
        "control_tenants": snapshot.tenants,
        "control_ledgers": snapshot.ledgers,
        "control_subjects": snapshot.subjects,
        "control_windows": snapshot.windows,
        "control_history_requests": snapshot.history_requests,
        "control_attestation_requests": snapshot.attestation_requests,
        "control_metadata_requests": snapshot.metadata_requests,
    }
    rows: dict[str, list[tuple[Any, ...]]] = {
        "control_revisions": [(snapshot.revision,)],
        "networks": [
            (
                n.name,
                *(getattr(n, column) for column in TABLES["networks"].schema_without("network", "is_defined")),
                None,
            )
            for n in networks.values()
        ],
        "common_tokens": [(n.name, t.address, t.symbol, t.decimals) for n in networks.values() for t in n.tokens],
    }
    return {name: to_frame(values, TABLES[name].schema()) for name, values in records.items()} | {
        name: pl.DataFrame(values, schema=TABLES[name].schema(), orient="row") for name, values in rows.items()
    }


def _undefined(
    connection: duckdb.DuckDBPyConnection, names: set[str], frames: Mapping[str, pl.DataFrame]
) -> dict[str, pl.DataFrame]:
    """Return the definitions with the last ones of networks that ledgers use and that are not defined any more."""
    known = {
        table: connection.execute(
            f"from raw.{table} where list_contains(?, network) order by all", [sorted(names)]
        ).pl()
        for table in ("networks", "common_tokens")
    }
    reasons = pl.Series([undefined_reason(name) for name in known["networks"]["network"]], dtype=pl.String)
    known["networks"] = known["networks"].with_columns(
        is_enabled=pl.lit(False), is_defined=pl.lit(False), disabled_reason=reasons
    )
    return {table: frames[table].vstack(rows.select(frames[table].columns)) for table, rows in known.items()}


def replace_control(
    connection: duckdb.DuckDBPyConnection,
    snapshot: ControlSnapshot,
    networks: Mapping[str, Network],
    batch_id: int,
    sources: Mapping[str, PriceSource] | None = None,
    manual_prices: Sequence[SnapshotManualPrice] = (),
) -> dict[str, int]:
    """Replace the snapshot and the definitions, and mark in `raw.changes` the subjects that the marts must update.

    These subjects are marked:

    - new subjects
    - subjects with a new or newly closed window
    - subjects on a network with another native asset or other common tokens than before
    - subjects on a network that is no longer defined.

    Removed subjects need no mark: the marts drop them because the snapshot lacks them.
    `price_configuration.replace_pricing` marks changes of prices.

    Args:
        connection: the open warehouse.
        snapshot: the configuration.
        networks: definitions of the networks in force.
        batch_id: the cycle's batch.
        sources: definitions of the price sources in force; None means none.
        manual_prices: those with keys after `price_configuration.newest_manual_price`.

    Returns:
        Row count by table.
    """
    frames = _frames(snapshot, networks)
    frames = frames | _undefined(connection, {ledger.network for ledger in snapshot.ledgers} - networks.keys(), frames)
    incoming = {f"incoming_{name}": frame for name, frame in frames.items()}
    with registered(connection, **incoming), transaction(connection):
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
                    select network, native_symbol, native_decimals, is_defined from incoming_networks
                    except select network, native_symbol, native_decimals, is_defined from raw.networks
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
        priced = replace_pricing(connection, snapshot.tenants, snapshot.pricing, manual_prices, sources or {}, batch_id)
    return {name: frame.height for name, frame in frames.items()} | priced
