"""Helpers that wait for other processes and threads, and a clock for clients that do not really sleep."""

import time
from collections.abc import Callable

# Ends waiting for a hanging process where the time limit of pytest does not; no test result depends on it.
PATIENCE_SECONDS = 3600.0
_POLL_SECONDS = 0.05


def eventually(condition: Callable[[], bool], what: str) -> None:
    """Wait until a condition holds; the test's own timeout ends the wait and names the condition."""
    try:
        while not condition():
            time.sleep(_POLL_SECONDS)
    except BaseException as error:
        error.add_note(f"waiting until {what}")
        raise


class Naps:
    """A replacement for `time`: sleeping advances its clock at once."""

    def __init__(self) -> None:
        self.taken: list[float] = []
        self.now = 1_000.0

    def sleep(self, seconds: float) -> None:
        """Advance the clock without sleeping."""
        self.taken.append(seconds)
        self.now += seconds

    def clock(self) -> float:
        """Return the seconds slept so far."""
        return self.now
