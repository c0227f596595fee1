"""Answers of price sources in the warehouse: market lists, routes of pairs, and polled prices."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from decimal import Decimal
from typing import Any, Protocol

import duckdb

from control.clock import stored_now
from control.pricing.definitions import PriceSource
from control.pricing.matching import Market
from pipelines.chain.states import record_failure
from pipelines.due import next_due
from pipelines.raw.database import named, sql, transaction
from pipelines.raw.frames import registered, to_frame
from pipelines.tables.sources import TABLES

_MARKETS = TABLES["markets"].schema_without("source_id", "first_listed_at", "last_listed_at", "batch_id")
_POLLED = TABLES["prices"].schema("market_id", "price_type", "effective_from", "price")
_PROBLEMS = TABLES["price_problems"].schema("market_id", "price_type", "detail")
_ROUTES = TABLES["pair_routes"].schema()

_LIST_EVERY = timedelta(days=1)


class Price(Protocol):
    """A price of a market at a moment, which is aware."""

    @property
    def market_id(self) -> str: ...
    @property
    def price_type(self) -> str: ...
    @property
    def effective_from(self) -> datetime: ...
    @property
    def price(self) -> Decimal: ...


class Problem(Protocol):
    """The reason why a market has no price."""

    @property
    def market_id(self) -> str: ...
    @property
    def price_type(self) -> str: ...
    @property
    def detail(self) -> str: ...


@dataclass(frozen=True, slots=True)
class RouteRow:
    """One leg of a pair's route at a source, or with leg 0 the reason why there is none; as raw.pair_routes."""

    pair_key: int
    source_id: str
    position: int
    status: str
    derivation: str | None
    detail: str | None
    leg_number: int
    market_id: str | None
    price_type: str | None
    is_inverted: bool
    supported_pair_key: int | None


def lists_due(connection: duckdb.DuckDBPyConnection) -> list[str]:
    """Return the sources in use with a market list that is due: at first use, then daily, sooner after a failure.

    A list that was read ahead of the clock, which was wrong then, is due.
    """
    rows = connection.execute(
        """
        select used.source_id
        from raw.price_sources_in_use as used
        left join raw.market_lists as lists on used.source_id = lists.source_id
        where lists.source_id is null or lists.due_at <= $now or lists.tried_at > $now
        order by used.source_id
        """,
        {"now": stored_now()},
    ).fetchall()
    return [source_id for (source_id,) in rows]


def read_markets(connection: duckdb.DuckDBPyConnection, source_id: str) -> list[tuple[Any, ...]]:
    """Return a source's newest list: market id, base, quote, the source's own codes, and whether it is active."""
    return connection.execute(
        """
        select markets.market_id, markets.base, markets.quote, markets.base_code, markets.quote_code, markets.is_active
        from raw.markets as markets
        inner join raw.market_lists as lists on markets.source_id = lists.source_id
        where markets.source_id = ? and markets.last_listed_at = lists.collected_at
        order by markets.market_id
        """,
        [source_id],
    ).fetchall()


def replace_markets(
    connection: duckdb.DuckDBPyConnection, source_id: str, markets: Sequence[Market], batch_id: int
) -> None:
    """Store a source's market list. Markets that are no longer in it remain, as inactive."""
    rows = to_frame(markets, _MARKETS)
    now = stored_now()
    with transaction(connection), registered(connection, incoming_markets=rows):
        for name in ("drop_markets", "update_markets", "insert_markets"):
            connection.execute(*named(name, {"source": source_id, "now": now, "batch": batch_id}))
        connection.execute("delete from raw.market_lists where source_id = ?", [source_id])
        connection.execute(
            "insert into raw.market_lists values (?, ?, ?, ?, null, 0, ?, ?, ?)",
            [source_id, now, rows.height, now, now, now + _LIST_EVERY, batch_id],
        )


def record_failed_list(
    connection: duckdb.DuckDBPyConnection, source_id: str, error: str, interval: timedelta, batch_id: int
) -> None:
    """Record that a source's market list could not be read; the previous one remains. It is retried like a poll."""
    now = stored_now()
    with transaction(connection):
        row = connection.execute(
            """
            delete from raw.market_lists where source_id = ?
            returning collected_at, market_count, failures_in_a_row, status_since
            """,
            [source_id],
        ).fetchone()
        collected_at, count, failures, since = row or (None, 0, 0, now)
        connection.execute(
            "insert into raw.market_lists values (?, ?, ?, ?, ?, ?, ?, ?, ?)",
            [
                *(source_id, collected_at, count, now, error, failures + 1),
                *(min(since, now) if failures else now, next_due(now, interval, failures + 1), batch_id),
            ],
        )
        record_failure(connection, source_id, "markets", (None, None), error, batch_id)


def replace_routes(connection: duckdb.DuckDBPyConnection, routes: Sequence[RouteRow], batch_id: int) -> int:
    """Store the routes of all pairs if any changed; return the number of pairs with a changed route.

    A pair with a changed route is marked as a whole: all its source prices may change.
    """
    with registered(connection, incoming_routes=to_frame(routes, _ROUTES)):
        changed = [key for (key,) in connection.execute(sql("changed_routes")).fetchall()]
        if changed:
            with transaction(connection):
                connection.execute("delete from raw.pair_routes")
                connection.execute("insert into raw.pair_routes by name select * from incoming_routes")
                connection.executemany(
                    "insert into raw.price_changes values (?, ?, null)", [[batch_id, key] for key in changed]
                )
    return len(changed)


