"""A Postgres server for tests, from Debian's binaries: on the loopback interface, in a temporary folder."""

import os
import pwd
import shutil
import socket
import subprocess
import tempfile
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TypedDict

import psycopg
from psycopg import sql

_INSTALL = "apt-get install -y postgresql"
# A linguistic order by default: it reveals a query that leaves its order to the database.
_LOCALE = ["--locale-provider=icu", "--icu-locale=en-US", "--locale=C.UTF-8", "-E", "UTF8"]
_INITDB = ["-U", "ledgermart", "-A", "trust", "--no-sync", *_LOCALE]


class Server(TypedDict):
    """A running server: the URL of its database `postgres`, and the folder of its files."""

    url: str
    home: str


def start_postgres() -> Server:
    """Start a server on a free port of the loopback interface."""
    binaries = _binaries()
    home = Path(tempfile.mkdtemp(prefix="ledgermart-pg-"))
    try:
        _as_owner(home, binaries / "initdb", *_INITDB, "-D", home / "data")
        return Server(url=f"postgresql://ledgermart@127.0.0.1:{_start(binaries, home)}/postgres", home=str(home))
    except BaseException:
        shutil.rmtree(home)
        raise


def stop_postgres(server: Server) -> None:
    """Stop the server and remove its files."""
    home = Path(server["home"])
    _as_owner(home, _binaries() / "pg_ctl", "stop", "-D", home / "data", "-m", "immediate", "-w")
    shutil.rmtree(home)


def restart_postgres(server: Server) -> None:
    """Restart the server on its port; every session ends without a warning."""
    home = Path(server["home"])
    _as_owner(home, _binaries() / "pg_ctl", "restart", "-D", home / "data", "-l", home / "log", "-m", "immediate", "-w")


def unique_name() -> str:
    """Return a name for a database that no other test or worker uses."""
    return f"t{uuid.uuid4().hex}"


@contextmanager
def new_database(server_url: str, name: str) -> Iterator[str]:
    """Create an empty database on the server, give its URL, and drop it with its sessions."""
    with psycopg.connect(server_url, autocommit=True) as connection:
        # Copying files is five times faster than the default, which also logs every page.
        connection.execute(f'create database "{name}" strategy file_copy')
    try:
        yield server_url.rpartition("/")[0] + f"/{name}"
    finally:
        with psycopg.connect(server_url, autocommit=True) as connection:
            connection.execute(f'drop database "{name}" with (force)')


RESETTING = "resetting"
"""Name of the session of `Restored`, which tests that end sessions spare."""


class Restored:
    """Database that can reset its rows to those at construction; its tables stay.

    Copying a database, and dropping the copy, takes a hundred times as long as most tests.

    Args:
        url: of the database, with the right to end the sessions of others.
    """

    def __init__(self, url: str) -> None:
        self.url = url
        self._connection = psycopg.connect(url, autocommit=True, application_name=RESETTING)
        found = self._connection.execute("select tablename from pg_tables where schemaname = 'public'").fetchall()
        tables = [sql.Identifier(name) for (name,) in found]
        sequences = self._connection.execute("select sequencename, last_value from pg_sequences").fetchall()
        self._connection.execute("create schema kept")
        for table in tables:
            self._connection.execute(sql.SQL("create table kept.{0} as table public.{0}").format(table))
        # A replica fires no triggers, so foreign keys do not restrict the order of the tables.
        restore = "delete from public.{0}; insert into public.{0} overriding system value table kept.{0};"
        self._restore = sql.Composed(
            [
                sql.SQL("set local session_replication_role = replica;"),
                *(sql.SQL(restore).format(table) for table in tables),
                *(
                    sql.SQL("select setval({}, {}, {});").format(name, value or 1, value is not None)
                    for name, value in sequences
                ),
            ]
        )

    def restore(self) -> None:
        """End all other sessions, and reset the rows."""
        others = "from pg_stat_activity where datname = current_database() and pid <> pg_backend_pid()"
        self._connection.execute(f"select pg_terminate_backend(pid, 10000) {others}")
        with self._connection.transaction():
            self._connection.execute(self._restore)

    def close(self) -> None:
        """Disconnect."""
        self._connection.close()


def _start(binaries: Path, home: Path) -> int:
    """Start the server on a free port, or on another one if a different process took the port meanwhile."""
    for attempt in range(3):
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            port = int(probe.getsockname()[1])
        options = f"-p {port} -c listen_addresses=127.0.0.1 -c unix_socket_directories={home} -c fsync=off"
        start = ["start", "-D", home / "data", "-l", home / "log", "-w", "-o", options]
        try:
            _as_owner(home, binaries / "pg_ctl", *start)
        except RuntimeError as error:
            if attempt == 2:
                error.add_note((home / "log").read_text())
                raise
        else:
            return port
    raise AssertionError


def _binaries() -> Path:
    found = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"), key=lambda path: int(path.parts[4]))
    if not found:
        raise RuntimeError(f"Postgres is not installed; run: {_INSTALL}")
    return found[-1].parent


def _as_owner(home: Path, *command: str | Path) -> None:
    """Run a command as a user that may run Postgres, and wait for it.

    Postgres refuses to run as root. Then the user `postgres`, made by Debian's package, gets the folder.
    """
    prefix: list[str] = []
    if os.geteuid() == 0:
        user = pwd.getpwnam("postgres")
        os.chown(home, user.pw_uid, user.pw_gid)
        prefix = ["setpriv", f"--reuid={user.pw_uid}", f"--regid={user.pw_gid}", "--clear-groups"]
    with (home / "output").open("w+") as output:
        done = subprocess.run([*prefix, *command], cwd=home, stdout=output, stderr=subprocess.STDOUT, check=False)
        if done.returncode != 0:
            output.seek(0)
            raise RuntimeError(f"{command} failed: {output.read()}")
