"""Price discoveries in the warehouse: the progress of each market, and the states for the control store."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from decimal import Decimal
from typing import NamedTuple

import duckdb
import polars as pl

from pipelines.raw.database import named, sql, transaction
from pipelines.raw.frames import registered, to_frame
from pipelines.tables.sources import TABLES

_WINDOWS = TABLES["prices"].schema("window_start", "effective_from", "price", "is_partial")
_GAPS = TABLES["discovery_gaps"].schema("from_time", "to_time")


class WindowPrice(NamedTuple):
    """The price of a window, effective from its end; instants are aware."""

    window_start: datetime
    effective_from: datetime
    price: Decimal
    is_partial: bool


@dataclass(frozen=True, slots=True)
class Discovery:
    """An unfinished discovery, in the tenant's own terms."""

    operation_key: int
    pair_key: int
    from_text: str
    to_text: str
    window_size: str
    multiplier: Decimal
    is_cancelled: bool
    is_begun: bool


@dataclass(frozen=True, slots=True)
class Reading:
    """One market that a discovery reads; `up_to` is aware, `done` counts windows."""

    operation_key: int
    pair_key: int
    source_id: str
    market_id: str
    price_type: str
    up_to: datetime
    pending: Decimal | None
    done: int


@dataclass(frozen=True, slots=True)
class Asked:
    """One way to price the pair of a discovery: a market of a source, or the reason why the source has none.

    Attributes:
        status: of the route, as in `control.pricing.matching`.
        detail: reason why there is no market.
        list_error, list_failures: last error of the source's market list, and its failures in a row.
    """

    source_id: str
    price_type: str
    status: str
    detail: str | None
    market_id: str | None
    leg_type: str | None
    list_error: str | None
    list_failures: int


@dataclass(frozen=True, slots=True)
class Part:
    """Result of one page of a market's history.

    Attributes:
        prices, gaps: of the windows that the page completed.
        up_to: end of the range read so far; aware.
        pending: the newest price in the first incomplete window.
        done: number of complete windows from the beginning.
        is_finished: nothing is left to read.
        problems: answers in the page that were no prices, in words.
    """

    prices: Sequence[WindowPrice]
    gaps: Sequence[tuple[datetime, datetime]]
    up_to: datetime
    pending: Decimal | None
    done: int
    is_finished: bool
    problems: Sequence[str] = ()


@dataclass(frozen=True, slots=True)
class Missing:
    """A span in which a source had no price; aware."""

    source_id: str
    start: datetime
    end: datetime


@dataclass(frozen=True, slots=True)
class DiscoveryState:
    """State of a discovery; done and total count windows, each once per source."""

    operation_key: int
    status: str
    done: int
    total: int | None
    prices_stored: int
    missing: tuple[Missing, ...]
    error: str | None


def open_discoveries(connection: duckdb.DuckDBPyConnection) -> list[Discovery]:
    """Return the unfinished discoveries, oldest first."""
    rows = connection.execute(
        """
        select
            requests.operation_key, requests.pair_key, requests.from_text, requests.to_text, requests.window_size,
            requests.multiplier, requests.is_cancelled, coalesce(known.status, 'Pending') = 'Running'
        from raw.control_price_discoveries as requests
        inner join raw.control_price_pairs as pairs on requests.pair_key = pairs.pair_key
        left join raw.price_discoveries as known on requests.operation_key = known.operation_key
        where
            coalesce(known.status, requests.status) in ('Pending', 'Running')
            and pairs.tenant_id not in (select tenant_id from raw.control_held_tenants)
        order by requests.operation_key
        """
    ).fetchall()
    return [
        Discovery(key, pair_key, start, end, size, Decimal(multiplier), is_cancelled, is_begun)
        for key, pair_key, start, end, size, multiplier, is_cancelled, is_begun in rows
    ]


def has_unfinished_discoveries(connection: duckdb.DuckDBPyConnection) -> bool:
    """Return whether any discovery is unfinished; it is finished when its prices are in the marts."""
    row = connection.execute(
        """
        select count(*) > 0
        from raw.control_price_discoveries as requests
        inner join raw.control_price_pairs as pairs on requests.pair_key = pairs.pair_key
        left join raw.price_discoveries as known on requests.operation_key = known.operation_key
        where
            coalesce(known.status, requests.status) in ('Pending', 'Running')
            and pairs.tenant_id not in (select tenant_id from raw.control_held_tenants)
        """
    ).fetchone()
    assert row is not None
    return bool(row[0])


