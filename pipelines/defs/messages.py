"""Messages to the worker over its socket in the data folder: one line, with a reply of one word.

    run <run id>      taken, or stale: the code or the dbt project is newer than the worker.

    cancel <run id>   yes, or no: it has no such run.

    health <run id>   yes: it executes the run, or will; or no.

Both sides accept only processes of the service's own user.
"""

import os
import socket
import struct
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

TAKEN, STALE, YES, NO = "taken", "stale", "yes", "no"
_NAME = "worker.sock"
_MOST_BYTES = 200
# A worker that is starting replies when it is ready.
_ANSWER_SECONDS = 120.0


class WorkerSilentError(Exception):
    """The worker did not reply to a message; it may have acted on it or not."""


@contextmanager
def _address(data_dir: Path) -> Iterator[str]:
    """Yield the socket's address: a path through a folder descriptor, to stay below the limit of 107 characters."""
    number = os.open(data_dir, os.O_PATH | os.O_DIRECTORY)
    try:
        yield f"/proc/self/fd/{number}/{_NAME}"
    finally:
        os.close(number)


def listen(data_dir: Path) -> socket.socket:
    """Return the worker's listening socket, in place of one that an earlier worker left."""
    (data_dir / _NAME).unlink(missing_ok=True)
    listener = socket.socket(socket.AF_UNIX)
    before = os.umask(0o177)
    try:
        with _address(data_dir) as address:
            listener.bind(address)
    finally:
        os.umask(before)
    listener.listen()
    return listener


def _is_own(connection: socket.socket) -> bool:
    """Tell whether the process at the other end runs as the same user."""
    found = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, struct.calcsize("3i"))
    return bool(struct.unpack("3i", found)[1] == os.geteuid())


def _connect(data_dir: Path) -> socket.socket | None:
    connection = socket.socket(socket.AF_UNIX)
    try:
        with _address(data_dir) as address:
            connection.connect(address)
        if _is_own(connection):
            return connection
    except (FileNotFoundError, ConnectionRefusedError):
        pass
    connection.close()
    return None


def tell(data_dir: Path, word: str, run_id: str, patience_seconds: float = _ANSWER_SECONDS) -> str | None:
    """Send the worker a message about a run; return its reply, None without a worker or if it ended before.

    Raises:
        WorkerSilentError: it did not reply in time.
    """
    connection = _connect(data_dir)
    if connection is None:
        return None
    with connection:
        connection.settimeout(patience_seconds)
        try:
            connection.sendall(f"{word} {run_id}\n".encode())
            answer = connection.recv(_MOST_BYTES)
        except TimeoutError as error:
            raise WorkerSilentError(f"the worker did not reply to {word!r} in {patience_seconds:.0f} s") from error
        except (BrokenPipeError, ConnectionResetError):
            return None
    return answer.decode().strip() or None


def hear(listener: socket.socket) -> tuple[socket.socket, str, str] | None:
    """Receive one message: the connection for the reply, word and run; None if it is malformed or of another user."""
    connection, _ = listener.accept()
    connection.settimeout(1.0)
    with suppress(TimeoutError, ConnectionResetError, UnicodeDecodeError):
        line = connection.recv(_MOST_BYTES).decode("ascii")
        if _is_own(connection) and line.endswith("\n") and len(words := line.split()) == 2:
            return connection, words[0], words[1]
    connection.close()
    return None


def answer(connection: socket.socket, word: str) -> bool:
    """Reply to a message; return whether the reply was sent."""
    with connection:
        try:
            connection.sendall(f"{word}\n".encode())
        except (TimeoutError, BrokenPipeError, ConnectionResetError):
            return False
    return True
