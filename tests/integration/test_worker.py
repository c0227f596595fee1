"""The warm worker, as a process of its own: runs that Dagster hands to it, its own cycles, and kills of all parts."""

import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from uuid import uuid4

import dagster as dg
import psutil
import pytest

from tests.chain.process import free_port, stop_process, tied_to_parent
from tests.integration.harness import CHECKOUT, Service
from tests.waiting import eventually
from warehouse.lock import writer_lock

_BIN = Path(sys.executable).parent
_TAG = "ledgermart/worker"


class Stage:
    """A prepared service, Dagster's records of it, and processes that are started over it."""

    def __init__(self, service: Service) -> None:
        self.service = service
        self.port = free_port()
        self.environment = service.environment(
            DAGSTER_HOME=str(CHECKOUT),
            DAGSTER_DISABLE_TELEMETRY="yes",
            LEDGERMART_DAGSTER_DIR=str(service.settings.dagster_dir),
            LEDGERMART_CODE_SERVER_PORT=str(self.port),
        )
        self.instance = dg.DagsterInstance.from_config(str(CHECKOUT))
        self.log = service.settings.data_dir / "logs" / "worker.log"
        self.started: list[subprocess.Popen[bytes]] = []

    def start(self, *command: str) -> psutil.Process:
        """Start a program of this environment."""
        with self.log.open("ab") as log:
            process = subprocess.Popen(
                tied_to_parent([str(_BIN / command[0]), *command[1:]], "TERM"),
                cwd=CHECKOUT,
                env=self.environment,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )
        self.started.append(process)
        return psutil.Process(process.pid)

    def worker(self) -> psutil.Process:
        """Start a worker, and wait until it has prepared itself."""
        before = self.log.read_text().count("ready") if self.log.exists() else 0
        process = self.start("python", "-m", "pipelines.worker")
        eventually(lambda: self.log.read_text().count("ready") > before, "the worker is ready")
        return process

    def launch(self, job: str = "maintenance") -> str:
        """Have Dagster launch a job, by its own command; the run's id."""
        before = {run.run_id for run in self.instance.get_runs()}
        done = subprocess.run(
            [str(_BIN / "dagster"), *["job", "launch", "-m", "pipelines.definitions", "-j"], job],
            cwd=CHECKOUT,
            env=self.environment,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stderr[-4000:]
        (launched,) = {run.run_id for run in self.instance.get_runs() if run.job_name == job} - before
        return launched

    def launch_again(self, run_id: str) -> str:
        """Launch another run like one that was launched; not by Dagster's command, which loads everything first."""
        run = self.run(run_id).with_status(dg.DagsterRunStatus.NOT_STARTED)._replace(run_id=str(uuid4()), tags={})
        self.instance.add_run(run)
        # What is handed to a worker needs no workspace.
        self.instance.launch_run(run.run_id, workspace=None)
        return run.run_id

    def run(self, run_id: str) -> dg.DagsterRun:
        """A run as it is recorded."""
        found = self.instance.get_run_by_id(run_id)
        assert found is not None
        return found

    def wait_for(self, run_id: str, status: dg.DagsterRunStatus) -> None:
        """Wait until a run is in a status."""
        eventually(lambda: self.run(run_id).status is status, f"{run_id} is {status}")

    def cycles(self) -> list[dg.DagsterRun]:
        """The runs of the cycle that went well, newest first."""
        filters = dg.RunsFilter(job_name="cycle", statuses=[dg.DagsterRunStatus.SUCCESS], tags={_TAG: "true"})
        return list(self.instance.get_runs(filters))


@pytest.fixture
def stage(ready_service: Service, monkeypatch: pytest.MonkeyPatch) -> Iterator[Stage]:
    # Where this process looks for the records, and for the worker.
    for name, value in ready_service.variables.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("LEDGERMART_DAGSTER_DIR", str(ready_service.settings.dagster_dir))
    made = Stage(ready_service)
    made.log.parent.mkdir(exist_ok=True)
    yield made
    for process in made.started:
        stop_process(process, grace_seconds=10)
    made.instance.dispose()


def forks(worker: psutil.Process) -> list[psutil.Process]:
    """The runs that a worker is at work on."""
    return [child for child in worker.children() if child.cmdline() == worker.cmdline()]


def test_worker_executes_what_it_is_handed_and_survives_kills(stage: Stage) -> None:
    worker = stage.worker()
    assert (stage.service.settings.data_dir / "worker.sock").stat().st_mode & 0o777 == 0o600

    # A configuration write is taken up by a cycle that nobody launched.
    before = len(stage.cycles())
    stage.service.tenant("newcomer")
    eventually(lambda: len(stage.cycles()) > before, "a cycle ran")
    # With the packages that analysts add: the worker imported them before it forked, and the cycle nothing more.
    assert all(find_spec(name) for name in ("numpy", "pandas", "pyarrow"))
    assert "a run imported" not in stage.log.read_text()

    # Held up by the lock, a run is there to be killed, in the middle of it.
    with writer_lock(stage.service.settings.lock_path, "a test", 900):
        killed = stage.launch()
        eventually(lambda: len(forks(worker)) == 1, "the worker forked a run")
        stage.wait_for(killed, dg.DagsterRunStatus.STARTED)
        (fork,) = forks(worker)
        fork.kill()
        stage.wait_for(killed, dg.DagsterRunStatus.FAILURE)
        assert stage.run(killed).tags[_TAG] == "true"

        cancelled = stage.launch_again(killed)
        stage.wait_for(cancelled, dg.DagsterRunStatus.STARTED)
        with dg.DagsterInstance.from_config(str(CHECKOUT)) as instance:
            run = instance.get_run_by_id(cancelled)
            assert run is not None
            instance.report_run_canceling(run)
        from pipelines.defs.messages import tell

        assert tell(stage.service.settings.data_dir, "cancel", cancelled) == "yes"
        stage.wait_for(cancelled, dg.DagsterRunStatus.CANCELED)

        lost = stage.launch_again(killed)
        stage.wait_for(lost, dg.DagsterRunStatus.STARTED)
        (fork,) = forks(worker)
        worker.kill()
        fork.wait()
    # The next worker tells of what the killed one took with it, and goes on.
    worker = stage.worker()
    stage.wait_for(lost, dg.DagsterRunStatus.FAILURE)
    done = stage.launch_again(killed)
    stage.wait_for(done, dg.DagsterRunStatus.SUCCESS)

    # An edited project is not for a worker that has parsed another one: it ends, and is started again by `up`.
    networks = stage.service.settings.networks_file
    networks.write_text(networks.read_text() + "\n")
    worker.wait()
    assert worker.status() == psutil.STATUS_ZOMBIE if worker.is_running() else True


@pytest.mark.slow
def test_without_a_worker_runs_go_to_the_code_server(stage: Stage) -> None:
    server = stage.start(*f"dagster api grpc -m pipelines.definitions -h 127.0.0.1 -p {stage.port}".split())
    workspace = str(CHECKOUT / "workspace.yaml")
    launch = [str(_BIN / "dagster"), *f"job launch -w {workspace} -j maintenance".split()]

    def listens() -> bool:
        with socket.socket() as probe:
            return probe.connect_ex(("127.0.0.1", stage.port)) == 0

    eventually(listens, "the code server listens")

    def launched() -> bool:
        done = subprocess.run(launch, cwd=CHECKOUT, env=stage.environment, capture_output=True, check=False)
        return done.returncode == 0

    eventually(launched, "the code server has the job")
    (run,) = [run for run in stage.instance.get_runs() if run.job_name == "maintenance"]
    stage.wait_for(run.run_id, dg.DagsterRunStatus.SUCCESS)
    assert os.getpgid(server.pid) == server.pid
    server.send_signal(signal.SIGTERM)