def polls_due(
    connection: duckdb.DuckDBPyConnection, intervals: Mapping[str, timedelta]
) -> dict[str, list[tuple[str, str]]]:
    """Return the markets and price types to poll now, by source, each once for all pairs.

    A price wanted since the source's turn in this interval waits for the next interval. So one tenant's new pair never
    changes when prices of another tenant are polled. A poll or turn ahead of the clock, which was wrong then, delays
    nothing.
    """
    now = stored_now()
    due: dict[str, list[tuple[str, str]]] = {}
    for source_id, market_id, price_type, turn_at in connection.execute(
        """
        select wanted.source_id, wanted.market_id, wanted.price_type, turns.turn_at
        from raw.wanted_prices as wanted
        left join raw.price_polls as polls on wanted.source_id = polls.source_id
        left join raw.price_turns as turns on wanted.source_id = turns.source_id
        where polls.source_id is null or polls.due_at <= $now or polls.polled_at > $now
        order by wanted.source_id, wanted.market_id, wanted.price_type
        """,
        {"now": now},
    ).fetchall():
        if turn_at is None or not turn_at <= now < next_due(turn_at, intervals[source_id]):
            due.setdefault(source_id, []).append((market_id, price_type))
    return due


def record_turns(connection: duckdb.DuckDBPyConnection, intervals: Mapping[str, timedelta], now: datetime) -> None:
    """Record that the sources had their turn in the interval that contains an instant, even if none was polled."""
    with transaction(connection):
        connection.execute("delete from raw.price_turns")
        for source_id, interval in intervals.items():
            turn = [source_id, now, next_due(now, interval)]
            connection.execute("insert into raw.price_turns values (?, ?, ?)", turn)


def poll_interval(source: PriceSource, poll_seconds: int) -> timedelta:
    """Return the shortest time between two polls of the source."""
    return timedelta(seconds=max(source.poll_seconds, poll_seconds))


def store_poll(
    connection: duckdb.DuckDBPyConnection,
    source_id: str,
    prices: Sequence[Price],
    problems: Sequence[Problem],
    collected_at: datetime,
    interval: timedelta,
    batch_id: int,
) -> int:
    """Store the result of a poll of a source, and mark the pairs with new data.

    For a stored price, `last_collected_at` is updated, so that it becomes visible to pairs created since its last
    collection. A different price of the same moment replaces the previous one.

    Args:
        connection: the open warehouse.
        source_id: the source.
        prices: no two of the same market, type and moment.
        problems: markets without a price.
        collected_at: time of the answer; UTC without a zone.
        interval: least time to the next poll.
        batch_id: the cycle's batch.

    Returns:
        Number of new or different prices.
    """
    least = min((price.effective_from.replace(tzinfo=None) for price in prices), default=collected_at)
    parameters = {"source": source_id, "now": collected_at, "least": least, "batch": batch_id}
    with (
        transaction(connection),
        registered(connection, incoming_prices=to_frame(prices, _POLLED)),
        registered(connection, incoming_problems=to_frame(problems, _PROBLEMS)),
    ):
        connection.execute(*named("mark_polled", parameters))
        seen = connection.execute(*named("update_polled", parameters)).fetchall()
        new = connection.execute(*named("insert_polled", parameters)).fetchall()
        connection.execute("delete from raw.price_problems where source_id = ?", [source_id])
        connection.execute(
            "insert into raw.price_problems select ?, *, ? from incoming_problems", [source_id, batch_id]
        )
        _record_poll(connection, source_id, collected_at, (len(prices), len(problems)), None, interval, batch_id)
    corrected = sum(1 for (changed_in,) in seen if changed_in == batch_id)
    return int(new[0][0]) + corrected


def record_failed_poll(
    connection: duckdb.DuckDBPyConnection, source_id: str, error: str, interval: timedelta, batch_id: int
) -> None:
    """Record that a source could not be polled; stored prices remain."""
    with transaction(connection):
        _record_poll(connection, source_id, stored_now(), (0, 0), error, interval, batch_id)
        record_failure(connection, source_id, "poll", (None, None), error, batch_id)


def _record_poll(
    connection: duckdb.DuckDBPyConnection,
    source_id: str,
    polled_at: datetime,
    counts: tuple[int, int],
    error: str | None,
    interval: timedelta,
    batch_id: int,
) -> None:
    row = connection.execute(
        "delete from raw.price_polls where source_id = ? returning failures_in_a_row, status_since", [source_id]
    ).fetchone()
    before, since = row or (0, polled_at)
    failures = 0 if error is None else before + 1
    connection.execute(
        "insert into raw.price_polls values (?, ?, ?, ?, ?, ?, ?, ?, ?)",
        [
            *(source_id, polled_at, *counts, error, failures),
            min(since, polled_at) if (before > 0) == (failures > 0) else polled_at,
            *(next_due(polled_at, interval, failures), batch_id),
        ],
    )
