"""Scheduled maintenance: delete old records, stored responses and logs; audit the whole history; upkeep of lakes."""

import os
import shutil
from collections.abc import Iterator
from contextlib import suppress
from datetime import timedelta
from pathlib import Path

import dagster as dg

from control import idempotency
from control.clock import utc_now
from control.networks.in_force import networks_in_force
from control.resources import DAGSTER_HOME
from control.settings import load_settings
from control.store import open_store
from pipelines.defs.cycle import JOB
from pipelines.defs.dbt import AUDIT_ARGUMENTS, failures
from pipelines.defs.project import run_dbt
from pipelines.defs.resources import Warehouse
from pipelines.defs.runs import launched_tags
from pipelines.lake.tables import open_lakes
from pipelines.raw.builds import remove_old_records
from warehouse.lakes import LakeBusyError, LakeError

# Dagster records take up to 0.5 MB per cycle, 0.1 MB with nothing new: at one a minute up to 0.7 GB a day.
KEEP = timedelta(days=1)
_RUNS_PER_PASS = 500
# `ledgermart up` bounds the size of the logs; this bounds the age of their older parts.
KEEP_LOGS = timedelta(days=30)


@dg.op
def purge_runs(context: dg.OpExecutionContext) -> int:
    """Delete Dagster's records of cycles that ended longer ago than `KEEP`."""
    removed = sum(_purge(instance) for instance in _instances(context.instance))
    context.log.info(f"deleted the records of {removed} runs")
    return removed


def _instances(own: dg.DagsterInstance) -> Iterator[dg.DagsterInstance]:
    """Yield the instance of this run; also that of the worker, which is another one on several machines."""
    yield own
    if Path(os.environ.get("DAGSTER_HOME") or DAGSTER_HOME) != DAGSTER_HOME:
        with dg.DagsterInstance.from_config(str(DAGSTER_HOME)) as of_worker:
            yield of_worker


def _purge(instance: dg.DagsterInstance) -> int:
    removed = 0
    ended = dg.RunsFilter(
        job_name=JOB,
        statuses=[dg.DagsterRunStatus.SUCCESS, dg.DagsterRunStatus.FAILURE, dg.DagsterRunStatus.CANCELED],
        created_before=utc_now() - KEEP,
    )
    while records := instance.get_run_records(ended, limit=_RUNS_PER_PASS):
        for record in records:
            run_id = record.dagster_run.run_id
            instance.delete_run(run_id)
            # Dagster does not delete the folder with the output of the run.
            shutil.rmtree(load_settings().dagster_dir / run_id, ignore_errors=True)
        removed += len(records)
    return removed


@dg.op
def purge_cycle_records(warehouse: Warehouse) -> None:
    """Delete the warehouse's own records of cycles older than `KEEP`."""
    with warehouse.open() as connection:
        remove_old_records(connection, KEEP)


@dg.op
def purge_answers() -> None:
    """Delete stored responses of requests that are too old to be repeated."""
    store = open_store(load_settings())
    try:
        with store.write() as session:
            idempotency.purge(session)
    finally:
        store.close()


@dg.op
def purge_logs(context: dg.OpExecutionContext) -> int:
    """Delete rotated parts of logs that are older than `KEEP_LOGS`."""
    oldest = (utc_now() - KEEP_LOGS).timestamp()
    removed = 0
    for part in (load_settings().data_dir / "logs").glob("*.log.*"):
        # `ledgermart up` may rename it meanwhile.
        with suppress(FileNotFoundError):
            if part.stat().st_mtime < oldest:
                part.unlink()
                removed += 1
    context.log.info(f"deleted {removed} older parts of logs")
    return removed


@dg.op(ins={"after": dg.In(dg.Nothing)})
def audit(context: dg.OpExecutionContext, warehouse: Warehouse) -> None:
    """Run the dbt tests that read the whole history."""
    results = run_dbt(warehouse.settings, AUDIT_ARGUMENTS)
    context.log.info("tests run: %s", ", ".join(result.node.name for result in results))
    if failed := failures(results):
        raise dg.Failure(f"the audit found errors: {failed}", allow_retries=False)


@dg.job(executor_def=dg.in_process_executor)
def maintenance() -> None:
    """Daily maintenance: delete old records and logs, and run the tests that read the whole history."""
    purge_runs()
    purge_answers()
    purge_logs()
    audit(after=purge_cycle_records())


@dg.schedule(job=maintenance, cron_schedule="17 3 * * *", default_status=dg.DefaultScheduleStatus.RUNNING)
def maintenance_schedule() -> Iterator[dg.RunRequest]:
    """Run `maintenance` every night at 03:17 UTC."""
    yield dg.RunRequest(tags=launched_tags(load_settings()))


@dg.op
def tidy_lakes(context: dg.OpExecutionContext) -> None:
    """Merge small files of each lake, expire its old snapshots, and delete its replaced files."""
    settings = load_settings()
    errors = []
    for name, lake in open_lakes(settings, networks_in_force(settings).values()).items():
        try:
            done = lake.tidy(timedelta(days=settings.lake_keep_days), settings.lock_wait_seconds)
        except LakeBusyError as error:
            # Each shard has this job, and one of them at a time is enough.
            context.log.info(str(error))
        except LakeError as error:
            # The other lakes need their upkeep, too.
            errors.append(str(error))
        else:
            context.log.info(
                f"{name}: merged {done.merged} files, expired {done.expired} snapshots, deleted {done.deleted} files"
            )
    if errors:
        raise dg.Failure("; ".join(errors), allow_retries=False)


@dg.job(executor_def=dg.in_process_executor)
def lake_maintenance() -> None:
    """Daily upkeep of the lakes: merge small files, expire old snapshots, and delete replaced files."""
    tidy_lakes()


@dg.schedule(job=lake_maintenance, cron_schedule="47 3 * * *", default_status=dg.DefaultScheduleStatus.RUNNING)
def lake_maintenance_schedule() -> Iterator[dg.RunRequest]:
    """Run `lake_maintenance` every night at 03:47 UTC."""
    yield dg.RunRequest(tags=launched_tags(load_settings()))
