"""Start, watch, restart and stop the API, the worker, and Dagster's web server, daemon and code server."""

import os
import signal
import socket
import subprocess
import sys
import threading
import time
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console

from control.settings import CHECKOUT, Settings

# Seconds until a child that does not stop is killed. The API first finishes its requests.
_API_STOP_SECONDS = 15.0
_STOP_SECONDS = 3.0
_SILENT_SECONDS = 1.0
_POLL_SECONDS = 0.5
_STOP_POLL_SECONDS = 0.05
# A child that exits is restarted after 1, 2, 4, ... seconds, at most this many. After a minute the count starts over.
_MOST_RESTART_SECONDS = 30.0
_FORGIVEN_AFTER_SECONDS = 60.0


@dataclass
class _Child:
    """One of the processes that make up the service."""

    name: str
    command: list[str]
    log: Path
    needs_port: int | None = None
    stop_seconds: float = _STOP_SECONDS
    process: subprocess.Popen[bytes] | None = None
    started_at: float = 0.0
    failures: int = 0
    restart_at: float = 0.0


def _children(settings: Settings) -> list[_Child]:
    def command(program: str, *arguments: str) -> list[str]:
        # The kernel stops the child when `ledgermart up` is killed, so that nothing is left behind.
        return ["setpriv", "--pdeathsig", "TERM", "--", str(Path(sys.executable).with_name(program)), *arguments]

    workspace = str(CHECKOUT / "workspace.yaml")
    logs = settings.data_dir / "logs"
    logs.mkdir(parents=True, exist_ok=True)
    code_port, web_port = str(settings.code_server_port), str(settings.dagster_port)
    return [
        _Child("worker", command("python", "-m", "pipelines.worker"), logs / "worker.log"),
        _Child(
            "code-server",
            command(
                "dagster",
                *f"api grpc -m pipelines.definitions -h 127.0.0.1 -p {code_port} --log-level warning".split(),
            ),
            logs / "code-server.log",
        ),
        _Child(
            "api",
            command("ledgermart", "api", "--host", settings.api_host, "--port", str(settings.api_port)),
            logs / "api.log",
            stop_seconds=_API_STOP_SECONDS,
        ),
        _Child(
            "daemon",
            command("dagster-daemon", "run", "-w", workspace, "--log-level", "warning"),
            logs / "daemon.log",
            settings.code_server_port,
        ),
        _Child(
            "dagster",
            command("dagster-webserver", "-w", workspace, "-h", "127.0.0.1", "-p", web_port, "--log-level", "warning"),
            logs / "dagster.log",
            settings.code_server_port,
        ),
    ]


def _is_open(port: int) -> bool:
    with socket.socket() as probe:
        probe.settimeout(_POLL_SECONDS)
        return probe.connect_ex(("127.0.0.1", port)) == 0


def _start(child: _Child) -> None:
    with child.log.open("ab") as log:
        child.process = subprocess.Popen(
            child.command,
            cwd=CHECKOUT,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            start_new_session=True,
        )
    child.started_at = time.monotonic()


def _watch(child: _Child, console: Console) -> None:
    """Start a child that is not running, with growing pauses after failures."""
    now = time.monotonic()
    if child.process is not None:
        code = child.process.poll()
        if code is None:
            return
        if now - child.started_at > _FORGIVEN_AFTER_SECONDS:
            child.failures = 0
        pause = min(2.0**child.failures, _MOST_RESTART_SECONDS)
        child.failures += 1
        child.process, child.restart_at = None, now + pause
        console.print(
            f"[yellow]{child.name} exited with code {code}; restarting it in {pause:.0f} s (log: {child.log})"
        )
    # Dagster's processes report a code server that is only starting as an error, with a stack trace.
    if now >= child.restart_at and (child.needs_port is None or _is_open(child.needs_port)):
        _start(child)


def _stop(children: list[_Child], console: Console) -> None:
    """Stop every child; report those that are slow to stop, and kill them after a limit."""
    running = [(child, child.process) for child in children if child.process is not None]
    for _, process in running:
        if process.poll() is None:
            process.terminate()
    began_at, told, tell_after = time.monotonic(), "", _SILENT_SECONDS
    while waiting := [(child, process) for child, process in running if process.poll() is None]:
        seconds = time.monotonic() - began_at
        names = ", ".join(child.name for child, _ in waiting)
        if seconds > tell_after and names != told:
            console.print(f"waiting for {names}")
            told, tell_after = names, seconds + _SILENT_SECONDS
        for child, process in waiting:
            if seconds > child.stop_seconds:
                console.print(f"[yellow]{child.name} did not stop in {child.stop_seconds:.0f} s; killing it")
                _end_group(process)
                process.wait()
        time.sleep(_STOP_POLL_SECONDS)
    # Runs are children of the worker or the code server.
    for _, process in running:
        _end_group(process)


def _end_group(process: subprocess.Popen[bytes]) -> None:
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)


def run(settings: Settings, console: Console, *, has_tenant: bool) -> None:
    """Run the service until SIGINT or SIGTERM.

    Args:
        has_tenant: whether a tenant exists. If none does, print a warning, because nothing can be read or tracked.
    """
    stopping = threading.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: stopping.set())
    children = _children(settings)
    console.print(f"API           http://{settings.api_host}:{settings.api_port}/docs")
    console.print(f"Dagster       http://127.0.0.1:{settings.dagster_port}/runs")
    console.print(f"logs          {settings.data_dir / 'logs'}")
    if not has_tenant:
        console.print(
            "[yellow]There is no tenant yet, so the API accepts no key. Run `ledgermart init --tenant NAME` in another "
            "terminal, with the same environment."
        )
    console.print("Ctrl-C stops everything.")
    try:
        while not stopping.is_set():
            for child in children:
                _watch(child, console)
            stopping.wait(_POLL_SECONDS)
    finally:
        console.print("stopping")
        _stop(children, console)
        console.print("stopped")
