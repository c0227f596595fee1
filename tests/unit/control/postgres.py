"""A Postgres server of the tests' own, made of Debian's binaries, on loopback and in a folder of its own."""

import os
import pwd
import shutil
import socket
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psycopg
from psycopg import sql

_INSTALL = "apt-get install -y postgresql"


@contextmanager
def running_postgres() -> Iterator[str]:
    """Start a server and give the URL of its database `postgres`; stops it and removes its files at the end."""
    binaries = _binaries()
    home = Path(tempfile.mkdtemp(prefix="ledgermart-pg-"))
    prefix = _as_other_user(home)
    try:
        # A linguistic order by default, so that a query that leaves its order to the database is seen.
        locale = ["--locale-provider=icu", "--icu-locale=en-US", "--locale=C.UTF-8", "-E", "UTF8"]
        initdb: list[str | Path] = [
            *prefix,
            binaries / "initdb",
            "-D",
            home / "data",
            "-U",
            "ledgermart",
            "-A",
            "trust",
            "--no-sync",
        ]
        _run([*initdb, *locale], home)
        port = _start(binaries, prefix, home)
        try:
            yield f"postgresql://ledgermart@127.0.0.1:{port}/postgres"
        finally:
            _run([*prefix, binaries / "pg_ctl", "stop", "-D", home / "data", "-m", "immediate", "-w"], home)
    finally:
        shutil.rmtree(home)


@contextmanager
def new_database(server_url: str, name: str) -> Iterator[str]:
    """Create an empty database on the server, give its URL, and drop it with whoever is connected."""
    with psycopg.connect(server_url, autocommit=True) as connection:
        # Copying files takes a fifth of what the default takes, which writes every page to the log as well.
        connection.execute(f'create database "{name}" strategy file_copy')
    try:
        yield server_url.rpartition("/")[0] + f"/{name}"
    finally:
        with psycopg.connect(server_url, autocommit=True) as connection:
            connection.execute(f'drop database "{name}" with (force)')


class Restored:
    """A database that is brought back to the rows that it has now, again and again; its tables stay as they are.

    Copying a database, and dropping the copy, takes a hundred times as long as most tests.

    Args:
        url: of the database, with the right to end the sessions of others.
    """

    def __init__(self, url: str) -> None:
        self.url = url
        self._connection = psycopg.connect(url, autocommit=True)
        found = self._connection.execute("select tablename from pg_tables where schemaname = 'public'").fetchall()
        tables = [sql.Identifier(name) for (name,) in found]
        sequences = self._connection.execute("select sequencename, last_value from pg_sequences").fetchall()
        self._connection.execute("create schema kept")
        for table in tables:
            self._connection.execute(sql.SQL("create table kept.{0} as table public.{0}").format(table))
        # Rows of all tables at once, in whatever order: foreign keys are triggers, and do not fire for a replica.
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
        """End the sessions of whoever is connected, and bring the rows back."""
        others = "from pg_stat_activity where datname = current_database() and pid <> pg_backend_pid()"
        self._connection.execute(f"select pg_terminate_backend(pid, 10000) {others}")
        with self._connection.transaction():
            self._connection.execute(self._restore)

    def close(self) -> None:
        """Disconnect."""
        self._connection.close()


def _start(binaries: Path, prefix: list[str], home: Path) -> int:
    """Start the server on a free port, on another one when somebody else took it meanwhile."""
    for _ in range(3):
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            port = int(probe.getsockname()[1])
        options = f"-p {port} -c listen_addresses=127.0.0.1 -c unix_socket_directories={home} -c fsync=off"
        command: list[str | Path] = [
            *prefix,
            binaries / "pg_ctl",
            "start",
            "-D",
            home / "data",
            "-l",
            home / "log",
            "-w",
            "-o",
            options,
        ]
        if subprocess.run(command, cwd=home, stdout=subprocess.DEVNULL, check=False).returncode == 0:
            return port
    raise RuntimeError(f"Postgres did not start: {(home / 'log').read_text()}")


def _binaries() -> Path:
    found = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"), key=lambda path: int(path.parts[4]))
    if not found:
        raise RuntimeError(f"Postgres is not installed; run: {_INSTALL}")
    return found[-1].parent


def _as_other_user(home: Path) -> list[str]:
    """Postgres refuses to run as root: then run it as `postgres`, whom the package makes, and give it the folder."""
    if os.geteuid() != 0:
        return []
    user = pwd.getpwnam("postgres")
    os.chown(home, user.pw_uid, user.pw_gid)
    return ["setpriv", f"--reuid={user.pw_uid}", f"--regid={user.pw_gid}", "--clear-groups"]


def _run(command: list[str | Path], home: Path) -> None:
    done = subprocess.run(command, cwd=home, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise RuntimeError(f"{command} failed: {done.stdout}{done.stderr}")
