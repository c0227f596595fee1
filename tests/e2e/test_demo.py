"""A small run of the whole demo with the real service: it passes on true numbers, and fails on a false one.

The same service also tests that `ledgermart up` restarts killed processes and leaves none behind.
"""

import re
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

import psutil
import pytest

from pipelines.defs.runs import WORKER_TAG
from tests.e2e.client import ApiClient
from tests.e2e.dagster_pages import DagsterPages
from tests.e2e.service import LEDGERMART
from tests.waiting import PATIENCE_SECONDS, eventually
from warehouse.lock import writer_lock

pytestmark = pytest.mark.ci

# Node and service as ever, but what lies between them leaves the last log out of every answer.
_LYING_DEMO = """
import sys
from tests.chain.fault_proxy import FaultProxy, LostLogsFault
from tests.e2e import demo
from tests.e2e.service import Service

class MisledService(Service):
    preferred_ports = (None, None)

    def __init__(self, data_dir, rpc_url, extra, network):
        proxy = FaultProxy(rpc_url)
        proxy.inject(LostLogsFault())
        proxy.start()
        super().__init__(data_dir, proxy.url, {**extra, "LEDGERMART_DAGSTER_PAGES": "no"}, network)

demo.Service = MisledService
sys.exit(demo.main())
"""


# Everything as ever, and at the end the service runs on until standard input is closed.
_HELD_DEMO = """
import sys
from tests.e2e import demo
from tests.e2e.service import Service

class HeldService(Service):
    preferred_ports = (None, None)

    def __init__(self, data_dir, rpc_url, extra, network):
        # A run waits for the lock of the warehouse as long as a test needs, and tests launch runs.
        own = {"LEDGERMART_LOCK_WAIT_SECONDS": "86400", "LEDGERMART_DAGSTER_WRITES": "yes"}
        super().__init__(data_dir, rpc_url, {**extra, **own}, network)
        self.held_path = data_dir / "held"

    def __exit__(self, kind, error, trace):
        if kind is None:
            self.held_path.touch()
            sys.stdin.read()
        super().__exit__(kind, error, trace)

demo.Service = HeldService
sys.exit(demo.main())
"""


def command(start: list[str], folder: Path) -> list[str]:
    """A small demo in a folder that compares every number."""
    options = ["--once", "--transfers", "300", "--limit", f"{PATIENCE_SECONDS:.0f}", "--data-dir", str(folder)]
    return [sys.executable, *start, *options]


def words_of(process: psutil.Process) -> list[str]:
    """The command of a process; empty where it has ended."""
    try:
        return process.cmdline() if process.is_running() else []
    except psutil.NoSuchProcess:
        return []


@dataclass
class Demo:
    """A demo that has compared every number, and its service, which still runs."""

    folder: Path
    printed: str
    up: psutil.Process

    @property
    def environment(self) -> dict[str, str]:
        """The environment of the service."""
        return self.up.environ()

    @property
    def api_is_ready(self) -> bool:
        """True if the API answers."""
        with ApiClient(f"http://127.0.0.1:{self.environment['LEDGERMART_API_PORT']}") as client:
            return client.is_ready()

    @property
    def dagster(self) -> DagsterPages:
        """Dagster's web server."""
        return DagsterPages(f"http://127.0.0.1:{self.environment['LEDGERMART_DAGSTER_PORT']}")

    @property
    def worker_log(self) -> str:
        """The log of the worker until now."""
        return (self.folder / "logs" / "worker.log").read_text()

    @property
    def worker_starts(self) -> int:
        """How often a worker became ready."""
        return sum(line.endswith(" ready") for line in self.worker_log.splitlines())

    def child(self, *words: str) -> psutil.Process | None:
        """Return the child of `ledgermart up` with these words in its command; None if there is none."""
        found = [child for child in self.up.children() if set(words) <= set(words_of(child))]
        return found[0] if found else None

    def launched_runs(self) -> list[psutil.Process]:
        """The runs that the code server executes now."""
        code_server = self.child("grpc")
        assert code_server is not None
        return [child for child in code_server.children() if any("spawn_main" in word for word in words_of(child))]


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Demo]:
    """One start of chain and service for all tests; when they are over, it has to stop cleanly."""
    folder = tmp_path_factory.mktemp("demo") / "demo"
    printed = folder.with_name("printed")
    with (
        printed.open("w") as output,
        subprocess.Popen(
            command(["-c", _HELD_DEMO], folder), stdin=subprocess.PIPE, stdout=output, stderr=subprocess.STDOUT
        ) as process,
    ):
        assert process.stdin is not None
        eventually(lambda: (folder / "held").exists() or process.poll() is not None, "every number is compared")
        assert process.returncode is None, printed.read_text()
        (up,) = [child for child in psutil.Process(process.pid).children() if "up" in words_of(child)]
        everything = psutil.Process(process.pid).children(recursive=True)
        yield Demo(folder, printed.read_text(), up)
        everything += psutil.Process(process.pid).children(recursive=True)
        process.stdin.close()
        assert process.wait() == 0, printed.read_text()
    eventually(lambda: not any(words_of(process) for process in everything), "nothing is left behind")
    assert (folder / "up.log").read_text().splitlines()[-1] == "stopped"
    assert "ended what was left of" not in printed.read_text()


