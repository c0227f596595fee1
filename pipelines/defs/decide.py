"""The decision that a cycle must begin now, and over which networks; sensor and worker share it."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta

import msgspec

from control.clock import utc_now
from control.networks.definitions import Network
from control.revision import read_revision
from control.settings import Settings
from control.snapshot import networks_with_open_windows, networks_with_subjects
from control.store import ControlStore
from pipelines.defs.heads import Heads, PolledHead
from pipelines.deliver.progress import NetworkProgress, Progress, read_progress
from pipelines.due import backoff
from warehouse.port import Warehouse
from warehouse.versions import Publication

# Opening the published file costs more than all other checks.
_FILE_SECONDS = 10.0


@dataclass(frozen=True)
class Cycle:
    """A cycle that must begin, and its networks; a short one reads these alone: no prices, marts or history."""

    networks: list[str]
    is_short: bool = False


class Memory(msgspec.Struct):
    """State of a caller of `decide` between its calls. Times are seconds of the caller's clock.

    Attributes:
        began_at: when the last cycle began.
        began_after: the newest batch then.
        was_short: whether it was a short cycle.
        version: the published version then.
        revision: the revision of the configuration then.
        polled_at: when each network's head was polled.
        left: failed networks that are due, and wait for a cycle without the others.
        file_at: when the published file was opened.
    """

    began_at: float | None = None
    began_after: int | None = None
    was_short: bool = False
    version: int | None = None
    revision: int | None = None
    polled_at: dict[str, float] = {}
    left: list[str] = []
    file_at: float | None = None


def decide(
    settings: Settings,
    store: ControlStore,
    networks: Mapping[str, Network],
    heads: Heads,
    memory: Memory,
    now: float,
) -> Cycle | None:
    """Return the cycle that must begin now, and remember it; None if there is none.

    A cycle begins at once in four cases:

    - the configuration was written;
    - past data was read completely;
    - a short cycle found rows;
    - the last cycle left failed networks out.

    All other work waits until LEDGERMART_CYCLE_SECONDS after the start of the last cycle.

    A stored time may be ahead of the clock, if the clock was wrong. So all waits count from it in both directions.

    Args:
        now: seconds of the caller's clock.
    """
    # They may have been removed since.
    memory.left = [name for name in memory.left if name in networks and networks[name].is_enabled]
    progress = read_progress(settings.data_dir)
    with store.read() as session:
        revision = read_revision(session)
    is_written = revision != memory.revision and (progress is None or revision != progress.control_revision)
    was_read = progress is not None and progress.was_read_to_end and memory.began_after != progress.batch_id
    was_found = memory.was_short and progress is not None and progress.is_behind
    is_early = memory.began_at is not None and abs(now - memory.began_at) < settings.cycle_seconds
    if is_early and not (is_written or was_read or was_found or memory.left):
        return None
    warehouse = Warehouse(settings)
    if warehouse.is_written():
        return None
    due, is_changed = due_networks(store, networks, progress, settings, memory.polled_at, heads, now)
    is_wanted = is_changed or was_read or has_price_work(progress)
    due = _healthy_first(due, progress, memory, is_urgent=was_read or was_found, is_wanted=is_wanted)
    is_wanted |= bool(due) or (progress is not None and progress.is_behind)
    if not is_wanted and (memory.file_at is None or abs(now - memory.file_at) >= _FILE_SECONDS):
        memory.file_at = now
        is_wanted = progress is not None and not warehouse.is_newest_readable()
    if not is_wanted:
        return None
    publication = warehouse.published()
    version = None if publication is None else publication.version
    # Where the last cycle published something, this one is likely to.
    has_only_blocks = version == memory.version and not is_changed and _has_only_blocks(settings, progress, publication)
    memory.began_at, memory.revision, memory.version = now, revision, version
    memory.began_after = None if progress is None else progress.batch_id
    memory.was_short = has_only_blocks and bool(due)
    return Cycle(due, memory.was_short)


def due_networks(
    store: ControlStore,
    networks: Mapping[str, Network],
    progress: Progress | None,
    settings: Settings,
    polled_at: dict[str, float],
    heads: Heads,
    now: float,
) -> tuple[list[str], bool]:
    """Return the networks with something to collect, and whether the configuration changed since the last cycle.

    Those that failed in the last cycle come last. A network that is not healthy is not retried before its time, also
    where the configuration changed: it may delay the others.
    """
    with store.read() as session:
        changed = progress is None or read_revision(session) != progress.control_revision
        configured = networks_with_subjects(session, settings.shard)
        tracked = networks_with_open_windows(session, settings.shard)
    # Untracked networks may have work too: the end of a window, history, or the rest of a failed cycle.
    known = progress.networks.items() if progress else ()
    pending = {
        name
        for name, network in known
        if network.has_ending_windows or network.is_history_due(utc_now()) or network.failures_in_a_row
    } & configured
    polled = [
        networks[name]
        for name in sorted(tracked | pending)
        if name in networks
        and networks[name].is_enabled
        and (name not in polled_at or abs(now - polled_at[name]) >= networks[name].poll_seconds)
    ]
    polled_at.update({network.name: now for network in polled})
    state = progress.networks if progress else {}
    failed = {name for name, known in state.items() if known.failures_in_a_row}
    waiting = {name for name in failed if _waits_after_failure(state[name], settings)}
    has_history = {name for name, known in state.items() if known.is_history_due(utc_now())}
    due = {network.name for network in polled if network.name in failed | has_history}
    heads.ask([network for network in polled if network.name not in due])
    polls = heads.answers().items()
    due |= {name for name, head in polls if name in networks and _has_new_blocks(head, state.get(name))}
    if changed:
        due |= {name for name in configured if name in networks and networks[name].is_enabled}
    return sorted(due - waiting, key=lambda name: (name in failed, name)), changed


def has_price_work(progress: Progress | None) -> bool:
    """Tell whether a price source is due or a discovery is unfinished. New ones change the configuration."""
    if progress is None:
        return False
    now = utc_now()
    return progress.has_unfinished_discoveries or any(source.is_due(now) for source in progress.price_sources.values())


def _has_new_blocks(head: PolledHead | None, known: NetworkProgress | None) -> bool:
    """Compare a polled head with the last cycle; a first failure counts as new, so that a cycle records it.

    A head with a lower number and a later time counts as new: the head of the last cycle is not on its chain.
    """
    if head is None:
        return known is None or known.failures_in_a_row == 0
    if known is None or known.head is None or head.number > known.head:
        return True
    return known.head_time is not None and head.seconds > datetime.fromisoformat(known.head_time).timestamp()


def _waits_after_failure(known: NetworkProgress | None, settings: Settings) -> bool:
    """Return whether a network failed and may not be retried yet."""
    if known is None or not known.failures_in_a_row or not known.tried_at:
        return False
    apart = settings.cycle_seconds * backoff(known.failures_in_a_row)
    return abs(utc_now() - datetime.fromisoformat(known.tried_at)) < timedelta(seconds=apart)


def _healthy_first(
    due: list[str], progress: Progress | None, memory: Memory, *, is_urgent: bool, is_wanted: bool
) -> list[str]:
    """Leave failed networks to a separate cycle, right after the cycle of all other networks.

    A failed network may use up its budget again, and the publication of the others would wait for it.
    """
    known = {} if progress is None else progress.networks
    failed = {name for name in due if name in known and known[name].failures_in_a_row} | set(memory.left)
    healthy = [name for name in due if name not in failed]
    has_others = bool(healthy) or is_wanted or (progress is not None and progress.is_behind)
    if failed and has_others and (is_urgent or not memory.left):
        memory.left = sorted(failed)
        return healthy
    memory.left = []
    return sorted(failed) or healthy


def _has_only_blocks(settings: Settings, progress: Progress | None, publication: Publication | None) -> bool:
    """Return whether only blocks wait, which need not bring anything that the marts would show."""
    if progress is None or publication is None:
        return False
    if progress.is_behind or progress.was_read_to_end or has_price_work(progress):
        return False
    now = utc_now()
    if any(network.is_history_due(now) for network in progress.networks.values()):
        return False
    # Blocks without rows are published, too, in the next period of absolute time.
    period = settings.as_of_seconds
    return now.timestamp() // period == publication.published_at.timestamp() // period
