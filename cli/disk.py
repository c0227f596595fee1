"""A disk without room: how it is recognised in errors of all libraries, and the sentence that says what to do."""

import errno
import shutil
from collections.abc import Iterator

from control.settings import Settings

# Words of the C library (Python, DuckDB), of SQLite, and of a quota.
_WORDS = ("No space left on device", "database or disk is full", "Disk quota exceeded")
# SQLite's words when it cannot make the files beside a database: a disk without room, or a broken one.
_DOUBTFUL_WORDS = "disk I/O error"
_LEAST_BYTES = 1_000_000


def names_full_disk(text: str, settings: Settings) -> bool:
    """Tell whether the words of an error mean that a disk has no room."""
    if _DOUBTFUL_WORDS in text:
        return shutil.disk_usage(settings.data_dir).free < _LEAST_BYTES
    return any(words in text for words in _WORDS)


def is_disk_full(error: BaseException, settings: Settings) -> bool:
    """Tell whether an error, or one that led to it, means that a disk has no room."""
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


def full_disk_sentence(settings: Settings) -> str:
    """Return what happened and what to do, in one sentence."""
    free = shutil.disk_usage(settings.data_dir).free // 1_000_000
    return (
        f"the disk is full: {settings.data_dir} has {free:,} MB free; make room there, or set LEDGERMART_DATA_DIR to a "
        "folder on a larger disk with the same contents; the next cycle continues, and no stored data is lost"
    )
