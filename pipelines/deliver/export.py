"""Exports: a tenant's rows of the version in force as files that any program reads.

Reads a published file and nothing else. Every number keeps all its digits: integers of any size and decimals are text.
"""

import json
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Any

import duckdb

from control.settings import Settings
from warehouse.folders import FolderError, new_folder
from warehouse.opening import literal
from warehouse.port import Warehouse
from warehouse.spreadsheets import guarded_sql
from warehouse.versions import Publication, tenant_versions_of

_POLL_SECONDS = 0.2
MANIFEST = "manifest.json"
_KIND = "ledgermart-export"

# Conditions for marts without a tenant: a tenant may have only the rows to which its own rows refer.
_NAMED_BY_TENANT = {
    "networks": "network in (select network from own_subjects)",
    "collection_paces": "network in (select network from own_subjects)",
    "blocks": """(network, block_number) in (
        select (own_subjects.network, named.block_number)
        from own_subjects
        inner join (
            select subject_key, block_number from marts.token_activities
            union all select subject_key, block_number from marts.wallet_activities
            union all select subject_key, block_number from marts.balance_changes
            union all select subject_key, block_number from marts.supply_changes
            union all select subject_key, from_block from marts.coverage
            union all select subject_key, to_block from marts.coverage where to_block is not null
            union all select subject_key, as_of_block_number from own_subjects where as_of_block_number is not null
        ) as named on own_subjects.subject_key = named.subject_key
    )""",
    "addresses": """address in (
        select address from own_subjects
        union all
        select unnest([from_address, to_address]) from marts.token_activities where tenant_id = $tenant_id
        union all
        select unnest([counterparty_address, token_address]) from marts.wallet_activities where tenant_id = $tenant_id
        union all
        select unnest([holder_address, token_address]) from marts.balance_changes where tenant_id = $tenant_id
    )""",
    "price_markets": "source_id in (select source_id from marts.price_routes where tenant_id = $tenant_id)",
    "price_market_lists": "source_id in (select source_id from marts.price_routes where tenant_id = $tenant_id)",
}
# Counters of the whole installation show other tenants' changes; a tenant has counters of its own.
# Paths of data sets belong to the operator, and row counts of their files include the rows of all tenants.
_LEFT_OUT_MARTS = {"publication", "data_files"}
_LEFT_OUT = {("tenant_versions", "after_version"), ("recomputed_ranges", "shown_until_version")}
_OWN_SUBJECTS = """
    with own_subjects as (
        select subject_key, network, address, as_of_block_number from marts.tokens where tenant_id = $tenant_id
        union all
        select subject_key, network, address, as_of_block_number from marts.wallets where tenant_id = $tenant_id
    )
"""


class Format(StrEnum):
    """Format of the files."""

    PARQUET = "parquet"
    CSV = "csv"
    XLSX = "xlsx"


class ExportError(FolderError):
    """An export cannot be made; the message says why and what to do."""


@dataclass(frozen=True)
class Listener:
    """Callbacks for the progress of an export.

    Attributes:
        begins: called with the next mart, its position from 0, and the number of marts.
        advances: called with the written share of the mart in percent, 0 to 100, where it is known.
    """

    begins: Callable[[str, int, int], None]
    advances: Callable[[float], None]


@dataclass(frozen=True)
class _Column:
    """One column of a mart: its name, its type in DuckDB, and its description."""

    name: str
    type: str
    comment: str | None

    @property
    def is_amount(self) -> bool:
        """Return whether it contains numbers with any number of digits, as such or as text."""
        is_text = self.type == "VARCHAR" and "exact decimal text" in (self.comment or "")
        return is_text or self.type == "BIGNUM" or self.type.startswith("DECIMAL")

    def select(self, form: Format) -> str:
        """Return the SQL expression of the column: text where no other type keeps every digit."""
        quoted = f'"{self.name}"'
        if self.type == "BIGNUM" or self.type.startswith("DECIMAL"):
            return f"{quoted}::varchar as {quoted}"
        if self.type.endswith("[]") and form is not Format.PARQUET:
            return f"to_json({quoted})::varchar as {quoted}"
        if self.type == "VARCHAR" and form is Format.CSV:
            return f"{guarded_sql(quoted)} as {quoted}"
        if self.type == "TIMESTAMP" and form is not Format.XLSX:
            # An instant with a zone, so that no reader assumes its own local time.
            return f"timezone('UTC', {quoted}) as {quoted}"
        return quoted


