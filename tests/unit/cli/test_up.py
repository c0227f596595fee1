"""The checks of `ledgermart up` before it starts anything, and how it stops."""

import io
import itertools
import os
import resource
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from click.testing import CliRunner
from rich.console import Console

from cli import up
from cli.data_folder import check_socket
from cli.main import main
from cli.ports import Port, check_ports, find_exposure, find_unusable, ports_of
from cli.terminal import Terminal
from control.settings import load_settings
from tests.chain.process import free_port
from tests.templates import open_migrated

# The fixture `folder` replaces it.
up_start = up.start


@pytest.fixture
def taken() -> Iterator[int]:
    """A port that is in use."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield int(server.getsockname()[1])


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The data folder of commands in this process."""
    for variable in ("DAGSTER_HOME", "LEDGERMART_DAGSTER_DIR", "DAGSTER_DISABLE_TELEMETRY"):
        monkeypatch.setenv(variable, "")
    monkeypatch.setenv("LEDGERMART_DATA_DIR", str(tmp_path / "data"))
    for name in ("API", "DAGSTER"):
        monkeypatch.setenv(f"LEDGERMART_{name}_PORT", str(free_port()))
    monkeypatch.setattr(up, "start", lambda *_: pytest.fail("something was started"))
    monkeypatch.setattr("cli.ports.PATIENCE_SECONDS", 0.0)
    return tmp_path / "data"


def error_of(*arguments: str) -> str:
    """Run a command that must exit with code 2; return its one error line."""
    before = os.umask(0o077)
    try:
        done = CliRunner().invoke(main, arguments)
    finally:
        os.umask(before)
    assert done.exit_code == 2, done.output
    (line,) = done.stderr.splitlines()
    return line


