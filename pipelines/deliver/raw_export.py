"""Exports of raw facts: the final rows of one network as files that another installation reads as a data set.

The files hold the facts of all tenants. Labels, names and keys of wallets are not in them.
"""

import json
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import duckdb

from control.clock import utc_now
from control.networks.definitions import Network
from control.ranges import BlockRange, intersection
from control.settings import Settings
from pipelines.chain.coverage import read_coverage
from pipelines.chain.covered import RANGE, keep_ranges, parts_of, stored_in_ranges
from pipelines.deliver.export import MANIFEST, ExportError, check_target
from pipelines.extract.data_sets import EXPORTED, ColumnKind, FileColumn, FileForm
from pipelines.extract.families import family_of
from pipelines.raw.database import create_tables
from pipelines.tables.families import ROW_TABLES
from pipelines.tables.table import RowTable
from warehouse.copies import Listener
from warehouse.folders import new_folder
from warehouse.opening import literal
from warehouse.port import Warehouse

MOST_ROWS = 1_000_000
"""Rows of one range of blocks in all tables together; a single block may have more."""

_KIND = "ledgermart-raw-export"
_LEAST_DIGITS = 9


def export_raw(
    settings: Settings,
    network: Network,
    folder: Path,
    *,
    force: bool,
    copying: Listener,
    begins: Callable[[str, int, int], None],
) -> dict[str, Any]:
    """Write the final facts of a network into a folder, in files of adjoining ranges of blocks, with a manifest.

    The warehouse is copied first, so the files show one moment. Cycles wait only while it is copied.

    Args:
        settings: data folder and memory limit.
        network: its family has the form `ledgermart`.
        folder: created after everything is written; must be absent, empty, or with `force` an earlier raw export.
        force: replace an earlier raw export.
        copying: callbacks of the copy.
        begins: called with the next file, its position from 0, and the number of files.

    Returns:
        The manifest.

    Raises:
        ExportError: the family lacks the form, no final block was collected, or the folder holds something else.
        FolderError: the disk is too small.
        FolderBusyError: another process is writing this folder.
        DamagedFileError: the warehouse is damaged.
    """
    form = family_of(network).data_set_forms.get(EXPORTED)
    if form is None:
        raise ExportError(f"network {network.name!r} cannot be exported: networks of its family have no data sets")
    check_target(folder, _KIND, "a raw export", force=force)
    warehouse = Warehouse(settings)
    if not warehouse.exists():
        raise _nothing_collected(network.name)
    with new_folder(folder) as partial:
        with warehouse.open_copy(partial, copying) as connection:
            create_tables(connection)
            connection.execute("set threads = 2")
            final = _keep_final_coverage(connection, network.name)
            ranges = parts_of(connection, network.name, [ROW_TABLES[name] for name in form.rows], MOST_ROWS)
            files = list(_write(connection, network.name, form, ranges, partial, begins))
        manifest = {
            "kind": _KIND,
            "network": network.name,
            "form": EXPORTED,
            "pattern": "{table}-{first}-{last}.parquet",
            "writtenAt": utc_now().strftime("%Y-%m-%dT%H:%M:%SZ"),
            "finalBlock": final,
            "firstBlock": ranges[0][0].first,
            "lastBlock": ranges[-1][0].last,
            "files": files,
        }
        (partial / MANIFEST).write_text(json.dumps(manifest, indent=2) + "\n")
    return manifest


def _nothing_collected(network: str) -> ExportError:
    return ExportError(f"nothing was collected of network {network!r}; `ledgermart status` lists networks")


def _keep_final_coverage(connection: duckdb.DuckDBPyConnection, network: str) -> int:
    """Create the table `covered` with the coverage up to the newest final block, united; return that block.

    Raises:
        ExportError: there is no coverage, or none of a final block.
    """
    coverage = read_coverage(connection, network)
    if not coverage:
        raise _nothing_collected(network)
    row = connection.execute("select final_number from raw.network_states where network = ?", [network]).fetchone()
    final = -1 if row is None or row[0] is None else int(row[0])
    of_final = {watched: intersection(ranges, [BlockRange(0, final)]) for watched, ranges in coverage.items()}
    if not any(of_final.values()):
        raise ExportError(f"no collected block of network {network!r} is final yet; repeat the command later")
    keep_ranges(connection, of_final)
    return final


def _write(
    connection: duckdb.DuckDBPyConnection,
    network: str,
    form: FileForm,
    ranges: list[tuple[BlockRange, int]],
    folder: Path,
    begins: Callable[[str, int, int], None],
) -> Iterator[dict[str, Any]]:
    """Write the files of all ranges; yield their entries in the manifest.

    Raises:
        ExportError: headers of rows are missing.
    """
    assert form.coverage is not None
    digits = max(_LEAST_DIGITS, len(str(ranges[-1][0].last)))
    queries = {table.name: _rows_query(ROW_TABLES[name], table.columns) for name, table in form.rows.items()}
    queries[form.coverage.name] = (
        f"select {', '.join(RANGE[:2])}, greatest(from_block, $first) as from_block, "
        "least(to_block, $last) as to_block from covered where from_block <= $last and to_block >= $first order by all"
    )
    for place, (part, expected) in enumerate(ranges):
        written = 0
        for position, (table, query) in enumerate(queries.items()):
            file = f"{table}-{part.first:0{digits}}-{part.last:0{digits}}.parquet"
            begins(file, place * len(queries) + position, len(ranges) * len(queries))
            parameters = {"first": part.first, "last": part.last}
            rows = _copy(
                connection, query, parameters | ({"network": network} if "$network" in query else {}), folder / file
            )
            written += rows if table != form.coverage.name else 0
            yield {"table": table, "file": file, "rows": rows, "firstBlock": part.first, "lastBlock": part.last}
        if written != expected:
            raise ExportError(
                f"the warehouse lacks headers of {expected - written} rows in blocks {part.first} to {part.last} of "
                f"{network}; `ledgermart doctor --deep` checks it"
            )


def _copy(connection: duckdb.DuckDBPyConnection, query: str, parameters: dict[str, Any], path: Path) -> int:
    """Write the rows of a query into a file; return their number."""
    statement = f"copy ({query}) to {literal(path)} (format parquet, compression zstd)"
    row = connection.execute(statement, parameters).fetchone()
    assert row is not None
    return int(row[0])


def _rows_query(table: RowTable, columns: Mapping[str, FileColumn]) -> str:
    """Return the query of a table's rows in the columns of the form, in the order of their key."""
    selected = ", ".join(_selected(name, column) for name, column in columns.items())
    headers = (
        "inner join raw.blocks as headers on headers.network = stored.network "
        "and headers.block_number = stored.block_number and headers.block_hash = stored.block_hash"
    )
    order = ", ".join(f"stored.{name}" for name in table.key)
    return f"select {selected} {stored_in_ranges(table, headers)} order by {order}"


def _selected(name: str, column: FileColumn) -> str:
    value = "headers.block_time" if name == "block_time" else f"stored.{name}"
    if column.kind is ColumnKind.AMOUNT:
        # Parquet has no type for integers of that size. DuckDB writes some of them as floating-point numbers.
        value = f"{value}::varchar"
    elif column.kind is ColumnKind.TIME:
        value = f"timezone('UTC', {value})"
    return f"{value} as {name}"
