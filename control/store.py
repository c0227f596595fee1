"""The control store's database: how it is opened, migrated, read and written.

Works on an SQLite file and, by URL alone, on Postgres. The rules decide about the content of writes.
"""

import fcntl
import os
import secrets
import sqlite3
import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import quote

from alembic import command
from alembic.config import Config
from alembic.runtime.migration import MigrationContext
from alembic.script import ScriptDirectory
from alembic.util.exc import CommandError
from sqlalchemy import Connection, Engine, create_engine, event, select, text
from sqlalchemy.engine import URL, ExceptionContext, make_url
from sqlalchemy.exc import (
    DatabaseError,
    DBAPIError,
    DisconnectionError,
    InterfaceError,
    OperationalError,
    ProgrammingError,
    TimeoutError,
)
from sqlalchemy.orm import Session

from control import quotas, service_secrets
from control.aside import set_aside
from control.errors import StoreLost, StoreUnavailable
from control.models import ServiceSecret
from control.postgres import connection_limits
from control.settings import Settings

_WAIT_SECONDS = 10
_DAMAGE = (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_IOERR_SHORT_READ)
"""Codes of SQLite's errors that a damaged file causes."""
RESTORE = "restore a backup with `ledgermart restore` (docs/how-to/backup-and-upgrade.md)"
# Of one process. The API's threads for reads, writes and keys need one each, on machines of up to 16 cores.
_MOST_CONNECTIONS = 40

_MIGRATION_LOCK = 0x6C65646765726D31  # key of the Postgres advisory lock that one migration at a time holds
_SECRET_BYTES = 32


