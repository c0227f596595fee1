"""Runs where no worker is: Dagster's own code server executes them."""

import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import dagster as dg
import pytest

from tests import CHECKOUT
from tests.chain.process import stop_process, tied_to_parent
from tests.integration.harness import Service
from tests.waiting import eventually

_DAGSTER = Path(sys.executable).with_name("dagster")


@pytest.fixture
def environment(ready_service: Service, monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    """The environment of Dagster over a prepared service; this process also uses it to find the records."""
    own = {
        **ready_service.variables,
        "DAGSTER_HOME": str(CHECKOUT),
        "DAGSTER_DISABLE_TELEMETRY": "yes",
        "LEDGERMART_DAGSTER_DIR": str(ready_service.settings.dagster_dir),
        "LEDGERMART_CODE_SERVER_SOCKET": str(ready_service.settings.code_server_socket),
    }
    for name, value in own.items():
        monkeypatch.setenv(name, value)
    return ready_service.environment(**own)


@pytest.fixture
def code_server(environment: dict[str, str], tmp_path: Path) -> Iterator[None]:
    """A code server that listens."""
    path = environment["LEDGERMART_CODE_SERVER_SOCKET"]
    with (tmp_path / "code-server.log").open("wb") as log:
        process = subprocess.Popen(
            tied_to_parent([str(_DAGSTER), *["api", "grpc", "-m", "pipelines.definitions", "-s"], path], "TERM"),
            cwd=CHECKOUT,
            env=environment,
            stdout=log,
            stderr=log,
            start_new_session=True,
        )

    def listens() -> bool:
        with socket.socket(socket.AF_UNIX) as probe:
            return probe.connect_ex(path) == 0

    eventually(listens, "the code server listens")
    yield
    stop_process(process, grace_seconds=10)


@pytest.mark.release
@pytest.mark.usefixtures("code_server")
def test_without_a_worker_runs_go_to_the_code_server(environment: dict[str, str]) -> None:
    launch = [str(_DAGSTER), *f"job launch -w {CHECKOUT / 'workspace.yaml'} -j maintenance".split()]

    def launched() -> bool:
        return subprocess.run(launch, cwd=CHECKOUT, env=environment, capture_output=True, check=False).returncode == 0

    eventually(launched, "the code server has the job")
    with dg.DagsterInstance.from_config(str(CHECKOUT)) as instance:
        (run,) = [run for run in instance.get_runs() if run.job_name == "maintenance"]

        def has_succeeded() -> bool:
            found = instance.get_run_by_id(run.run_id)
            return found is not None and found.status is dg.DagsterRunStatus.SUCCESS

        eventually(has_succeeded, "the run has succeeded")
