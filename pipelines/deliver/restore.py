"""Restore of a backup into the data folder; a kill at any moment leaves the old or the new state.

1. Copy the files beside their places, as `.NAME.restore`, compare them with the manifest, and open them.
2. Write `restore.json` by rename: from then on the new state is decided, and a killed restore can only be completed.
3. Rename present data to `NAME.TIME.aside`, and the copies into their places; delete `restore.json`.

Versions and their pointer are set aside as well, so the next publication begins a new epoch.
"""

import json
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass
from datetime import datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any

import duckdb
from packaging.version import Version

from control.backups import (
    POSTGRES_DUMP,
    SQLITE_COPY,
    check_program,
    copy_name,
    find_no_store,
    load_dump,
    sqlite_path,
)
from control.clock import utc_now
from control.errors import StoreUnavailable
from control.settings import Settings
from control.store import open_store
from pipelines.deliver.backup import Backup, BackupError, check_complete, check_files, read_backup
from warehouse.copies import Listener, copy_pairs, link
from warehouse.damage import check_length, reason
from warehouse.folders import is_database, scratch_folder, sync
from warehouse.lock import writer_lock
from warehouse.opening import connect
from warehouse.port import Warehouse

_JOURNAL = "restore.json"
# State of the service beside the stores; logs, sandboxes and locks remain.
_STATE = ("serving", "dagster", "dbt", "progress.json", "worker.json")


@dataclass(frozen=True)
class Restored:
    """Result of a restore.

    Attributes:
        folder: folder of the backup.
        aside: the former data, under its new names.
        was_interrupted: whether an earlier command had begun the restore.
    """

    folder: Path
    version: str
    created_at: datetime
    aside: tuple[Path, ...]
    was_interrupted: bool

    def as_json(self) -> dict[str, Any]:
        """Return the object that the command prints."""
        return {
            "folder": str(self.folder),
            "version": self.version,
            "createdAt": self.created_at.strftime("%Y-%m-%dT%H:%M:%SZ"),
            "setAside": [str(path) for path in self.aside],
            "wasInterrupted": self.was_interrupted,
        }


@dataclass(frozen=True)
class _Journal:
    """Remaining steps after the new state is decided; paths are absolute."""

    restored: Restored
    former: tuple[tuple[Path, Path], ...]
    places: tuple[Path, ...]
    dump: Path | None


def check_finished(settings: Settings) -> None:
    """Check that no restore was interrupted after its decision.

    Raises:
        BackupError: a restore was interrupted; the message names the command that completes it.
    """
    journal = _read_journal(settings)
    if journal is not None:
        folder = journal.restored.folder
        raise BackupError(
            f"a restore into {settings.data_dir} was interrupted; run `ledgermart restore {folder}` to complete it"
        )


def restore(settings: Settings, folder: Path, listener: Listener, *, set_aside: bool) -> Restored:
    """Restore a backup, or complete a restore of it that was interrupted.

    Args:
        set_aside: rename data that is present; without it, present data is an error.

    Raises:
        BackupError: the backup is damaged or of a newer release, or data is present.
        WriterBusyError: the service or a cycle runs.
        StoreUnavailable: PostgreSQL is not reachable, its database is not empty, or `pg_restore` is missing.
    """
    folder = folder.resolve()
    with _errors_named(settings), _alone(settings):
        if (begun := _read_journal(settings)) is not None:
            if begun.restored.folder != folder:
                check_finished(settings)
            _load(settings, begun)
            return _switch(settings, begun)
        backup = read_backup(folder)
        check_complete(backup)
        _check_usable(settings, backup)
        if (present := _present(settings)) and not set_aside:
            raise BackupError(
                f"{settings.data_dir} holds data ({present}); --set-aside renames it, and deletes nothing"
            )
        journal = _stage(settings, backup, listener)
        _write_journal(settings, journal)
        try:
            _load(settings, journal)
        except StoreUnavailable:
            _journal_path(settings).unlink()
            _remove_staged(settings)
            raise
        return _switch(settings, journal)


