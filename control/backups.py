"""Copies of the control store: an SQLite file, or a dump of a PostgreSQL database by PostgreSQL's own programs."""

import os
import shutil
import sqlite3
import subprocess
from contextlib import closing
from pathlib import Path
from urllib.parse import quote

from sqlalchemy.engine import URL, make_url

from control.errors import StoreLost, StoreUnavailable
from control.models import PublishedVersion, Shard
from control.settings import Settings
from control.store import sqlite_file

SQLITE_COPY = "control.db"
POSTGRES_DUMP = "control.dump"
_WAIT_SECONDS = 10
_LOCK_WAIT = f"{_WAIT_SECONDS}s"
_MOST_ERROR = 300


def sqlite_path(settings: Settings) -> Path | None:
    """Return the file of the control store; None if it is a PostgreSQL database."""
    return sqlite_file(make_url(settings.control_url))


def copy_name(settings: Settings) -> str:
    """Return the name of a copy of the control store in a backup, which depends on the database."""
    return POSTGRES_DUMP if sqlite_path(settings) is None else SQLITE_COPY


def copy_store(settings: Settings, folder: Path) -> None:
    """Copy the control store as it is now into a folder, while other processes read and write it.

    Raises:
        StoreLost: it is missing or damaged.
        StoreUnavailable: PostgreSQL's program is missing, or reports an error.
    """
    source = sqlite_path(settings)
    if source is None:
        # A backup has no published versions. After a restore, the next publication begins a new epoch.
        without = [f"--exclude-table-data={table.__tablename__}" for table in (Shard, PublishedVersion)]
        options = ["--format=custom", "--compress=0", f"--lock-wait-timeout={_LOCK_WAIT}", *without]
        _run(settings, "pg_dump", [*options, f"--file={folder / POSTGRES_DUMP}"])
        return
    if not source.exists():
        raise StoreLost(f"the control store {source} is missing")
    copy = folder / SQLITE_COPY
    try:
        with closing(_open(source)) as read, closing(sqlite3.connect(copy)) as written:
            read.backup(written)
            # One file, which a copy of the folder cannot tear.
            written.execute("pragma journal_mode = delete")
        faults = find_faults(copy)
    except sqlite3.OperationalError as error:
        raise StoreUnavailable(f"the control store {source} cannot be copied: {error}") from error
    except sqlite3.DatabaseError as error:
        raise StoreLost(f"the control store {source} is damaged ({error})") from error
    if faults:
        raise StoreLost(f"the control store {source} is damaged ({faults[0]})")


def check_program(settings: Settings, name: str) -> None:
    """Check that a program of PostgreSQL is installed, if the control store needs it.

    Raises:
        StoreUnavailable: it is missing; the message names the package.
    """
    if sqlite_path(settings) is None and shutil.which(name) is None:
        raise StoreUnavailable(
            f"{name} is not installed, and the control store is a PostgreSQL database; install the package "
            "postgresql-client of the server's version"
        )


def load_dump(settings: Settings, dump: Path) -> None:
    """Restore a dump into the database of the settings, in one transaction.

    Raises:
        StoreUnavailable: the program is missing, or the database is not empty or not reachable; nothing was changed.
    """
    _run(settings, "pg_restore", ["--single-transaction", "--exit-on-error", "--no-owner", "--no-acl", str(dump)])


def find_faults(path: Path) -> list[str]:
    """Check the structure of an SQLite file and its references; return the faults, at most ten.

    SQLite stores no checksums: a changed letter inside a value is not found.

    Raises:
        sqlite3.DatabaseError: the file is no database, or is damaged so that it cannot be checked.
    """
    with closing(_open(path)) as connection:
        found = [" ".join(str(fault).split()) for (fault,) in connection.execute("pragma integrity_check(10)")]
        references = connection.execute("pragma foreign_key_check").fetchmany(10)
    faults = [] if found == ["ok"] else found
    return faults + [f"a row of {table} refers to a missing row of {parent}" for table, _, parent, _ in references]


def find_no_store(path: Path) -> str | None:
    """Open an SQLite file read-only; return why it is no control store, None if it is one."""
    try:
        with closing(sqlite3.connect(f"file:{quote(str(path))}?mode=ro&immutable=1", uri=True)) as connection:
            connection.execute("select version_num from alembic_version").fetchone()
    except sqlite3.DatabaseError as error:
        return str(error)
    return None


def _open(path: Path) -> sqlite3.Connection:
    """Open an SQLite file for reading; like any reader, the last one to close it removes its log files."""
    connection = sqlite3.connect(f"file:{quote(str(path))}?mode=rw", uri=True, timeout=_WAIT_SECONDS)
    connection.execute("pragma query_only = on")
    return connection


def _run(settings: Settings, program: str, arguments: list[str]) -> None:
    check_program(settings, program)
    url = make_url(settings.control_url)
    password = {} if url.password is None else {"PGPASSWORD": str(url.password)}
    # Other users can read a process's arguments, but not its environment.
    command = [program, *arguments, f"--dbname={_without_password(url)}", "--no-password"]
    environment = {**os.environ, **password, "PGCONNECT_TIMEOUT": str(_WAIT_SECONDS)}
    done = subprocess.run(command, env=environment, stdin=subprocess.DEVNULL, capture_output=True, check=False)
    if done.returncode != 0:
        words = " ".join(done.stderr.decode(errors="replace").split())[:_MOST_ERROR]
        raise StoreUnavailable(f"{program} failed (LEDGERMART_CONTROL_URL): {words}")


def _without_password(url: URL) -> str:
    plain = URL.create(
        "postgresql", username=url.username, host=url.host, port=url.port, database=url.database, query=url.query
    )
    return plain.render_as_string()
