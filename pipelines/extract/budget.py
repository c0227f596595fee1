"""Budget of one network in one cycle: time and bytes of answers. A node that uses more fails alone.

Memory and processor time follow from it. Each answer has a size limit, and a client reads a fixed number of answers at
once. A decoded answer takes a few times its bytes at most, and decoding time grows with the bytes.
"""

import threading
import time
from collections.abc import Callable

SECONDS_SETTING = "LEDGERMART_NETWORK_SECONDS"
BYTES_SETTING = "LEDGERMART_NETWORK_ANSWER_MB"


class Budget:
    """Time from now on, and decompressed bytes of answers; thread-safe. `restart` resets both.

    Args:
        seconds: from now on.
        megabytes: of answers.
        clock: the clock of the client that uses the budget.
    """

    def __init__(self, seconds: float, megabytes: int, clock: Callable[[], float] = time.monotonic) -> None:
        self.seconds = seconds
        self._megabytes = megabytes
        self._clock = clock
        self._lock = threading.Lock()
        self.restart()

    def restart(self) -> None:
        """Reset the budget to all of its time and bytes."""
        with self._lock:
            self._bytes_left = self._megabytes * 1_000_000
            self.deadline = self._clock() + self.seconds

    def share(self, part: float) -> "Budget":
        """Return a budget of its own with a part of the time, from now on, and of the bytes."""
        return Budget(self.seconds * part, max(int(self._megabytes * part), 1), self._clock)

    def received(self, answer_bytes: int) -> None:
        """Take the bytes of an answer off the budget."""
        with self._lock:
            self._bytes_left -= answer_bytes

    def overrun(self) -> str | None:
        """Return which budget is used up, and the setting that raises it; None where neither is."""
        if self._clock() >= self.deadline:
            return (
                f"the network used up its {self.seconds:g} s of this cycle; the next cycles continue; if the node is "
                f"honest and slow, raise {SECONDS_SETTING}"
            )
        if self._bytes_left <= 0:
            return (
                f"the network used up its {self._megabytes} MB of answers of this cycle; the next cycles continue; if "
                f"the node is honest, raise {BYTES_SETTING}"
            )
        return None
