"""The cycle: the job that runs everything once, and the sensor that starts it when there is work."""

import time
from collections.abc import Iterable, Mapping
from datetime import timedelta
from typing import Any

import dagster as dg
import msgspec

from control.clock import utc_now
from control.networks.definitions import Network
from control.settings import Settings, load_settings
from control.store import open_store
from pipelines.defs.decide import Cycle, Memory, decide
from pipelines.defs.heads import WaitingHeads
from pipelines.defs.keys import OF_EVERY_CYCLE, OUTCOME, SNAPSHOT, network_keys
from pipelines.defs.runs import REBUILD_TAG, is_of_shard, is_of_worker, launched_tags, shard_tags
from pipelines.deliver.worker_state import worker_lock
from warehouse.lock import is_locked
from warehouse.port import Warehouse

JOB = "cycle"
REBUILD_JOB = "rebuild"
SENSOR = "cycle_sensor"
_TICK_SECONDS = 5
# A started run was killed if it neither holds the writer lock nor ended within this time; imports take about 5 s.
START_SECONDS = 90
_RUNNING = [dg.DagsterRunStatus.NOT_STARTED, dg.DagsterRunStatus.STARTING, dg.DagsterRunStatus.STARTED]


class _Cursor(msgspec.Struct):
    """State of the sensor: that of `decide`, and the runs that neither held the lock nor ended."""

    memory: Memory = msgspec.field(default_factory=Memory)
    silent_runs: list[str] = []


LOG_LEVEL = {"loggers": {"console": {"config": {"log_level": "WARNING"}}}}


def cycle_jobs(settings: Settings) -> list[Any]:  # Dagster's type of these is private
    """Return the job of every cycle, and that of a full build, which Dagster launches on request.

    All steps of a run are in one process: DuckDB lets one process write. `dagster job launch` passes `tags` on, and
    leaves `run_tags` out.
    """
    cycle = dg.define_asset_job(
        JOB,
        selection=dg.AssetSelection.all(),
        executor_def=dg.in_process_executor,
        config=LOG_LEVEL,
        tags=shard_tags(settings),
    )
    rebuild = dg.define_asset_job(
        REBUILD_JOB,
        description="Builds all marts again from the raw tables, and publishes them; collects no network.",
        selection=dg.AssetSelection.assets(*OF_EVERY_CYCLE),
        executor_def=dg.in_process_executor,
        config=LOG_LEVEL,
        tags={REBUILD_TAG: "true", **launched_tags(settings)},
    )
    return [cycle, rebuild]


def assets_of_cycle(
    networks: Mapping[str, Network], chosen: Iterable[str], *, is_short: bool = False
) -> list[dg.AssetKey]:
    """Return the assets of a cycle over the chosen networks: those of the networks, and those of every cycle.

    A short cycle has only the first and the last asset of every cycle.
    """
    return [*network_keys(networks[name] for name in chosen), *([SNAPSHOT, OUTCOME] if is_short else OF_EVERY_CYCLE)]


def _run_in_progress(
    instance: dg.DagsterInstance, settings: Settings, silent_runs: list[str], *, has_worker: bool = False
) -> bool:
    """Tell whether a run of this shard is in progress; mark runs of killed processes as failed, so they block nothing.

    A run is marked after two silent evaluations, because one that just released the lock soon reports its end.
    The worker, if there is one, marks its own.
    """
    if Warehouse(settings).is_written():
        return True
    suspected = set(silent_runs)
    silent_runs.clear()
    for record in instance.get_run_records(dg.RunsFilter(statuses=_RUNNING)):
        run = record.dagster_run
        if run.job_name not in (JOB, REBUILD_JOB) or not is_of_shard(run, settings):
            continue
        if utc_now() - record.create_timestamp < timedelta(seconds=START_SECONDS):
            return True
        if has_worker and is_of_worker(run):
            continue
        if run.run_id in suspected:
            instance.report_run_failed(run, "the run's process was killed")
        else:
            silent_runs.append(run.run_id)
    return bool(silent_runs)


def cycle_sensor(networks: Mapping[str, Network]) -> dg.SensorDefinition:
    """Sensor that starts a cycle where `decide` says so, one at a time.

    While the worker runs, it starts the cycles instead; it starts none while the sensor is stopped. With a launcher
    that starts containers, only the worker starts cycles.
    """
    settings = load_settings()
    tags = launched_tags(settings)

    @dg.sensor(
        name=SENSOR,
        job_name=JOB,
        minimum_interval_seconds=min(_TICK_SECONDS, settings.cycle_seconds),
        default_status=dg.DefaultSensorStatus.RUNNING,
    )
    def sense(context: dg.SensorEvaluationContext) -> dg.SensorResult:
        cursor = msgspec.json.decode(context.cursor, type=_Cursor) if context.cursor else _Cursor()

        def answer(cycle: Cycle | None, reason: str) -> dg.SensorResult:
            kept = msgspec.json.encode(cursor).decode()
            if cycle is None:
                return dg.SensorResult(skip_reason=dg.SkipReason(reason), cursor=kept)
            selection = assets_of_cycle(networks, cycle.networks, is_short=cycle.is_short)
            request = dg.RunRequest(asset_selection=selection, tags=tags | {"networks": ",".join(cycle.networks)})
            return dg.SensorResult(run_requests=[request], cursor=kept)

        if context.instance.run_launcher.supports_check_run_worker_health:
            # The launcher starts a container for each run, which is too slow for cycles. Dagster's run monitoring marks
            # the killed ones.
            return answer(None, "only the worker starts cycles")
        if is_locked(worker_lock(settings)):
            # The worker does not notice a killed run of another process: of the code server, or of a command.
            _run_in_progress(context.instance, settings, cursor.silent_runs, has_worker=True)
            return answer(None, "the worker checks for work every second")
        if _run_in_progress(context.instance, settings, cursor.silent_runs):
            return answer(None, "a cycle is running")
        store = open_store(settings)
        try:
            cycle = decide(settings, store, networks, WaitingHeads(), cursor.memory, time.time())
        finally:
            store.close()
        return answer(cycle, "there is nothing to do before LEDGERMART_CYCLE_SECONDS have passed")

    return sense
