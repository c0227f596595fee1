"""Reset of a network: moves its facts out of the warehouse, so that it can be collected from another chain."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import duckdb

from control.clock import stored_now
from pipelines.chain.finality import drop_unfinished_attestations
from pipelines.raw.builds import finish_batch
from pipelines.raw.database import transaction
from pipelines.tables.sources import TABLES
from pipelines.tenants.configuration import open_batch
from warehouse.opening import literal

# Definitions and configuration remain; the archive has a copy of them, so that its keys can be resolved.
_CONFIGURATION = ("networks", "common_tokens", "control_ledgers", "control_subjects")
# Records of cycles, and counts of requests.
_RECORDS = ("collections", "collection_failures", "requests_spent")
_OF_SUBJECTS = ("opened_ranges", "closed_ranges", "attestation_requests")
# Work that tenants requested: unfinished work begins again. The marts supersede attestations on their own.
_REQUESTS = ("history_requests", "attestation_requests", "attestations")


class ArchiveError(Exception):
    """The archive differs from the warehouse; nothing was removed."""


@dataclass(frozen=True)
class Reset:
    """Result of `reset_network`: the archive's file, and its number of rows by table, without configuration."""

    archive: Path
    rows: dict[str, int]


def reset_network(
    connection: duckdb.DuckDBPyConnection, network: str, folder: Path, archived: Callable[[], None] = lambda: None
) -> tuple[Reset, int]:
    """Move all facts of a network into a file of their own; its windows and history requests are collected again.

    The complete copy is compared before anything is removed, and the removal is one transaction. If the process is
    killed in between, there is an archive and an unchanged warehouse.

    Args:
        connection: the open warehouse, under the writer's lock.
        network: its name; the network may be undefined by now.
        folder: of the archives; created if absent.
        archived: called when the archive is complete and before anything is removed; its errors leave the warehouse
            unchanged.

    Returns:
        The result, and the batch under which the marts compute the network again.

    Raises:
        ArchiveError: the copy differs.
        duckdb.Error: the copy cannot be written, for example because the disk is full.
    """
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{network}-{stored_now():%Y%m%dT%H%M%SZ}.duckdb"
    counts = _archive(connection, network, path)
    archived()
    with transaction(connection):
        batch_id = open_batch(connection, f"reset of network {network}")
        connection.execute(
            """
            insert into raw.changes
            select ?, subject_key, 0, null, 'View' from raw.control_subjects where network = ?
            """,
            [batch_id, network],
        )
        for table in counts:
            if table not in (*_CONFIGURATION, *_REQUESTS):
                connection.execute(f"delete from raw.{table} where {_condition(table)}", [network])
        connection.execute(
            """
            update raw.history_requests
            set status = 'Pending', from_block = null, to_block = null, note = null, error = null,
                worked_blocks = 0, worked_seconds = 0
            where network = ? and status in ('Running', 'Succeeded')
            """,
            [network],
        )
        drop_unfinished_attestations(connection, network, -1)
        finish_batch(connection, batch_id)
    return Reset(path, {table: count for table, count in counts.items() if table not in _CONFIGURATION}), batch_id


def is_known(connection: duckdb.DuckDBPyConnection, network: str) -> bool:
    """Return whether the warehouse holds any fact of a network."""
    return any(
        connection.execute(f"select 1 from raw.{table} where {_condition(table)} limit 1", [network]).fetchone()
        for table in ("blocks", "network_states", "coverage")
    )


def _archive(connection: duckdb.DuckDBPyConnection, network: str, path: Path) -> dict[str, int]:
    """Write the network's rows of every table into a new file; return the number of rows by table."""
    partial = path.with_suffix(".partial")
    try:
        with _attached(connection, partial):
            for table in _archived():
                rows = f"from raw.{table} where {_condition(table)}"
                connection.execute(f"create table archive.raw.{table} as {rows}", [network])
        # Open the file again, so that the comparison reads the file itself.
        with _attached(connection, partial):
            counts = {}
            for table in _archived():
                stored = _digest(connection, f"raw.{table} where {_condition(table)}", [network])
                written = _digest(connection, f"archive.raw.{table}", [])
                if stored != written:
                    raise ArchiveError(f"{partial}: table {table} differs from the warehouse; nothing was removed")
                counts[table] = stored[0]
        partial.rename(path)
    except BaseException:
        partial.unlink(missing_ok=True)
        raise
    return counts


@contextmanager
def _attached(connection: duckdb.DuckDBPyConnection, path: Path) -> Iterator[None]:
    connection.execute(f"attach {literal(path)} as archive")
    try:
        connection.execute("create schema if not exists archive.raw")
        yield
    finally:
        connection.execute("detach archive")


def _digest(connection: duckdb.DuckDBPyConnection, rows: str, parameters: list[str]) -> tuple[int, int | None]:
    row = connection.execute(
        f"select count(*), bit_xor(hash(facts::varchar)) from (from {rows}) as facts", parameters
    ).fetchone()
    assert row is not None
    return row[0], row[1]


def _archived() -> list[str]:
    of_networks = [name for name, table in TABLES.items() if any(column.name == "network" for column in table.columns)]
    return [*(name for name in of_networks if name not in _RECORDS), *_OF_SUBJECTS]


def _condition(table: str) -> str:
    if table in _OF_SUBJECTS:
        return "subject_key in (select subject_key from raw.control_subjects where network = ?)"
    return "network = ?"
