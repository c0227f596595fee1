"""The warehouse as everybody else knows it: open it, write it alone, publish it, copy it. Here alone it is files.

A warehouse of another kind is a second class with these methods. What is in it, and what rows mean, does not go here.
"""

from collections.abc import Collection, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path

import duckdb

from control.settings import Settings
from warehouse import copies, versions
from warehouse.folders import FolderError
from warehouse.lock import copy_lock, describe_holder, is_locked, writer_lock
from warehouse.opening import connect, open_for_writing
from warehouse.versions import Publication


class NothingPublishedError(FolderError):
    """There is no version yet; the message says what to do."""


@dataclass(frozen=True)
class Copy:
    """What an analyst was given.

    Attributes:
        publication: the version in it.
        is_reflinked: whether its files share their blocks with the warehouse's until either changes.
    """

    publication: Publication
    is_reflinked: bool


class Warehouse:
    """The warehouse of one data folder."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings

    @contextmanager
    def exclusive(self, purpose: str) -> Iterator[None]:
        """Be its one writer.

        Args:
            purpose: what the writer does, for whoever waits.

        Raises:
            WriterBusyError: another writer held it for longer than LEDGERMART_LOCK_WAIT_SECONDS.
        """
        with writer_lock(self._settings.lock_path, purpose, self._settings.lock_wait_seconds):
            yield

    def is_written(self) -> bool:
        """Tell whether a writer is at work, without waiting."""
        return is_locked(self._settings.lock_path)

    def writer(self) -> str | None:
        """Say in words who writes it; None when nobody does."""
        return describe_holder(self._settings.lock_path) if self.is_written() else None

    @contextmanager
    def open(self) -> Iterator[duckdb.DuckDBPyConnection]:
        """Open it for writing, within the memory of the pipeline; closed on leaving."""
        with open_for_writing(self._settings.warehouse_path, self._settings.pipeline_memory_mb) as connection:
            yield connection

    def dbt_environment(self) -> dict[str, str]:
        """The variables by which dbt's profile finds raw and marts."""
        return {
            "LEDGERMART_WAREHOUSE_PATH": str(self._settings.warehouse_path),
            "LEDGERMART_MARTS_PATH": str(self._settings.marts_path),
            "LEDGERMART_PIPELINE_MEMORY_MB": str(self._settings.pipeline_memory_mb),
        }

    def publish(self, batch_id: int, recorded: int, control_revision: int) -> Publication:
        """Make a version of the marts as they are, and point readers at it.

        Args:
            batch_id: the newest cycle whose rows are in it.
            recorded: the newest version that the warehouse's records know of.
            control_revision: of the control store, as far as it is in the marts.
        """
        settings = self._settings
        return versions.publish(settings.marts_path, settings.serving_dir, batch_id, recorded, control_revision)

    def published(self) -> Publication | None:
        """Return the version in force; None when there is none."""
        return versions.current_publication(self._settings.serving_dir)

    def is_newest_readable(self) -> bool:
        """Whether what was published last can be read; else it is to be published again."""
        return versions.newest_is_readable(self._settings.serving_dir)

    def remove_old_versions(self, pinned: Collection[int]) -> list[int]:
        """Remove versions that readers have had time to leave and that are not pinned; return them."""
        settings = self._settings
        budget = settings.version_disk_budget_mb * 1_000_000
        return versions.remove_old_versions(settings.serving_dir, settings.version_grace_seconds, budget, pinned)

    def megabytes_missing(self, pinned: Collection[int]) -> int:
        """By how much the disk budget is too small for what is pinned; 0 where it is not."""
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
        """Give an analyst's folder copies of raw and marts of one moment, with the version that is in force then.

        Waits until no writer is at work; none begins before the block ends.

        Raises:
            NothingPublishedError: there is no version yet.
            FolderError: the disk is too small.
        """
        settings = self._settings
        self._expect_published()
        with copy_lock(settings.lock_path, listener.waits):
            publication = self._expect_published()
            # A child of a killed writer may still have it open.
            connect(settings.warehouse_path, read_only=True).close()
            is_reflinked = copies.copy_files(settings.warehouse_path, settings.marts_path, analyst, listener)
            copies.link(settings.serving_dir / publication.file, analyst / copies.PUBLISHED)
            yield Copy(publication, is_reflinked)
        copies.take_in_logs(analyst)

    def _expect_published(self) -> Publication:
        publication = self.published()
        if publication is None:
            folder = self._settings.serving_dir
            raise NothingPublishedError(f"nothing is published in {folder}; run `ledgermart init --tenant NAME`")
        return publication
