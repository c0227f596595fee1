"""Facts of one network that several machines share: a DuckLake with its catalogue in PostgreSQL.

Its files are Parquet in a store with the protocol of S3, or in a shared folder. Every commit is a compare-and-swap on
the number of the lake's newest snapshot, so transactions have a serial order. One writer at a time holds a session lock
of PostgreSQL; the lock only saves repeated work, and a writer that has lost it changes nothing.
"""

import re
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import duckdb

from warehouse.extensions import load_extension
from warehouse.opening import literal, quiet
from warehouse.s3 import PREFIX, allow_s3
from warehouse.session_lock import SessionLockBusyError, SessionLockError, session_lock

Result = TypeVar("Result")

_MEMORY_MB = 512
_THREADS = 2
_ATTEMPTS = 10
_POLL_SECONDS = 0.1
# DuckLake stores these as floating-point numbers, or not at all.
_INEXACT = re.compile(r"\b(U?HUGEINT|BIGNUM|FLOAT|DOUBLE|REAL)\b")
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


class OpenLake:
    """An open lake, as the database `lake` of a query engine of its own: its failures touch no other database."""

    def __init__(self, connection: duckdb.DuckDBPyConnection, network: str, catalogue: str) -> None:
        # Only where a lake is configured.
        from psycopg.conninfo import conninfo_to_dict

        self.connection = connection
        self._network = network
        self._secrets = [catalogue, str(conninfo_to_dict(catalogue).get("password") or catalogue)]

    def run(self, statement: str, parameters: Sequence[Any] | Mapping[str, Any] = ()) -> duckdb.DuckDBPyConnection:
        """Execute a statement, which names its tables as `lake.<table>`.

        Raises:
            LakeConflictError: another writer committed first.
            LakeError: catalogue or store do not answer, or refuse.
        """
        try:
            return self.connection.execute(statement, parameters)
        except (duckdb.CatalogException, duckdb.BinderException, duckdb.ParserException, duckdb.ConversionException):
            # A defect of the statement or the data, not of the lake.
            raise
        except duckdb.Error as error:
            # Without its cause, whose words hold the password.
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
            # Always by a statement: the end of a transaction whose session is lost would end the process.
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
                time.sleep(_POLL_SECONDS * attempt)
        raise AssertionError

    def snapshot(self) -> int:
        """Return the number of the newest snapshot."""
        row = self.run("select id from ducklake_current_snapshot('lake')").fetchone()
        assert row is not None
        return int(row[0])

    def _told(self, words: str) -> LakeError:
        if _CONFLICT.search(words):
            return LakeConflictError(f"{self._network}: another writer committed to the lake first")
        for secret in self._secrets:
            words = words.replace(secret, "...")
        return unreachable(self._network, words)


def unreachable(network: str, words: str) -> LakeError:
    """Return the error for a catalogue or store that does not answer, with words of PostgreSQL or of the store."""
    return LakeError(
        f"{network}: the lake does not answer, or refuses; check PostgreSQL and the store of LEDGERMART_LAKE_DATA: "
        f"{' '.join(words.split())[:300]}"
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

    @contextmanager
    def open(self) -> Iterator[OpenLake]:
        """Open the lake, and close it at the end of the block; create what is missing of it.

        Raises:
            LakeError: it cannot be opened, or has a column whose numbers would not be exact.
            ExtensionError: an extension of DuckDB is not installed.
        """
        with closing(quiet(duckdb.connect())) as connection:
            self._prepare(connection)
            opened = OpenLake(connection, self.network, self._place.catalogue)
            catalogue = literal(f"ducklake:postgres:{self._place.catalogue}")
            data = literal(f"{self._place.data.rstrip('/')}/{self.network}/")
            opened.run(
                f"attach {catalogue} as lake "
                f"(data_path {data}, metadata_schema {literal(self.schema)}, data_inlining_row_limit 0)"
            )
            try:
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
        connection.execute(f"set temp_directory = {literal(self._temporary / f'lake-{self.network}')}")
        for name in ("postgres_scanner", "ducklake"):
            load_extension(connection, name)
        if self._place.data.startswith(PREFIX):
            allow_s3(connection)
        # A repeated commit would not look again at what the transaction has read.
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
        for table, column, type_ in opened.run(
            "select table_name, column_name, data_type from duckdb_columns() where database_name = 'lake'"
        ).fetchall():
            if _INEXACT.search(type_):
                raise LakeError(
                    f"{self.network}: the lake's column {table}.{column} has the type {type_}, whose numbers would not "
                    "be exact there; amounts are text"
                )

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
        try:
            with session_lock(self._place.catalogue, f"ledgermart {self.schema}", purpose, wait_seconds):
                with self.open() as opened:
                    yield opened
        except SessionLockBusyError as error:
            raise LakeBusyError(f"{self.network}: the lake is being written by {error.holder}") from error
        except SessionLockError as error:
            raise unreachable(self.network, str(error)) from error