def test_every_number_agrees_with_the_node(demo: Demo) -> None:
    counts = re.findall(r"agree .* (\d+) of (\d+) (holders|activities|balances|movements) agree", demo.printed)
    # of five tokens and five wallets
    assert [kind for _, _, kind in counts] == ["holders", "activities"] * 5 + ["balances", "movements"] * 5
    assert all(agreed == total != "0" for agreed, total, _ in counts)
    attested = re.findall(r"agree .* (\d+) of (\d+) rows (agree|are confirmed)", demo.printed)
    # of twelve months
    assert [kind for _, _, kind in attested] == ["agree", "are confirmed"] * 12
    assert all(agreed == total != "0" for agreed, total, _ in attested)
    valued = re.findall(r"agree .* (\d+) of (\d+) (prices|values|days) of .* agree", demo.printed)
    # of two feeds; of the activities and holders of a token and the movements of a wallet; of both their histories
    assert [kind for _, _, kind in valued] == ["prices"] * 2 + ["values", "values", "days", "values", "days"]
    assert all(agreed == total != "0" for agreed, total, _ in valued)
    reported = re.findall(r"agree .* (\d+) of (\d+) (figures|balances) of the .* report agree", demo.printed)
    assert [kind for _, _, kind in reported] == ["figures", "balances"]
    assert all(agreed == total != "0" for agreed, total, _ in reported)
    assert "12 of 12 month-ends attested" in demo.printed
    # Links of hundreds of characters are only printed at the end, and not with --once.
    assert "#t=" not in demo.printed


@pytest.mark.proof("a killed API is started again")
def test_up_restarts_a_killed_api_and_refuses_a_second_start(demo: Demo) -> None:
    second = subprocess.run([str(LEDGERMART), "up"], env=demo.environment, capture_output=True, text=True, check=False)
    assert second.returncode == 4
    assert f"process {demo.up.pid} (ledgermart up, since 2" in second.stderr
    assert len(second.stderr.splitlines()) == 1

    api = demo.child(str(LEDGERMART), "api")
    assert api is not None
    api.kill()
    eventually(lambda: demo.child(str(LEDGERMART), "api") not in (None, api), "the API is started again")
    eventually(lambda: demo.api_is_ready, "the API is ready again")


def test_every_end_of_a_launched_run_is_recorded(demo: Demo) -> None:
    dagster = demo.dagster
    assert (demo.folder / "code-server.sock").stat().st_mode & 0o077 == 0
    # All numbers come from cycles that the worker started by itself.
    cycles = dagster.runs(pipelineName="cycle", statuses=["SUCCESS"])
    assert any({"key": WORKER_TAG, "value": run["runId"]} in run["tags"] for run in cycles)
    # The worker imported the analysts' packages before forking, and cycles imported no further ones.
    assert all(find_spec(name) for name in ("numpy", "pandas", "pyarrow"))
    assert "a run imported" not in demo.worker_log

    def launched() -> tuple[str, psutil.Process]:
        known = demo.launched_runs()
        run_id = dagster.launch("maintenance")
        eventually(lambda: dagster.status(run_id) == "STARTED", "the code server has started the run")
        (run,) = [run for run in demo.launched_runs() if run not in known]
        return run_id, run

    # Runs wait for the lock, so each can be ended in the middle.
    with writer_lock(demo.folder / "warehouse.lock", "a test", 900):
        killed, run = launched()
        run.kill()
        eventually(lambda: dagster.status(killed) == "FAILURE", "the killed run is recorded as failed")
        cancelled, _ = launched()
        dagster.cancel(cancelled)
        eventually(lambda: dagster.status(cancelled) == "CANCELED", "the cancelled run is recorded as cancelled")
    done = dagster.launch("maintenance")
    eventually(lambda: dagster.status(done) == "SUCCESS", "the next run succeeds")


def test_a_killed_worker_is_started_again(demo: Demo) -> None:
    starts, worker = demo.worker_starts, demo.child("pipelines.worker")
    assert worker is not None
    worker.kill()
    eventually(lambda: demo.worker_starts > starts, "the next worker is ready")


def test_a_worker_ends_when_the_definitions_change(demo: Demo) -> None:
    worker = demo.child("pipelines.worker")
    assert worker is not None
    networks = demo.folder / "networks.toml"
    networks.write_text(networks.read_text() + "\n")
    eventually(lambda: demo.child("pipelines.worker") != worker, "the worker has ended")
    assert "the worker must be restarted" in demo.worker_log


@pytest.mark.release
def test_a_lost_transfer_is_found(tmp_path: Path) -> None:
    done = subprocess.run(command(["-c", _LYING_DEMO], tmp_path / "demo"), capture_output=True, text=True, check=False)
    assert done.returncode == 1, done.stdout + done.stderr
    assert "DIFFER" in done.stdout
