"""The cycle: the job that runs everything once, and the sensor that starts it when there is work."""

import time
from collections.abc import Iterable, Mapping
from datetime import datetime, timedelta
from pathlib import Path

import dagster as dg
import msgspec

from control.clock import utc_now
from control.networks.definitions import Network
from control.revision import read_revision
from control.settings import Settings, load_settings
from control.snapshot import networks_with_open_windows, networks_with_subjects
from control.store import ControlStore, open_store
from pipelines.defs.heads import Heads, PolledHead, WaitingHeads
from pipelines.defs.keys import OF_EVERY_CYCLE, OUTCOME, SNAPSHOT, network_keys
from pipelines.defs.runs import is_of_worker
from pipelines.deliver.progress import NetworkProgress, Progress, read_progress
from pipelines.load.due import backoff
from warehouse.lock import is_locked
from warehouse.port import Warehouse

JOB = "cycle"
SENSOR = "cycle_sensor"
_TICK_SECONDS = 5
# A started run was killed if it neither holds the writer lock nor ended within this time; imports take about 5 s.
_START_SECONDS = 90
_RUNNING = [dg.DagsterRunStatus.NOT_STARTED, dg.DagsterRunStatus.STARTING, dg.DagsterRunStatus.STARTED]


def worker_lock(settings: Settings) -> Path:
    """The lock that the worker holds while it runs."""
    return settings.data_dir / "worker.lock"


class _Cursor(msgspec.Struct):
    """State of the sensor.

    It holds when the sensor last started a run, and after which cycle. It also holds when each network's head was last
    read, and the runs that neither held the lock nor ended.
    """

    launched_at: float = 0.0
    launched_after: int | None = None
    polled_at: dict[str, float] = {}
    silent_runs: list[str] = []


LOG_LEVEL = {"loggers": {"console": {"config": {"log_level": "WARNING"}}}}
# All assets of a cycle, in one process: DuckDB lets one process write.
CYCLE_JOB = dg.define_asset_job(
    JOB,
    selection=dg.AssetSelection.all(),
    executor_def=dg.in_process_executor,
    config=LOG_LEVEL,
)


def assets_of_cycle(
    networks: Mapping[str, Network], chosen: Iterable[str], *, is_short: bool = False
) -> list[dg.AssetKey]:
    """Return the assets of a cycle over the chosen networks: those of the networks, and those of every cycle.

    A short cycle has only the first and the last asset of every cycle.
    """
    return [*network_keys(networks[name] for name in chosen), *([SNAPSHOT, OUTCOME] if is_short else OF_EVERY_CYCLE)]


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
    return utc_now() - datetime.fromisoformat(known.tried_at) < timedelta(seconds=apart)


def due_networks(
    store: ControlStore,
    networks: Mapping[str, Network],
    progress: Progress | None,
    settings: Settings,
    polled_at: dict[str, float],
    heads: Heads,
) -> tuple[list[str], bool]:
    """Return the networks with something to collect, and whether the configuration changed since the last cycle.

    Those that failed in the last cycle come last. A network that is not healthy is not retried before its time, also
    where the configuration changed: it may delay the others.
    """
    with store.read() as session:
        changed = progress is None or read_revision(session) != progress.control_revision
        configured = networks_with_subjects(session)
        tracked = networks_with_open_windows(session)
    # Untracked networks may have work too: the end of a window, history, or the rest of a failed cycle.
    known = progress.networks.items() if progress else ()
    owed = {
        name
        for name, network in known
        if network.has_ending_windows or network.is_history_due(utc_now()) or network.failures_in_a_row
    } & configured
    now = time.time()
    polled = [
        networks[name]
        for name in sorted(tracked | owed)
        if name in networks
        and networks[name].is_enabled
        and now - polled_at.get(name, 0.0) >= networks[name].poll_seconds
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


def is_publication_due(progress: Progress | None, settings: Settings) -> bool:
    """Tell whether collected data is unpublished, or the last published version can no longer be read."""
    return progress is not None and (progress.is_behind or not Warehouse(settings).is_newest_readable())


def _run_in_progress(
    instance: dg.DagsterInstance, settings: Settings, silent_runs: list[str], *, has_worker: bool = False
) -> bool:
    """Tell whether a run is in progress; mark runs of killed processes as failed, so that they block nothing.

    A run is marked after two silent evaluations, because one that just released the lock soon reports its end.
    The worker, if there is one, marks its own.
    """
    if Warehouse(settings).is_written():
        return True
    suspected = set(silent_runs)
    silent_runs.clear()
    for record in instance.get_run_records(dg.RunsFilter(job_name=JOB, statuses=_RUNNING)):
        run = record.dagster_run
        if utc_now() - record.create_timestamp < timedelta(seconds=_START_SECONDS):
            return True
        if has_worker and is_of_worker(run):
            continue
        if run.run_id in suspected:
            instance.report_run_failed(run, "the run's process was killed")
        else:
            silent_runs.append(run.run_id)
    return bool(silent_runs)


def cycle_sensor(networks: Mapping[str, Network]) -> dg.SensorDefinition:
    """Sensor that starts a cycle over the networks that are due, one at a time, at most every LEDGERMART_CYCLE_SECONDS.

    While the worker runs, it starts the cycles instead; it starts none while the sensor is stopped.
    """
    settings = load_settings()

    @dg.sensor(
        name=SENSOR,
        job_name=JOB,
        minimum_interval_seconds=min(_TICK_SECONDS, settings.cycle_seconds),
        default_status=dg.DefaultSensorStatus.RUNNING,
    )
    def sense(context: dg.SensorEvaluationContext) -> dg.SensorResult | dg.SkipReason:
        cursor = msgspec.json.decode(context.cursor, type=_Cursor) if context.cursor else _Cursor()
        if is_locked(worker_lock(settings)):
            # The worker does not notice a killed run of another process: of the code server, or of a command.
            _run_in_progress(context.instance, settings, cursor.silent_runs, has_worker=True)
            return dg.SensorResult(
                skip_reason=dg.SkipReason("the worker checks for work every second"),
                cursor=msgspec.json.encode(cursor).decode(),
            )
        progress = read_progress(settings.data_dir)
        # Data that was read completely is published at once, by one run, even if that run is killed.
        is_urgent = progress is not None and progress.was_read_to_end and cursor.launched_after != progress.batch_id
        if time.time() - cursor.launched_at < settings.cycle_seconds and not is_urgent:
            return dg.SkipReason("the last cycle started less than LEDGERMART_CYCLE_SECONDS ago")
        if _run_in_progress(context.instance, settings, cursor.silent_runs):
            return dg.SensorResult(
                skip_reason=dg.SkipReason("a cycle is running"), cursor=msgspec.json.encode(cursor).decode()
            )
        store = open_store(settings)
        try:
            due, changed = due_networks(store, networks, progress, settings, cursor.polled_at, WaitingHeads())
        finally:
            store.close()
        requests = []
        if due or changed or has_price_work(progress) or is_publication_due(progress, settings):
            cursor.launched_at = time.time()
            cursor.launched_after = None if progress is None else progress.batch_id
            requests.append(
                dg.RunRequest(asset_selection=assets_of_cycle(networks, due), tags={"networks": ",".join(due)})
            )
        return dg.SensorResult(run_requests=requests, cursor=msgspec.json.encode(cursor).decode())

    return sense
