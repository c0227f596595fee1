"""The time between a cycle's publication and the next cycle, which past data is collected in."""

import time
from datetime import timedelta

import duckdb

from control.revision import read_revision
from control.store import ControlStore
from pipelines.load.warehouse import utc_now

# A cycle that takes longer than the time between cycles still gives past data so much.
_LEAST_SECONDS = 2.0
# The control store hears of progress about this often.
_REPORT_SECONDS = 1.0


class Throttle:
    """Lets something happen at once, and then not more often than every `_REPORT_SECONDS`."""

    def __init__(self) -> None:
        self._last = float("-inf")

    def is_due(self) -> bool:
        now = time.monotonic()
        if now - self._last < _REPORT_SECONDS:
            return False
        self._last = now
        return True


class Slot:
    """The time that a cycle has left for the past: until the next one is due, or somebody changes the configuration."""

    def __init__(
        self, connection: duckdb.DuckDBPyConnection, store: ControlStore, batch_id: int, cycle_seconds: int
    ) -> None:
        row = connection.execute(
            "select started_at, (select max(revision) from raw.control_revisions) from raw.batches where batch_id = ?",
            [batch_id],
        ).fetchone()
        assert row is not None
        began_at, self._revision = row
        left: timedelta = began_at + timedelta(seconds=cycle_seconds) - utc_now()
        self._store = store
        self._began = time.monotonic()
        self._until = self._began + max(left.total_seconds(), _LEAST_SECONDS)
        self._throttle = Throttle()
        self._is_changed = False

    def halve(self) -> None:
        """Leave half of the time to somebody else."""
        self._until = (self._began + self._until) / 2

    def is_over(self) -> bool:
        """Whether to stop now."""
        if not self._is_changed and self._throttle.is_due():
            with self._store.read() as session:
                self._is_changed = read_revision(session) != self._revision
        return self._is_changed or time.monotonic() >= self._until
