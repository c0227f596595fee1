"""Pace and retries of the requests to a provider. Sends nothing itself."""

import random
import threading
from collections.abc import Callable
from typing import TypeVar

from pipelines.extract.errors import (
    ExtractError,
    NodeUnreachable,
    RateLimited,
    SourceRateLimited,
    SourceUnreachable,
)

T = TypeVar("T")

BASE_SECONDS = 0.25
_LONGEST_BACKOFF_SECONDS = 8.0
_FIRST_INTERVAL_SECONDS = 0.05
_LONGEST_INTERVAL_SECONDS = 1.0


def backoff_seconds(attempt: int) -> float:
    """Return the seconds to wait after attempt number `attempt` (from 1): exponential, with full jitter."""
    return random.uniform(0, min(_LONGEST_BACKOFF_SECONDS, BASE_SECONDS * 2**attempt))  # nosec B311 # no secret


class Pacer:
    """Spaces the requests of all threads to one provider, and widens the space when the provider complains.

    Args:
        least_interval: smallest number of seconds between two requests; 0: unlimited until the first complaint.
    """

    def __init__(self, sleep: Callable[[float], None], clock: Callable[[], float], least_interval: float = 0.0) -> None:
        self._sleep = sleep
        self._clock = clock
        self._lock = threading.Lock()
        self._next_start = 0.0
        self._least_interval = least_interval
        self._interval = least_interval

    def persist(
        self,
        attempt: Callable[[], T],
        too_long: Callable[[str], ExtractError],
        *,
        most_attempts: int,
        deadline: float,
        retry_timeouts: bool = True,
    ) -> T:
        """Return the result of a request; retry it where waiting may help.

        A failed connection, an answer cut off and HTTP 5xx are retried after an exponential back-off with full jitter.
        If the provider wants fewer requests, all threads wait for as long as it says.

        Args:
            attempt: sends the request once.
            too_long: returns the error for a pause that would pass the deadline.
            most_attempts: at least 1.
            deadline: no request begins after it.
            retry_timeouts: whether to repeat after a time-out.

        Raises:
            ExtractError: of the last attempt.
        """
        for number in range(1, most_attempts + 1):
            if not self.wait_turn(deadline):
                raise too_long("asked for a longer pause than a call may take")
            try:
                result = attempt()
            except (RateLimited, SourceRateLimited) as error:
                if number == most_attempts or self._clock() >= deadline:
                    raise
                self.slow_down(backoff_seconds(number) if error.retry_after is None else error.retry_after)
            except (NodeUnreachable, SourceUnreachable) as error:
                remaining = deadline - self._clock()
                is_given_up = error.timed_out and not retry_timeouts
                if number == most_attempts or remaining <= 0 or is_given_up:
                    raise
                pause = backoff_seconds(number)
                self._sleep(min(pause, remaining))
                if pause >= remaining:
                    # A further request would have no time for its answer.
                    raise
            else:
                self.succeeded()
                return result
        raise AssertionError("unreachable: the last attempt returns or raises")

    def wait_turn(self, deadline: float) -> bool:
        """Wait until this thread may send; False, at once, where that would be after the deadline."""
        with self._lock:
            now = self._clock()
            start = max(now, self._next_start)
            if start > deadline:
                return False
            self._next_start = start + self._interval
        if start > now:
            self._sleep(start - now)
        return True

    def slow_down(self, seconds: float) -> None:
        """Stop all threads from sending for that many seconds, and space requests wider from then on."""
        with self._lock:
            now = self._clock()
            # Complaints about concurrent requests count as one.
            if self._next_start <= now + self._interval:
                wider = min(max(2 * self._interval, _FIRST_INTERVAL_SECONDS), _LONGEST_INTERVAL_SECONDS)
                self._interval = max(wider, self._least_interval)
            self._next_start = max(self._next_start, now + seconds)

    def succeeded(self) -> None:
        """Space requests a little closer again after a success."""
        if self._interval > self._least_interval:
            with self._lock:
                closer = self._interval * 0.95 if self._interval > _FIRST_INTERVAL_SECONDS / 10 else 0.0
                self._interval = max(closer, self._least_interval)
