"""The server behind `warm_processes`: it prepares itself once, then forks one process for each request.

    python -m tests.integration.warm_server SOCKET PROCESS

It ends when the process with this id ends.
"""

import multiprocessing
import os
import pickle
import resource
import socket
import sys
from collections.abc import Callable, Mapping, Sequence
from multiprocessing.connection import wait
from pathlib import Path
from typing import Any

# The children begin as copies of this process: that is what makes them warm.
_PROCESSES = multiprocessing.get_context("fork")


def serve(address: Path, process: int) -> None:
    """Answer requests at the address until the process ends."""
    run_ended = os.pidfd_open(process)
    with socket.socket(socket.AF_UNIX) as listener:
        # Rename the socket only once the server listens: clients connect as soon as the name exists.
        listener.bind(f"{address}.new")
        listener.listen(64)
        Path(f"{address}.new").rename(address)
        # The import prepares everything; early requests wait in the socket's queue meanwhile.
        from tests.integration import dbt_warm  # noqa: F401

        while run_ended not in wait([listener, run_ended]):
            connection, _ = listener.accept()
            with connection:
                _PROCESSES.Process(target=_answer, args=(connection, listener)).start()
    for kind in (".sock", ".lock", ".log"):
        address.with_suffix(kind).unlink(missing_ok=True)


def _answer(connection: socket.socket, listener: socket.socket) -> None:
    """Run one request in a process, send its exit code and CPU seconds; kill it when the client hangs up."""
    listener.close()
    with connection.makefile("rb") as stream:
        request = pickle.load(stream)
    process = _PROCESSES.Process(target=_run, args=(connection, *request))
    process.start()
    if process.sentinel not in wait([process.sentinel, connection]):
        process.kill()
    process.join()
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    connection.sendall(f"{process.exitcode} {used.ru_utime + used.ru_stime}\n".encode())


def _run(
    connection: socket.socket,
    run: Callable[..., None],
    arguments: Sequence[Any],
    environment: Mapping[str, str] | None,
    folder: Path | None,
    printed: Sequence[Path],
) -> None:
    connection.close()
    for stream, path in enumerate(printed, start=1):
        with path.open("wb") as file:
            os.dup2(file.fileno(), stream)
    if environment is not None:
        os.environ.clear()
        os.environ.update(environment)
    if folder is not None:
        os.chdir(folder)
    run(*arguments)


if __name__ == "__main__":
    serve(Path(sys.argv[1]), int(sys.argv[2]))
