"""Published versions on several machines: files in a store of objects, records of them in the control store.

A pipeline publishes the versions of its shard. API nodes fetch the versions of all shards into their data folders.
Import this module only where LEDGERMART_VERSIONS is set.
"""

import json
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from datetime import datetime, timedelta
from functools import partial
from itertools import pairwise
from pathlib import Path
from tempfile import TemporaryDirectory

from sqlalchemy.orm import Session

from control import moves, serving, version_pins
from control.clock import utc_now
from control.errors import StoreUnavailable
from control.serving import PointerMovedError, Served, ShardVersions
from control.settings import Settings
from control.store import ControlStore
from warehouse import versions
from warehouse.objects import Objects, ObjectStoreError, StoredObject
from warehouse.port import PublishedVersions
from warehouse.versions import Publication, SharingError

ORPHAN_AGE = timedelta(days=1)
"""Objects without a record are deleted at this age. A younger one may belong to a publication that is running."""
_RETRY_SECONDS = 5.0
_CATCH_UP_SECONDS = 2.0
_FETCHED = "fetched.json"


class ShardPublisher:
    """Publishes the versions of one shard for API nodes on all machines.

    Args:
        settings: name the shard and the store of versions.
        store: the control store.
    """

    def __init__(self, settings: Settings, store: ControlStore) -> None:
        self._settings = settings
        self._shard = settings.shard
        self._store = store

    def newest(self) -> tuple[int, str] | None:
        """Return number and pointer of the version in force; None before the first.

        Raises:
            SharingError: the control store does not answer.
        """
        try:
            with self._store.read() as session:
                found = serving.read_served(session, self._shard)
        except StoreUnavailable as error:
            raise SharingError(f"the version in force is not known: {error}") from error
        return None if found is None else (found.version, found.pointer)

    def newest_switch(self) -> int:
        """Return the newest version that is the first one with a tenant that moved to the shard; 0 without one.

        Raises:
            SharingError: the control store does not answer.
        """
        try:
            with self._store.read() as session:
                return moves.newest_switch(session, self._shard)
        except StoreUnavailable as error:
            raise SharingError(f"the moved tenants of the shard are not known: {error}") from error

    def put_in_force(self, path: Path, publication: Publication, pointer: str, before: int | None) -> None:
        """Store a version's file, and put the version in force in place of `before`.

        Raises:
            SharingError: another builder published meanwhile, or one of the stores does not answer.
        """
        version = publication.version
        try:
            stored = open_objects(self._settings).put(path, self._prefix(pointer))
            self.record(Served(version, *stored, pointer, publication.published_at), before)
        except (ObjectStoreError, PointerMovedError, StoreUnavailable) as error:
            raise SharingError(f"version {version} is not served: {error}") from error

    def record(self, served: Served, before: int | None) -> None:
        """Put a stored version in force in place of `before`.

        Raises:
            PointerMovedError: another version is in force.
            StoreUnavailable: the control store does not answer.
        """
        with self._store.write() as session:
            serving.publish(session, self._shard, before, served)

    def forget_old_versions(self, session: Session, pinned: set[int], now: datetime | None = None) -> list[Served]:
        """Remove the records of old versions that are not pinned, and return them.

        The version in force and the one before it stay. Pass the records to `delete` after the transaction.
        """
        kept = serving.read_kept(session, self._shard)
        grace, now = timedelta(seconds=self._settings.version_grace_seconds), now or utc_now()
        old = [
            served
            for served, follower in pairwise(kept[:-1])
            if served.version not in pinned and abs(now - follower.published_at) > grace
        ]
        serving.forget(session, self._shard, [served.version for served in old])
        return old

    def delete(self, removed: Sequence[Served], now: datetime | None = None) -> None:
        """Delete the objects of removed versions, and old objects of the present epoch that have no record.

        Objects of other epochs stay: a copy of the installation, such as a trial restore, may use the same store.

        Raises:
            SharingError: a store does not answer. A later call deletes the rest by age.
        """
        try:
            with self._store.read() as session:
                kept = serving.read_kept(session, self._shard)
            recorded = {served.object_name for served in kept}
            objects, oldest = open_objects(self._settings), (now or utc_now()) - ORPHAN_AGE
            for served in removed:
                objects.delete(served.object_name)
            for prefix in {self._prefix(served.pointer) for served in kept[-1:]}:
                for found in objects.list(prefix):
                    if found.name not in recorded and found.modified_at < oldest:
                        objects.delete(found.name)
        except (ObjectStoreError, StoreUnavailable) as error:
            raise SharingError(f"old versions are not deleted from the store of versions: {error}") from error

    def _prefix(self, pointer: str) -> str:
        """Return the prefix of the objects of one epoch."""
        return f"shard-{self._shard}/{json.loads(pointer)['epoch']}"


