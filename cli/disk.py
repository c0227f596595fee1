"""Full disks: recognise them in the errors of all libraries, and describe cause and fix in one sentence."""

import errno
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import click

from control.settings import Settings

# Words of the C library (Python, DuckDB), of SQLite, and of a quota.
_WORDS = ("No space left on device", "database or disk is full", "Disk quota exceeded")
# SQLite's words when it cannot make the files beside a database: a disk without room, or a broken one.
_DOUBTFUL_WORDS = "disk I/O error"
_LEAST_BYTES = 1_000_000
_OTHERWISE = "move the folder to a larger disk and set LEDGERMART_DATA_DIR"


def names_full_disk(text: str, settings: Settings) -> bool:
    """Return whether the text of an error means that a disk has no room."""
    if _DOUBTFUL_WORDS in text:
        return shutil.disk_usage(settings.data_dir).free < _LEAST_BYTES
    return any(words in text for words in _WORDS)


def is_disk_full(error: BaseException, settings: Settings) -> bool:
    """Return whether an error, or one that led to it, means that a disk has no room."""
    return any(
        (isinstance(one, OSError) and one.errno in (errno.ENOSPC, errno.EDQUOT)) or names_full_disk(str(one), settings)
        for one in _with_causes(error)
    )


def _with_causes(error: BaseException) -> Iterator[BaseException]:
    seen: set[int] = set()
    following: BaseException | None = error
    while following is not None and id(following) not in seen:
        seen.add(id(following))
        yield following
        following = following.__cause__ or following.__context__


def full_disk_sentence(folder: Path, otherwise: str = _OTHERWISE) -> str:
    """Return the cause and the fix in one sentence.

    Args:
        folder: the folder on the full disk.
        otherwise: another fix than more room.
    """
    free = shutil.disk_usage(folder).free // 1_000_000
    return f"the disk is full: {folder} has {free:,} MB free; make room there, or {otherwise}; no stored data is lost"


@contextmanager
def naming_full_disk(settings: Settings, folder: Path, otherwise: str) -> Iterator[None]:
    """Raise the error of a full disk as a sentence that names `folder`, which is not the data folder.

    Raises:
        ClickException: the disk is full.
    """
    try:
        yield
    except Exception as error:
        if is_disk_full(error, settings):
            raise click.ClickException(full_disk_sentence(folder, otherwise)) from error
        raise
