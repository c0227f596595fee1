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
def new_database(server_url: str, name: str, template: str | None = None) -> Iterator[str]:
    """Create a database on the server, as a copy or empty, give its URL, and drop it with whoever is connected."""
    with psycopg.connect(server_url, autocommit=True) as connection:
        # Copying files takes a fifth of what the default takes, which writes every page to the log as well.
        copied = f'template "{template}"' if template else ""
        connection.execute(f'create database "{name}" {copied} strategy file_copy')
    try:
        yield server_url.rpartition("/")[0] + f"/{name}"
    finally:
        with psycopg.connect(server_url, autocommit=True) as connection:
            connection.execute(f'drop database "{name}" with (force)')


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