def export(
    settings: Settings,
    tenant: tuple[str, str],
    form: Format,
    folder: Path,
    *,
    marts: Sequence[str],
    force: bool,
    listener: Listener,
) -> dict[str, Any]:
    """Write a tenant's rows of the version in force into a folder, one file per mart, with a manifest.

    Args:
        tenant: its name and its id.
        folder: created after everything is written; must be absent, empty, or with `force` an earlier export.
        marts: names of the marts; empty for all.
        force: replace an earlier export.

    Returns:
        The manifest.

    Raises:
        ExportError: a mart does not exist, or the folder holds something else.
        NothingPublishedError: there is no version yet.
        FolderBusyError: another process is writing this folder.
    """
    with Warehouse(settings).open_published() as (publication, connection):
        check_target(folder, _KIND, "an export", force=force)
        connection.execute(f"set memory_limit = '{settings.query_memory_mb}MB'")
        connection.execute("set threads = 2")
        connection.execute("set timezone = 'UTC'")
        chosen = _chosen(_columns(connection), marts)
        with new_folder(folder) as partial:
            spill = partial / ".spill"
            connection.execute(f"set temp_directory = {literal(spill)}")
            files = []
            for place, (mart, columns) in enumerate(chosen.items()):
                listener.begins(mart, place, len(chosen))
                path = partial / f"{mart}.{form}"
                rows = _write(connection, mart, columns, tenant[1], form, path, listener.advances)
                files.append(_described(connection, mart, columns, path.name, rows))
            if spill.exists():
                spill.rmdir()
            manifest = _manifest(connection, publication, tenant, form, files)
            (partial / MANIFEST).write_text(json.dumps(manifest, indent=2) + "\n")
    return manifest


def check_target(folder: Path, kind: str, described: str, *, force: bool) -> None:
    """Check that a folder is absent, empty, or contains an export that may be replaced.

    Args:
        folder: where an export is written.
        kind: of this export, as its manifest has it.
        described: the kind for people.
        force: replace an earlier export of that kind.

    Raises:
        ExportError: the folder holds something else, or an export without `force`.
    """
    if not folder.exists() or (folder.is_dir() and not any(folder.iterdir())):
        return
    manifest = folder / MANIFEST
    if not manifest.is_file() or json.loads(manifest.read_text()).get("kind") != kind:
        raise ExportError(f"{folder} is not {described}; name another folder with --out")
    if not force:
        raise ExportError(f"{folder} already contains {described}; --force replaces it, --out names another folder")


def _columns(connection: duckdb.DuckDBPyConnection) -> dict[str, list[_Column]]:
    """Return every table and view of the file, with the columns that a tenant may have."""
    found: dict[str, list[_Column]] = {}
    for mart, name, kind, comment in connection.execute(
        """
        select table_name, column_name, data_type, comment from duckdb_columns()
        where schema_name = 'marts' order by table_name, column_index
        """
    ).fetchall():
        if mart not in _LEFT_OUT_MARTS and (mart, name) not in _LEFT_OUT:
            found.setdefault(mart, []).append(_Column(name, kind, comment))
    return found


def _chosen(known: dict[str, list[_Column]], marts: Sequence[str]) -> dict[str, list[_Column]]:
    """Return the marts to write.

    Raises:
        ExportError: a mart is not known, or it has no tenant and no condition for the rows of a tenant.
    """
    for mart in marts:
        if mart not in known:
            raise ExportError(f"there is no mart {mart!r}; there are {', '.join(known)}")
    chosen = {mart: columns for mart, columns in known.items() if not marts or mart in marts}
    for mart, columns in chosen.items():
        if mart not in _NAMED_BY_TENANT and "tenant_id" not in {column.name for column in columns}:
            raise ExportError(
                f"mart {mart!r} has no tenant_id, and pipelines/deliver/export.py does not name the tenant of its rows"
            )
    return chosen


def _write(
    connection: duckdb.DuckDBPyConnection,
    mart: str,
    columns: Sequence[_Column],
    tenant_id: str,
    form: Format,
    path: Path,
    advances: Callable[[float], None],
) -> int:
    """Write one mart; return the number of its rows. DuckDB streams, so memory does not grow with the rows."""
    condition = _NAMED_BY_TENANT.get(mart, "tenant_id = $tenant_id")
    head = _OWN_SUBJECTS if "own_subjects" in condition else ""
    parameters = {"tenant_id": tenant_id} if "$tenant_id" in head + condition else {}
    if form is Format.XLSX:
        return _write_workbook(connection, mart, columns, (head, condition, parameters), path, advances)
    selected = ", ".join(column.select(form) for column in columns)
    rows = f"{head} select {selected} from marts.{mart} where {condition}"
    query = f"copy ({rows}) to {literal(path)} ({_options(form, columns)})"
    with ThreadPoolExecutor(max_workers=1) as pool:
        writing = pool.submit(lambda: connection.execute(query, parameters).fetchone())
        try:
            while not wait([writing], _POLL_SECONDS).done:
                advances(max(connection.query_progress(), 0.0))
        except BaseException:
            connection.interrupt()
            raise
    row = writing.result()
    assert row is not None
    return int(row[0])


