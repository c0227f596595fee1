"""Requests of keys counted for all API nodes in PostgreSQL, in windows of one minute by the database's clock.

A node leases requests in batches, so that most requests need no statement.
"""

from dataclasses import dataclass

from sqlalchemy import text
from sqlalchemy.orm import Session

_BATCHES = 20
_MOST_SWEPT = 1_000

# A statement that waited for the row may know an older window than the row has: then it counts in the newer one.
# A row that is further ahead was counted before the database's clock was set back.
_LEASE = text(
    """
    insert into request_windows as counted (key, window_number, requests)
    values (:key, cast(floor(extract(epoch from clock_timestamp()) / 60) as bigint), :batch)
    on conflict (key) do update set
        window_number = case
            when counted.window_number = excluded.window_number + 1 then counted.window_number
            else excluded.window_number
        end,
        requests = excluded.requests + case
            when counted.window_number - excluded.window_number in (0, 1) then counted.requests
            else 0
        end
    returning
        requests,
        cast((window_number + 1) * 60 - extract(epoch from clock_timestamp()) as double precision) as seconds_left
    """
)
_SWEEP = text(
    """
    delete from request_windows
    where key in (
        select key
        from request_windows
        where window_number < floor(extract(epoch from clock_timestamp()) / 60) - 1
        limit :most
        for update skip locked
    )
    """
)


@dataclass(frozen=True, slots=True)
class Lease:
    """Requests of one key that a node may admit until the end of the window.

    Attributes:
        granted: number of requests; 0 if the window has none left.
        unleased: requests of the window that no node had leased at that moment.
        seconds_left: time from the statement to the end of the window.
    """

    granted: int
    unleased: int
    seconds_left: float


def batch_size(per_minute: int) -> int:
    """Return the number of requests of a lease."""
    return max(1, per_minute // _BATCHES)


def lease(session: Session, key: str, per_minute: int) -> Lease:
    """Lease the next batch of a key's current window, in a write transaction on PostgreSQL.

    All leases of a window together grant exactly `per_minute` requests.

    Args:
        session: a write transaction; it locks the key's row until its end.
        key: id of a key or tenant, at most 128 characters.
        per_minute: limit of a window.
    """
    batch = batch_size(per_minute)
    row = session.execute(_LEASE, {"key": key, "batch": batch}).one()
    requests: int = row.requests
    before = requests - batch
    return Lease(max(0, min(batch, per_minute - before)), max(0, per_minute - requests), row.seconds_left)


def sweep(session: Session) -> None:
    """Delete up to 1,000 windows that have ended, in a write transaction on PostgreSQL."""
    session.execute(_SWEEP, {"most": _MOST_SWEPT})
