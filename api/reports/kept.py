"""What a published version's reports have in common: derived parts that are dear to make and kept for a while.

Few of them, since each is large; what is small is remembered by the snapshot itself.
"""

import threading
from collections import OrderedDict
from collections.abc import Callable
from typing import Any, TypeVar

from api.serving import Snapshot

Part = TypeVar("Part")

_MOST_KEPT = 256  # parts of a version: some tens of kilobytes each


class _Kept:
    """The parts used last."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._parts: OrderedDict[Any, Any] = OrderedDict()

    def get(self, key: Any, make: Callable[[], Part]) -> Part:
        with self._lock:
            if key in self._parts:
                self._parts.move_to_end(key)
                found: Part = self._parts[key]
                return found
        made = make()
        with self._lock:
            self._parts[key] = made
            if len(self._parts) > _MOST_KEPT:
                self._parts.popitem(last=False)
        return made


def keep(snapshot: Snapshot, key: tuple[Any, ...], make: Callable[[], Part]) -> Part:
    """Return a part made from this version alone, made once while it is among those used last."""
    kept = snapshot.remember(("report-parts",), _Kept)
    return kept.get(key, make)