@contextmanager
def _errors_named(settings: Settings) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise BackupError(
            f"{settings.data_dir} cannot be restored: {error.strerror} ({error.filename}); free space, or make the "
            "service's user the owner of the folder, then run the command again"
        ) from error


@contextmanager
def _alone(settings: Settings) -> Iterator[None]:
    """Hold the locks of the service and of the warehouse's writer; wait for neither."""
    with ExitStack() as locks:
        for path in (settings.data_dir / "up.lock", settings.lock_path):
            locks.enter_context(writer_lock(path, "ledgermart restore", 0))
        yield


def _check_usable(settings: Settings, backup: Backup) -> None:
    installed = version("ledgermart")
    if Version(backup.version) > Version(installed):
        raise BackupError(
            f"{backup.folder} is of Ledgermart {backup.version}, and {installed} is installed; install "
            f"{backup.version} or newer"
        )
    wanted = copy_name(settings)
    if wanted not in {file.name for file in backup.files}:
        of_backup, of_settings = ("an SQLite file", "a PostgreSQL database")[:: 1 if wanted == POSTGRES_DUMP else -1]
        raise BackupError(
            f"the control store in {backup.folder} is {of_backup}, and LEDGERMART_CONTROL_URL names {of_settings}; "
            "change the variable"
        )
    if wanted == POSTGRES_DUMP:
        check_program(settings, "pg_restore")
        if _has_store(settings):
            raise StoreUnavailable(
                "the database of LEDGERMART_CONTROL_URL holds a control store; name an empty database, and keep the "
                "old one until the restore is checked"
            )


def _has_store(settings: Settings) -> bool:
    with closing(open_store(settings)) as store:
        return store.exists()


def _present(settings: Settings) -> str:
    """Name the stores that hold data."""
    path, warehouse = sqlite_path(settings), Warehouse(settings)
    names = [path.name] if path is not None and path.exists() and path.stat().st_size else []
    names += [settings.warehouse_path.name] if warehouse.exists() else []
    names += [settings.marts_path.name] if warehouse.has_marts() else []
    names += [settings.serving_dir.name] if warehouse.published() is not None else []
    return ", ".join(names)


def _targets(settings: Settings) -> dict[str, Path]:
    """Return the path to which each file of a backup is restored."""
    warehouse, marts, control = settings.warehouse_path, settings.marts_path, sqlite_path(settings)
    return {
        SQLITE_COPY: control or settings.data_dir / SQLITE_COPY,
        POSTGRES_DUMP: settings.data_dir / POSTGRES_DUMP,
        **{path.name + log: path.with_name(path.name + log) for path in (warehouse, marts) for log in ("", ".wal")},
    }


def _staged(place: Path) -> Path:
    return place.with_name(f".{place.name}.restore")


def _remove_staged(settings: Settings) -> None:
    for place in _targets(settings).values():
        _staged(place).unlink(missing_ok=True)


def _stage(settings: Settings, backup: Backup, listener: Listener) -> _Journal:
    _remove_staged(settings)
    targets = _targets(settings)
    staged = {file.name: _staged(targets[file.name]) for file in backup.files}
    try:
        copy_pairs([(backup.folder / name, path) for name, path in staged.items()], settings.data_dir, listener)
        check_files(backup, staged)
        _check_opens(settings, backup, staged)
    except BaseException:
        _remove_staged(settings)
        raise
    for path in staged.values():
        sync(path)
    stamp = f"{utc_now():%Y-%m-%dT%H%M%SZ}"
    former = tuple((path, aside) for path, aside in _former(settings, stamp) if _holds_anything(path))
    restored = Restored(
        backup.folder, backup.version, backup.created_at, tuple(aside for _, aside in former), was_interrupted=False
    )
    places = tuple(targets[name] for name in staged if name != POSTGRES_DUMP)
    return _Journal(restored, former, places, staged.get(POSTGRES_DUMP))


