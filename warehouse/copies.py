"""Copies of the warehouse's files for an analyst. They share blocks with the originals where the file system can.

warehouse.duckdb    raw, staging and intermediate. Its views name their file, so the copy keeps this name.
marts_db.duckdb     the marts built from them.
published.duckdb    the version in force; it never changes.
"""

import errno
import fcntl
import os
import shutil
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path

import duckdb

from warehouse.folders import FolderError
from warehouse.opening import connect

WAREHOUSE = "warehouse.duckdb"
MARTS = "marts_db.duckdb"
PUBLISHED = "published.duckdb"
# linux/fs.h: share the blocks of another file instead of copying them, where the file system can.
_FICLONE = 0x40049409
_CANNOT_CLONE = {errno.EOPNOTSUPP, errno.ENOTTY, errno.EXDEV, errno.EINVAL, errno.ENOSYS, errno.EPERM}
_CHUNK = 16 * 1024 * 1024


@dataclass(frozen=True)
class Listener:
    """Callbacks that report the progress of a copy.

    Attributes:
        waits: called with the description of the writer that the copy waits for.
        begins: called with the total number of bytes to copy.
        copied: called with the number of bytes copied since the last call.
    """

    waits: Callable[[str], None]
    begins: Callable[[int], None]
    copied: Callable[[int], None]


def copy_files(warehouse: Path, marts: Path | None, folder: Path, listener: Listener, marts_name: str = MARTS) -> bool:
    """Copy warehouse and marts, if given, with their write-ahead logs; no process may write them meanwhile.

    Returns:
        Whether every copy shares its blocks with the original.

    Raises:
        FolderError: the disk is too small.
    """
    pairs = [
        (source.with_name(source.name + suffix), folder / (name + suffix))
        for source, name in ((warehouse, WAREHOUSE), (marts, marts_name))
        for suffix in ("", ".wal")
        if source is not None and source.with_name(source.name + suffix).exists()
    ]
    return copy_pairs(pairs, folder, listener)


def copy_pairs(pairs: Sequence[tuple[Path, Path]], folder: Path, listener: Listener) -> bool:
    """Copy files to new names on the disk of `folder`; return whether all copies share blocks with the originals.

    Raises:
        FolderError: the disk is too small.
    """
    sizes = [source.stat().st_size for source, _ in pairs]
    listener.begins(sum(sizes))
    are_reflinked = []
    for (source, copy), size in zip(pairs, sizes, strict=True):
        is_reflinked = reflink(source, copy)
        if is_reflinked:
            listener.copied(size)
        else:
            _check_space(folder, size)
            _stream(source, copy, size, listener.copied)
        are_reflinked.append(is_reflinked)
    return all(are_reflinked)


def take_in_logs(folder: Path) -> None:
    """Replay the write-ahead logs that a killed cycle left, so that each copy is one complete file."""
    for name in (WAREHOUSE, MARTS):
        duckdb.connect(str(folder / name)).close()


@contextmanager
def open_copy(folder: Path, *, read_only: bool = True) -> Iterator[duckdb.DuckDBPyConnection]:
    """Open the copy of the warehouse."""
    with closing(connect(folder / WAREHOUSE, read_only=read_only)) as connection:
        yield connection


def remove(copy: Path) -> None:
    """Delete a copy with its log, and the files to which its queries spilled."""
    copy.unlink()
    copy.with_name(f"{copy.name}.wal").unlink(missing_ok=True)
    shutil.rmtree(copy.with_name(f"{copy.name}.tmp"), ignore_errors=True)


def check_unused(folder: Path) -> None:
    """Check that no other process has one of the copies open.

    Raises:
        FolderError: a copy is in use; the message names the file.
    """
    for name in (WAREHOUSE, MARTS):
        try:
            connect(folder / name, wait_seconds=0).close()
        except duckdb.IOException as error:
            raise FolderError(f"{folder / name} is in use; close the program that has it open ({error})") from error


def reflink(source: Path, copy: Path) -> bool:
    """Clone a file by sharing its blocks, which takes no time; return False if the file system cannot."""
    with source.open("rb") as read, copy.open("wb") as written:
        try:
            fcntl.ioctl(written.fileno(), _FICLONE, read.fileno())
        except OSError as error:
            if error.errno in _CANNOT_CLONE:
                return False
            raise
    return True


def link(source: Path, name: Path) -> None:
    """Hard-link a file that does not change, so that it outlives its first name; copy it to another disk."""
    try:
        name.hardlink_to(source)
    except OSError as error:
        if error.errno not in (errno.EXDEV, errno.EPERM, errno.EMLINK):
            raise
        shutil.copyfile(source, name)


def _check_space(folder: Path, size: int) -> None:
    free = shutil.disk_usage(folder).free
    if size > free:
        raise FolderError(
            f"{folder.parent} has {free:,} bytes free, and {size:,} are needed; name a folder on another disk"
        )


def _stream(source: Path, copy: Path, size: int, copied: Callable[[int], None]) -> None:
    """Copy at most `size` bytes, the space that was checked."""
    with source.open("rb") as read, copy.open("wb") as written:
        while count := os.sendfile(written.fileno(), read.fileno(), None, min(size, _CHUNK)):
            size -= count
            copied(count)
