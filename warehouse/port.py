"""The interface of the warehouse: open, lock for writing, publish and copy it. Only this package knows its files.

A warehouse of another kind would be a second class with these methods. Tables and the meaning of rows belong elsewhere.
"""

from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import closing, contextmanager, nullcontext, suppress
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

import duckdb
from sqlalchemy.engine import make_url

from control.aside import set_aside
from control.errors import StoreUnavailable
from control.settings import Settings
from warehouse import copies, versions
from warehouse.damage import (
    DamagedFileError,
    check_length,
    damage_named,
    damaged_tables,
    is_damage,
    reason,
    unreadable_parts,
)
from warehouse.folders import FolderError
from warehouse.lock import WriterBusyError, copy_lock, describe_holder, is_locked, writer_lock
from warehouse.opening import connect, open_for_writing
from warehouse.session_lock import SessionLockBusyError, SessionLockError, session_lock
from warehouse.versions import PointerError, Publication, Publisher, SharingError

__all__ = [
    "Mark",
    "NothingPublishedError",
    "OpenVersion",
    "PointerError",
    "Publication",
    "PublishedVersions",
    "SharingError",
    "Warehouse",
    "is_damage",
]

Mark = tuple[int, int, int]

RESTORE = (
    "restore a backup with `ledgermart restore` (docs/how-to/backup-and-upgrade.md); without one, "
    "`ledgermart cycle --new-warehouse` begins an empty warehouse"
)
REBUILD = "the next build makes it again, as does `ledgermart cycle --rebuild`"


class NothingPublishedError(FolderError):
    """There is no version yet; the message says what to do."""


@dataclass(frozen=True)
class Copy:
    """An analyst's copy of the warehouse.

    Attributes:
        publication: the version in the copy.
        is_reflinked: whether its files share blocks with the warehouse's files until either changes.
    """

    publication: Publication
    is_reflinked: bool


@dataclass(frozen=True)
class OpenVersion:
    """A published version, opened for a service.

    Attributes:
        connection: reads this version alone.
        epoch: of the installation when it was published.
        tenant_versions: the data version of each tenant.
    """

    connection: duckdb.DuckDBPyConnection
    epoch: str
    tenant_versions: Mapping[str, int]