class VersionCache(PublishedVersions):
    """Versions of one shard in a folder of an API node, fetched from the store of versions.

    Args:
        folder: holds the fetched versions, the pointer, and the hashes of the fetched files.
        find: returns the record of a version; None if nodes may not read it any more.
        open_objects: opens the store of versions.
        wait_for_look: returns after a new look at the records, or after a short time.
    """

    def __init__(
        self,
        folder: Path,
        find: Callable[[int], Served | None],
        open_objects: Callable[[], Objects],
        wait_for_look: Callable[[], None],
    ) -> None:
        super().__init__(folder)
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._find = find
        self._open_objects = open_objects
        self._wait_for_look = wait_for_look
        self._lock = threading.Lock()
        for part in folder.glob(".marts-*.part"):
            part.unlink()  # of a killed fetch
        self._fetched = _read_fetched(folder / _FETCHED)
        self._pointed: Served | None = None
        self._retry_at = 0.0
        self.recorded: ShardVersions | None = None
        self.trouble: str | None = None

    def available(self) -> set[int]:
        """Return the versions in the folder, and those that can be fetched."""
        return super().available() | (set(self.recorded.kept) if self.recorded else set())

    def is_kept(self, version: int) -> bool:
        """Return whether the control store has a record of the version.

        Raises:
            StoreUnavailable: the control store does not answer.
        """
        return self._find(version) is not None

    def fetch(self, version: int) -> None:
        """Fetch a version if the folder lacks it and nodes may read it.

        Raises:
            SharingError: the store of versions does not answer, or its object was changed.
            StoreUnavailable: the control store does not answer.
        """
        if self.mark(version) is None and (served := self._find(version)) is not None:
            with self._lock:
                self._hold(served)

    def catch_up(self, version: int) -> bool:
        """Wait for a look at the records if the pointer is behind this version; return whether it moved."""
        before = self._pointed
        if before is None or before.version >= version:
            return False
        self._wait_for_look()
        return self._pointed != before

    def seconds_behind(self, version: int | None, now: datetime) -> int:
        """Return the seconds since the first version was published that is newer than this one; 0 if none is."""
        if self.recorded is None or (self._pointed == self.recorded.served and version == self.recorded.in_force):
            return 0
        kept = self.recorded.kept
        newer = [served for number, served in kept.items() if version is None or number > version]
        first = min((served.published_at for served in newer), default=self.recorded.served.published_at)
        return max(round((now - first).total_seconds()), 0)

    def follow(self, found: ShardVersions, evict: Callable[[Path], None]) -> None:
        """Fetch the version in force and point to it; store a failure in `trouble`.

        Args:
            found: the recorded versions of the shard.
            evict: removes old versions from the folder.
        """
        with self._lock:
            self.recorded, served = found, found.served
            is_held = self._pointed == served and self.mark(served.version) is not None
            if is_held or time.monotonic() < self._retry_at:
                return
            try:
                self._hold(served)
            except SharingError as error:
                self._retry_at, self.trouble = time.monotonic() + _RETRY_SECONDS, str(error)
                return
            versions.move_pointer(self._folder, served.pointer)
            self._pointed, self.trouble = served, None
            self._remove_foreign(found)
            evict(self._folder)

    def _hold(self, served: Served) -> None:
        """Fetch a version's file unless the folder has it.

        Raises:
            SharingError: the store does not answer, or the object is not the one that was published.
        """
        path = versions.path_of(self._folder, served.version)
        if path.exists() and self._fetched.get(path.name) == served.sha256:
            return
        stored = StoredObject(served.object_name, served.byte_count, served.sha256)
        try:
            self._open_objects().fetch(stored, path)
        except ObjectStoreError as error:
            raise SharingError(f"a published version cannot be fetched: {error}") from error
        versions.protect(path)
        kept = {name: sha256 for name, sha256 in self._fetched.items() if (self._folder / name).exists()}
        self._fetched = kept | {path.name: served.sha256}
        beside = self._folder / f".{_FETCHED}"
        beside.write_text(json.dumps(self._fetched))
        beside.replace(self._folder / _FETCHED)

    def _remove_foreign(self, found: ShardVersions) -> None:
        """Remove files that share a number with a recorded version or are newer: they are from before a restore."""
        for version, path in versions.published_versions(self._folder).items():
            served = found.kept.get(version)
            if version > found.in_force or (served and self._fetched.get(path.name) != served.sha256):
                path.unlink()