@pytest.mark.parametrize("name", ["API", "DAGSTER"])
def test_port_in_use_is_reported_in_one_line_before_anything_starts(
    name: str, taken: int, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(f"LEDGERMART_{name}_PORT", str(taken))
    line = error_of("up")
    assert line.startswith(f"Error: LEDGERMART_{name}_PORT: 127.0.0.1:{taken} cannot be used (Address already in use)")
    assert line.endswith(f"or set LEDGERMART_{name}_PORT to a free port")
    assert not (folder / "control.db").exists()


def test_port_is_awaited_until_free(monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = Port("API", "LEDGERMART_API_PORT", *server.getsockname())
        monkeypatch.setattr(time, "sleep", lambda _: server.close())
        check_ports([port], patience_seconds=60.0)


def test_api_command_names_its_port_option(taken: int, folder: Path) -> None:
    assert "LEDGERMART_API_PORT or --port to a free port" in error_of("api", "--port", str(taken))


def test_two_equal_ports_and_an_address_of_another_machine_are_unusable() -> None:
    port = free_port()
    alike = [Port("API", "A", "127.0.0.1", port), Port("Dagster", "B", "127.0.0.1", port)]
    assert list(find_unusable(alike)) == [alike[1]]
    (elsewhere,) = find_unusable([Port("API", "A", "192.0.2.1", port)]).values()
    assert elsewhere.endswith("set LEDGERMART_API_HOST to one, such as 127.0.0.1")
    (unknown,) = find_unusable([Port("API", "A", "no such host", port)]).values()
    assert unknown.startswith("no such host is not an address of this machine")


@pytest.mark.parametrize("arguments", [("up",), ("api",), ("api", "--host", "0.0.0.0")])
def test_public_address_needs_a_setting(
    arguments: tuple[str, ...], folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if "--host" not in arguments:
        monkeypatch.setenv("LEDGERMART_API_HOST", "0.0.0.0")
    line = error_of(*arguments)
    assert line.startswith("Error: LEDGERMART_API_HOST or --host: 0.0.0.0 can be reached by other machines")
    assert "LEDGERMART_API_PUBLIC=yes" in line


@pytest.mark.parametrize(
    ("host", "public", "is_refused"),
    [
        ("127.0.0.1", "no", False),
        ("127.8.0.1", "no", False),
        ("::1", "no", False),
        ("localhost", "no", False),
        ("0.0.0.0", "no", True),
        ("::", "no", True),
        ("192.0.2.1", "no", True),
        ("0.0.0.0", "yes", False),
    ],
)
def test_only_loopback_needs_no_setting(host: str, public: str, is_refused: bool) -> None:
    settings = load_settings({"LEDGERMART_API_PUBLIC": public})
    assert (find_exposure(settings, host) is not None) == is_refused


def test_unusable_folder_is_reported_in_one_line(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = folder.parent / "file"
    file.write_text("")
    monkeypatch.setenv("LEDGERMART_DATA_DIR", str(file / "data"))
    for command in ("up", "status"):
        line = error_of(command)
        assert line.startswith(f"Error: LEDGERMART_DATA_DIR: {file}/data cannot be created (Not a directory)")


def child(name: str, code: str, stop_seconds: float) -> up.Child:
    """Start a child that runs some Python, and wait until it is ready."""
    process = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, start_new_session=True)
    assert process.stdout is not None
    with process.stdout:
        process.stdout.readline()
    return up.Child(name, [], Path(), 0, stop_seconds=stop_seconds, process=process, started_at=time.monotonic())


def test_stop_names_awaited_processes_and_kills_late_ones() -> None:
    ready = "print('ready', flush=True); time.sleep(900)"
    # The default handler, even if this process ignores the signal.
    polite = child("polite", f"import signal, time; signal.signal(signal.SIGTERM, signal.SIG_DFL); {ready}", 900.0)
    deaf = child("deaf", f"import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); {ready}", 1.4)
    told = io.StringIO()
    up.stop([polite, deaf], Console(file=told))
    assert [each.process.returncode for each in (polite, deaf) if each.process] == [-signal.SIGTERM, -signal.SIGKILL]
    assert "waiting for deaf" in told.getvalue()
    assert "deaf did not stop in 1 s; killing it" in told.getvalue()


@pytest.fixture
def reported() -> io.StringIO:
    """The output of `ledgermart up`."""
    return io.StringIO()


def run_to_its_end(folder: Path, reported: io.StringIO, memory_bytes: int, code: str) -> tuple[int, str]:
    """Run some Python as a child of the service; return its exit code and its log."""
    folder.mkdir()
    one = up.Child("worker", [sys.executable, "-c", code], folder / "worker.log", memory_bytes)
    up.start(one, load_settings(), Terminal(file=reported, soft_wrap=True))
    assert one.process is not None
    assert one.writer is not None
    code_of_exit = one.process.wait()
    one.writer.join()
    return code_of_exit, one.log.read_text()


def test_child_over_its_memory_limit_fails_alone_naming_the_setting(
    folder: Path, monkeypatch: pytest.MonkeyPatch, reported: io.StringIO
) -> None:
    monkeypatch.setattr(up, "start", up_start)
    monkeypatch.setenv("LEDGERMART_PROCESS_MEMORY_MB", "1024")
    # The second grandchild, like the fork that executes a run, fails, and the child continues.
    code = """
import os
import resource
import time
# The limit is set just after the start.
while resource.getrlimit(resource.RLIMIT_DATA)[0] == resource.RLIM_INFINITY:
    time.sleep(0.01)
if os.fork() == 0:
    held = [bytearray(50_000_000) for _ in range(40)]
_, status = os.wait()
print("the fork exited with", os.waitstatus_to_exitcode(status))
"""
    exit_code, log = run_to_its_end(folder, reported, 400_000_000, code)
    assert exit_code == 0
    assert log.count("MemoryError") == 1
    assert "the fork exited with 1\n" in log
    sentence = "it reached the limit of LEDGERMART_PROCESS_MEMORY_MB, 1,024 MB; what needed the memory failed alone"
    assert reported.getvalue().count(f"worker: {sentence}") == 1
    assert f"ledgermart up: {sentence}" in log


def test_child_on_a_full_disk_names_the_folder_once(
    folder: Path, monkeypatch: pytest.MonkeyPatch, reported: io.StringIO
) -> None:
    monkeypatch.setattr(up, "start", up_start)
    usage = shutil.disk_usage(folder.parent)
    free = itertools.count(0, 1_000_000)
    # Other processes write and delete meanwhile.
    monkeypatch.setattr(shutil, "disk_usage", lambda _: usage._replace(free=next(free)))
    code = "print(OSError(28, 'No space left on device', 'progress.json')); print('database or disk is full')"
    run_to_its_end(folder, reported, 400_000_000, code)
    assert reported.getvalue().count("the disk is full") == 1
    assert f"{folder} has " in reported.getvalue()


def test_a_socket_path_beyond_the_limit_names_the_data_folder(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    longest = folder.parent / ("d" * (107 - len(f"{folder.parent}//code-server.sock")))
    monkeypatch.setenv("LEDGERMART_DATA_DIR", str(longest))
    check_socket(load_settings())
    with socket.socket(socket.AF_UNIX) as listener:
        longest.mkdir()
        listener.bind(str(load_settings().code_server_socket))
    monkeypatch.setenv("LEDGERMART_DATA_DIR", f"{longest}d")
    line = error_of("up")
    assert line.startswith(f"Error: LEDGERMART_DATA_DIR: {longest}d has {len(str(longest)) + 1} bytes")
    assert f"name a folder of at most {len(str(longest))} bytes" in line


def test_only_the_api_and_the_pages_listen_on_a_port(folder: Path) -> None:
    settings = load_settings()
    children = {one.name: one for one in up.children_of(settings)}
    assert children["code-server"].command[-2:] == ["--socket", str(folder / "code-server.sock")]
    ports = [one.name for one in children.values() if str(settings.api_port) in one.command]
    assert ports == ["api"]
    assert {one.memory_bytes for one in children.values()} == {settings.process_memory_mb * 1_000_000}


def test_service_without_dagsters_pages_lacks_their_process_and_port(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def parts() -> tuple[set[str], set[str]]:
        settings = load_settings()
        return {one.name for one in up.children_of(settings)}, {port.name for port in ports_of(settings)}

    processes, ports = parts()
    monkeypatch.setenv("LEDGERMART_DAGSTER_PAGES", "no")
    assert parts() == (processes - {"dagster"}, ports - {"Dagster"})
    assert {"worker", "api", "code-server", "daemon"} < processes


def test_up_without_a_tenant_is_refused(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    told = io.StringIO()
    settings = load_settings()
    folder.mkdir()
    monkeypatch.setattr(up, "start", lambda *_: os.kill(os.getpid(), signal.SIGTERM))
    before = [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)]
    try:
        for has_tenant in (True, False):
            up.run(settings, Console(file=told, soft_wrap=True), has_tenant=has_tenant)
            assert ("There is no tenant yet" in told.getvalue()) is not has_tenant
        without_pages = io.StringIO()
        up.run(replace(settings, dagster_pages=False), Console(file=without_pages), has_tenant=True)
    finally:
        for number, handler in zip((signal.SIGINT, signal.SIGTERM), before, strict=True):
            signal.signal(number, handler)
    assert f"http://127.0.0.1:{settings.dagster_port}/runs" in told.getvalue()
    assert "Dagster" not in without_pages.getvalue()


def test_worker_alone_has_the_memory_limit_of_a_process_of_up(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    started: list[object] = []
    monkeypatch.setattr(os, "execv", lambda program, arguments: started.append(arguments[1:]))
    monkeypatch.setattr("resource.setrlimit", lambda *limit: started.append(limit))
    monkeypatch.setenv("LEDGERMART_PROCESS_MEMORY_MB", "2000")
    assert "there is no control store yet" in error_of("worker")
    assert not started
    open_migrated(load_settings()).close()
    before = os.umask(0o077)
    try:
        assert CliRunner().invoke(main, ["worker"]).exit_code == 0
    finally:
        os.umask(before)
    assert started == [(resource.RLIMIT_DATA, (2_000_000_000, 2_000_000_000)), ["-Pm", "pipelines.worker"]]
