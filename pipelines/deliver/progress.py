"""State after the last cycle, for processes that must not open the warehouse: the sensor and the console.

It is only a cache, written from the warehouse at the end of each cycle; losing it costs one cycle.
"""

from datetime import UTC, datetime, timedelta
from pathlib import Path

import duckdb
import msgspec

from pipelines.due import is_due
from pipelines.history.requests import waits_until
from pipelines.prices.discovery_store import has_unfinished_discoveries
from pipelines.raw.builds import is_behind, was_read_to_end
from pipelines.raw.database import sql
from pipelines.raw.usage import read_budget


class Collected(msgspec.Struct, frozen=True):
    """Rows that a cycle wrote to one raw table, over blocks `from_block` to `to_block`."""

    table: str
    from_block: int | None
    to_block: int | None
    rows: int


class NetworkProgress(msgspec.Struct, frozen=True):
    """State of one network.

    Attributes:
        has_ending_windows: a window was closed at a moment that the collected blocks have not reached yet.
        has_unfinished_history: a history request is unfinished, or its rows are not in the marts yet.
        tried_at: time of the last cycle that included the network; None before that.
        collected: empty if the last cycle did not include the network.
        requests_day: day (UTC) of the counted requests.
        requests: number of requests to its node, by purpose.
        most_requests: limit of a day; None: without bound.
        waits_until: time until which history waits, because the budget of requests is used up; None: it does not wait.
        lake_block: settled block up to which facts were given to the lake; None before the first.
        lake_given_at: time at which they were given.
    """

    status: str
    detail: str | None
    head: int | None
    final: int | None
    collected_to: int | None
    has_ending_windows: bool
    has_unfinished_history: bool
    failures_in_a_row: int
    tried_at: str | None
    in_last_cycle: bool
    error: str | None
    collected: tuple[Collected, ...]
    requests_day: str | None = None
    requests: dict[str, int] = {}
    most_requests: int | None = None
    waits_until: datetime | None = None
    head_time: str | None = None
    lake_block: int | None = None
    lake_given_at: str | None = None

    def is_history_due(self, now: datetime) -> bool:
        """Return whether history is unfinished and may continue."""
        is_waiting = self.waits_until is not None and not is_due(self.waits_until, now, timedelta(days=1))
        return self.has_unfinished_history and not is_waiting


class SourceProgress(msgspec.Struct, frozen=True):
    """State of one price source in use.

    Attributes:
        polled_at: time of the last poll; None before that.
        prices, problems: number of its prices, and of markets without a price.
        trouble: reason why the last poll, or the last reading of its market list, failed.
        due_at: time from which it may be polled again.
        error: error in the last cycle; None if there was none, or if that cycle did not include the source.
        tried_at: time of the newest request, or turn, from which `due_at` counts; None before that.
    """

    polled_at: str | None
    prices: int
    problems: int
    trouble: str | None
    due_at: str
    in_last_cycle: bool
    error: str | None
    tried_at: str | None = None

    def is_due(self, now: datetime) -> bool:
        """Return whether the source may be polled again; also if the last request is ahead of the clock."""
        is_ahead = self.tried_at is not None and datetime.fromisoformat(self.tried_at) > now
        return is_ahead or datetime.fromisoformat(self.due_at) <= now


class Progress(msgspec.Struct, frozen=True):
    """State of the pipeline after its last cycle.

    Attributes:
        has_unfinished_discoveries: a price discovery is unfinished, or its prices are not in the marts yet.
        is_behind: collected or configured data is not published; the next cycle publishes it.
        was_read_to_end: that cycle finished a history request or a price discovery, which must be published.
    """

    batch_id: int
    run_id: str
    control_revision: int
    finished_at: str
    networks: dict[str, NetworkProgress]
    price_sources: dict[str, SourceProgress]
    has_unfinished_discoveries: bool
    is_behind: bool
    was_read_to_end: bool

    @property
    def errors(self) -> list[str]:
        """Return the errors of the last cycle, network by network and price source by price source.

        Errors of calls name their network; if a network and a price source share a node, one error is enough.
        """
        networks = [
            network.error if network.error.startswith(f"{name}: ") else f"{name}: {network.error}"
            for name, network in self.networks.items()
            if network.error
        ]
        sources = [source.error for source in self.price_sources.values() if source.error]
        return list(dict.fromkeys([*networks, *sources]))


def _path(data_dir: Path) -> Path:
    return data_dir / "progress.json"


def read_progress(data_dir: Path) -> Progress | None:
    """Read the state after the last cycle; None before the first one, or if it is damaged or of another release."""
    path = _path(data_dir)
    if not path.exists():
        return None
    try:
        found = msgspec.json.decode(path.read_bytes(), type=Progress)
        times = [one.tried_at for one in found.networks.values()]
        times += [text for one in found.price_sources.values() for text in (one.tried_at, one.due_at)]
        is_whole = all(datetime.fromisoformat(text).tzinfo for text in filter(None, times))
    except (msgspec.DecodeError, RecursionError, ValueError):
        return None
    return found if is_whole else None


def write_progress(connection: duckdb.DuckDBPyConnection, data_dir: Path, batch_id: int) -> Progress:
    """Write the states of all networks and price sources after the batch, and return them."""
    row = connection.execute(
        """
        select
            batches.run_id,
            (select max(revision) from raw.control_revisions),
            strftime(batches.finished_at, '%Y-%m-%dT%H:%M:%SZ')
        from raw.batches
        where batches.batch_id = ?
        """,
        [batch_id],
    ).fetchone()
    assert row is not None
    run_id, revision, finished_at = row
    collected: dict[str, list[Collected]] = {}
    for network, *fields in connection.execute(
        """
        select network, table_name, min(from_block), max(to_block), sum(row_count)::bigint
        from raw.collections
        where batch_id = ?
        group by network, table_name
        order by network, table_name
        """,
        [batch_id],
    ).fetchall():
        collected.setdefault(network, []).append(Collected(*fields))
    networks = {}
    for state in connection.execute(sql("progress"), {"batch": batch_id}).pl().iter_rows(named=True):
        name = state.pop("network")
        budget = read_budget(connection, name)
        until = waits_until(connection, name, budget)
        networks[name] = NetworkProgress(
            **state,
            collected=tuple(collected.get(name, ())),
            requests_day=str(budget.day),
            requests=dict(sorted(budget.spent.items())),
            most_requests=budget.most,
            waits_until=None if until is None else until.replace(tzinfo=UTC),
        )
    progress = Progress(
        batch_id,
        run_id,
        revision,
        finished_at,
        networks,
        {
            row.pop("source"): SourceProgress(**row)
            for row in connection.execute(sql("price_progress"), {"batch": batch_id}).pl().iter_rows(named=True)
        },
        has_unfinished_discoveries(connection),
        is_behind(connection),
        was_read_to_end(connection, batch_id),
    )
    beside = _path(data_dir).with_suffix(".tmp")
    beside.write_bytes(msgspec.json.encode(progress))
    beside.replace(_path(data_dir))
    return progress
