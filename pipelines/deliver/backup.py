"""Backups: one folder with copies of the stores that belong together, and a manifest with their hashes.

    manifest.json             written last: a folder without it is not a backup
    control.db                the control store, if it is SQLite; else control.dump, of PostgreSQL
    warehouse.duckdb          with warehouse.duckdb.wal if a cycle was killed
    marts_build.duckdb        likewise

The names never change, so that tools such as restic, borg and rsync store only new blocks.
"""

import hashlib
import json
import re
import stat
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from datetime import datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any

from packaging.version import Version

from control.backups import POSTGRES_DUMP, SQLITE_COPY, check_program, copy_name, copy_store
from control.clock import utc_now
from control.settings import Settings
from warehouse.copies import Listener
from warehouse.folders import FolderError, new_folder, read_json, sync
from warehouse.port import Warehouse

MANIFEST = "manifest.json"
_WAREHOUSE_FILES = ("warehouse.duckdb", "warehouse.duckdb.wal", "marts_build.duckdb", "marts_build.duckdb.wal")
_NAMES = frozenset({SQLITE_COPY, POSTGRES_DUMP, *_WAREHOUSE_FILES})
_SHA256 = re.compile(r"[0-9a-f]{64}")
_MOST_MANIFEST_BYTES = 64 * 1024
_CHUNK_BYTES = 1024 * 1024


class BackupError(FolderError):
    """A backup cannot be made or used; the message names folder and fix."""


@dataclass(frozen=True)
class BackupFile:
    """One file of a backup."""

    name: str
    bytes: int
    sha256: str


@dataclass(frozen=True)
class Backup:
    """A whole backup, as its manifest describes it.

    Attributes:
        version: version of Ledgermart.
        epoch: epoch of the version in force at that time; None if nothing was published.
    """

    folder: Path
    version: str
    created_at: datetime
    epoch: str | None
    files: tuple[BackupFile, ...]

    @property
    def bytes(self) -> int:
        """Size of all files."""
        return sum(file.bytes for file in self.files)

    def as_json(self) -> dict[str, Any]:
        """Return the object that the command prints; without the folder it is the manifest."""
        return {
            "folder": str(self.folder),
            "version": self.version,
            "createdAt": self.created_at.strftime("%Y-%m-%dT%H:%M:%SZ"),
            "epoch": self.epoch,
            "files": [asdict(file) for file in self.files],
        }


def make_backup(settings: Settings, folder: Path, listener: Listener) -> Backup:
    """Copy the stores of a running service into a folder; an earlier backup there is replaced at the end.

    Waits until no cycle runs. The next cycle waits while the files are copied, not while they are hashed.

    Raises:
        BackupError: the folder holds something else or lies in the data folder, or cannot be written.
        FolderBusyError: another process is writing a backup there.
        DamagedFileError, StoreLost: a store is damaged; an earlier backup remains.
        StoreUnavailable: the control store is not reachable, or `pg_dump` is missing.
    """
    folder = folder.resolve()
    _check_replaceable(settings, folder)
    check_program(settings, "pg_dump")
    warehouse = Warehouse(settings)
    with _errors_named(folder), new_folder(folder) as partial:
        # The control store as well: an operation that it calls finished must have its rows in the warehouse.
        with warehouse.copy_to(partial, listener) as epoch:
            created_at = utc_now().replace(microsecond=0)
            copy_store(settings, partial)
        warehouse.check_copies(partial)
        names = [copy_name(settings), *(name for name in _WAREHOUSE_FILES if (partial / name).exists())]
        files = tuple(_describe(partial / name) for name in names)
        made = Backup(folder, version("ledgermart"), created_at, epoch, files)
        _write_manifest(made, partial)
    return made


def read_backup(folder: Path) -> Backup:
    """Read the manifest of a backup; the files are not checked.

    Raises:
        BackupError: there is no backup, or its manifest is damaged.
    """
    path = folder / MANIFEST
    try:
        _plain_size(path)
        fields = read_json(path, _MOST_MANIFEST_BYTES)
        files = tuple(BackupFile(**file) for file in fields["files"])
        created_at, release, epoch = datetime.fromisoformat(fields["createdAt"]), fields["version"], fields["epoch"]
        made = Backup(folder, str(Version(release)), created_at, epoch, files)
        is_possible = created_at.tzinfo is not None and isinstance(epoch, str | None)
        if not is_possible or not all(_is_possible(file) for file in files):
            raise ValueError("impossible")
    except FileNotFoundError as error:
        raise BackupError(f"{folder} is no backup: it holds no {MANIFEST}{_left_beside(folder)}") from error
    except PermissionError as error:
        raise BackupError(f"{path} cannot be read; run the command as a user that may read it") from error
    except (OSError, ValueError, KeyError, TypeError, RecursionError) as error:
        raise BackupError(f"{path} is damaged; use another backup") from error
    names = {file.name for file in files}
    if len(names) < len(files) or "warehouse.duckdb" not in names or not names & {SQLITE_COPY, POSTGRES_DUMP}:
        raise BackupError(f"{path} does not name the files of a backup; use another backup")
    return made


