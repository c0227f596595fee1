"""The time between a cycle's publication and the next cycle, which past data is collected in."""

import time
from datetime import timedelta

import duckdb

from pipelines.load.warehouse import utc_now

# A cycle that takes longer than the time between cycles still gives past data so much.
_LEAST_SECONDS = 5.0
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


def next_cycle(connection: duckdb.DuckDBPyConnection, batch_id: int, cycle_seconds: int) -> float:
    """When the next cycle is due, by the monotonic clock; never earlier than in a few seconds."""
    row = connection.execute("select started_at from raw.batches where batch_id = ?", [batch_id]).fetchone()
    assert row is not None
    left: timedelta = row[0] + timedelta(seconds=cycle_seconds) - utc_now()
    return time.monotonic() + max(left.total_seconds(), _LEAST_SECONDS)
