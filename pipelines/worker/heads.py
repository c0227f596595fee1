"""Polls of heads in threads, so that no node delays the worker."""

import threading
from collections.abc import Mapping, Sequence
from multiprocessing import Pipe

from control.networks.definitions import Network
from pipelines.defs.heads import PolledHead, poll_head


class HeadPoller:
    """Polls each head in a thread; `answers` returns the finished polls.

    Attributes:
        answered: becomes readable when a poll has finished.
    """

    def __init__(self) -> None:
        self.answered, self._ended = Pipe(duplex=False)
        self._lock = threading.Lock()
        self._asked: set[str] = set()

    def ask(self, networks: Sequence[Network]) -> None:
        """Begin a poll of each of the networks without a pending one."""
        for network in networks:
            if network.name not in self._asked:
                self._asked.add(network.name)
                threading.Thread(target=self._poll, args=[network], name="heads", daemon=True).start()

    def answers(self) -> Mapping[str, PolledHead | None]:
        """Return the polls that have finished since the last call, without waiting."""
        found = {}
        while self.answered.poll():
            name, head = self.answered.recv()
            found[name] = head
        self._asked -= found.keys()
        return found

    def _poll(self, network: Network) -> None:
        head = poll_head(network)
        with self._lock:
            self._ended.send((network.name, head))