def _check_opens(settings: Settings, backup: Backup, staged: dict[str, Path]) -> None:
    """Open the copies of SQLite's and DuckDB's files; `pg_restore` checks a dump.

    The hashes only say that the files are those of the manifest's author.

    Raises:
        BackupError: a file does not open.
    """
    if (control := staged.get(SQLITE_COPY)) is not None and (fault := find_no_store(control)) is not None:
        raise _unusable(backup, SQLITE_COPY, fault)
    with scratch_folder(settings.data_dir / ".restore") as folder:
        for name, path in staged.items():
            if is_database(name):
                link(path, folder / name)  # DuckDB finds a log by the name of its database
        for path in folder.glob("*.duckdb"):
            try:
                with closing(connect(path, 0, read_only=True)) as connection:
                    check_length(connection, path)
            except duckdb.Error as error:
                raise _unusable(backup, path.name, reason(error)) from error


def _unusable(backup: Backup, name: str, fault: str) -> BackupError:
    return BackupError(f"{backup.folder / name} cannot be opened ({fault}); use another backup")


def _former(settings: Settings, stamp: str) -> Iterator[tuple[Path, Path]]:
    """Yield files and folders of the data with their names after being set aside; a log remains beside its database."""
    control = sqlite_path(settings)
    for path in (settings.warehouse_path, settings.marts_path, control):
        if path is not None:
            for log in ("-wal", "-shm", "") if path == control else (".wal", ""):
                yield path.with_name(path.name + log), path.with_name(f"{path.name}.{stamp}.aside{log}")
    for name in _STATE:
        yield settings.data_dir / name, settings.data_dir / f"{name}.{stamp}.aside"


def _holds_anything(path: Path) -> bool:
    return any(path.iterdir()) if path.is_dir() else path.exists()


def _load(settings: Settings, journal: _Journal) -> None:
    """Restore PostgreSQL's dump, unless an interrupted command has done it."""
    if journal.dump is not None and not _has_store(settings):
        load_dump(settings, journal.dump)


def _switch(settings: Settings, journal: _Journal) -> Restored:
    """Rename former and new files; skip steps that are done already."""
    for path, aside in journal.former:
        if path.exists() and not aside.exists():
            path.rename(aside)
    for place in journal.places:
        if _staged(place).exists():
            _staged(place).replace(place)
    for parent in {settings.data_dir, *(place.parent for place in journal.places)}:
        sync(parent)
    if journal.dump is not None:
        journal.dump.unlink(missing_ok=True)
    _journal_path(settings).unlink()
    sync(settings.data_dir)
    return journal.restored


def _journal_path(settings: Settings) -> Path:
    return settings.data_dir / _JOURNAL


def _write_journal(settings: Settings, journal: _Journal) -> None:
    done = journal.restored
    fields = {
        "folder": str(done.folder),
        "version": done.version,
        "createdAt": done.created_at.isoformat(),
        "former": [[str(path), str(aside)] for path, aside in journal.former],
        "places": [str(place) for place in journal.places],
        "dump": None if journal.dump is None else str(journal.dump),
    }
    beside = settings.data_dir / f".{_JOURNAL}.tmp"
    beside.write_text(json.dumps(fields))
    sync(beside)
    beside.replace(_journal_path(settings))
    sync(settings.data_dir)


def _read_journal(settings: Settings) -> _Journal | None:
    try:
        fields = json.loads(_journal_path(settings).read_text())
    except FileNotFoundError:
        return None
    former = tuple((Path(path), Path(aside)) for path, aside in fields["former"])
    restored = Restored(
        Path(fields["folder"]),
        fields["version"],
        datetime.fromisoformat(fields["createdAt"]),
        tuple(aside for _, aside in former),
        was_interrupted=True,
    )
    dump = None if fields["dump"] is None else Path(fields["dump"])
    return _Journal(restored, former, tuple(map(Path, fields["places"])), dump)
