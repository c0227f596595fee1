"""Processes with all modules imported: forked from one server that is prepared once by `dbt_warm`.

Each one has its own environment, files and exit code, like the console command and dbt. It skips the import of Dagster
and dbt and the parsing of the project, several seconds of processor time each. One server serves all pytest-xdist
workers of a run; it starts with the first request and ends with the run.
"""

import fcntl
import os
import pickle
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from tests import costs
from tests.shared import worker

_CHECKOUT = Path(__file__).parents[2]
# The server that this process started, if any: a lost reference to a running process is a warning.
_servers: list[subprocess.Popen[bytes]] = []


def run_forked(
    run: Callable[..., None],
    arguments: Sequence[Any],
    environment: Mapping[str, str] | None = None,
    folder: Path | None = None,
) -> subprocess.CompletedProcess[str]:
    """Run a module's function in a separate process, like `subprocess.run`.

    Args:
        run: returns on success, and raises SystemExit or another exception on failure.
        environment: all variables; default: those of the server.
        folder: working directory.

    The process is killed if the caller stops waiting for it.
    """
    with tempfile.TemporaryDirectory() as name, _connect() as connection:
        printed = [Path(name) / stream for stream in ("out", "err")]
        with connection.makefile("rwb") as stream:
            pickle.dump((run, tuple(arguments), environment, folder, printed), stream)
            stream.flush()
            ended = stream.readline()
        if not ended:
            raise RuntimeError(f"The server of warm processes ended:\n{_server_files('log').read_text()[-8000:]}")
        exit_code, seconds = ended.split()
        costs.add(float(seconds))
        out, err = (path.read_text() for path in printed)
        return subprocess.CompletedProcess(list(arguments), int(exit_code), out, err)


def console_command(*arguments: str) -> None:
    """Run `ledgermart` with these arguments in this process."""
    # Imported as late as by the command: its consoles read the terminal's settings from the environment.
    from cli.main import main

    main(arguments, prog_name="ledgermart")


def _connect() -> socket.socket:
    """Connect to the run's server, and start it before if this is the first request."""
    address = _server_files("sock")
    with _server_files("lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not address.exists():
            _start_server(address)
    connection = socket.socket(socket.AF_UNIX)
    connection.connect(str(address))
    return connection


def _start_server(address: Path) -> None:
    with _server_files("log").open("wb") as log:
        _servers.append(
            server := subprocess.Popen(
                [sys.executable, "-m", "tests.integration.warm_server", str(address), str(_run_process())],
                cwd=_CHECKOUT,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )
        )
    while not address.exists():
        assert server.poll() is None, _server_files("log").read_text()
        time.sleep(0.01)


def _server_files(kind: str) -> Path:
    return Path(tempfile.gettempdir()) / f"ledgermart-warm-{_run_process()}.{kind}"


def _run_process() -> int:
    """Return the process that all tests of a run have in common: pytest, or the parent of pytest-xdist's workers."""
    return os.getpid() if worker() == "main" else os.getppid()
