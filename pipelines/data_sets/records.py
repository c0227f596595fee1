"""The pipeline's records of the files of data sets."""

from collections.abc import Iterable, Sequence
from datetime import timedelta

import duckdb
import polars as pl

from control.clock import stored_now
from control.networks.data_sets import DataSet
from control.ranges import BlockRange
from pipelines.data_sets.listing import Unit
from pipelines.raw.database import transaction
from pipelines.raw.frames import registered
from pipelines.tables.sources import TABLES

# Age of a listing for estimates. Each reading makes a new one.
_FRESH = timedelta(hours=1)
_LISTED = TABLES["data_files"].schema("file", "byte_count", "modified_at", "day", "from_block", "to_block")


def record_listing(connection: duckdb.DuckDBPyConnection, network: str, data_set: str, units: Iterable[Unit]) -> None:
    """Store the files of a data set as listed now; a file that changed counts as not read yet."""
    rows = [
        (file.path, file.byte_count, file.modified_at, unit.day, *(unit.blocks or (None, None)))
        for unit in units
        for file in unit.files
    ]
    frame = pl.DataFrame(rows, schema=_LISTED, orient="row")
    parameters = {"network": network, "data_set": data_set}
    with registered(connection, listed=frame), transaction(connection):
        connection.execute(
            """
            delete from raw.data_files
            where
                network = $network and data_set = $data_set
                and (file, byte_count, modified_at) not in (select file, byte_count, modified_at from listed)
            """,
            parameters,
        )
        connection.execute(
            """
            insert into raw.data_files
                (network, data_set, file, byte_count, modified_at, day, from_block, to_block, status, listed_at)
            select $network, $data_set, file, byte_count, modified_at, day, from_block, to_block, 'Listed', $now
            from listed
            where
                file not in (select file from raw.data_files where network = $network and data_set = $data_set)
            """,
            {**parameters, "now": stored_now()},
        )
        connection.execute(
            "update raw.data_files set listed_at = $now where network = $network and data_set = $data_set",
            {**parameters, "now": stored_now()},
        )


def has_listed(connection: duckdb.DuckDBPyConnection, network: str, data_set: DataSet) -> bool:
    """Return whether an earlier listing had files of the data set's present folder."""
    found = connection.execute(
        "select 1 from raw.data_files where network = ? and data_set = ? and starts_with(file, ?) limit 1",
        [network, data_set.name, data_set.folder],
    ).fetchone()
    return found is not None


def note_listing(connection: duckdb.DuckDBPyConnection, network: str, data_set: str, detail: str | None) -> None:
    """Record that a data set was listed now; `detail` says why it failed, if it did."""
    with transaction(connection):
        connection.execute("delete from raw.data_sets where network = ? and data_set = ?", [network, data_set])
        connection.execute("insert into raw.data_sets values (?, ?, ?, ?)", [network, data_set, stored_now(), detail])


def due_data_sets(connection: duckdb.DuckDBPyConnection, network: str, data_sets: Sequence[DataSet]) -> list[DataSet]:
    """Return the data sets that were not listed for an hour, and forget those that the definition does not name."""
    names = [data_set.name for data_set in data_sets]
    with transaction(connection):
        for table in ("data_sets", "data_files"):
            connection.execute(
                f"delete from raw.{table} where network = ? and not list_contains(?, data_set)", [network, names]
            )
    listed = connection.execute(
        "select data_set from raw.data_sets where network = ? and listed_at > ? and listed_at <= ?",
        [network, (now := stored_now()) - _FRESH, now],
    ).fetchall()
    return [data_set for data_set in data_sets if (data_set.name,) not in listed]


def refused_files(connection: duckdb.DuckDBPyConnection, network: str, data_set: str) -> frozenset[str]:
    """Return the files that are refused until they change."""
    rows = connection.execute(
        "select file from raw.data_files where network = ? and data_set = ? and status = 'Refused'",
        [network, data_set],
    ).fetchall()
    return frozenset(file for (file,) in rows)


def known_blocks(connection: duckdb.DuckDBPyConnection, network: str, data_set: str) -> dict[str, BlockRange]:
    """Return the blocks of each file of a data set for which they are known."""
    rows = connection.execute(
        """
        select file, from_block, to_block from raw.data_files
        where network = ? and data_set = ? and from_block is not null
        """,
        [network, data_set],
    ).fetchall()
    return {file: BlockRange(first, last) for file, first, last in rows}


def record_blocks(connection: duckdb.DuckDBPyConnection, network: str, unit: Unit, blocks: BlockRange) -> None:
    """Record the blocks of files of a day, which are known once these were read."""
    _record(connection, network, unit, "from_block = $first, to_block = $last", blocks._asdict())


def record_refused(connection: duckdb.DuckDBPyConnection, network: str, unit: Unit, reason: str) -> None:
    """Record that the files of a unit must not be used, and why."""
    _record(connection, network, unit, "status = 'Refused', detail = $detail", {"detail": reason})


def record_read(
    connection: duckdb.DuckDBPyConnection,
    network: str,
    unit: Unit,
    detail: str,
    rows: int,
    duplicates: int,
) -> None:
    """Record that the rows of a unit were checked and stored.

    Args:
        detail: the comparisons that were made.
        rows: number of rows of tracked addresses.
        duplicates: number of rows that appeared again.
    """
    _record(
        connection,
        network,
        unit,
        "status = 'Read', detail = $detail, row_count = $rows, duplicate_count = $duplicates",
        {"detail": detail, "rows": rows, "duplicates": duplicates},
    )


def _record(
    connection: duckdb.DuckDBPyConnection, network: str, unit: Unit, values: str, parameters: dict[str, object]
) -> None:
    connection.execute(
        f"""
        update raw.data_files set {values}
        where network = $network and data_set = $data_set and list_contains($files, file)
        """,
        {
            "network": network,
            "data_set": unit.data_set.name,
            "files": [file.path for file in unit.files],
            **parameters,
        },
    )


def refused_detail(connection: duckdb.DuckDBPyConnection, network: str) -> str | None:
    """Describe the refused files of a network; None where there is none."""
    row = connection.execute(
        """
        select count(*), min_by(detail, file)
        from raw.data_files where network = ? and status = 'Refused'
        """,
        [network],
    ).fetchone()
    if row is None or not row[0]:
        return None
    return f"{row[0]} files of data sets are refused, and their blocks are read from the node, for example {row[1]}"