def _write_workbook(
    connection: duckdb.DuckDBPyConnection,
    mart: str,
    columns: Sequence[_Column],
    rows_of_tenant: tuple[str, str, dict[str, str]],
    path: Path,
    advances: Callable[[float], None],
) -> int:
    # Its libraries are imported where they are used.
    from pipelines.deliver.workbook import MOST_ROWS, CellError, Field, write_workbook

    remedy = "take --format csv or parquet, or name other marts with --mart"
    head, condition, parameters = rows_of_tenant
    counted = connection.execute(f"{head} select count(*) from marts.{mart} where {condition}", parameters).fetchone()
    assert counted is not None
    if counted[0] > MOST_ROWS:
        raise ExportError(f"{mart} has {counted[0]:,} rows, and a workbook holds {MOST_ROWS:,}; {remedy}")
    # An amount already has a numeric column.
    names = {column.name for column in columns}
    shown = [column for column in columns if column.name.removesuffix("_approx") not in names - {column.name}]
    selected = ", ".join(column.select(Format.XLSX) for column in shown)
    fields = [Field(column.name, column.type, column.comment, column.is_amount) for column in shown]
    rows = connection.execute(f"{head} select {selected} from marts.{mart} where {condition}", parameters)
    try:
        return write_workbook(path, mart, fields, rows, lambda written: advances(100 * written / counted[0]))
    except CellError as error:
        raise ExportError(f"{mart}: {error}; {remedy}") from error


def _options(form: Format, columns: Sequence[_Column]) -> str:
    if form is Format.CSV:
        return "format csv, header, timestampformat '%Y-%m-%dT%H:%M:%S.%fZ'"
    comments = json.dumps({column.name: column.comment for column in columns})
    return f"format parquet, compression zstd, kv_metadata {{columns: {literal(comments)}}}"


def _described(
    connection: duckdb.DuckDBPyConnection, mart: str, columns: Sequence[_Column], file: str, rows: int
) -> dict[str, Any]:
    """Return the manifest's entry of one mart."""
    row = connection.execute(
        """
        select comment from duckdb_tables() where schema_name = 'marts' and table_name = $mart
        union all
        select comment from duckdb_views() where schema_name = 'marts' and view_name = $mart
        """,
        {"mart": mart},
    ).fetchone()
    return {
        "mart": mart,
        "file": file,
        "rows": rows,
        "description": row[0] if row else None,
        "columns": [{"name": c.name, "type": c.type, "description": c.comment} for c in columns],
    }


def _manifest(
    connection: duckdb.DuckDBPyConnection,
    publication: Publication,
    tenant: tuple[str, str],
    form: Format,
    files: Sequence[dict[str, Any]],
) -> dict[str, Any]:
    subjects = connection.execute(
        """
        select 'token', token_id, network, address, as_of_block_number, as_of_block_time, as_of_finality
        from marts.tokens where tenant_id = $tenant_id
        union all
        select 'wallet', wallet_id, network, address, as_of_block_number, as_of_block_time, as_of_finality
        from marts.wallets where tenant_id = $tenant_id
        order by all
        """,
        {"tenant_id": tenant[1]},
    ).fetchall()
    return {
        "kind": _KIND,
        "dataVersion": tenant_versions_of(connection).get(tenant[1], 0),
        "publishedAt": publication.published_at.strftime("%Y-%m-%dT%H:%M:%SZ"),
        "tenant": tenant[0],
        "tenantId": tenant[1],
        "format": form,
        "files": list(files),
        "subjects": [
            {
                "kind": kind,
                "id": identifier,
                "network": network,
                "ledgerId": address,
                "asOfBlockNumber": number,
                "asOfBlockTime": time.strftime("%Y-%m-%dT%H:%M:%SZ") if time else None,
                "asOfFinality": finality,
            }
            for kind, identifier, network, address, number, time, finality in subjects
        ],
    }
