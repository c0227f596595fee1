"""Waiting for what other processes and threads do, and clients that wait for nothing."""

import time
from collections.abc import Callable

# Ends waiting for a process that hangs, where the time limit of pytest does not. No test is decided by it.
PATIENCE_SECONDS = 3600.0
_POLL_SECONDS = 0.05


def eventually(condition: Callable[[], bool], what: str) -> None:
    """Wait until something is so; the test's own time-out ends it, and says what was waited for."""
    try:
        while not condition():
            time.sleep(_POLL_SECONDS)
    except BaseException as error:
        error.add_note(f"waiting until {what}")
        raise


class Naps:
    """Stands in for time: sleeping moves its clock at once."""

    def __init__(self) -> None:
        self.taken: list[float] = []
        self.now = 1_000.0

    def sleep(self, seconds: float) -> None:
        """Sleep no time."""
        self.taken.append(seconds)
        self.now += seconds

    def clock(self) -> float:
        """Seconds, which only sleeping adds to."""
        return self.now
