"""Processes that begin with everything imported: forked from one that prepared itself once, in `dbt_warm`.

Each is a process of its own with its own environment, files and exit code, as the console command and dbt are; what it
does not do again is importing Dagster and dbt and parsing the project, several seconds of processor time each.
"""

import multiprocessing
import os
import subprocess
import tempfile
import threading
from collections.abc import Callable, Mapping, Sequence
from multiprocessing.connection import wait
from pathlib import Path
from typing import Any

_PROCESSES = multiprocessing.get_context("forkserver")
_PROCESSES.set_forkserver_preload(["tests.integration.dbt_warm"])
# Whoever starts a process looks for others that have ended, and an exit code can be read once.
_LOCK = threading.Lock()


def run_forked(
    run: Callable[..., None],
    arguments: Sequence[Any],
    environment: Mapping[str, str] | None = None,
    folder: Path | None = None,
) -> subprocess.CompletedProcess[str]:
    """Run a module's function in a process of its own to its end, like `subprocess.run`.

    Args:
        run: ends well by returning, otherwise by SystemExit or another exception.
        environment: all variables; default: those of the process that it is forked from.
        folder: to run in.

    It is killed as well when waiting for it is interrupted.
    """
    with tempfile.TemporaryDirectory() as name:
        printed = [Path(name) / stream for stream in ("out", "err")]
        process = _PROCESSES.Process(target=_in_child, args=(run, arguments, environment, folder, printed))
        with _LOCK:
            process.start()
        has_ended = False
        try:
            has_ended = bool(wait([process.sentinel]))
        finally:
            with _LOCK:
                if not has_ended:
                    process.kill()
                process.join()
        out, err = (path.read_text() for path in printed)
        return subprocess.CompletedProcess(list(arguments), process.exitcode, out, err)


def console_command(*arguments: str) -> None:
    """Run `ledgermart` with these arguments in this process."""
    # Imported here, as the command is: its consoles keep what the environment says of the terminal.
    from cli.main import main

    main(arguments, prog_name="ledgermart")


def _in_child(
    run: Callable[..., None],
    arguments: Sequence[Any],
    environment: Mapping[str, str] | None,
    folder: Path | None,
    printed: Sequence[Path],
) -> None:
    for stream, path in enumerate(printed, start=1):
        with path.open("wb") as file:
            os.dup2(file.fileno(), stream)
    if environment is not None:
        os.environ.clear()
        os.environ.update(environment)
    if folder is not None:
        os.chdir(folder)
    run(*arguments)
