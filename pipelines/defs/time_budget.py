"""Time between a cycle's publication and the next cycle, for collecting past data."""

import time
from datetime import timedelta

import duckdb

from control.clock import stored_now
from control.revision import read_revision
from control.store import ControlStore

# Past data gets at least this time, even in a cycle that takes longer than the time between cycles.
_LEAST_SECONDS = 2.0
# Interval at which progress is written to the control store.
_REPORT_SECONDS = 1.0


class Throttle:
    """Rate limiter: due at once, and then at most every `_REPORT_SECONDS`."""

    def __init__(self) -> None:
        self._last = float("-inf")

    def is_due(self) -> bool:
        now = time.monotonic()
        if now - self._last < _REPORT_SECONDS:
            return False
        self._last = now
        return True


class HistoryTimeBudget:
    """Remaining time of a cycle for past data: until the next cycle is due, or the configuration changes."""

    def __init__(
        self, connection: duckdb.DuckDBPyConnection, store: ControlStore, batch_id: int, cycle_seconds: int
    ) -> None:
        row = connection.execute(
            "select started_at, (select max(revision) from raw.control_revisions) from raw.batches where batch_id = ?",
            [batch_id],
        ).fetchone()
        assert row is not None
        began_at, self._revision = row
        left: timedelta = began_at + timedelta(seconds=cycle_seconds) - stored_now()
        self._store = store
        self._began = time.monotonic()
        # The clock may have gone back since the start of the cycle.
        self._until = self._began + max(min(left.total_seconds(), cycle_seconds), _LEAST_SECONDS)
        self._throttle = Throttle()
        self._is_changed = False

    def halve(self) -> None:
        """Use only half of the time."""
        self._until = (self._began + self._until) / 2

    def is_over(self) -> bool:
        """Tell whether to stop now."""
        if not self._is_changed and self._throttle.is_due():
            with self._store.read() as session:
                self._is_changed = read_revision(session) != self._revision
        return self._is_changed or time.monotonic() >= self._until