def askable(connection: duckdb.DuckDBPyConnection, pair_key: int) -> list[Asked]:
    """Return the markets of the pair's enabled preconfigured sources, in the order of sources and legs."""
    rows = connection.execute(
        """
        select
            routes.source_id, pairs.price_type, routes.status, routes.detail, routes.market_id, routes.price_type,
            lists.error, coalesce(lists.failures_in_a_row, 0)
        from raw.pair_routes as routes
        inner join raw.control_price_pairs as pairs on routes.pair_key = pairs.pair_key
        inner join raw.control_price_sources as sources
            on pairs.tenant_id = sources.tenant_id and routes.source_id = sources.source_id
        left join raw.market_lists as lists on routes.source_id = lists.source_id
        where routes.pair_key = ? and sources.kind = 'Preconfigured' and sources.is_enabled
        order by routes.position, routes.leg_number
        """,
        [pair_key],
    ).fetchall()
    return [Asked(*row) for row in rows]


def begin_discovery(
    connection: duckdb.DuckDBPyConnection,
    discovery: Discovery,
    bounds: tuple[datetime, datetime],
    window_count: int,
    markets: Iterable[tuple[str, str, str]],
    failures: Mapping[str, str],
) -> None:
    """Record the markets to read for a discovery, at their beginning.

    Args:
        connection: the open warehouse.
        discovery: one that has not begun.
        bounds: start of the first window and end of the last; aware.
        window_count: number of windows.
        markets: source, market and price type of each market to read.
        failures: sources that cannot be read at all, with the reason; the whole range is missing from them.
    """
    start, end = (_naive(bound) for bound in bounds)
    key, pair_key = discovery.operation_key, discovery.pair_key
    with transaction(connection):
        connection.execute("delete from raw.price_discoveries where operation_key = ?", [key])
        connection.execute(
            "insert into raw.price_discoveries values (?, ?, ?, ?, ?, 'Running', null, null)",
            [key, pair_key, start, end, window_count],
        )
        for source_id, market_id, price_type in markets:
            connection.execute(
                """
                insert into raw.discovery_readings
                values (?, ?, ?, ?, ?, ?, null, 0, 0, false, false, 0, null, 0, null)
                """,
                [key, pair_key, source_id, market_id, price_type, start],
            )
        for source_id, error in failures.items():
            connection.execute(
                """
                insert into raw.discovery_readings
                values (?, ?, ?, null, null, ?, null, ?, 0, true, true, 0, ?, 0, null)
                """,
                [key, pair_key, source_id, end, window_count, error],
            )
            connection.execute("insert into raw.discovery_gaps values (?, ?, ?, ?)", [key, source_id, start, end])


def record_unbegun(connection: duckdb.DuckDBPyConnection, discovery: Discovery, status: str, error: str | None) -> None:
    """Record that a discovery has not begun: Pending with the reason for waiting, or ended with the reason."""
    with transaction(connection):
        connection.execute("delete from raw.price_discoveries where operation_key = ?", [discovery.operation_key])
        connection.execute(
            "insert into raw.price_discoveries values (?, ?, null, null, 0, ?, null, ?)",
            [discovery.operation_key, discovery.pair_key, status, error],
        )


def cancel_discovery(connection: duckdb.DuckDBPyConnection, operation_key: int) -> None:
    """End a begun discovery as cancelled; its stored prices remain."""
    connection.execute("update raw.price_discoveries set status = 'Cancelled' where operation_key = ?", [operation_key])


def open_readings(connection: duckdb.DuckDBPyConnection) -> list[Reading]:
    """Return the unfinished markets of running discoveries, the oldest discovery first."""
    rows = connection.execute(
        """
        select
            readings.operation_key, readings.pair_key, readings.source_id, readings.market_id, readings.price_type,
            readings.up_to, readings.pending_price, readings.windows_done
        from raw.discovery_readings as readings
        inner join raw.price_discoveries as discoveries on readings.operation_key = discoveries.operation_key
        inner join raw.control_price_discoveries as requests on readings.operation_key = requests.operation_key
        inner join raw.control_price_pairs as pairs on requests.pair_key = pairs.pair_key
        where
            discoveries.status = 'Running'
            and not readings.is_finished
            and pairs.tenant_id not in (select tenant_id from raw.control_held_tenants)
        order by readings.operation_key, readings.source_id, readings.market_id
        """
    ).fetchall()
    return [
        Reading(key, pair_key, source_id, market_id, price_type, up_to.replace(tzinfo=UTC), pending, done)
        for key, pair_key, source_id, market_id, price_type, up_to, pending, done in rows
    ]


