"""Polls of networks' heads between cycles, to find new blocks. A late answer counts as none."""

import logging
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from typing import NamedTuple, Protocol

from control.networks.definitions import Network
from pipelines.extract.budget import Budget
from pipelines.extract.errors import ExtractError
from pipelines.extract.families import open_node

_LOG = logging.getLogger(__name__)
# Of one poll, over all URLs of the network.
POLL_SECONDS = 5.0
_POLL_MEGABYTES = 20


class PolledHead(NamedTuple):
    """A node's newest block; its time in seconds since 1970, UTC."""

    number: int
    seconds: int


def poll_head(network: Network) -> PolledHead | None:
    """Return a node's newest block within seconds; None if the node does not answer."""
    budget = Budget(POLL_SECONDS, _POLL_MEGABYTES)
    try:
        with closing(open_node(network, timeout=(2.0, 4.0), max_attempts=1, budget=budget)) as node:
            head = node.head()
            return PolledHead(head.number, int(head.time.timestamp()))
    except ExtractError:
        return None
    except Exception:  # noqa: BLE001 - a defect met on one network must not stop the look at the others
        _LOG.exception("the head of %s could not be read", network.name)
        return None


class Heads(Protocol):
    """Polls of heads."""

    def ask(self, networks: Sequence[Network]) -> None:
        """Begin a poll of each of the networks."""

    def answers(self) -> Mapping[str, PolledHead | None]:
        """Return the polls that have ended since this was called last: the head by network, None without an answer."""


class WaitingHeads:
    """Polls all networks at once and waits for them, a few seconds at most: for a process that only looks."""

    def __init__(self) -> None:
        self._answers: dict[str, PolledHead | None] = {}

    def ask(self, networks: Sequence[Network]) -> None:
        """Poll the networks, each in a thread of its own."""
        if networks:
            with ThreadPoolExecutor(len(networks), thread_name_prefix="heads") as pool:
                heads = pool.map(poll_head, networks)
                self._answers |= dict(zip((network.name for network in networks), heads, strict=True))

    def answers(self) -> Mapping[str, PolledHead | None]:
        """Return the results of the polls since the last call."""
        answers, self._answers = self._answers, {}
        return answers
