"""Cache warmer: re-runs recent queries on each newly published version."""

import logging
import threading
import time
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any, Generic, TypeVar

from cachetools import TTLCache

Given = TypeVar("Given")

POLL_SECONDS = 0.5
_ASKED_SECONDS = 600.0  # a query is forgotten this long after its last request
_MOST = 50  # number of recent queries
MAKING_SECONDS = 5.0  # time budget for each version; the remaining queries run at their next request

_log = logging.getLogger("ledgermart.api")


class CacheWarmer(Generic[Given]):
    """A thread that polls for a new version while there are recent queries.

    Args:
        newest: returns the number of the version in force; None if there is none.
        open_newest: opens that version for the queries.
        clock: monotonic clock in seconds.
    """

    def __init__(
        self,
        newest: Callable[[], int | None],
        open_newest: Callable[[], AbstractContextManager[Given]],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._newest = newest
        self._open_newest = open_newest
        self._condition = threading.Condition()
        self._asked: TTLCache[Any, Callable[[Given], object]] = TTLCache(_MOST, _ASKED_SECONDS, clock)
        self._made_of: int | None = None
        self._is_closed = False
        self._thread = threading.Thread(target=self._run, name="cache-warmer", daemon=True)
        self._thread.start()

    def note(self, key: Any, version: int, make: Callable[[Given], object]) -> None:
        """Record a query, so that it runs again on the next version.

        Args:
            key: identifies the query.
            version: the version that answers it now.
            make: runs the same query on the version that it gets.
        """
        if threading.current_thread() is self._thread:
            return
        with self._condition:
            # Removed first, so that it becomes the newest entry.
            self._asked.pop(key, None)
            self._asked[key] = make
            if self._made_of is None:
                self._made_of = version
            self._condition.notify()

    def close(self) -> None:
        """End the thread."""
        with self._condition:
            self._is_closed = True
            self._condition.notify()
        self._thread.join()

    def _run(self) -> None:
        while True:
            with self._condition:
                self._condition.wait_for(lambda: self._is_closed or self._asked)
                self._condition.wait_for(lambda: self._is_closed, timeout=POLL_SECONDS)
                if self._is_closed:
                    return
                due = list(self._asked.values())[::-1]
            try:
                version = self._newest()
            except Exception:  # noqa: BLE001 - the folder may change during the search; the next poll tries again
                _log.exception("the newest published version could not be found")
                continue
            if version in (None, self._made_of):
                continue
            self._made_of = version
            until = time.monotonic() + MAKING_SECONDS
            for make in due:
                if self._is_closed or time.monotonic() >= until:
                    break
                try:
                    with self._open_newest() as given:
                        make(given)
                except Exception:  # noqa: BLE001 - no request waits for this; the next request reports the error
                    _log.exception("the cache could not be warmed for version %s", version)