def store_part(
    connection: duckdb.DuckDBPyConnection, reading: Reading, part: Part, collected_at: datetime, batch_id: int
) -> None:
    """Store the next part of a reading: rows, windows, gaps and progress in one transaction.

    Each row is stored once, for all pairs. This pair is marked if the windows are new to it; all pairs with one of the
    windows are marked if its price changed.

    Args:
        connection: the open warehouse.
        reading: its state before the part.
        part: the part.
        collected_at: UTC without a zone.
        batch_id: the slice's batch.
    """
    prices = part.prices
    gaps = [(_naive(start), _naive(end)) for start, end in part.gaps]
    parameters = {
        **_identity(reading),
        "now": collected_at,
        "batch": batch_id,
        "least": _naive(prices[0].effective_from) if prices else collected_at,
        "most": _naive(prices[-1].effective_from) if prices else collected_at,
    }
    with transaction(connection):
        if prices:
            with registered(connection, incoming_windows=to_frame(prices, _WINDOWS)):
                for name in ("mark_windows", "update_windows", "insert_windows", "insert_pair_windows"):
                    connection.execute(*named(name, parameters))
            connection.execute(*named("note_changed_discovery", parameters))
        _insert_gaps(connection, reading, gaps)
        connection.execute(
            """
            update raw.discovery_readings
            set
                up_to = $up_to,
                pending_price = $pending,
                windows_done = $done,
                prices_stored = prices_stored + $stored,
                is_finished = $finished,
                failures_in_a_row = 0,
                error = null,
                problem_count = problem_count + $problems,
                problem = coalesce(problem, $problem)
            where
                operation_key = $operation and source_id = $source and market_id = $market and price_type = $type
            """,
            {
                **_key(reading),
                "up_to": _naive(part.up_to),
                "pending": part.pending,
                "done": part.done,
                "stored": len(prices),
                "finished": part.is_finished,
                "problems": len(part.problems),
                "problem": part.problems[0] if part.problems else None,
            },
        )


def note_trouble(connection: duckdb.DuckDBPyConnection, reading: Reading, error: str) -> int:
    """Record why a reading does not advance for now; return the number of its failures in a row."""
    row = connection.execute(
        """
        update raw.discovery_readings
        set failures_in_a_row = failures_in_a_row + 1, error = $error
        where operation_key = $operation and source_id = $source and market_id = $market and price_type = $type
        returning failures_in_a_row
        """,
        {**_key(reading), "error": error},
    ).fetchone()
    assert row is not None
    return int(row[0])


def give_up(
    connection: duckdb.DuckDBPyConnection, reading: Reading, gap: tuple[datetime, datetime], total: int, error: str
) -> None:
    """End a reading that cannot continue; its incomplete windows are missing.

    Args:
        connection: the open warehouse.
        reading: the reading.
        gap: start of the first incomplete window and end of the last; aware.
        total: number of all windows.
        error: the reason.
    """
    with transaction(connection):
        _insert_gaps(connection, reading, [(_naive(gap[0]), _naive(gap[1]))])
        connection.execute(
            """
            update raw.discovery_readings
            set
                up_to = $up_to,
                pending_price = null,
                windows_done = $total,
                is_finished = true,
                is_given_up = true,
                error = $error
            where operation_key = $operation and source_id = $source and market_id = $market and price_type = $type
            """,
            {**_key(reading), "up_to": _naive(gap[1]), "total": total, "error": error},
        )


def discovery_states(connection: duckdb.DuckDBPyConnection) -> list[DiscoveryState]:
    """Return the states of all discoveries that the control store holds as unfinished; end those that are done.

    A discovery succeeds when its prices are in the published marts. If some sources were given up, their windows are
    missing, and the error names these sources. It fails if all were given up.
    """
    with transaction(connection):
        connection.execute(sql("finish_discoveries"))
    missing: dict[int, list[Missing]] = {}
    for key, source_id, start, end in connection.execute(sql("discovery_gaps")).fetchall():
        span = Missing(source_id, start.replace(tzinfo=UTC), end.replace(tzinfo=UTC))
        missing.setdefault(key, []).append(span)
    states = []
    for row in connection.execute(sql("discovery_states")).fetchall():
        key, status, done, total, stored, error, problem_count, problem = row
        no_prices = (
            f"invalid prices in the responses: {problem_count}, for example: {problem}" if problem_count else None
        )
        words = "; ".join(text for text in (error, no_prices) if text) or None
        states.append(DiscoveryState(key, status, done, total, stored, tuple(missing.get(key, ())), words))
    return states


def _insert_gaps(
    connection: duckdb.DuckDBPyConnection, reading: Reading, gaps: Sequence[tuple[datetime, datetime]]
) -> None:
    if gaps:
        with registered(connection, incoming_gaps=pl.DataFrame(gaps, schema=_GAPS, orient="row")):
            connection.execute(
                "insert into raw.discovery_gaps select ?, ?, * from incoming_gaps",
                [reading.operation_key, reading.source_id],
            )


def _key(reading: Reading) -> dict[str, object]:
    return {
        "operation": reading.operation_key,
        "source": reading.source_id,
        "market": reading.market_id,
        "type": reading.price_type,
    }


def _identity(reading: Reading) -> dict[str, object]:
    return {**_key(reading), "pair": reading.pair_key}


def _naive(instant: datetime) -> datetime:
    return instant.astimezone(UTC).replace(tzinfo=None)
