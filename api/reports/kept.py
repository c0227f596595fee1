"""What a published version's reports have in common: derived parts that are dear to make and kept for a while.

Few of them, since each is large; what is small is remembered by the snapshot itself.
"""

from collections.abc import Callable
from typing import Any, TypeVar

from api.engine.kept import Kept
from api.engine.serving import Snapshot

Part = TypeVar("Part")

_MOST_KEPT = 256  # parts of a version: some tens of kilobytes each


def keep(snapshot: Snapshot, key: tuple[Any, ...], make: Callable[[], Part]) -> Part:
    """Return a part made from this version alone, made once while it is among those used last."""
    kept = snapshot.remember(("report-parts",), lambda: Kept(_MOST_KEPT))
    return kept.get(key, make)
