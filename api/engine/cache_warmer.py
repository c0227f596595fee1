"""What was asked of a version is made of the next one as soon as that is published, before anybody asks again."""

import logging
import threading
import time
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any, Generic, TypeVar

from cachetools import TTLCache

Given = TypeVar("Given")

_POLL_SECONDS = 0.5
_ASKED_SECONDS = 600.0  # what nobody asked for in this time is not made any more
_MOST = 50  # the subjects asked for last
_MAKING_SECONDS = 5.0  # for one version: what takes longer waits until it is asked for

_log = logging.getLogger("ledgermart.api")


class Renewal(Generic[Given]):
    """One thread that looks for a new version while something was asked for lately.

    Args:
        newest: the number of the version in force; None where there is none.
        open_newest: opens that version, as what makers are given.
        clock: seconds that never run backwards.
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
        self._thread = threading.Thread(target=self._run, name="renewal", daemon=True)
        self._thread.start()

    def note(self, key: Any, version: int, make: Callable[[Given], object]) -> None:
        """Say that something was asked for.

        Args:
            key: what tells it from others.
            version: the one that answers.
            make: makes the same of the version that it is given.
        """
        if threading.current_thread() is self._thread:
            return
        with self._condition:
            # Removed first, so that it becomes the newest one.
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
                self._condition.wait_for(lambda: self._is_closed, timeout=_POLL_SECONDS)
                if self._is_closed:
                    return
                due = list(self._asked.values())[::-1]
            try:
                version = self._newest()
            except Exception:  # noqa: BLE001 - the folder changes while it is looked at; it is looked at again
                _log.exception("the newest published version could not be found")
                continue
            if version in (None, self._made_of):
                continue
            self._made_of = version
            until = time.monotonic() + _MAKING_SECONDS
            for make in due:
                if self._is_closed or time.monotonic() >= until:
                    break
                try:
                    with self._open_newest() as given:
                        make(given)
                except Exception:  # noqa: BLE001 - who asks for it is told; nobody waits for this
                    _log.exception("the cache could not be warmed for version %s", version)