class PublishedVersions:
    """The published versions, as a service reads them.

    Args:
        folder: holds the files of the versions and the pointer to the newest one.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def newest(self) -> Publication:
        """Return the version that was published last.

        Raises:
            PointerError: the pointer to it is missing or damaged.
        """
        return versions.read_pointer(self._folder)

    def kept(self) -> dict[int, datetime]:
        """Return the versions that exist, with their times of publication."""
        found = {}
        for version, path in versions.published_versions(self._folder).items():
            with suppress(FileNotFoundError):  # removed meanwhile
                found[version] = versions.published_at(path)
        return found

    def available(self) -> set[int]:
        """Return the versions that exist, or that `fetch` can get."""
        return set(self.kept())

    def fetch(self, version: int) -> None:
        """Get a version from the store of versions, if this folder is a cache of it and lacks the version.

        Raises:
            SharingError: the store does not answer.
        """

    def catch_up(self, version: int) -> bool:
        """Look for newer versions now if this folder is a cache and behind a version; return whether it advanced."""
        return False

    def is_kept(self, version: int) -> bool:
        """Return whether a version that was pinned just now stays."""
        return self.mark(version) is not None

    def mark(self, version: int) -> Mark | None:
        """Return a value that changes if the version is replaced; None if it does not exist."""
        try:
            status = versions.path_of(self._folder, version).stat()
        except FileNotFoundError:
            return None
        return status.st_mtime_ns, status.st_ino, status.st_size

    def open(self, version: int, memory_megabytes: int) -> OpenVersion:
        """Open a version for statements of a service, within this memory.

        Raises:
            duckdb.IOException: it cannot be opened.
        """
        connection = versions.open_locked_down(versions.path_of(self._folder, version), memory_megabytes)
        return OpenVersion(connection, versions.epoch_of(connection), versions.tenant_versions_of(connection))

    def megabytes_needed(self, pinned: Collection[int]) -> int:
        """Return the disk space of the versions that may not be removed while these are pinned."""
        return versions.megabytes_needed(self._folder, pinned)

    def megabytes_held(self, pinned: Collection[int]) -> int:
        """Return the part of that disk space that only these pins keep."""
        return versions.megabytes_held(self._folder, pinned)


class Warehouse:
    """The warehouse of one data folder."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings

    @contextmanager
    def exclusive(self, purpose: str) -> Iterator[None]:
        """Hold the writer lock during the block.

        Args:
            purpose: description of the work, shown to processes that wait for the lock.

        Raises:
            WriterBusyError: another writer held the lock for longer than LEDGERMART_LOCK_WAIT_SECONDS.
            StoreUnavailable: the lock of the shard is in PostgreSQL, which does not answer.
        """
        settings = self._settings
        with writer_lock(settings.lock_path, purpose, settings.lock_wait_seconds):
            if settings.versions is None:
                yield
                return
            # Several machines could build the shard.
            with _shard_lock(settings, purpose):
                yield

    def is_written(self) -> bool:
        """Return whether a writer holds the lock, without waiting."""
        return is_locked(self._settings.lock_path)

    def writer(self) -> str | None:
        """Return a description of the current writer; None if there is none."""
        return describe_holder(self._settings.lock_path) if self.is_written() else None

    @contextmanager
    def open(self) -> Iterator[duckdb.DuckDBPyConnection]:
        """Open the warehouse for writing within the pipeline's memory limit, and close it at the end of the block.

        Raises:
            DamagedFileError: the file is damaged.
        """
        path = self._settings.warehouse_path
        with damage_named(path, RESTORE), open_for_writing(path, self._settings.pipeline_memory_mb) as connection:
            check_length(connection, path)
            yield connection

    def exists(self) -> bool:
        """Return whether the warehouse's file exists."""
        return self._settings.warehouse_path.exists()

    def has_remains(self) -> bool:
        """Return whether any file of a warehouse exists: the warehouse itself, its marts, or a version."""
        return self.exists() or self.has_marts() or self.published() is not None

    def lost(self, what: str) -> DamagedFileError:
        """Return the error for a lost warehouse; `what` names the lost data."""
        return DamagedFileError(f"{self._settings.warehouse_path} is lost, with the data of {what}; {RESTORE}")

    def set_aside(self) -> Path | None:
        """Rename the warehouse's file, so that the next writer begins an empty one; return its new name."""
        path = self._settings.warehouse_path
        return set_aside(path, [".wal"]) if path.exists() else None

    def check_rows(self, schema: str) -> None:
        """Read all rows of a schema.

        Raises:
            DamagedFileError: some rows cannot be read; the message names their tables.
        """
        path = self._settings.warehouse_path
        with damage_named(path, RESTORE):
            damaged = [table for table in damaged_tables(path) if table.startswith(f"{schema}.")]
        if damaged:
            raise DamagedFileError(f"{path} is damaged (in {', '.join(damaged)}); {RESTORE}")

    def damage(self) -> list[str]:
        """Open each file briefly; return a message for each damaged one. Skip files that a writer may be changing."""
        settings, found = self._settings, []
        files = [(settings.warehouse_path, RESTORE), (settings.marts_path, REBUILD)]
        for path, fix in [] if self.is_written() else files:
            if not path.exists():
                continue
            try:
                with damage_named(path, fix), closing(connect(path, 0.0, read_only=True)) as connection:
                    check_length(connection, path)
            except DamagedFileError as error:
                found.append(str(error))
        if not self.is_newest_readable() and versions.published_versions(settings.serving_dir):
            found.append(
                f"the newest version in {settings.serving_dir} cannot be read; the next cycle publishes it again"
            )
        return found

    def deep_damage(self, on_wait: Callable[[str], None]) -> list[str]:
        """Read every file completely; return a message for each damaged one. Writers wait until this is done.

        Args:
            on_wait: called with the description of the writer that must finish first.
        """
        settings = self._settings
        found = []
        # Without a lock file, no writer has ever used this folder.
        with copy_lock(settings.lock_path, on_wait) if settings.lock_path.exists() else nullcontext():
            for path, fix in ((settings.warehouse_path, RESTORE), (settings.marts_path, REBUILD)):
                if path.exists():
                    found += _find_damage(path, fix)
        try:
            versions.read_pointer(settings.serving_dir)
        except versions.PointerError as error:
            if versions.published_versions(settings.serving_dir):
                found.append(f"{settings.serving_dir}: {error}; the next cycle publishes a version in a new epoch")
        newest = self.published()
        for version, path in versions.published_versions(settings.serving_dir).items():
            fix = "the next cycle publishes it again" if newest and version == newest.version else "no data is lost"
            found += _find_damage(path, f"{fix}; delete the file, and readers use the version before it")
        return found

    def has_marts(self) -> bool:
        """Return whether the file in which dbt builds the marts exists."""
        return self._settings.marts_path.exists()

    def mark_marts(self, token: str, served: int | None = None) -> str | None:
        """Store the token of the next build in the build file of the marts; return the token of the previous build.

        Return None if the file is missing, damaged or of an earlier release.

        Args:
            token: identifies the build.
            served: the version that API nodes on other machines use when the build begins; None if there is none.
        """
        try:
            with closing(connect(self._settings.marts_path)) as connection:
                check_length(connection, self._settings.marts_path)
                return versions.mark_build(connection, token, served)
        except duckdb.Error as error:
            if not is_damage(str(error)):
                raise
            return None

    def discard_marts(self) -> None:
        """Delete the build file of the marts; published versions stay."""
        path = self._settings.marts_path
        path.unlink(missing_ok=True)
        path.with_name(f"{path.name}.wal").unlink(missing_ok=True)

    def dbt_environment(self) -> dict[str, str]:
        """Return the environment variables that dbt's profile reads: paths and memory limit."""
        return {
            "LEDGERMART_WAREHOUSE_PATH": str(self._settings.warehouse_path),
            "LEDGERMART_MARTS_PATH": str(self._settings.marts_path),
            "LEDGERMART_PIPELINE_MEMORY_MB": str(self._settings.pipeline_memory_mb),
        }

    def publish(
        self, batch_id: int, recorded: int, control_revision: int, publisher: Publisher | None = None
    ) -> Publication:
        """Publish the current marts as a new version, and point readers at it.

        Args:
            batch_id: the newest cycle with rows in the marts.
            recorded: the newest version that the warehouse has recorded.
            control_revision: the newest revision of the control store in the marts.
            publisher: serves the version to API nodes on other machines; None if they read the folder.

        Raises:
            SharingError: the publisher did not put the version in force.
        """
        settings = self._settings
        return versions.publish(
            settings.marts_path, settings.serving_dir, batch_id, recorded, control_revision, publisher
        )

    def published(self) -> Publication | None:
        """Return the version in force; None if there is none."""
        return versions.current_publication(self._settings.serving_dir)

    def is_newest_readable(self) -> bool:
        """Return whether the newest version can be read; if not, the next cycle publishes again."""
        return versions.newest_is_readable(self._settings.serving_dir)

    def remove_old_versions(self, pinned: Collection[int]) -> list[int]:
        """Remove old versions that are not pinned and are past their grace period; return their numbers."""
        settings = self._settings
        budget = settings.version_disk_budget_mb * 1_000_000
        return versions.remove_old_versions(settings.serving_dir, settings.version_grace_seconds, budget, pinned)

    def megabytes_missing(self, pinned: Collection[int]) -> int:
        """Return the megabytes by which pinned versions exceed the disk budget; 0 if they fit."""
        needed = versions.megabytes_needed(self._settings.serving_dir, pinned)
        return max(needed - self._settings.version_disk_budget_mb, 0)

    @contextmanager
    def open_published(self) -> Iterator[tuple[Publication, duckdb.DuckDBPyConnection]]:
        """Open the version in force for reading.

        Raises:
            NothingPublishedError: there is none.
        """
        publication = self._expect_published()
        path = self._settings.serving_dir / publication.file
        with closing(connect(path, read_only=True)) as connection:
            yield publication, connection

    @contextmanager
    def copy_for(self, analyst: Path, listener: copies.Listener) -> Iterator[Copy]:
        """Copy warehouse, marts and the version in force, all of one moment, into an analyst's folder.

        Wait for a running writer, and block new ones until the end of the block.

        Raises:
            NothingPublishedError: there is no version yet.
            FolderError: the disk is too small.
        """
        settings = self._settings
        self._expect_published()
        with copy_lock(settings.lock_path, listener.waits):
            publication = self._expect_published()
            self._wait_for_orphans()
            is_reflinked = copies.copy_files(settings.warehouse_path, settings.marts_path, analyst, listener)
            copies.link(settings.serving_dir / publication.file, analyst / copies.PUBLISHED)
            yield Copy(publication, is_reflinked)
        copies.take_in_logs(analyst)

    @contextmanager
    def copy_to(self, folder: Path, listener: copies.Listener) -> Iterator[str | None]:
        """Copy warehouse and build file under their own names into a folder; block writers until the block ends.

        Returns:
            The epoch of the version in force; None if there is none.

        Raises:
            FolderError: there is no warehouse, or the disk is too small.
            DamagedFileError: the warehouse cannot be opened.
        """
        settings = self._settings
        if not self.exists():
            raise FolderError(f"{settings.warehouse_path} does not exist; run `ledgermart init --tenant NAME` first")
        settings.lock_path.touch(mode=0o600)
        with copy_lock(settings.lock_path, listener.waits):
            self._wait_for_orphans()
            copies.copy_files(
                settings.warehouse_path, settings.marts_path, folder, listener, marts_name=settings.marts_path.name
            )
            yield versions.current_epoch(settings.serving_dir)

    @contextmanager
    def open_copy(self, folder: Path, listener: copies.Listener) -> Iterator[duckdb.DuckDBPyConnection]:
        """Copy the warehouse into a folder, open the copy within the pipeline's memory limit, and delete it at the end.

        Wait for a running writer, and block new ones only while the file is copied.

        Raises:
            FolderError: the disk is too small.
            DamagedFileError: the warehouse is damaged.
        """
        settings = self._settings
        settings.lock_path.touch(mode=0o600)
        with copy_lock(settings.lock_path, listener.waits):
            self._wait_for_orphans()
            copies.copy_files(settings.warehouse_path, None, folder, listener)
        copy = folder / copies.WAREHOUSE
        with (
            damage_named(settings.warehouse_path, RESTORE),
            open_for_writing(copy, settings.pipeline_memory_mb) as connection,
        ):
            check_length(connection, copy)
            yield connection
        copies.remove(copy)

    def _wait_for_orphans(self) -> None:
        """Wait until the warehouse can be opened: a child of a killed writer may still have it open.

        Raises:
            DamagedFileError: the warehouse is damaged.
        """
        with damage_named(self._settings.warehouse_path, RESTORE):
            connect(self._settings.warehouse_path, read_only=True).close()

    def check_copies(self, folder: Path) -> None:
        """Check every block of the files that `copy_to` wrote; no process may write them.

        Raises:
            DamagedFileError: a copy is damaged, so its source is too; the message names the source.
        """
        for source in (self._settings.warehouse_path, self._settings.marts_path):
            copy = folder / source.name
            if copy.exists() and (found := _find_damage(copy, RESTORE)):
                raise DamagedFileError(found[0].replace(str(copy), str(source), 1))

    def _expect_published(self) -> Publication:
        publication = self.published()
        if publication is None:
            folder = self._settings.serving_dir
            advice = "run `ledgermart cycle`" if self.exists() else "run `ledgermart init --tenant NAME`"
            raise NothingPublishedError(f"nothing is published in {folder}; {advice}")
        return publication


def _find_damage(path: Path, fix: str) -> list[str]:
    try:
        with damage_named(path, fix):
            parts = unreadable_parts(path)
    except DamagedFileError as error:
        return [str(error)]
    except (duckdb.IOException, OSError) as error:
        if not path.exists():
            return []  # deleted meanwhile, as old versions are
        return [f"{path} cannot be read ({reason(error)}); check its owner, its mode, and which program has it open"]
    return [f"{path} is damaged (in {', '.join(parts)}); {fix}"] if parts else []


@contextmanager
def _shard_lock(settings: Settings, purpose: str) -> Iterator[None]:
    name = f"ledgermart shard {settings.shard}"
    database = make_url(settings.control_url).set(drivername="postgresql").render_as_string(hide_password=False)
    try:
        with session_lock(database, name, purpose, settings.lock_wait_seconds):
            yield
    except SessionLockBusyError as error:
        raise WriterBusyError(settings.lock_path, error.holder, settings.lock_wait_seconds) from error
    except SessionLockError as error:
        raise StoreUnavailable("the control store does not answer", str(error)) from error
