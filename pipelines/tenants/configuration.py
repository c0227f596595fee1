"""The warehouse's copy of the control store's snapshot and of the network definitions, for one cycle."""

from collections.abc import Mapping, Sequence
from typing import Any

import duckdb
import polars as pl

from control.clock import stored_now
from control.networks.definitions import Network
from control.networks.pins import undefined_reason
from control.pricing.definitions import PriceSource
from control.snapshot import ControlSnapshot
from pipelines.raw.database import sql, transaction
from pipelines.raw.frames import copied, registered
from pipelines.tables.sources import TABLES
from pipelines.tenants.price_configuration import APPENDED, polled_since_moves, price_frames


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
    rows: dict[str, list[tuple[Any, ...]]] = {
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
    return {name: copied(TABLES[name], records) for name, records in snapshot.tables.items()} | {
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
    manual_prices: Sequence[Any] = (),
) -> dict[str, int]:
    """Replace the snapshot and the definitions, append manual prices, and mark rows that the marts must update.

    These subjects are marked in `raw.changes`:

    - new subjects
    - subjects with a new or newly closed window
    - subjects on a network with another native asset or other common tokens than before
    - subjects on a network that is no longer defined.

    Removed subjects need no mark: the marts drop them because the snapshot lacks them.

    These pairs are marked in `raw.price_changes`:

    - new and removed pairs, and pairs with other rules, sources or reviews, from their first price on
    - pairs with new manual prices, from the earliest of these on.

    A source that was enabled or disabled marks nothing: its stored prices are still used.

    Args:
        connection: the open warehouse.
        snapshot: the configuration.
        networks: definitions of the networks in force.
        batch_id: the cycle's batch.
        sources: definitions of the price sources in force; None means none.
        manual_prices: those of `price_configuration.read_manual_prices_to_copy`.

    Returns:
        Row count by table; for manual prices, of the appended ones.
    """
    frames = _frames(snapshot, networks) | price_frames(snapshot, manual_prices, sources or {})
    frames["control_price_pairs"] = polled_since_moves(connection, frames["control_price_pairs"])
    used = {ledger.network for ledger in snapshot.tables["control_ledgers"]}
    frames |= _undefined(connection, used - networks.keys(), frames)
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
        connection.execute(sql("mark_pricing"), {"batch": batch_id})
        for name in frames:
            if name != APPENDED:
                connection.execute(f"delete from raw.{name}")
            connection.execute(f"insert into raw.{name} by name select * from incoming_{name}")
    return {name: frame.height for name, frame in frames.items()}
