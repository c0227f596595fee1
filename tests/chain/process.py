"""Child processes that never outlive the process that started them.

Helpers to start, stop and clean up processes of the node and the demo; not specific to any of them.
"""

import ctypes
import itertools
import secrets
import socket
import subprocess
from collections.abc import Iterable, Sequence

import psutil

_PR_SET_CHILD_SUBREAPER = 36
# As in /proc/sys/net/ipv4/ip_local_port_range.
_FIRST_OUTGOING_PORT = 32_768


def tied_to_parent(command: Sequence[str], signal_name: str = "KILL") -> list[str]:
    """Prefix a command so that the kernel signals it when its parent dies for any reason.

    The parent is the thread that starts the child, so this thread must stay alive. The prefix is a program because
    `preexec_fn` is not safe with threads.
    """
    return ["setpriv", "--pdeathsig", signal_name, "--", *command]


def adopt_orphans() -> None:
    """Become the parent of orphaned descendants, so that `stop_descendants` finds them."""
    ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def free_port(preferred: int | None = None) -> int:
    """Return a free loopback port: the preferred one if it is free, else one below those of outgoing connections.

    The kernel may give a port above to a connection of another test, before the caller listens on it.
    """
    drawn = (10_000 + secrets.randbelow(_FIRST_OUTGOING_PORT - 10_000) for _ in range(100))
    for port in itertools.chain([preferred] if preferred else [], drawn):
        with socket.socket() as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                probe.bind(("127.0.0.1", port))
            except OSError:
                continue
            return int(probe.getsockname()[1])
    raise OSError("no free port on 127.0.0.1")


def stop_process(process: subprocess.Popen[bytes], grace_seconds: float) -> int:
    """Ask a child to end, insist after the grace time, reap it, and return its exit code."""
    if process.poll() is None:
        process.terminate()
    try:
        return process.wait(grace_seconds)
    except subprocess.TimeoutExpired:
        process.kill()
        return process.wait()


def stop_descendants(keep: Iterable[int] = (), grace_seconds: float = 3) -> list[str]:
    """End everything below this process but the processes in `keep`.

    Returns:
        The command line of each one ended, for a message.
    """
    kept = set(keep)
    left = [child for child in psutil.Process().children(recursive=True) if child.pid not in kept]
    names = []
    for child in left:
        try:
            names.append(" ".join(child.cmdline()) or child.name())
            child.terminate()
        except psutil.NoSuchProcess:
            continue
    _, alive = psutil.wait_procs(left, timeout=grace_seconds)
    for child in alive:
        try:
            child.kill()
        except psutil.NoSuchProcess:
            continue
    psutil.wait_procs(alive, timeout=grace_seconds)
    return names
