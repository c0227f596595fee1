"""Log files of bounded size, written by one process for another."""

import io
import os
import threading
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import IO

from cli.terminal import plain

# A log and its older parts take at most (OLDER_PARTS + 1) * MOST_BYTES.
MOST_BYTES = 10_000_000
OLDER_PARTS = 4
# A longer line is written in pieces of this size.
_MOST_LINE_BYTES = 100_000


class LogFile(io.TextIOBase):
    """A log that is renamed to `NAME.1`, `NAME.2`, … when it is full; a context manager that closes it.

    A disk without room stops nothing: lines that cannot be written are counted, and the count is written once there is
    room again.
    """

    def __init__(self, path: Path, most_bytes: int = MOST_BYTES, older_parts: int = OLDER_PARTS) -> None:
        self.path, self._most_bytes, self._older_parts = path, most_bytes, older_parts
        self._lost = 0
        self._lock = threading.Lock()
        self._file: int | None = None

    def close(self) -> None:
        """Close the file."""
        if self._file is not None:
            os.close(self._file)
            self._file = None
        super().close()

    def writable(self) -> bool:
        """Return True: the log can be written."""
        return True

    def write(self, text: str) -> int:
        """Write whole lines, without characters that would control a terminal that shows the log."""
        data = plain(text).encode()
        with self._lock:
            try:
                if self._lost:
                    self._append(f"{self._lost} lines before this one could not be written\n".encode())
                    self._lost = 0
                self._append(data)
            except OSError:
                self._lost += 1
        return len(text)

    def _append(self, data: bytes) -> None:
        if self._file is None:
            self._file = os.open(self.path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
        size = os.fstat(self._file).st_size
        if size and size + len(data) > self._most_bytes:
            os.close(self._file)
            self._file = None
            rotate(self.path, self._older_parts)
            self._file = os.open(self.path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
            size = 0
        if os.write(self._file, data) < len(data):
            # A line is written completely or not at all.
            os.ftruncate(self._file, size)
            raise OSError("the disk has no room for the whole line")


def rotate(path: Path, older_parts: int = OLDER_PARTS) -> None:
    """Rename a log to its first older part, and the older parts to the next ones; the oldest is replaced."""
    names = [path, *(path.with_name(f"{path.name}.{number}") for number in range(1, older_parts + 1))]
    for newer, older in reversed(list(pairwise(names))):
        if newer.exists():
            newer.replace(older)


def copy_lines(source: IO[bytes], log: LogFile) -> Iterator[str]:
    """Write every line of a pipe to a log until its end, and yield it."""
    while line := source.readline(_MOST_LINE_BYTES):
        text = line.decode(errors="replace")
        log.write(text)
        yield text
