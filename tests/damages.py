"""Functions that delete or damage a file of the data folder."""

import os
from collections.abc import Callable
from pathlib import Path

Damage = Callable[[Path], None]


def removed(path: Path) -> None:
    """Delete the file."""
    path.unlink()


def cut(path: Path) -> None:
    """Truncate the file to its first half."""
    os.truncate(path, path.stat().st_size // 2)


def emptied(path: Path) -> None:
    """Truncate the file to zero bytes."""
    os.truncate(path, 0)


def garbage(path: Path) -> None:
    """Replace the content with text."""
    path.chmod(0o600)
    path.write_bytes(b"<html>" * 100_000)


def overwritten(path: Path) -> None:
    """Overwrite the start of each 4 kB page except in the first and last eighth; the file may still open."""
    size = path.stat().st_size
    with path.open("r+b") as file:
        for at in range(size // 8 // 4096 * 4096, size * 7 // 8, 4096):
            file.seek(at)
            file.write(b"\xa5" * 1000)


ALL: tuple[Damage, ...] = (removed, cut, emptied, garbage, overwritten)
