"""Requests to price sources before a build of the marts: market lists and newest prices."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import Future
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import timedelta
from functools import partial
from typing import TypeVar

import duckdb

from control.clock import stored_now
from control.pricing.definitions import PriceSource
from pipelines.chain.segments import log_words
from pipelines.extract.errors import ExtractError, SourceMalformed
from pipelines.extract.prices.protocol import Market, MarketPrice, PollResult, PriceClient, Problem
from pipelines.prices.asking import LateAnswer, OpenClient, ask_all, listed_markets
from pipelines.prices.routes import update_routes
from pipelines.prices.store import (
    lists_due,
    poll_interval,
    polls_due,
    record_failed_list,
    record_failed_poll,
    record_turns,
    replace_markets,
    store_poll,
)

Answer = TypeVar("Answer")

# A source that takes longer must not delay the cycle: a market list takes a few requests, a poll at most 20 s.
_MOST_SECONDS = 30.0


@dataclass(slots=True)
class PriceReport:
    """Result of one round over the price sources, by source id.

    Attributes:
        markets: length of each list that was read.
        prices, new_prices: number of prices of each poll, and of those that were not stored before.
        problems: markets without a price in an otherwise good poll.
        list_errors, poll_errors: reasons why a source gave no usable answer.
        defects: failures of our own code.
        changed_routes: number of pairs with a changed route.
    """

    markets: dict[str, int] = field(default_factory=dict)
    prices: dict[str, int] = field(default_factory=dict)
    new_prices: dict[str, int] = field(default_factory=dict)
    problems: dict[str, list[Problem]] = field(default_factory=dict)
    list_errors: dict[str, str] = field(default_factory=dict)
    poll_errors: dict[str, str] = field(default_factory=dict)
    defects: list[Exception] = field(default_factory=list)
    changed_routes: int = 0


def collect_prices(
    connection: duckdb.DuckDBPyConnection,
    sources: Mapping[str, PriceSource],
    open_client: OpenClient,
    poll_seconds: int,
    batch_id: int,
) -> PriceReport:
    """Read the market lists that are due, resolve the routes of all pairs, and poll the sources that are due.

    If a source fails, its stored prices remain, its error is recorded, and the other sources continue.

    Args:
        connection: the open warehouse, after the control snapshot.
        sources: the definitions in force, by id.
        open_client: opens a source.
        poll_seconds: length of the clock-aligned intervals with one poll per source; a source may require longer ones.
        batch_id: the cycle's batch.
    """
    report = PriceReport()
    intervals = {id_: poll_interval(source, poll_seconds) for id_, source in sources.items()}
    with _clients(connection, sources, open_client) as clients:
        _collect_lists(connection, clients, lists_due(connection), intervals, report, batch_id)
        report.changed_routes = update_routes(connection, sources, batch_id)
        turn_at = stored_now()
        _poll(connection, clients, polls_due(connection, intervals), intervals, report, batch_id)
        record_turns(connection, intervals, turn_at)
    return report


class _Clients:
    """Clients of sources, each opened at its first use; a client that did not answer in time is not used again."""

    def __init__(
        self, connection: duckdb.DuckDBPyConnection, sources: Mapping[str, PriceSource], open_client: OpenClient
    ) -> None:
        self._connection = connection
        self._sources = sources
        self._open_client = open_client
        self._open: dict[str, PriceClient] = {}
        self._late: set[str] = set()

    def ask(self, calls: Mapping[str, Callable[[PriceClient], Answer]]) -> Iterator[tuple[str, Callable[[], Answer]]]:
        """Call sources at once; yield a function for each answer, which returns or raises it, as they arrive."""
        asked: dict[str, Callable[[], Answer]] = {}
        for source_id, call in calls.items():
            try:
                asked[source_id] = partial(call, self._client(source_id))
            except Exception as error:  # noqa: BLE001 - told as the source's answer
                yield source_id, _raised(error).result
        for source_id, answer in ask_all(asked, _MOST_SECONDS):
            if isinstance(answer.exception(), LateAnswer):
                self._late.add(source_id)
            yield source_id, answer.result

    def _client(self, source_id: str) -> PriceClient:
        if source_id in self._late:
            raise LateAnswer(f"{source_id}: has not answered an earlier call yet")
        if source_id not in self._open:
            known = listed_markets(self._connection, source_id)
            self._open[source_id] = self._open_client(self._sources[source_id], known)
        return self._open[source_id]

    def close(self) -> None:
        """Close the clients that no thread uses."""
        for source_id, client in self._open.items():
            if source_id not in self._late:
                client.close()


@contextmanager
def _clients(
    connection: duckdb.DuckDBPyConnection, sources: Mapping[str, PriceSource], open_client: OpenClient
) -> Iterator[_Clients]:
    clients = _Clients(connection, sources, open_client)
    try:
        yield clients
    finally:
        clients.close()


def _raised(error: Exception) -> Future[Answer]:
    future: Future[Answer] = Future()
    future.set_exception(error)
    return future


def _collect_lists(
    connection: duckdb.DuckDBPyConnection,
    clients: _Clients,
    due: Iterable[str],
    intervals: Mapping[str, timedelta],
    report: PriceReport,
    batch_id: int,
) -> None:
    for source_id, answer in clients.ask({id_: partial(_read_list, id_) for id_ in due}):
        try:
            markets = answer()
        except Exception as error:  # noqa: BLE001 - one source stops no other; a defect fails the run
            words = report.list_errors[source_id] = _describe(source_id, error, report)
            record_failed_list(connection, source_id, words, intervals[source_id], batch_id)
        else:
            replace_markets(connection, source_id, markets, batch_id)
            report.markets[source_id] = len(markets)


def _read_list(source_id: str, client: PriceClient) -> list[Market]:
    markets = client.markets()
    names = {market.market_id for market in markets}
    # An empty list would mark all known markets as gone.
    if not markets or len(names) < len(markets):
        raise SourceMalformed(source_id, "markets", "lists a market twice" if markets else "lists no market")
    return markets


def _poll(
    connection: duckdb.DuckDBPyConnection,
    clients: _Clients,
    due: Mapping[str, list[tuple[str, str]]],
    intervals: Mapping[str, timedelta],
    report: PriceReport,
    batch_id: int,
) -> None:
    for source_id, answer in clients.ask({id_: partial(_poll_one, id_, wanted) for id_, wanted in due.items()}):
        try:
            result = answer()
        except Exception as error:  # noqa: BLE001 - one source stops no other; a defect fails the run
            words = report.poll_errors[source_id] = _describe(source_id, error, report)
            record_failed_poll(connection, source_id, words, intervals[source_id], batch_id)
        else:
            new = store_poll(
                connection, source_id, result.prices, result.problems, stored_now(), intervals[source_id], batch_id
            )
            report.prices[source_id], report.new_prices[source_id] = len(result.prices), new
            report.problems[source_id] = result.problems


def _poll_one(source_id: str, wanted: list[tuple[str, str]], client: PriceClient) -> PollResult:
    result = client.poll(wanted)
    known: dict[tuple[str, str], MarketPrice] = {}
    for price in result.prices:
        key = (price.market_id, price.price_type)
        if key in known:
            raise SourceMalformed(source_id, "poll", f"has two prices of {price.market_id} {price.price_type}")
        known[key] = price
    return result


def _describe(source_id: str, error: Exception, report: PriceReport) -> str:
    if isinstance(error, ExtractError):
        log_words(error)
    if isinstance(error, ExtractError | LateAnswer):
        return str(error)
    report.defects.append(error)
    return f"{source_id}: {type(error).__name__}: {error}"
