"""Facts of one network that several machines share: a DuckLake with its catalogue in PostgreSQL.

Its files are Parquet in a store with the protocol of S3, or in a shared folder. Every commit is a compare-and-swap on
the number of the lake's newest snapshot, so transactions have a serial order. One writer at a time holds a session lock
of PostgreSQL; the lock only saves repeated work, and a writer that has lost it changes nothing.
"""

import random
import re
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, suppress
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import duckdb

from control.settings import S3
from warehouse.extensions import load_extension
from warehouse.opening import literal, quiet
from warehouse.s3 import allow_s3
from warehouse.session_lock import (
    SessionLockBusyError,
    SessionLockError,
    is_direct,
    is_held,
    limited,
    open_session,
    session_lock,
)

if TYPE_CHECKING:
    import polars as pl

Result = TypeVar("Result")

_MEMORY_MB = 512
_THREADS = 2
_ATTEMPTS = 20
_POLL_SECONDS = 0.1
# A file with fewer deleted rows is cheaper to read as it is.
_REWRITE_SHARE = 0.2
# DuckLake stores these as floating-point numbers, or not at all.
_INEXACT = re.compile(r"\b(U?HUGEINT|BIGNUM|FLOAT|DOUBLE|REAL)\b")
_STOPPED = "canceling statement"
# Of statements about the lake that the catalogue did not answer.
_UNANSWERED = re.compile("Failed to [^:]*DuckLake: ")
_CONFLICT = re.compile("ducklake_snapshot|Transaction conflict|maximum retry count|serialize access|deadlock")


class LakeError(Exception):
    """The lake does not answer, or refuses; the message names the network and holds no credentials."""


class LakeBusyError(LakeError):
    """Another writer holds the lake for longer than this one waits."""


class LakeConflictError(LakeError):
    """Another writer committed first; nothing of this transaction is stored."""


class LakePlace(NamedTuple):
    """Where lakes are.

    Attributes:
        catalogue: connection text of PostgreSQL, without a pooler that changes sessions between transactions.
        data: `s3://bucket/prefix`, or the path of a folder that all machines share.
    """

    catalogue: str
    data: str


class Tidied(NamedTuple):
    """Result of upkeep: numbers of files merged into others, of expired snapshots, and of deleted files."""

    merged: int
    expired: int
    deleted: int


class OpenLake:
    """An open lake, as the database `lake` of a query engine of its own: its failures touch no other database."""

    def __init__(self, connection: duckdb.DuckDBPyConnection, network: str, catalogue: str) -> None:
        # Only where a lake is configured.
        from psycopg.conninfo import conninfo_to_dict

        self.connection = connection
        self._network = network
        self._secrets = [catalogue, str(conninfo_to_dict(catalogue).get("password") or catalogue)]

    def run(self, statement: str, parameters: Sequence[Any] | Mapping[str, Any] = ()) -> "Answer":
        """Execute a statement, which names its tables as `lake.<table>`.

        Raises:
            LakeConflictError: another writer committed first.
            LakeError: catalogue or store do not answer, or refuse.
        """
        with self.naming_errors():
            return Answer(self, self.connection.execute(statement, parameters))

    @contextmanager
    def naming_errors(self) -> Iterator[None]:
        """Turn errors of the query engine into LakeError."""
        try:
            yield
        except (
            duckdb.CatalogException,
            duckdb.BinderException,
            duckdb.ParserException,
            duckdb.ConversionException,
        ) as error:
            if _UNANSWERED.search(str(error)):
                raise self._told(str(error)) from None
            # A defect of the statement, not of the lake.
            raise
        except duckdb.Error as error:
            # Without its cause: that message has the password.
            raise self._told(str(error)) from None

    def load(self, table: str, rows: Any) -> None:
        """Create a temporary table of a frame or of an Arrow reader; it replaces one of the same name.

        Raises:
            LakeError: there is not enough memory or disk.
        """
        self.connection.register("given", rows)
        try:
            self.run(f"create or replace temp table {table} as select * from given")  # nosec B608 # our names
        finally:
            self.connection.unregister("given")

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """Run the statements inside in one transaction.

        Raises:
            LakeConflictError: another writer committed first; nothing is stored.
            LakeError: as `run`; nothing is stored.
        """
        self.run("begin")
        try:
            yield
            self.run("commit")
        except BaseException:
            # Always by a statement: without it, a lost session would end the process.
            with suppress(duckdb.Error):
                self.connection.execute("rollback")
            raise

    def commit(self, work: Callable[[], Result]) -> Result:
        """Run the work in a transaction, and all of it again where another writer committed first.

        Raises:
            LakeConflictError: it failed for that reason every time.
            LakeError: as `run`; nothing is stored.
        """
        for attempt in range(1, _ATTEMPTS + 1):
            try:
                with self.transaction():
                    return work()
            except LakeConflictError:
                if attempt == _ATTEMPTS:
                    raise
                # At random, so that writers without the lock do not meet again and again.
                time.sleep(_POLL_SECONDS * random.uniform(0, attempt))  # nosec B311 # no secret
        raise AssertionError

    def _told(self, words: str) -> LakeError:
        # The text of a statement that took too long may look like a conflict.
        if _CONFLICT.search(words) and _STOPPED not in words:
            return LakeConflictError(f"{self._network}: another writer committed to the lake first")
        for secret in self._secrets:
            words = words.replace(secret, "...")
        return unreachable(self._network, words)


