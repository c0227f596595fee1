"""LRU cache of derived values."""

import threading
from collections.abc import Callable
from typing import Any, TypeVar

from cachetools import LRUCache

Value = TypeVar("Value")


class LruCache:
    """Thread-safe cache of values by key.

    Args:
        most: number of values; beyond it, the least recently used one is dropped.
    """

    def __init__(self, most: int) -> None:
        self._lock = threading.Lock()
        self._values: LRUCache[Any, Any] = LRUCache(most)

    def get_or_compute(self, key: Any, make: Callable[[], Value]) -> Value:
        """Return the value of a key, computed now if it is not cached; two threads at once may both compute it."""
        with self._lock:
            if key in self._values:
                found: Value = self._values[key]
                return found
        made = make()
        with self._lock:
            self._values[key] = made
        return made
