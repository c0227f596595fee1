"""Start, watch, restart and stop the API, the worker, and Dagster's web server, daemon and code server."""

import os
import re
import resource
import signal
import socket
import subprocess
import sys
import threading
import time
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from rich.console import Console

from cli.disk import full_disk_sentence, names_full_disk
from cli.logs import LogFile, copy_lines
from control.resources import WORKSPACE
from control.settings import Settings
from pipelines.due import backoff

# Seconds until a child that does not stop is killed. The API first finishes its requests.
_API_STOP_SECONDS = 15.0
_STOP_SECONDS = 3.0
_SILENT_SECONDS = 1.0
_POLL_SECONDS = 0.5
_STOP_POLL_SECONDS = 0.05
# A child that exits is restarted after a pause that grows. It is short again for a child that ran for this long.
_FORGIVEN_AFTER_SECONDS = 60.0
# Maximum time to write the last lines of a child that has ended.
_LOG_SECONDS = 5.0
_CODE_SERVER = ("api", "grpc", "-m", "pipelines.definitions", "--empty-working-directory", "--log-level", "warning")
# Errors of Python, C++ and DuckDB when the system refuses them memory.
_NO_MEMORY = re.compile(
    r"\bMemoryError\b|std::bad_alloc|Out of Memory Error|Cannot allocate memory|can't start new thread"
)
_Resource = Literal["memory", "disk"]


@dataclass
class Child:
    """One of the processes that make up the service."""

    name: str
    command: list[str]
    log: Path
    memory_bytes: int
    needs_socket: Path | None = None
    stop_seconds: float = _STOP_SECONDS
    process: subprocess.Popen[bytes] | None = None
    started_at: float = 0.0
    failures: int = 0
    restart_at: float = 0.0
    writer: threading.Thread | None = None


def children_of(settings: Settings) -> list[Child]:
    """Return the processes of the service, not started yet; create the folder of their logs."""

    def command(program: str, *arguments: str) -> list[str]:
        # The kernel stops the child when `ledgermart up` is killed, so that nothing is left behind.
        return ["setpriv", "--pdeathsig", "TERM", "--", str(Path(sys.executable).with_name(program)), *arguments]

    def module(name: str, *arguments: str) -> list[str]:
        # -P: modules in the working directory must not replace ours.
        return command("python", "-Pm", name, *arguments)

    logs = settings.data_dir / "logs"
    logs.mkdir(parents=True, exist_ok=True)
    code_server = settings.code_server_socket
    memory = settings.process_memory_mb * 1_000_000

    def child(name: str, started: list[str], needs: Path | None = None, stop_seconds: float = _STOP_SECONDS) -> Child:
        return Child(name, started, logs / f"{name}.log", memory, needs, stop_seconds)

    children = [
        child("worker", module("pipelines.worker")),
        child("code-server", module("dagster", *_CODE_SERVER, "--socket", str(code_server))),
        child(
            "api",
            command("ledgermart", "api", "--host", settings.api_host, "--port", str(settings.api_port)),
            stop_seconds=_API_STOP_SECONDS,
        ),
        child("daemon", module("dagster._daemon", "run", "-w", str(WORKSPACE), "--log-level", "warning"), code_server),
    ]
    if settings.dagster_pages:
        children.append(child("dagster", module("cli.dagster_pages"), code_server))
    return children


def _is_open(path: Path) -> bool:
    with socket.socket(socket.AF_UNIX) as probe:
        probe.settimeout(_POLL_SECONDS)
        return probe.connect_ex(str(path)) == 0


def start(child: Child, settings: Settings, console: Console) -> None:
    """Start a child with its memory limit, and a thread that writes its output to its log."""
    child.process = subprocess.Popen(
        child.command,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        start_new_session=True,
    )
    # Processes that it forks inherit the limit, and count for themselves.
    with suppress(ProcessLookupError):
        resource.prlimit(child.process.pid, resource.RLIMIT_DATA, (child.memory_bytes, child.memory_bytes))
    child.writer = threading.Thread(
        target=_write_log, args=(child, child.process, settings, console), name=f"log of {child.name}", daemon=True
    )
    child.writer.start()
    child.started_at = time.monotonic()


def _write_log(child: Child, process: subprocess.Popen[bytes], settings: Settings, console: Console) -> None:
    """Write the output of a process to its log, and report once that memory or disk are used up."""
    assert process.stdout is not None
    reported: set[_Resource] = set()
    with process.stdout, LogFile(child.log) as log:
        for line in copy_lines(process.stdout, log):
            exhausted = _exhausted(line, settings)
            if exhausted is not None and exhausted not in reported:
                reported.add(exhausted)
                hint = _hint(exhausted, settings)
                log.write(f"ledgermart up: {hint}\n")
                console.print(f"{child.name}: {hint} (log: {child.log})", style="yellow", markup=False)


def _exhausted(line: str, settings: Settings) -> _Resource | None:
    """Return the resource that is used up, by a line that a process printed; None for other lines."""
    if _NO_MEMORY.search(line):
        return "memory"
    return "disk" if names_full_disk(line, settings) else None


def _hint(exhausted: _Resource, settings: Settings) -> str:
    """Return cause and fix in one sentence. That of a disk has its free space, which changes."""
    if exhausted == "disk":
        return full_disk_sentence(settings.data_dir)
    return (
        f"it reached the limit of LEDGERMART_PROCESS_MEMORY_MB, {settings.process_memory_mb:,} MB; what needed the "
        "memory failed alone; raise the limit if the machine has more memory"
    )


def _watch(child: Child, settings: Settings, console: Console) -> None:
    """Start a child that is not running, with growing pauses after failures."""
    now = time.monotonic()
    if child.process is not None:
        code = child.process.poll()
        if code is None:
            return
        if now - child.started_at > _FORGIVEN_AFTER_SECONDS:
            child.failures = 0
        child.failures += 1
        pause = backoff(child.failures)
        child.process, child.restart_at = None, now + pause
        console.print(f"[yellow]{child.name} exited with code {code}; restarting it in {pause} s (log: {child.log})")
    # Dagster's processes report a code server that is only starting as an error, with a stack trace.
    if now >= child.restart_at and (child.needs_socket is None or _is_open(child.needs_socket)):
        start(child, settings, console)


def stop(children: list[Child], console: Console) -> None:
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
    for child, process in running:
        _end_group(process)
        if child.writer is not None:
            child.writer.join(_LOG_SECONDS)


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
    children = children_of(settings)
    console.print(f"API           http://{settings.api_host}:{settings.api_port}/docs")
    if settings.dagster_pages:
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
                _watch(child, settings, console)
            stopping.wait(_POLL_SECONDS)
    finally:
        console.print("stopping")
        stop(children, console)
        console.print("stopped")