class Answer:
    """The rows of a statement; the lake may fail while they are fetched."""

    def __init__(self, opened: OpenLake, result: duckdb.DuckDBPyConnection) -> None:
        self._opened = opened
        self._result = result

    def fetchone(self) -> tuple[Any, ...] | None:
        """Return the next row; None at the end."""
        with self._opened.naming_errors():
            return self._result.fetchone()

    def fetchall(self) -> list[tuple[Any, ...]]:
        """Return all rows."""
        with self._opened.naming_errors():
            return self._result.fetchall()

    def pl(self) -> "pl.DataFrame":
        """Return all rows as a frame."""
        with self._opened.naming_errors():
            return self._result.pl()


def unreachable(network: str, words: str) -> LakeError:
    """Return the error for a catalogue or store that does not answer, with words of PostgreSQL or of the store."""
    words = " ".join(words.split())
    # The statement before it may be long.
    reason = words[max(words.find("ERROR: "), 0) :][:300]
    return LakeError(
        f"{network}: the lake does not answer, or refuses; check PostgreSQL and the store of LEDGERMART_LAKE_DATA: "
        f"{reason}"
    )


class Lake:
    """The lake of one network.

    Args:
        place: where it is.
        network: name of the network.
        tables: columns of each table, by name and type; missing ones are created by the first writer.
        temporary: folder for what does not fit into memory.
    """

    def __init__(
        self, place: LakePlace, network: str, tables: Mapping[str, Sequence[tuple[str, str]]], temporary: Path
    ) -> None:
        self.network = network
        self._place = place
        self._tables = tables
        self._temporary = temporary

    @property
    def schema(self) -> str:
        """Schema of the lake's catalogue in PostgreSQL."""
        return f"lake_{self.network}"

    @property
    def folder(self) -> str:
        """Folder of the lake's files, with a slash at its end."""
        return f"{self._place.data.rstrip('/')}/{self.network}/"

    @contextmanager
    def open(self, *, is_read_only: bool = False) -> Iterator[OpenLake]:
        """Open the lake, and close it at the end of the block; create missing tables.

        Args:
            is_read_only: change and create nothing.

        Raises:
            LakeError: it cannot be opened, or a column's type is not exact.
            ExtensionError: an extension of DuckDB is not installed.
        """
        with closing(quiet(duckdb.connect())) as connection:
            self._prepare(connection)
            with self._naming_errors():
                limits = limited(self._place.catalogue)
            opened = OpenLake(connection, self.network, limits)
            catalogue = literal(f"ducklake:postgres:{limits}")
            options = [f"data_path {literal(self.folder)}", f"metadata_schema {literal(self.schema)}"]
            options += ["read_only" if is_read_only else "data_inlining_row_limit 0"]
            opened.run(f"attach {catalogue} as lake ({', '.join(options)})")
            try:
                if not is_read_only:
                    opened.commit(lambda: self._create_missing(opened))
                self._check_columns(opened)
                yield opened
            finally:
                # Closing alone would leave a session in PostgreSQL after each failed commit.
                with suppress(duckdb.Error):
                    connection.execute("detach lake")

    def _prepare(self, connection: duckdb.DuckDBPyConnection) -> None:
        connection.execute("set autoinstall_known_extensions = false; set autoload_known_extensions = false")
        connection.execute(f"set memory_limit = '{_MEMORY_MB}MB'; set threads = {_THREADS}; set timezone = 'UTC'")
        self._temporary.mkdir(parents=True, exist_ok=True)
        connection.execute(f"set temp_directory = {literal(self._temporary / f'lake-{self.network}')}")
        for name in ("postgres_scanner", "ducklake"):
            load_extension(connection, name)
        if self._place.data.startswith(S3):
            allow_s3(connection)
        # A repeated commit would not read again.
        connection.execute("set ducklake_max_retry_count = 0")

    def _create_missing(self, opened: OpenLake) -> None:
        known = set(
            opened.run(
                "select table_name, column_name from duckdb_columns() where database_name = 'lake' and not internal"
            ).fetchall()
        )
        for table, columns in self._tables.items():
            if not any((table, name) in known for name, _ in columns):
                opened.run(f"create table lake.{table} ({', '.join(f'{name} {type_}' for name, type_ in columns)})")
                continue
            for name, type_ in columns:
                if (table, name) not in known:
                    opened.run(f"alter table lake.{table} add column {name} {type_}")

    def _check_columns(self, opened: OpenLake) -> None:
        for (view,) in opened.run("select view_name from duckdb_views() where database_name = 'lake'").fetchall():
            raise LakeError(f"{self.network}: the lake has a view {view}, which could read other files; drop it")
        expected = {(table, name): type_ for table, columns in self._tables.items() for name, type_ in columns}
        for table, column, type_ in opened.run(
            "select table_name, column_name, data_type from duckdb_columns() where database_name = 'lake'"
        ).fetchall():
            if _INEXACT.search(type_):
                raise LakeError(
                    f"{self.network}: the lake's column {table}.{column} has the type {type_}, which is not exact "
                    "there; amounts are text"
                )
            wanted = expected.get((table, column), type_)
            if type_.lower() != wanted.lower():
                raise LakeError(f"{self.network}: the lake's column {table}.{column} is {type_}, and not {wanted}")

    @contextmanager
    def writing(self, purpose: str, wait_seconds: float) -> Iterator[OpenLake]:
        """Open the lake as its only writer.

        Args:
            purpose: description of the work, shown to writers that wait.
            wait_seconds: longest wait for another writer.

        Raises:
            LakeBusyError: another writer holds the lake; the message names it.
            LakeError: as `open`.
        """
        with self._naming_errors():
            with session_lock(self._place.catalogue, f"ledgermart {self.schema}", purpose, wait_seconds):
                with self.open() as opened:
                    yield opened

    @contextmanager
    def bulk_run(self, wait_seconds: float) -> Iterator[None]:
        """Be the only bulk run of the network during the block. Shards leave its history to this run.

        Args:
            wait_seconds: longest wait for another one.

        Raises:
            LakeBusyError: another bulk run collects the network; the message names it.
            LakeError: PostgreSQL does not answer, or refuses.
        """
        with self._naming_errors("the history is being collected"):
            with session_lock(self._place.catalogue, self._bulk_lock, "bulk history", wait_seconds):
                yield

    def has_bulk_run(self) -> bool:
        """Return whether a bulk run collects the history of the network.

        Raises:
            LakeError: PostgreSQL does not answer, or refuses.
        """
        with self._naming_errors():
            return is_held(self._place.catalogue, self._bulk_lock)

    @property
    def _bulk_lock(self) -> str:
        return f"ledgermart history {self.schema}"

    @contextmanager
    def _naming_errors(self, busy: str = "the lake is being written") -> Iterator[None]:
        """Turn errors of sessions and their locks into LakeError; `busy` names the work of a lock's holder."""
        try:
            yield
        except SessionLockBusyError as error:
            raise LakeBusyError(f"{self.network}: {busy} by {error.holder}") from error
        except SessionLockError as error:
            raise unreachable(self.network, str(error)) from error

    def tidy(self, keep: timedelta, wait_seconds: float) -> Tidied:
        """Merge small files, expire snapshots that are older than `keep`, and delete files unused for that long.

        Replaced files stay for `keep`. A catalogue that is restored from a younger backup thus finds all of its files.

        Raises:
            LakeError, LakeBusyError: as `writing`; completed steps stay.
        """
        older = {"seconds": keep.total_seconds()}
        before = "older_than => now() - to_seconds($seconds)"
        with self.writing("upkeep", wait_seconds) as opened:
            rewritten = opened.run(
                "select files_processed from ducklake_rewrite_data_files('lake', delete_threshold => ?)",
                [_REWRITE_SHARE],
            ).fetchall()
            merged = opened.run("select files_processed from ducklake_merge_adjacent_files('lake')").fetchall()
            expired = opened.run(f"from ducklake_expire_snapshots('lake', {before})", older).fetchall()
            deleted = opened.run(f"from ducklake_cleanup_old_files('lake', {before})", older).fetchall()
        return Tidied(sum(count for (count,) in [*rewritten, *merged]), len(expired), len(deleted))

    def orphans(self, keep: timedelta, wait_seconds: float, *, is_deleted: bool) -> list[str]:
        """Return the files without an entry in the catalogue that are older than `keep`.

        Killed writers leave them. The newest files of a catalogue that was restored from a backup are such files, too.

        Args:
            keep: least age; younger files may be of a transaction that another writer has not committed yet.
            is_deleted: delete them.

        Raises:
            LakeError, LakeBusyError: as `writing`.
        """
        with self.writing("deletion of orphaned files", wait_seconds) as opened:
            found = opened.run(
                "select path from ducklake_delete_orphaned_files('lake', older_than => now() - to_seconds($seconds), "
                "dry_run => $is_kept)",
                {"seconds": keep.total_seconds(), "is_kept": not is_deleted},
            ).fetchall()
        return sorted(path for (path,) in found)

    def clear(self, opened: OpenLake) -> None:
        """Delete the rows of all tables in one transaction."""
        opened.commit(lambda: [opened.run(f"delete from lake.{name}") for name in self._tables])  # nosec B608 # our names

    def exists(self) -> bool:
        """Return whether the catalogue has the lake.

        Raises:
            LakeError: PostgreSQL does not answer, or refuses.
        """
        with self._naming_errors(), open_session(self._place.catalogue, "a check") as session:
            row = session.execute("select to_regclass(%s)", [f"{self.schema}.ducklake_metadata"]).fetchone()
        return row is not None and row[0] is not None

    def check_store(self) -> None:
        """Check that the store of the lake's files answers.

        Raises:
            LakeError: it does not, or the folder does not exist.
            ExtensionError: an extension of DuckDB is not installed.
        """
        if not self._place.data.startswith(S3):
            if not Path(self._place.data).is_dir():
                raise LakeError(f"{self.network}: there is no folder {self._place.data}; mount or create it")
            return
        with closing(quiet(duckdb.connect())) as connection:
            self._prepare(connection)
            opened = OpenLake(connection, self.network, self._place.catalogue)
            # No file has this prefix, so the answer is short.
            opened.run("from glob(?)", [f"{self.folder}none/*"]).fetchall()

    def check_lock(self) -> None:
        """Check that PostgreSQL keeps a lock for the session that took it.

        Raises:
            LakeError: PostgreSQL does not answer, or a pooler gives the session to others between transactions.
        """
        with self._naming_errors():
            if not is_direct(self._place.catalogue):
                raise LakeError(
                    f"{self.network}: LEDGERMART_LAKE leads to a pooler in transaction mode, which loses locks; "
                    "set it to the address of PostgreSQL itself"
                )
