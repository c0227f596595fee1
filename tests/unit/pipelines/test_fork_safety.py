"""Fork safety: a worker with threads, connections or open databases does not fork."""

import subprocess
import sys
from pathlib import Path

import pytest

_CHECKOUT = Path(__file__).parents[3]


def checked(code: str, folder: Path, patience: float = 0.0) -> str:
    """Run code in a process; return why it is not fork-safe after some patience, or an empty text."""
    text = f"""
from pipelines.worker.fork_safety import ForkUnsafeError, assert_fork_safe
{code}
try:
    assert_fork_safe({patience})
except ForkUnsafeError as error:
    print(error, flush=True)
# Not waiting for what it holds.
import os
os._exit(0)
"""
    command = [sys.executable, "-c", text, str(folder)]
    return subprocess.run(command, cwd=_CHECKOUT, capture_output=True, text=True, check=True).stdout.strip()


@pytest.mark.parametrize(
    ("code", "reason"),
    [
        ("", ""),
        ("import threading; threading.Thread(target=threading.Event().wait, daemon=True).start()", "has a thread"),
        ("import socket; kept = socket.create_server(('127.0.0.1', 0))", "has a connection over a network"),
        ("import sys; kept = open(sys.argv[1] + '/warehouse.duckdb', 'wb')", "warehouse.duckdb open"),
        (
            "import grpc; kept = grpc.insecure_channel('127.0.0.1:9'); kept.subscribe(lambda _: None, True)",
            "has a",
        ),
        ("import duckdb; kept = duckdb.connect(config={'threads': 2})", "has a thread"),
    ],
    ids=["nothing", "thread", "connection", "file", "channel", "database"],
)
def test_resources_unsafe_to_fork_are_named(code: str, reason: str, tmp_path: Path) -> None:
    found = checked(code, tmp_path)
    assert reason in found
    assert bool(found) is bool(reason)


def test_ending_threads_are_waited_for(tmp_path: Path) -> None:
    code = "import threading, time; threading.Thread(target=time.sleep, args=[{}], daemon=True).start()"
    assert "has a thread" in checked(code.format(600), tmp_path)
    assert checked(code.format(0.2), tmp_path, patience=600.0) == ""
    pools = """
from concurrent.futures import ThreadPoolExecutor
for _ in range(300):
    with ThreadPoolExecutor(max_workers=8) as pool:
        list(pool.map(str, range(4)))
    assert_fork_safe(600.0)
"""
    assert checked(pools, tmp_path, patience=600.0) == ""
