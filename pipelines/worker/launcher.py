"""How Dagster hands a run to the worker, and how the worker's fork executes it by its id.

Like `cli.dagster_pages`, this module imports from outside Dagster's public interface. It uses the parts that Dagster's
own launchers for containers use, which execute runs by id as well.
"""

import dagster as dg
from dagster._core.launcher import CheckRunHealthResult, LaunchRunContext, WorkerStatus

from control.settings import load_settings
from pipelines.defs.messages import TAKEN, YES, tell
from pipelines.defs.runs import WORKER_TAG, is_of_worker


class WarmRunLauncher(dg.DefaultRunLauncher):
    """Hands runs to the warm worker; launches as its parent does where there is none, or none of this code."""

    def launch_run(self, context: LaunchRunContext) -> None:
        """Hand the run over.

        Raises:
            WorkerSilentError: the worker did not answer; the run is not launched a second way, lest it run twice.
        """
        run_id = context.dagster_run.run_id
        self._instance.add_run_tags(run_id, {WORKER_TAG: "true"})
        if tell(load_settings().data_dir, "run", run_id) != TAKEN:
            self._instance.add_run_tags(run_id, {WORKER_TAG: "false"})
            super().launch_run(context)

    def terminate(self, run_id: str) -> bool:
        """Have the worker interrupt the run."""
        run = self._instance.get_run_by_id(run_id)
        if run is None or not is_of_worker(run):
            return bool(super().terminate(run_id))  # type: ignore[no-untyped-call]
        if run.is_finished:
            return False
        self._instance.report_run_canceling(run)
        return tell(load_settings().data_dir, "cancel", run_id) == YES

    @property
    def supports_check_run_worker_health(self) -> bool:
        """The worker knows what it is at work on."""
        return True

    def check_run_worker_health(self, run: dg.DagsterRun) -> CheckRunHealthResult:
        """Whether the worker is at work on a run of its own; other runs are the sensor's to judge."""
        if not is_of_worker(run) or tell(load_settings().data_dir, "health", run.run_id) == YES:
            return CheckRunHealthResult(WorkerStatus.RUNNING)
        return CheckRunHealthResult(WorkerStatus.FAILED, "the worker does not execute it")


def execute_run(run_id: str) -> None:
    """Execute a run by its id in this process, as `dagster api execute_run` does."""
    from dagster._cli.api import execute_run_command
    from dagster._grpc.types import ExecuteRunArgs

    with dg.DagsterInstance.get() as instance:
        run = instance.get_run_by_id(run_id)
        assert run is not None
        if run.is_finished or not is_of_worker(run):
            # Whoever launched it had no answer and gave it up, or launched it another way.
            return
        assert run.job_code_origin is not None
        arguments = ExecuteRunArgs(run.job_code_origin, run_id, instance.get_ref()).get_command_args()
    execute_run_command.main(args=list(arguments[-1:]), standalone_mode=False)
