"""Concurrent calls to several sources, so that a slow or failing one delays no other."""

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from contextlib import closing
from typing import Generic, TypeVar

import duckdb

from control.networks.definitions import Network
from control.pricing.definitions import PriceSource
from pipelines.extract.prices.clients import open_price_client
from pipelines.extract.prices.protocol import Market, PriceClient
from pipelines.prices.store import read_markets

Answer = TypeVar("Answer")
OpenClient = Callable[[PriceSource, Sequence[Market]], PriceClient]
"""Opens a source; the markets are those of its last list."""

# Number of concurrent calls; each occupies one thread until its answer.
_AT_ONCE = 32


class LateAnswer(Exception):
    """A source did not answer within its total time."""


def opener(read_networks: Callable[[], Mapping[str, Network]]) -> OpenClient:
    """Return a function that opens the client of a source; networks are read if feeds need theirs."""

    def open_client(source: PriceSource, markets: Sequence[Market]) -> PriceClient:
        return open_price_client(source, read_networks().get(source.network) if source.network else None, markets)

    return open_client


def listed_markets(connection: duckdb.DuckDBPyConnection, source_id: str) -> list[Market]:
    """Return the markets of a source's newest list; a client that has them need not request them."""
    return [Market(*row) for row in read_markets(connection, source_id)]


class Asking(Generic[Answer]):
    """Pending calls, at most one for each source; to be closed."""

    def __init__(self) -> None:
        self._pool = ThreadPoolExecutor(_AT_ONCE, thread_name_prefix="price-source")
        self._calls: dict[Future[Answer], str] = {}

    @property
    def asked(self) -> set[str]:
        """Return the sources that have not answered yet."""
        return set(self._calls.values())

    def ask(self, source_id: str, call: Callable[[], Answer]) -> None:
        """Begin a call."""
        self._calls[self._pool.submit(call)] = source_id

    def answers(self, seconds: float) -> Iterator[tuple[str, Future[Answer]]]:
        """Wait for the next answers, at most for the given seconds; yield those that arrived, if any."""
        for future in wait(self._calls, timeout=max(seconds, 0.0), return_when=FIRST_COMPLETED).done:
            yield self._calls.pop(future), future

    def close(self) -> None:
        """Abandon pending calls: their threads end with the calls, which have finite time-outs."""
        self._pool.shutdown(wait=False, cancel_futures=True)


def ask_all(calls: Mapping[str, Callable[[], Answer]], seconds: float) -> Iterator[tuple[str, Future[Answer]]]:
    """Call all sources at once; yield their answers as they arrive, and at the end LateAnswer for the others."""
    deadline = time.monotonic() + seconds
    with closing(Asking[Answer]()) as under_way:
        for source_id, call in calls.items():
            under_way.ask(source_id, call)
        while under_way.asked and (left := deadline - time.monotonic()) > 0:
            yield from under_way.answers(left)
        for source_id in sorted(under_way.asked):
            late: Future[Answer] = Future()
            late.set_exception(LateAnswer(f"{source_id}: no answer within {seconds:g} s"))
            yield source_id, late
