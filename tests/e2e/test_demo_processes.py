"""The demo leaves no process running, however it ends. A stand-in for the service has the worst behaviour."""

import os
import signal
import stat
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from tests.e2e import service as service_module
from tests.e2e.service import Service, ServiceError
from tests.waiting import eventually

# It tests a tool of the tests.
pytestmark = pytest.mark.release

# `up` starts a child that ignores SIGTERM, is ready at once, and then answers requests according to `behaviour`.
_STAND_IN = """\
#!{python}
import http.server, json, os, signal, subprocess, sys, time
if sys.argv[1] == "init":
    print(json.dumps({{"tenant": "ten_1", "apiKey": "lm_1_2"}}))
    sys.exit()
if {behaviour!r} == "ends":
    sys.exit("no such luck")
stubborn = "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); time.sleep(3000)"
subprocess.Popen([sys.executable, "-c", stubborn])
class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        if self.path != "/health/ready" and {behaviour!r} == "hangs":
            print("asked", flush=True)
            time.sleep(3000)
        self.send_response(200 if self.path == "/health/ready" else 500)
        self.end_headers()
http.server.ThreadingHTTPServer(("127.0.0.1", int(os.environ["LEDGERMART_API_PORT"])), Handler).serve_forever()
"""

_DEMO = """
import sys
from pathlib import Path
from tests.e2e import service
service.LEDGERMART = Path(sys.argv[1])
from tests.e2e.demo import main
sys.argv = ["demo", "--transfers", "80", "--data-dir", sys.argv[2]]
sys.exit(main())
"""


def stand_in(folder: Path, behaviour: str) -> Path:
    command = folder / "ledgermart"
    command.write_text(_STAND_IN.format(python=sys.executable, behaviour=behaviour), encoding="utf-8")
    command.chmod(command.stat().st_mode | stat.S_IXUSR)
    return command


def left_over(folder: Path) -> list[psutil.Process]:
    """Processes that work on the folder: their environment names it, and every process of the demo inherits it."""
    found = []
    for process in psutil.process_iter():
        try:
            if process.environ().get("DEMO_TEST") == str(folder) and process.status() != psutil.STATUS_ZOMBIE:
                found.append(process)
        except (psutil.NoSuchProcess, psutil.AccessDenied):
            continue
    return found


class Demos:
    """Starts demos on a folder with a service of the given behaviour."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.started: list[subprocess.Popen[str]] = []

    def start(self, behaviour: str) -> "subprocess.Popen[str]":
        demo = subprocess.Popen(
            [sys.executable, "-c", _DEMO, str(stand_in(self.folder, behaviour)), str(self.folder / "data")],
            env={**os.environ, "DEMO_TEST": str(self.folder)},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        self.started.append(demo)
        return demo


@pytest.fixture
def demos(tmp_path: Path) -> Iterator[Demos]:
    made = Demos(tmp_path)
    yield made
    for process in left_over(tmp_path):
        process.kill()
    for demo in made.started:
        if demo.poll() is None:
            demo.communicate()


def wait_until_asked(folder: Path) -> None:
    log = folder / "data" / "up.log"
    eventually(lambda: log.is_file() and "asked" in log.read_text(encoding="utf-8"), "the demo has asked something")


def test_an_error_of_the_api_ends_everything_with_a_message(demos: Demos) -> None:
    demo = demos.start("refuses")
    printed, _ = demo.communicate()
    assert demo.returncode == 2, printed
    assert "GET /v1/networks: 500" in printed
    assert "ended what was left of" in printed
    assert left_over(demos.folder) == []


def test_a_service_that_ends_is_shown_with_its_last_words(demos: Demos) -> None:
    demo = demos.start("ends")
    printed, _ = demo.communicate()
    assert demo.returncode == 2, printed
    assert "exited with 1" in printed
    assert "no such luck" in printed
    assert left_over(demos.folder) == []


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_stops_everything(demos: Demos, number: signal.Signals) -> None:
    demo = demos.start("hangs")
    wait_until_asked(demos.folder)
    assert len(left_over(demos.folder)) == 4  # the demo, the node, the service and its child
    demo.send_signal(number)
    printed, _ = demo.communicate()
    assert demo.returncode == 0, printed
    assert left_over(demos.folder) == []


def test_a_killed_demo_takes_the_node_and_the_service_along(demos: Demos) -> None:
    demo = demos.start("hangs")
    wait_until_asked(demos.folder)
    command = str(demos.folder / "ledgermart")
    others = [process for process in left_over(demos.folder) if process.pid != demo.pid]
    children = [process for process in others if process.name() == "anvil" or command in process.cmdline()]
    assert len(children) == 2
    demo.kill()
    demo.communicate()
    psutil.wait_procs(children)


def test_settings_of_the_caller_do_not_leak_in(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ETHEREUM_RPC_URL", "http://example.invalid")
    monkeypatch.setenv("LEDGERMART_CONTROL_URL", "postgresql://example.invalid/x")
    environment = Service(tmp_path / "data", "http://127.0.0.1:1", {"LEDGERMART_CYCLE_SECONDS": "5"}).environment
    assert "ETHEREUM_RPC_URL" not in environment
    assert "LEDGERMART_CONTROL_URL" not in environment
    assert environment["LOCAL_RPC_URL"] == "http://127.0.0.1:1"
    assert environment["LEDGERMART_CYCLE_SECONDS"] == "5"


def test_a_missing_command_says_what_to_do(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(service_module, "LEDGERMART", tmp_path / "nothing")
    with pytest.raises(ServiceError, match="make install"):
        Service(tmp_path / "data", "http://127.0.0.1:1").init("demo")
