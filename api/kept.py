"""Derived values that are made once and kept while they are among those used last."""

import threading
from collections import OrderedDict
from collections.abc import Callable
from typing import Any, TypeVar

Value = TypeVar("Value")


class Kept:
    """Values by key, for any number of threads.

    Args:
        most: how many are kept; beyond that the one whose use is longest ago goes.
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self._lock = threading.Lock()
        self._values: OrderedDict[Any, Any] = OrderedDict()

    def get(self, key: Any, make: Callable[[], Value]) -> Value:
        """Return the value of a key, made now when it is not kept; two threads at once may both make it."""
        with self._lock:
            if key in self._values:
                self._values.move_to_end(key)
                found: Value = self._values[key]
                return found
        made = make()
        with self._lock:
            self._values[key] = made
            if len(self._values) > self._most:
                self._values.popitem(last=False)
        return made
