"""What the worker looks for each second: a reason for a cycle."""

import time
from collections.abc import Mapping
from dataclasses import dataclass

from control.clock import utc_now
from control.networks.definitions import Network
from control.revision import read_revision
from control.settings import Settings
from control.store import ControlStore
from pipelines.defs.cycle import due_networks, has_price_work, is_publication_due
from pipelines.defs.heads import Heads
from pipelines.deliver.progress import Progress, read_progress
from warehouse.port import Warehouse
from warehouse.versions import Publication

# Whether the published file can still be opened is looked at less often: that costs more than all else here.
_FILE_SECONDS = 10.0


@dataclass(frozen=True)
class Cycle:
    """A cycle that must begin, and its networks; a short one reads these alone: no prices, marts or history."""

    networks: list[str]
    is_short: bool = False


class Watch:
    """Decides when a cycle begins, from the last cycle, its batch and configuration, and the last polls of heads.

    Args:
        heads: polls them; never waits.
    """

    def __init__(self, settings: Settings, networks: Mapping[str, Network], heads: Heads) -> None:
        self.settings = settings
        self._heads = heads
        self.networks = networks
        self._began_at = float("-inf")
        self._began_after: int | None = None
        self._began: Cycle | None = None
        self._version: int | None = None
        self._revision: int | None = None
        self._polled_at: dict[str, float] = {}
        # Networks that failed and are due, and wait for a cycle without the others.
        self._left: set[str] = set()
        self._file_at = float("-inf")

    def look(self, store: ControlStore) -> Cycle | None:
        """Return the cycle that must begin now; None if there is none.

        A cycle begins at once in four cases:

        - the configuration was written;
        - past data was read completely;
        - a short cycle found rows;
        - the last cycle left failed networks out.

        All other work waits until LEDGERMART_CYCLE_SECONDS after the start of the last cycle.
        """
        settings = self.settings
        progress = read_progress(settings.data_dir)
        with store.read() as session:
            revision = read_revision(session)
        is_written = revision != self._revision and (progress is None or revision != progress.control_revision)
        was_read = progress is not None and progress.was_read_to_end and self._began_after != progress.batch_id
        was_found = self._began is not None and self._began.is_short and progress is not None and progress.is_behind
        if (
            not (is_written or was_read or was_found or self._left)
            and time.monotonic() - self._began_at < settings.cycle_seconds
        ):
            return None
        if Warehouse(settings).is_written():
            return None
        due, is_changed = due_networks(store, self.networks, progress, settings, self._polled_at, self._heads)
        is_wanted = is_changed or was_read or has_price_work(progress)
        due = self._healthy_first(due, progress, is_urgent=was_read or was_found, is_wanted=is_wanted)
        is_wanted |= bool(due)
        if not is_wanted and time.monotonic() - self._file_at >= _FILE_SECONDS:
            self._file_at = time.monotonic()
            is_wanted = is_publication_due(progress, settings)
        if not (is_wanted or (progress is not None and progress.is_behind)):
            return None
        publication = Warehouse(settings).published()
        version = None if publication is None else publication.version
        # Where the last cycle published something, this one is likely to.
        is_short = version == self._version and not is_changed and self._is_only_new_blocks(progress, publication)
        self._began_at, self._revision = time.monotonic(), revision
        self._began_after = None if progress is None else progress.batch_id
        self._began, self._version = Cycle(due, is_short and bool(due)), version
        return self._began

    def _healthy_first(
        self, due: list[str], progress: Progress | None, *, is_urgent: bool, is_wanted: bool
    ) -> list[str]:
        """Leave failed networks to a separate cycle, right after the cycle of all other networks.

        A failed network may use up its budget again, and the publication of the others would wait for it.
        """
        known = {} if progress is None else progress.networks
        failed = {name for name in due if name in known and known[name].failures_in_a_row} | self._left
        healthy = [name for name in due if name not in failed]
        has_others = bool(healthy) or is_wanted or (progress is not None and progress.is_behind)
        if failed and has_others and (is_urgent or not self._left):
            self._left = failed
            return healthy
        self._left = set()
        return sorted(failed) or healthy

    def _is_only_new_blocks(self, progress: Progress | None, publication: Publication | None) -> bool:
        """Whether nothing waits but blocks, which need not bring anything that the marts would show."""
        if progress is None or publication is None:
            return False
        if progress.is_behind or progress.was_read_to_end or has_price_work(progress):
            return False
        now = utc_now()
        if any(network.is_history_due(now) for network in progress.networks.values()):
            return False
        # Blocks without rows are published, too, in the next period of absolute time.
        period = self.settings.as_of_seconds
        return now.timestamp() // period == publication.published_at.timestamp() // period