class ControlStore:
    """One process's access to the control store; safe to share among threads."""

    def __init__(self, engine: Engine, limits: quotas.Defaults) -> None:
        self._engine = engine
        self._info = quotas.session_info(limits)
        if engine.dialect.name == "sqlite":
            self._reader = engine.execution_options(ledgermart_access="read")
            self._writer = engine.execution_options(ledgermart_access="write")
            self._impatient = engine.execution_options(ledgermart_access="write at once")
        else:
            self._reader = engine.execution_options(isolation_level="REPEATABLE READ", postgresql_readonly=True)
            self._writer = self._impatient = engine.execution_options(isolation_level="READ COMMITTED")

    @property
    def has_one_writer(self) -> bool:
        """Return whether the database admits one writer at a time, as SQLite does."""
        return self._engine.dialect.name == "sqlite"

    def migrate(self) -> None:
        """Create the store or bring its schema up to date, in one transaction; several processes may call it at once.

        Also makes the service's own secrets that do not exist yet.

        Raises:
            StoreUnavailable: not reachable, or made by a newer version of Ledgermart.
        """
        with self._translated(), self._migration_lock(), self._writer.begin() as connection:
            if connection.dialect.name == "postgresql":
                connection.execute(text("select pg_advisory_xact_lock(:key)"), {"key": _MIGRATION_LOCK})
            config = _alembic_config()
            config.attributes["connection"] = connection
            try:
                command.upgrade(config, "head")
            except CommandError as error:
                raise StoreUnavailable("the control store was made by another version", str(error)) from error
            _add_missing_secrets(connection)

    def exists(self) -> bool:
        """Return whether the database holds a control store, of any release; creates nothing.

        Raises:
            StoreUnavailable: not reachable or damaged.
        """
        path = self._sqlite_path()
        if path is not None and not (path.exists() and path.stat().st_size):
            return False
        with self._translated(), self._reader.connect() as connection:
            return MigrationContext.configure(connection).get_current_revision() is not None

    def damage(self) -> str | None:
        """Return the error of a damaged SQLite file, with the fix; None if it is whole or missing, or of a server."""
        path = self._sqlite_path()
        fault = None if path is None or not path.exists() else find_damage(path)
        return None if fault is None else f"the control store {path} is damaged ({fault}); {RESTORE}"

    def set_aside_damaged(self) -> None:
        """Rename the file of a damaged SQLite database, with its logs, so that `migrate` makes a new one."""
        path = self._sqlite_path()
        if path is not None and self.damage() is not None:
            self.close()
            set_aside(path, ["-wal", "-shm"])

    @property
    def place(self) -> str:
        """The database's file; of a server, the setting that names it, because its URL may hold a password."""
        return str(self._sqlite_path() or "LEDGERMART_CONTROL_URL")

    def is_current(self) -> bool:
        """Say whether the store exists with the schema of this version; creates nothing.

        Raises:
            StoreUnavailable: not reachable.
        """
        path = self._sqlite_path()
        if path is not None and not path.exists():
            return False
        with self._translated(), self._reader.connect() as connection:
            stored = MigrationContext.configure(connection).get_current_revision()
        return stored == ScriptDirectory.from_config(_alembic_config()).get_current_head()

    @contextmanager
    def write(self) -> Iterator[Session]:
        """Open one write transaction: committed when the block ends, rolled back when it raises.

        SQLite admits one writer at a time from the start of the block; Postgres locks row by row. Objects stay
        usable after the block.

        Raises:
            StoreUnavailable: not reachable, locked for too long, or not migrated.
        """
        with self._translated(), self._session(self._writer) as session, session.begin():
            yield session

    @contextmanager
    def write_at_once(self) -> Iterator[Session]:
        """Open one write transaction as `write` does, but wait for no other writer.

        Raises:
            StoreUnavailable: as `write`, or another writer holds the lock.
        """
        with self._translated(), self._session(self._impatient) as session, session.begin():
            if session.get_bind().dialect.name == "postgresql":
                session.execute(text("set local lock_timeout = '1ms'"))
            yield session

    @contextmanager
    def read(self) -> Iterator[Session]:
        """Open one read-only transaction; every statement in it sees the same state.

        Raises:
            StoreUnavailable: not reachable or not migrated.
        """
        with self._translated(), self._session(self._reader) as session, session.begin():
            yield session

    def close(self) -> None:
        """Close all connections."""
        self._engine.dispose()

    def _session(self, engine: Engine) -> Session:
        return Session(engine, expire_on_commit=False, info=self._info)

    def _sqlite_path(self) -> Path | None:
        return sqlite_file(self._engine.url)

    @contextmanager
    def _translated(self) -> Iterator[None]:
        path = self._sqlite_path()
        try:
            yield
        except (DatabaseError, InterfaceError) as error:
            if lost := _loss(path, error):
                raise StoreLost(f"the control store {path} {lost}; {RESTORE}") from error
            # A wrong parameter of the URL is an error of no statement; one of a statement is a mistake in it.
            is_mistake = isinstance(error, ProgrammingError) and error.statement is not None
            if is_mistake or not isinstance(error, OperationalError | InterfaceError | ProgrammingError):
                raise
            # The driver names hosts and files, never the password, on several lines and with advice.
            raise StoreUnavailable("the control store cannot be used", " ".join(str(error.orig).split())) from error
        except sqlite3.OperationalError as error:
            # SQLAlchemy does not wrap errors of statements outside its transactions.
            raise StoreUnavailable("the control store cannot be used", str(error)) from error
        except TimeoutError as error:
            raise StoreUnavailable("the control store has no free connection") from error

    @contextmanager
    def _migration_lock(self) -> Iterator[None]:
        """For SQLite: hold a lock file while the database file is made, for only its owner to read, in WAL mode."""
        path = self._sqlite_path()
        if path is None:
            yield
            return
        path.parent.mkdir(parents=True, exist_ok=True)
        lock = os.open(path.with_name(path.name + ".migrate.lock"), os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(lock, fcntl.LOCK_EX)
            os.close(os.open(path, os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o600))
            with self._engine.connect() as connection:
                # WAL is a property of the file; it cannot be set inside a transaction.
                connection.connection.cursor().execute("pragma journal_mode = wal")
            yield
        finally:
            os.close(lock)


def sqlite_file(url: URL) -> Path | None:
    """Return the file of a control store; None if it is a PostgreSQL database."""
    return Path(str(url.database)) if url.get_backend_name() == "sqlite" else None


def find_damage(path: Path) -> str | None:
    """Read the structure of an SQLite file; return the first fault, None if it is whole.

    Raises:
        sqlite3.DatabaseError: it cannot be read for another reason.
    """
    try:
        with closing(sqlite3.connect(f"file:{quote(str(path))}?mode=rw", uri=True)) as connection:
            (found,) = connection.execute("pragma quick_check(1)").fetchone()
    except sqlite3.DatabaseError as error:
        if not _is_damage(error):
            raise
        return str(error)
    if not path.stat().st_size:
        return "it is empty"
    return None if found == "ok" else str(found)


def open_store(settings: Settings, wait_seconds: int = _WAIT_SECONDS) -> ControlStore:
    """Open the control store of the settings; it connects at first use, and creates nothing before `migrate`.

    Args:
        settings: name the database.
        wait_seconds: longest wait for a connection, or for the lock of another writer; then the store is unavailable.
    """
    url = make_url(settings.control_url)
    limits = quotas.Defaults(settings.max_stored_prices, settings.max_objects, settings.max_scripts)
    if sqlite_file(url) is not None:
        return ControlStore(_sqlite_engine(url, wait_seconds), limits)
    return ControlStore(_postgres_engine(url.set(drivername="postgresql+psycopg"), wait_seconds), limits)


def _postgres_engine(url: URL, wait_seconds: int) -> Engine:
    return create_engine(
        url,
        hide_parameters=True,
        pool_pre_ping=True,
        connect_args=connection_limits(wait_seconds, "-c timezone=UTC"),
        max_overflow=_MOST_CONNECTIONS - 5,
    )


def _sqlite_engine(url: URL, wait_seconds: int) -> Engine:
    file = Path(str(url.database))
    path = quote(str(file))

    def connect() -> sqlite3.Connection:
        # mode=rw: only `migrate` makes the file; anyone else must not leave an empty one behind.
        return sqlite3.connect(f"file:{path}?mode=rw", uri=True, timeout=wait_seconds, check_same_thread=False)

    # Logged errors name no parameters, such as the descriptors of wallets.
    engine = create_engine(url, creator=connect, hide_parameters=True, max_overflow=_MOST_CONNECTIONS - 5)

    known = _KnownFile(file)

    @event.listens_for(engine, "handle_error")
    def note_damage(context: ExceptionContext) -> None:
        if context.connection is not None and _is_damage(context.original_exception):
            known.note_damage(context.connection.info["file"], context.original_exception)

    @event.listens_for(engine, "connect")
    def set_up(dbapi_connection: Any, record: Any) -> None:
        record.info["file"] = file.stat().st_ino
        dbapi_connection.isolation_level = None  # the driver sends no BEGIN of its own; `begin` below does
        dbapi_connection.execute("pragma foreign_keys = on")
        dbapi_connection.execute("pragma synchronous = full")  # a committed key or window survives a power cut

    @event.listens_for(engine, "checkout")
    def follow(_dbapi_connection: Any, record: Any, _proxy: Any) -> None:
        # A restored file has another inode: leave the one that was deleted.
        if file.exists() and file.stat().st_ino != record.info["file"]:
            raise DisconnectionError

    @event.listens_for(engine, "begin")
    def begin(connection: Connection) -> None:
        access = connection.get_execution_options().get("ledgermart_access")
        if access is None:
            return
        fault = known.fault()
        if fault is not None and access != "read":
            raise StoreLost(f"the control store {file} {fault}; {RESTORE}")
        connection.exec_driver_sql(f"pragma query_only = {'on' if access == 'read' else 'off'}")
        patience = 0 if access == "write at once" else wait_seconds * 1000
        connection.exec_driver_sql(f"pragma busy_timeout = {patience}")
        connection.exec_driver_sql("begin" if access == "read" else "begin immediate")

    return engine


class _KnownFile:
    """An SQLite file as this process has seen it.

    SQLite writes on into a file that was deleted, cut or damaged. Such a write is acknowledged, and lost when a backup
    is restored.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._lock = threading.Lock()
        self._bytes: dict[int, int] = {}
        self._damage: dict[int, str] = {}

    def note_damage(self, inode: int, error: BaseException) -> None:
        """Keep an error: no write goes into that file any more, only into one that takes its place."""
        self._damage[inode] = str(error)

    def fault(self) -> str | None:
        """Look at the file; return why a write into it would be lost, None if there is no such reason."""
        # With the lock, a look never compares with the size of a later one: the file grows.
        with self._lock:
            try:
                found = self._path.stat()
            except FileNotFoundError:
                return "is missing"
            before = self._bytes.setdefault(found.st_ino, found.st_size)
            if found.st_size < before:
                return f"is damaged (it had {before} bytes, and has {found.st_size})"
            self._bytes[found.st_ino] = found.st_size
            damage = self._damage.get(found.st_ino)
            return None if damage is None else f"is damaged ({damage})"


def _is_damage(error: BaseException | None) -> bool:
    return getattr(error, "sqlite_errorcode", None) in _DAMAGE


def _loss(path: Path | None, error: DBAPIError) -> str | None:
    """Describe the loss or damage of an SQLite file; return None if the error has another cause."""
    if path is None:
        return None
    if _is_damage(error.orig):
        return f"is damaged ({error.orig})"
    return None if path.exists() else "is missing"


def _alembic_config() -> Config:
    config = Config()
    config.set_main_option("script_location", "control:migrations")
    return config


def _add_missing_secrets(connection: Connection) -> None:
    with Session(connection) as session:
        stored = set(session.scalars(select(ServiceSecret.name)))
        session.add_all(
            ServiceSecret(name=name, value=secrets.token_bytes(_SECRET_BYTES))
            for name in service_secrets.NAMES
            if name not in stored
        )
        session.flush()
