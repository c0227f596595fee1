"""One cycle of the pipeline in the foreground, through Dagster."""

import contextlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import dagster as dg
from sqlalchemy.exc import DatabaseError

from cli.disk import full_disk_sentence, names_full_disk
from cli.exit_codes import EXIT_BUSY, EXIT_FAILED, EXIT_NETWORK_FAILED
from cli.logs import LogFile
from control.networks.in_force import networks_in_force, networks_missing
from control.networks.pins import undefined_reason
from control.pricing.definitions import price_sources_in_force
from control.settings import Settings
from pipelines.definitions import build_definitions
from pipelines.defs.causes import failed_steps, known_cause
from pipelines.defs.cycle import JOB, assets_of_cycle
from pipelines.defs.keys import OUTCOME
from pipelines.defs.records import RESTART, find_damaged, set_aside_damaged
from pipelines.defs.runs import NEW_WAREHOUSE_TAG, REBUILD_TAG
from pipelines.deliver.progress import Progress, read_progress
from warehouse.damage import DamagedFileError
from warehouse.lock import WriterBusyError, is_locked
from warehouse.port import Warehouse
from warehouse.versions import Publication


class UnknownNetwork(Exception):
    """The named network is not defined, or is disabled."""


@dataclass(frozen=True)
class CycleResult:
    """Result of a cycle: exit code, error, progress, publication, and networks in use that are not defined any more."""

    exit_code: int
    error: str | None
    progress: Progress | None
    publication: Publication | None
    is_new_version: bool
    undefined: tuple[str, ...] = ()

    @property
    def warnings(self) -> list[str]:
        """Networks that the cycle skipped without a failure, with the reason and the solution."""
        return [undefined_reason(name) for name in self.undefined]

    def as_json(self) -> dict[str, Any]:
        """The object that `ledgermart cycle --json` prints."""
        networks = self.progress.networks if self.progress else {}
        return {
            "exitCode": self.exit_code,
            "error": self.error,
            "warnings": self.warnings,
            "batch": self.progress.batch_id if self.progress else None,
            "networks": {
                name: {
                    "status": network.status,
                    "head": network.head,
                    "final": network.final,
                    "collectedTo": network.collected_to,
                    "collected": [
                        {"table": part.table, "from": part.from_block, "to": part.to_block, "rows": part.rows}
                        for part in network.collected
                    ],
                    "error": network.error,
                }
                for name, network in networks.items()
                if network.in_last_cycle
            },
            "published": {
                "version": self.publication.version,
                "publishedAt": self.publication.published_at.strftime("%Y-%m-%dT%H:%M:%SZ"),
                "isNew": self.is_new_version,
            }
            if self.publication
            else None,
            "isPublicationDue": self.progress is not None and self.progress.is_behind,
        }


def _begin_new_records(settings: Settings) -> bool:
    """Set Dagster's records aside if they are damaged; tell whether they were.

    Raises:
        DamagedFileError: the service uses them.
    """
    if not is_locked(settings.data_dir / "up.lock"):
        return set_aside_damaged(settings.dagster_dir) is not None
    if damaged := find_damaged(settings.dagster_dir):
        raise DamagedFileError(f"{damaged} is damaged; {RESTART}")
    return False


def _is_disk_full(result: dg.ExecuteInProcessResult, settings: Settings) -> bool:
    """Return whether a step failed because the disk has no room."""
    for event in result.all_events:
        error = getattr(event.event_specific_data, "error", None)
        while error is not None:
            if names_full_disk(error.message, settings):
                return True
            error = error.cause or error.context
        failure = event.step_failure_data.user_failure_data if event.is_step_failure else None
        if failure is not None and names_full_disk(failure.description or "", settings):
            return True
    return False


def run_cycle(
    settings: Settings,
    networks: list[str] | None,
    begins: Callable[[str], None] = lambda _: None,
    *,
    rebuild: bool = False,
    new_warehouse: bool = False,
) -> CycleResult:
    """Run one cycle in this process and return its result.

    Args:
        networks: names of the networks to collect; None for all enabled networks. If it is empty, no network is
            collected, and only the marts are built.
        begins: called with the name of each phase at its start.
        rebuild: build all marts again from the raw tables.
        new_warehouse: begin an empty warehouse in place of one that is lost or damaged.

    Raises:
        UnknownNetwork: a network is not defined or is disabled; the message names it and the reason.
        PriceSourcesError: the file of price sources is wrong; the message names file, source and field.
    """
    definitions = networks_in_force(settings)
    undefined = tuple(networks_missing(settings, definitions))
    # Report an error in their file before anything begins.
    price_sources_in_force(settings)
    for name in networks or ():
        if name not in definitions:
            raise UnknownNetwork(f"network {name!r} is not defined in {settings.networks_file}")
        if not definitions[name].is_enabled:
            raise UnknownNetwork(f"network {name!r} is disabled: {definitions[name].disabled_reason}")
    chosen = [n.name for n in definitions.values() if n.is_enabled] if networks is None else networks
    begins("parsing the dbt project")
    loaded = build_definitions(definitions)
    job = loaded.resolve_job_def(JOB)
    before = Warehouse(settings).published()
    log_path = settings.data_dir / "logs" / "cycle.log"
    log_path.parent.mkdir(exist_ok=True)
    # The output of dbt and Dagster, with stack traces of failed steps, goes to the log; the result is one line.
    begins("building and publishing the marts")

    def execute() -> dg.ExecuteInProcessResult:
        return job.execute_in_process(
            instance=dg.DagsterInstance.get(),
            asset_selection=assets_of_cycle(definitions, chosen),
            tags={REBUILD_TAG: str(rebuild).lower(), NEW_WAREHOUSE_TAG: str(new_warehouse).lower()},
            raise_on_error=False,
        )

    with LogFile(log_path) as log, contextlib.redirect_stdout(log), contextlib.redirect_stderr(log):
        try:
            result = execute()
        except DatabaseError:
            if not _begin_new_records(settings):
                raise
            result = execute()
    after = Warehouse(settings).published()
    progress = read_progress(settings.data_dir)
    if progress is not None and progress.run_id != result.run_id:
        progress = None
    is_new = after is not None and (before is None or after.version > before.version)
    if result.success:
        return CycleResult(0, None, progress, after, is_new, undefined)
    known, failed = known_cause(result), failed_steps(result)
    if known is not None:
        code = EXIT_BUSY if known[0] is WriterBusyError else EXIT_FAILED
        return CycleResult(code, known[1], progress, after, is_new, undefined)
    if _is_disk_full(result, settings):
        return CycleResult(EXIT_FAILED, full_disk_sentence(settings.data_dir), progress, after, is_new, undefined)
    if progress is not None and list(failed) == [OUTCOME.to_python_identifier()]:
        return CycleResult(EXIT_NETWORK_FAILED, "; ".join(progress.errors), progress, after, is_new, undefined)
    causes = "; ".join(f"{step}: {cause}" for step, cause in failed.items())
    error = f"failed steps: {causes}; stack traces are in {log_path}"
    return CycleResult(EXIT_FAILED, error, progress, after, is_new, undefined)
