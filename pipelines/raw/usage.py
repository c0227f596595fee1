"""Requests to the nodes of networks, day by day, and the rest of a network's daily budget.

Days are those of UTC. Usage is recorded together with the rows that were read, and never taken back.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date, datetime, time, timedelta

import duckdb

from control.clock import stored_now
from pipelines.rows import UsageRecord, WorkClass


@dataclass(frozen=True)
class Budget:
    """The requests of a network on one day.

    Live tracking comes first: the larger of its usage today and yesterday is reserved for it. All other work shares the
    rest, piece by piece. The first piece always begins; a later one begins only if the largest of the day would fit.

    Attributes:
        most: limit of the day; None: without bound.
        spent: requests by purpose.
        live_before: requests of live tracking on the day before.
        largest: largest number of requests of one piece of other work.
    """

    day: date
    most: int | None
    spent: Mapping[str, int]
    live_before: int
    largest: int

    @property
    def waits_until(self) -> datetime | None:
        """Return the time until which all other work waits, UTC without a zone; None: it need not wait."""
        if self.most is None:
            return None
        live = self.spent.get(WorkClass.LIVE, 0)
        others = sum(self.spent.values()) - live
        left = self.most - max(live, self.live_before) - others
        if left > 0 and (others == 0 or left >= self.largest):
            return None
        return datetime.combine(self.day + timedelta(days=1), time())


def record_usage(connection: duckdb.DuckDBPyConnection, network: str, spending: UsageRecord) -> None:
    """Add to the usage of the current day."""
    requests, answer_bytes = spending.spent
    if not (requests or spending.units):
        return
    connection.execute(
        """
        merge into raw.requests_spent as known
        using (select $network as network, $day::date as day, $purpose as purpose, $work as work) as added
            on
                known.network = added.network
                and known.day = added.day
                and known.purpose = added.purpose
                and known.work = added.work
        when matched then update set
            request_count = known.request_count + $requests,
            answer_bytes = known.answer_bytes + $answer_bytes,
            unit_count = known.unit_count + $units,
            milliseconds = known.milliseconds + $milliseconds,
            most_requests = greatest(known.most_requests, $requests)
        when not matched then insert
        values ($network, $day::date, $purpose, $work, $requests, $answer_bytes, $units, $milliseconds, $requests)
        """,
        {
            "network": network,
            "day": stored_now().date(),
            "purpose": str(spending.purpose),
            "work": spending.work,
            "requests": requests,
            "answer_bytes": answer_bytes,
            "units": spending.units,
            "milliseconds": spending.milliseconds,
        },
    )


def read_budget(connection: duckdb.DuckDBPyConnection, network: str) -> Budget:
    """Return the budget of a network today."""
    today = stored_now().date()
    most = connection.execute("select max(max_requests_per_day) from raw.networks where network = ?", [network])
    ((bound,),) = most.fetchall()
    spent: dict[str, int] = {}
    live_before = largest = 0
    for day, purpose, requests, most_requests in connection.execute(
        """
        select day, purpose, sum(request_count)::bigint, max(most_requests)
        from raw.requests_spent
        where network = ? and day between ? and ?
        group by day, purpose
        """,
        [network, today - timedelta(days=1), today],
    ).fetchall():
        if day == today:
            spent[purpose] = requests
            largest = max(largest, most_requests) if purpose != WorkClass.LIVE else largest
        elif purpose == WorkClass.LIVE:
            live_before = requests
    return Budget(today, bound, spent, live_before, largest)