class SharedVersions:
    """The published versions of all shards, as one API node reads them.

    Args:
        settings: name the store of versions and the node's data folder.
        store: the control store.

    Attributes:
        is_wanted: set if a request waits for the next look.
        trouble: failure of the last look; None if it succeeded.
    """

    def __init__(self, settings: Settings, store: ControlStore) -> None:
        self._settings = settings
        self._store = store
        self._lock = threading.Lock()
        self._caches: dict[int, VersionCache] = {}
        self._looked = threading.Condition()
        self._begun = self._finished = 0
        self.is_wanted = threading.Event()
        self.trouble: str | None = None

    def cache_of(self, shard: int) -> VersionCache:
        """Return the cache of a shard, which may be empty."""
        with self._lock:
            if shard not in self._caches:
                folder = self._settings.serving_dir / f"shard-{shard}"

                def find(version: int) -> Served | None:
                    with self._store.read() as session:
                        return serving.find_kept(session, shard, version)

                objects = partial(open_objects, self._settings)
                self._caches[shard] = VersionCache(folder, find, objects, self._wait_for_look)
            return self._caches[shard]

    def shards(self) -> list[int]:
        """Return the shards with a cache in use, in order."""
        with self._lock:
            return sorted(self._caches)

    def look(self) -> None:
        """Read the records once, and fetch the version in force of each shard; only one thread may call this.

        Store a failure of the control store in `trouble`, and one of the store of versions in the shard's cache.
        """
        with self._looked:
            self._begun += 1
        try:
            with self._store.read() as session:
                found = serving.read_shards(session)
            for shard, recorded in found.items():
                self.cache_of(shard).follow(recorded, self._evicting(shard))
        except StoreUnavailable as error:
            self.trouble = str(error)
        else:
            self.trouble = None
        finally:
            with self._looked:
                self._finished = self._begun
                self._looked.notify_all()

    def _wait_for_look(self) -> None:
        """Wait until a look that began after this call is finished, for a short time."""
        with self._looked:
            wanted = self._begun + 1
            self.is_wanted.set()
            self._looked.wait_for(lambda: self._finished >= wanted, _CATCH_UP_SECONDS)

    def _evicting(self, shard: int) -> Callable[[Path], None]:
        settings = self._settings

        def evict(folder: Path) -> None:
            with self._store.read() as session:
                pinned = version_pins.pinned(session, shard=shard)
            budget = settings.version_disk_budget_mb * 1_000_000
            versions.remove_old_versions(folder, settings.version_grace_seconds, budget, pinned)

        return evict


def open_objects(settings: Settings) -> Objects:
    """Open the store of versions.

    Raises:
        ObjectStoreError: its folder cannot be made.
    """
    assert settings.versions is not None
    try:
        return Objects(settings.versions)
    except OSError as error:
        raise ObjectStoreError(f"{settings.versions} cannot be opened: {error.strerror or error}") from error


def delete_objects(objects: Objects, prefix: str) -> None:
    """Delete the objects below a prefix.

    Raises:
        ObjectStoreError: the store does not answer.
    """
    for stored in objects.list(prefix):
        objects.delete(stored.name)


def try_store(settings: Settings) -> None:
    """Put, fetch and delete a small object.

    Raises:
        SharingError: one of the three failed.
    """
    with TemporaryDirectory() as folder:
        path = Path(folder) / "probe.txt"
        path.write_text(f"ledgermart doctor, {utc_now().isoformat()}")
        try:
            objects = open_objects(settings)
            stored = objects.put(path, "probe")
            try:
                objects.fetch(stored, Path(folder) / "fetched.txt")
            finally:
                objects.delete(stored.name)
        except ObjectStoreError as error:
            raise SharingError(str(error)) from error


def _read_fetched(path: Path) -> dict[str, str]:
    """Return the hashes of the files in a cache; without them, each file is fetched again."""
    with suppress(FileNotFoundError, ValueError):
        return {str(name): str(sha256) for name, sha256 in json.loads(path.read_text()).items()}
    return {}
