"""The process that polls heads for the worker, so that no node delays the worker.

The worker itself may have no threads and no connections, because it forks its runs.
"""

import ctypes
import logging
import os
import signal
import socket
import threading
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress

from control.networks.definitions import Network
from pipelines.defs.heads import PolledHead, poll_head

_LOG = logging.getLogger(__name__)
_LIBC = ctypes.CDLL(None, use_errno=True)
_PR_SET_PDEATHSIG = 1
_PR_SET_NAME = 15
_READ_BYTES = 64 * 1024
NAME = "heads"
"""Name of the process in lists of processes."""


class HeadPoller:
    """Polls heads in a fork of this process, each in a thread; `answers` returns those that have arrived.

    Args:
        networks: all networks that may be polled.
        prepare: called before each fork; raises where the process must not fork.
    """

    def __init__(self, networks: Mapping[str, Network], prepare: Callable[[], None]) -> None:
        self._networks = networks
        self._prepare = prepare
        self._socket: socket.socket | None = None
        self._pid = 0
        self._received = b""
        self._asked: set[str] = set()

    def fileno(self) -> int | None:
        """Return the descriptor that becomes readable with an answer; None while no process polls."""
        return None if self._socket is None else self._socket.fileno()

    def ask(self, networks: Sequence[Network]) -> None:
        """Begin polls; start the process if there is none."""
        wanted = [network.name for network in networks if network.name not in self._asked]
        if not wanted:
            return
        if self._socket is None:
            self._start()
        assert self._socket is not None
        with suppress(OSError):  # the process has ended; the next call of `answers` finds that out
            self._socket.sendall("".join(f"{name}\n" for name in wanted).encode())
        self._asked.update(wanted)

    def answers(self) -> Mapping[str, PolledHead | None]:
        """Return the ended polls without waiting; if the process ended, all polls, without answers."""
        if self._socket is None:
            return {}
        try:
            while piece := self._socket.recv(_READ_BYTES, socket.MSG_DONTWAIT):
                self._received += piece
        except BlockingIOError:
            *lines, self._received = self._received.split(b"\n")
            found = (line.decode().split(" ") for line in lines)
            answers = {name: PolledHead(*map(int, head)) if head else None for name, *head in found}
        except ConnectionError:
            answers = self._end()
        else:
            answers = self._end()
        self._asked -= answers.keys()
        return answers

    def _end(self) -> dict[str, PolledHead | None]:
        """Forget a process that has ended."""
        pid = self._pid
        self.leave()
        _, status = os.waitpid(pid, 0)
        _LOG.warning("the process that polls heads exited with %s", os.waitstatus_to_exitcode(status))
        return dict.fromkeys(self._asked)

    def leave(self) -> None:
        """Close this process's end, also in a fork; the other end stays open."""
        if self._socket is not None:
            self._socket.close()
        self._socket, self._received = None, b""

    def stop(self) -> None:
        """End the process."""
        if self._socket is not None:
            os.kill(self._pid, signal.SIGKILL)
            os.waitpid(self._pid, 0)
            self.leave()

    def _start(self) -> None:
        self._prepare()
        ours, theirs = socket.socketpair()
        parent = os.getpid()
        pid = os.fork()
        if pid:
            theirs.close()
            self._socket, self._pid = ours, pid
            return
        try:
            _LIBC.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
            # Lists of processes show it beside the runs, which have the same command line.
            _LIBC.prctl(_PR_SET_NAME, NAME.encode())
            for number in (signal.SIGINT, signal.SIGTERM):
                signal.signal(number, signal.SIG_DFL)
            ours.close()
            if os.getppid() == parent:
                _serve(theirs, self._networks)
        finally:
            os._exit(0)


def _serve(asked: socket.socket, networks: Mapping[str, Network]) -> None:
    """Poll each network that a line names, until the other end closes."""
    lock = threading.Lock()

    def poll(name: str) -> None:
        head = poll_head(networks[name])
        with lock, suppress(OSError):
            asked.sendall(f"{' '.join((name, *map(str, head or ())))}\n".encode())

    received = b""
    while piece := asked.recv(_READ_BYTES):
        *lines, received = (received + piece).split(b"\n")
        for line in lines:
            threading.Thread(target=poll, args=(line.decode(),), daemon=True).start()
