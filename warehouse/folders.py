"""Folders that appear whole or not at all: filled beside their place, then renamed into it."""

import fcntl
import json
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any


class FolderError(Exception):
    """A folder cannot be written as asked; the message names it, says why, and what to do."""


class FolderBusyError(FolderError):
    """Another process is filling the same folder."""


def is_database(path: str) -> bool:
    """Return whether a file name is that of a DuckDB database or of its log."""
    return path.endswith((".duckdb", ".wal"))


@contextmanager
def new_folder(path: Path) -> Iterator[Path]:
    """Yield an empty folder to fill; if the block succeeds, the folder replaces `path`.

    The folder has a hidden name beside `path` until then, and only its owner can enter it. Files that a killed process
    left in it are deleted first.

    Raises:
        FolderBusyError: another process is filling the same folder.
        FolderError: the folder cannot be created.
    """
    partial, former = (path.with_name(f".{path.name}.{kind}") for kind in ("partial", "former"))
    with _held(partial, path):
        try:
            _clear(partial)
            yield partial
            for file in partial.rglob("*"):
                if file.is_file():
                    sync(file)
        except BaseException:
            shutil.rmtree(partial)
            raise
        shutil.rmtree(former, ignore_errors=True)
        if path.exists():
            path.rename(former)
        partial.rename(path)
        shutil.rmtree(former, ignore_errors=True)
        sync(path.parent)


@contextmanager
def scratch_folder(path: Path) -> Iterator[Path]:
    """Yield an empty folder, and delete it at the end of the block. The remains of a killed process are deleted first.

    Use it where only one process at a time can use the path.
    """
    shutil.rmtree(path, ignore_errors=True)
    path.mkdir(parents=True, mode=0o700)
    try:
        yield path
    finally:
        shutil.rmtree(path)


@contextmanager
def _held(partial: Path, path: Path) -> Iterator[None]:
    """Create and lock the hidden folder; the kernel releases the lock when the process ends, even if killed."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        partial.mkdir(exist_ok=True)
        partial.chmod(0o700)
    except OSError as error:
        raise FolderError(f"{path} cannot be created: {error.strerror} ({error.filename})") from error
    descriptor = os.open(partial, os.O_RDONLY | os.O_DIRECTORY)
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise FolderBusyError(f"another process is writing {path}") from None
        if not (partial.exists() and os.path.samestat(os.fstat(descriptor), partial.stat())):
            raise FolderBusyError(f"another process has just written {path}")
        yield
    finally:
        os.close(descriptor)


def _clear(folder: Path) -> None:
    for entry in folder.iterdir():
        if entry.is_dir() and not entry.is_symlink():
            shutil.rmtree(entry)
        else:
            entry.unlink()


def read_json(path: Path, most_bytes: int) -> Any:
    """Read a small JSON file of any origin.

    Raises:
        OSError: the file cannot be read.
        ValueError: the file is longer than `most_bytes`, or is not JSON.
        RecursionError: the JSON is nested too deep.
    """
    with path.open("rb") as file:
        text = file.read(most_bytes + 1)
    if len(text) > most_bytes:
        raise ValueError("too long")
    return json.loads(text)


def sync(path: Path) -> None:
    """Wait until a file's content, or a folder's names, are on the disk."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
