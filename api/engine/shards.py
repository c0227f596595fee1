"""Published versions of every shard, and the thread that follows the version in force of each one.

Without LEDGERMART_VERSIONS there is one folder with published versions, for the tenants of all shards.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from api.engine.pins import Pins
from api.engine.serving import InForce, Serving, not_published
from api.errors import ApiError
from control.clock import utc_now
from control.settings import Settings
from control.store import ControlStore
from warehouse.port import PublishedVersions

if TYPE_CHECKING:
    from warehouse.shared import SharedVersions

POLL_SECONDS = 0.5
_FOLDER = 0  # the key of the one folder

_log = logging.getLogger("ledgermart.api")


class ShardState(NamedTuple):
    """Versions of one shard on this node.

    Attributes:
        in_use: the version that answers; None if there is none yet.
        published_at: publication of the version in force.
        seconds_behind: time since the first version was published that is newer than the one in use; 0 if none is.
        trouble: reason why the version in force is not in use; None while all is well.
    """

    shard: int
    in_use: InForce | None
    published_at: datetime
    seconds_behind: int
    trouble: str | None


class Shards:
    """Published versions of every shard.

    Args:
        settings: the settings of the process.
        folder: folder of published versions, if the API reads those of this machine.
        store: the control store.
        clock: monotonic clock in seconds.
    """

    def __init__(self, settings: Settings, folder: Path, store: ControlStore, clock: Callable[[], float]) -> None:
        self._settings = settings
        self._store = store
        self._clock = clock
        self._lock = threading.Lock()
        self._open: dict[int, tuple[Serving, Pins]] = {}
        self._shared = _open_shared(settings, store)
        self._follower = None if self._shared is None else Follower(self._shared)
        if self._shared is None:
            self._open[_FOLDER] = self._opened(PublishedVersions(folder), None)

    def of(self, shard: int, since: int | None = None) -> Serving:
        """Return the published versions of a shard.

        Args:
            shard: the shard.
            since: first version of the shard with a tenant that moved there; None: any version will do.

        Raises:
            ApiError: 503, this node has not fetched that version yet.
        """
        serving = self._find(shard)[0]
        if since is not None and self._shared is not None and not serving.has_reached(since):
            raise not_published(f"this node fetches version {since} of shard {shard}; repeat the request")
        return serving

    def pins_of(self, shard: int) -> Pins:
        """Return the pins of a shard's versions."""
        return self._find(shard)[1]

    def states(self) -> list[ShardState] | None:
        """Return the state of each shard with a published version, by shard; None if the API reads a folder."""
        if self._shared is None:
            return None
        found, now = [], utc_now()
        for shard in self._shared.shards():
            cache = self._shared.cache_of(shard)
            if cache.recorded is None:
                continue
            try:
                in_use = self.of(shard).in_force()
            except ApiError:
                in_use = None
            trouble = cache.trouble or (in_use.trouble if in_use else None) or self._shared.trouble
            behind = cache.seconds_behind(in_use.version if in_use else None, now)
            found.append(ShardState(shard, in_use, cache.recorded.served.published_at, behind, trouble))
        return found

    def close(self) -> None:
        """Close every version; no request may be under way."""
        if self._follower is not None:
            self._follower.close()
        for serving, _ in self._open.values():
            serving.close()

    def _find(self, shard: int) -> tuple[Serving, Pins]:
        if self._shared is None:
            return self._open[_FOLDER]
        with self._lock:
            if shard not in self._open:
                self._open[shard] = self._opened(self._shared.cache_of(shard), shard)
            return self._open[shard]

    def _opened(self, published: PublishedVersions, shard: int | None) -> tuple[Serving, Pins]:
        settings = self._settings
        serving = Serving(published, settings.query_memory_mb, settings.query_timeout_seconds, self._clock)
        return serving, Pins(self._store, serving, settings.version_disk_budget_mb, shard=shard)


class Follower:
    """A thread that looks for new versions, and fetches them."""

    def __init__(self, shared: SharedVersions) -> None:
        self._shared = shared
        self._troubles: dict[int | None, str] = {}
        self._is_closed = False
        self._thread = threading.Thread(target=self._run, name="version-follower", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """End the thread, after a fetch that is running."""
        self._is_closed = True
        self._shared.is_wanted.set()
        self._thread.join()

    def _run(self) -> None:
        while not self._is_closed:
            self._shared.is_wanted.clear()
            try:
                self._shared.look()
            except Exception:  # noqa: BLE001 - the next look tries again; health shows how far the node is behind
                _log.exception("new versions could not be fetched")
            self._log_troubles()
            if not self._is_closed:
                self._shared.is_wanted.wait(POLL_SECONDS)

    def _log_troubles(self) -> None:
        """Log each trouble once, when it begins."""
        found: dict[int | None, str | None] = {None: self._shared.trouble}
        found |= {shard: self._shared.cache_of(shard).trouble for shard in self._shared.shards()}
        for shard, trouble in found.items():
            if trouble is not None and self._troubles.get(shard) != trouble:
                _log.error("%s: %s", "versions" if shard is None else f"versions of shard {shard}", trouble)
        self._troubles = {shard: trouble for shard, trouble in found.items() if trouble is not None}


def _open_shared(settings: Settings, store: ControlStore) -> SharedVersions | None:
    if settings.versions is None:
        return None
    # Imported only where it is configured.
    from warehouse.shared import SharedVersions

    return SharedVersions(settings, store)
