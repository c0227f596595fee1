"""LRU cache for expensive parts of reports, one for each published version.

It holds few entries, since each is large. The snapshot itself caches small values.
"""

from collections.abc import Callable
from typing import Any, TypeVar

from api.engine.lru_cache import LruCache
from api.engine.serving import Snapshot

Part = TypeVar("Part")

_MOST_KEPT = 256  # entries of a version, each of some ten kilobytes


def keep(snapshot: Snapshot, key: tuple[Any, ...], make: Callable[[], Part]) -> Part:
    """Return a cached part of a report, or compute it. It must depend only on this version and the key."""
    kept = snapshot.get_or_compute(("report-parts",), lambda: LruCache(_MOST_KEPT))
    return kept.get_or_compute(key, make)
