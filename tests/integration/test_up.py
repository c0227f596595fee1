"""`ledgermart up` as a person on call meets it: it comes up, heals itself, and stops with nothing left behind."""

import signal
import subprocess
from collections.abc import Iterator

import psutil
import pytest
import urllib3

from tests.chain.process import free_port, stop_process
from tests.integration.harness import LEDGERMART, Service
from tests.waiting import eventually


def _answers(url: str) -> bool:
    try:
        return urllib3.request("GET", url, retries=False, timeout=60).status == 200
    except urllib3.exceptions.HTTPError:
        return False


@pytest.fixture
def environment(ready_service: Service) -> dict[str, str]:
    ports = {f"LEDGERMART_{name}_PORT": str(free_port()) for name in ("API", "DAGSTER", "CODE_SERVER")}
    return ready_service.environment(**ports)


@pytest.fixture
def service(environment: dict[str, str]) -> Iterator[subprocess.Popen[bytes]]:
    process = subprocess.Popen(
        [str(LEDGERMART), "up"], env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    yield process
    stop_process(process, grace_seconds=30)


@pytest.mark.slow
def test_up_heals_a_killed_child_and_stops_cleanly(
    service: subprocess.Popen[bytes], environment: dict[str, str]
) -> None:
    ready = f"http://127.0.0.1:{environment['LEDGERMART_API_PORT']}/health/ready"
    dagster = f"http://127.0.0.1:{environment['LEDGERMART_DAGSTER_PORT']}/server_info"
    eventually(lambda: _answers(ready), "the API is ready")
    eventually(lambda: _answers(dagster), "Dagster's pages are there")

    second = subprocess.run([str(LEDGERMART), "up"], env=environment, capture_output=True, text=True)
    assert second.returncode == 4
    assert f"process {service.pid} (ledgermart up, since 2" in second.stderr
    assert len(second.stderr.splitlines()) == 1

    (api,) = [child for child in psutil.Process(service.pid).children() if str(LEDGERMART) in child.cmdline()]
    api.kill()
    api.wait()
    eventually(lambda: _answers(ready), "the API is ready again after it was killed")

    children = psutil.Process(service.pid).children(recursive=True)
    service.send_signal(signal.SIGTERM)
    assert service.wait() == 0
    psutil.wait_procs(children)
