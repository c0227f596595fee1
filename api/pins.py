"""Pins: the version from which a cursor was handed out is kept for the pages that follow.

How long a pin lasts, and which versions go, is not decided here.
"""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta

from api.errors import ApiError
from api.serving import Serving
from control import version_pins
from control.clock import utc_now
from control.store import ControlStore

_CHECKED_FOR = timedelta(seconds=1)
_LONG_AGO = datetime.min.replace(tzinfo=UTC)


class Pins:
    """What one process pins.

    Args:
        budget_megabytes: most disk space of published versions.
        clock: the present instant.
    """

    def __init__(
        self, store: ControlStore, serving: Serving, budget_megabytes: int, clock: Callable[[], datetime] = utc_now
    ) -> None:
        self._store = store
        self._serving = serving
        self._budget_megabytes = budget_megabytes
        self._clock = clock
        self._recorded: dict[int, datetime] = {}
        self._checked = _LONG_AGO

    def hold(self, version: int, *, is_new: bool) -> None:
        """Keep a version for the cursor that is about to be handed out, or was used.

        Args:
            version: the one that answered.
            is_new: whether this is the first cursor of its walk.

        Raises:
            ApiError: 503, pinned versions need more than the disk budget, or the version went while it answered.
        """
        now = self._clock()
        if is_new:
            self._check_budget(now)
        if now - self._recorded.get(version, _LONG_AGO) < version_pins.RESOLUTION:
            return
        with self._store.write() as session:
            version_pins.pin(session, version, now)
        # Versions are removed while no pin can be recorded: one that is still there now stays.
        if not self._serving.has(version):
            raise ApiError(
                503,
                "version-removed",
                "the published version was removed during the request; repeat the request",
                headers={"Retry-After": "1"},
            )
        self._recorded = {known: at for known, at in self._recorded.items() if now - at < version_pins.RESOLUTION}
        self._recorded[version] = now

    def _check_budget(self, now: datetime) -> None:
        if now - self._checked < _CHECKED_FOR:
            return
        with self._store.read() as session:
            pinned = version_pins.pinned(session, now)
        needed = self._serving.megabytes_needed(pinned)
        if needed > self._budget_megabytes:
            raise ApiError(
                503,
                "version-budget",
                f"the versions that cursors hold need {needed} MB, but LEDGERMART_VERSION_DISK_BUDGET_MB is "
                f"{self._budget_megabytes}. New cursors of cap tables are refused until old ones expire, an hour after "
                "their last use. Request all rows: with a larger `limit`, or as CSV, NDJSON or Parquet.",
                headers={"Retry-After": "60"},
            )
        self._checked = now
