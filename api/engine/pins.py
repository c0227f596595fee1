"""Pins: they keep the version of a cursor on disk for the next pages.

`control.version_pins` decides how long a pin lasts, and the warehouse decides which versions are removed.
"""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from functools import partial

from api.engine.serving import Serving
from api.errors import ApiError
from control import version_pins
from control.clock import utc_now
from control.store import ControlStore

_CHECKED_FOR = timedelta(seconds=1)
_LONG_AGO = datetime.min.replace(tzinfo=UTC)


class Pins:
    """Pins of one process.

    Args:
        store: the control store, which records the pins.
        serving: the published versions.
        budget_megabytes: largest disk space of published versions.
        clock: returns the present instant.
        shard: shard of the versions; None if tenants of all shards read them.
    """

    def __init__(
        self,
        store: ControlStore,
        serving: Serving,
        budget_megabytes: int,
        clock: Callable[[], datetime] = utc_now,
        shard: int | None = None,
    ) -> None:
        self._shard = shard
        self._store = store
        self._serving = serving
        self._budget_megabytes = budget_megabytes
        self._clock = clock
        self._recorded: dict[tuple[int, str], datetime] = {}
        self._checked: dict[str, datetime] = {}

    def hold(self, version: int, tenant_id: str, *, is_new: bool) -> Callable[[], None] | None:
        """Check that a version may be kept for a cursor that was used or will be returned.

        Args:
            version: the version that answered.
            tenant_id: the tenant of the cursor.
            is_new: whether this is the first cursor of a collection.

        Returns:
            A function that records the pin; call it before the cursor is handed out. It waits for other writers, so
            do not call it in a reader's thread. None if a pin is recorded already.

        Raises:
            ApiError: 503, pinned versions need more than the disk budget or the tenant's share.
        """
        now = self._clock()
        if is_new:
            self._check_budget(tenant_id, now)
        if abs(now - self._recorded.get((version, tenant_id), _LONG_AGO)) < version_pins.RESOLUTION:
            return None
        return partial(self._record, version, tenant_id, now)

    def _record(self, version: int, tenant_id: str, now: datetime) -> None:
        """Record a pin.

        Raises:
            ApiError: 503, the version was removed during the request.
        """
        with self._store.write() as session:
            version_pins.pin(session, version, tenant_id, now)
        # No version is removed while a pin is being recorded. So a version that exists now stays.
        if not self._serving.has(version):
            raise ApiError(
                503,
                "version-removed",
                "the published version was removed during the request; repeat the request",
                headers={"Retry-After": "1"},
            )
        self._recorded = {known: at for known, at in self._recorded.items() if abs(now - at) < version_pins.RESOLUTION}
        self._recorded[version, tenant_id] = now

    def _check_budget(self, tenant_id: str, now: datetime) -> None:
        if abs(now - self._checked.get(tenant_id, _LONG_AGO)) < _CHECKED_FOR:
            return
        with self._store.read() as session:
            pinned = version_pins.pinned(session, now, shard=self._shard)
            own = version_pins.pinned(session, now, tenant_id)
        needed, held = self._serving.megabytes_needed(pinned), self._serving.megabytes_held(own)
        # A tenant may use half of the budget that remains beside the versions that stay without pins.
        share = (self._budget_megabytes - needed + self._serving.megabytes_held(pinned)) // 2
        if needed > self._budget_megabytes:
            what = f"the versions that cursors hold need {needed} MB"
        elif held > share:
            what = f"the versions that cursors of this tenant hold need {held} MB, more than its share of {share} MB"
        else:
            self._checked[tenant_id] = now
            return
        raise ApiError(
            503,
            "version-budget",
            f"{what}, but LEDGERMART_VERSION_DISK_BUDGET_MB is {self._budget_megabytes}. New cursors of cap tables are "
            "refused until old ones expire, an hour after their last use. Request all rows: with a larger `limit`, or "
            "as CSV, NDJSON or Parquet.",
            headers={"Retry-After": "60"},
        )