def check_complete(backup: Backup) -> None:
    """Check that every file that the manifest names is a plain file of the stated size; no file is read.

    Raises:
        BackupError: a file is missing, is another one, or is a link, pipe, device or folder.
    """
    for file in backup.files:
        try:
            size = _plain_size(backup.folder / file.name)
        except FileNotFoundError as error:
            raise BackupError(f"{error.filename} is missing; use another backup") from error
        if size != file.bytes:
            raise _changed(backup, file)


def check_files(backup: Backup, places: dict[str, Path], checked: Callable[[int], None] = lambda _: None) -> None:
    """Compare files with the sizes and hashes of a backup's manifest.

    Args:
        places: path of each file, by its name in the backup.
        checked: called with the number of bytes read since the last call.

    Raises:
        BackupError: a file differs.
    """
    for file in backup.files:
        path = places[file.name]
        if path.stat().st_size != file.bytes or _hash(path, checked) != file.sha256:
            raise _changed(backup, file)


def _changed(backup: Backup, file: BackupFile) -> BackupError:
    return BackupError(
        f"{backup.folder / file.name} is damaged: it is not the file that {MANIFEST} describes; use another backup"
    )


def _plain_size(path: Path) -> int:
    """Return the size of a plain file. A link may lead out of the backup; a pipe or a device has no end.

    Raises:
        BackupError: it is another kind of file.
        FileNotFoundError: there is none.
    """
    found = path.lstat()
    if not stat.S_ISREG(found.st_mode):
        raise BackupError(f"{path} is no plain file; use another backup")
    return found.st_size


def places_in(backup: Backup) -> dict[str, Path]:
    """Return the path of each file in the backup's folder."""
    return {file.name: backup.folder / file.name for file in backup.files}


def _check_replaceable(settings: Settings, folder: Path) -> None:
    if folder.is_relative_to(settings.data_dir.resolve()):
        raise BackupError(f"{folder} lies in the data folder, and would be lost with it; name another folder")
    try:
        if not folder.exists() or (folder / MANIFEST).exists():
            if folder.exists():
                read_backup(folder)
            return
        if folder.is_dir() and not any(folder.iterdir()):
            return
    except OSError as error:
        raise _named(folder, error) from error
    raise BackupError(f"{folder} holds other files, and no earlier backup; name an empty or a new folder")


@contextmanager
def _errors_named(folder: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise _named(folder, error) from error


def _named(folder: Path, error: OSError) -> BackupError:
    return BackupError(
        f"the backup {folder} cannot be written: {error.strerror} ({error.filename or folder.parent}); free space, or "
        f"let the service's user write {folder.parent}; an earlier backup is unchanged"
    )


def _left_beside(folder: Path) -> str:
    """Name the former backup, which a kill between two renames leaves under a hidden name."""
    former = folder.with_name(f".{folder.name}.former")
    if (former / MANIFEST).exists() and not folder.exists():
        return f"; a backup was interrupted, and the one before it is in {former}"
    return ""


def _is_possible(file: BackupFile) -> bool:
    return file.name in _NAMES and type(file.bytes) is int and _SHA256.fullmatch(file.sha256) is not None


def _describe(path: Path) -> BackupFile:
    return BackupFile(path.name, path.stat().st_size, _hash(path, lambda _: None))


def _hash(path: Path, checked: Callable[[int], None]) -> str:
    digest = hashlib.sha256()
    with path.open("rb") as file:
        while chunk := file.read(_CHUNK_BYTES):
            digest.update(chunk)
            checked(len(chunk))
    return digest.hexdigest()


def _write_manifest(made: Backup, partial: Path) -> None:
    fields = {name: value for name, value in made.as_json().items() if name != "folder"}
    beside = partial / f".{MANIFEST}.tmp"
    for path in partial.iterdir():
        sync(path)
    beside.write_text(json.dumps(fields, indent=1) + "\n")
    sync(beside)
    beside.rename(partial / MANIFEST)
