"""State of each network: the facts about its node, its failures, and its collected rows."""

import duckdb

from control.clock import stored_now
from control.ranges import BlockRange
from pipelines.raw.database import sql, transaction

SERVED = ("Healthy", "Inconsistent")
"""Statuses of a network from which past data can be read: its node answered completely in the last cycle."""


def record_healthy(
    connection: duckdb.DuckDBPyConnection,
    network: str,
    facts: dict[str, object],
    final_number: int,
    batch_id: int,
    status: str = "Healthy",
) -> None:
    """Store the facts about a network's node after a successful cycle.

    Mark subjects with rows in their views that became final since the last state.

    Args:
        facts: the other columns of raw.network_states by name: head_*, capabilities, and detail if an operator should
            act.
    """
    now = stored_now()
    before = connection.execute(
        "select status_since from raw.network_states where network = ? and status = ?", [network, status]
    ).fetchone()
    row = {
        "network": network,
        "status": status,
        "status_since": min(before[0], now) if before else now,
        "final_number": final_number,
        "failures_in_a_row": 0,
        "probed_at": now,
        "batch_id": batch_id,
        **facts,
    }
    with transaction(connection):
        known = connection.execute("select max(final_number) from raw.network_states where network = ?", [network])
        ((final_before,),) = known.fetchall()
        final_from = 0 if final_before is None else final_before + 1
        newly_final = {"network": network, "final_from": final_from, "final": final_number, "batch": batch_id}
        connection.execute(sql("mark_finalized"), newly_final)
        connection.execute("delete from raw.network_states where network = ?", [network])
        names, marks = ", ".join(row), ", ".join("?" for _ in row)
        connection.execute(f"insert into raw.network_states ({names}) values ({marks})", list(row.values()))


def record_failure(
    connection: duckdb.DuckDBPyConnection,
    network: str,
    call: str,
    covered: tuple[int | None, int | None],
    detail: str,
    batch_id: int,
) -> None:
    """Record a failed reading; the network's status does not change."""
    connection.execute(
        "insert into raw.collection_failures values (?, ?, ?, ?, ?, ?, ?)",
        [batch_id, network, call, *covered, detail, stored_now()],
    )


def record_unhealthy(
    connection: duckdb.DuckDBPyConnection,
    network: str,
    status: str,
    call: str,
    covered: tuple[int | None, int | None],
    detail: str,
    batch_id: int,
    *,
    has_progressed: bool = False,
) -> None:
    """Record a failed part of a cycle, and the network's status. Known facts about its node remain.

    Args:
        has_progressed: ranges were collected before, so that the next failure counts as the first one.
    """
    now = stored_now()
    with transaction(connection):
        record_failure(connection, network, call, covered, detail, batch_id)
        known = connection.execute(
            """
            update raw.network_states
            set
                status = $status,
                status_since = if(status = $status, least(status_since, $now), $now),
                detail = $detail,
                failures_in_a_row = if($has_progressed, 1, failures_in_a_row + 1),
                probed_at = $now,
                batch_id = $batch
            where network = $network
            returning network
            """,
            {
                "status": status,
                "now": now,
                "detail": detail,
                "batch": batch_id,
                "network": network,
                "has_progressed": has_progressed,
            },
        ).fetchall()
        if not known:
            connection.execute(
                """
                insert into raw.network_states
                    (network, status, status_since, detail, failures_in_a_row, probed_at, batch_id)
                values (?, ?, ?, ?, 1, ?, ?)
                """,
                [network, status, now, detail, now, batch_id],
            )


def mark_over_budget(connection: duckdb.DuckDBPyConnection, network: str, detail: str) -> None:
    """Record that past data used up a network's budget, so that the network is retried later."""
    connection.execute(
        """
        update raw.network_states
        set
            status = 'Unreachable',
            status_since = $now,
            detail = $detail,
            failures_in_a_row = failures_in_a_row + 1,
            probed_at = $now
        where network = $network and list_contains($served, status)
        """,
        {"now": stored_now(), "detail": detail, "network": network, "served": SERVED},
    )


def record_collection(
    connection: duckdb.DuckDBPyConnection, network: str, table: str, covered: BlockRange | None, rows: int, batch: int
) -> None:
    """Record the rows that a cycle collected, for its report."""
    first, last = covered if covered else (None, None)
    connection.execute(
        "insert into raw.collections values (?, ?, ?, ?, ?, ?)", [batch, network, table, first, last, rows]
    )
