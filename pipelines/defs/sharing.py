"""The publisher of this pipeline's shard, if API nodes fetch versions from a store."""

from __future__ import annotations

from contextlib import closing
from typing import TYPE_CHECKING

from control.settings import Settings
from control.store import ControlStore, open_store

if TYPE_CHECKING:
    from warehouse.shared import ShardPublisher


def open_publisher(settings: Settings, store: ControlStore) -> ShardPublisher | None:
    """Return the publisher of the settings' shard; None if LEDGERMART_VERSIONS is not set."""
    if settings.versions is None:
        return None
    # Imported only where it is configured.
    from warehouse.shared import ShardPublisher

    return ShardPublisher(settings, store)


def served_version(settings: Settings) -> int | None:
    """Return the version of the shard that API nodes on other machines use; None if there is none.

    Raises:
        SharingError: the control store does not answer.
    """
    if settings.versions is None:
        return None
    with closing(open_store(settings)) as store:
        publisher = open_publisher(settings, store)
        newest = publisher.newest() if publisher else None
    return None if newest is None else newest[0]
