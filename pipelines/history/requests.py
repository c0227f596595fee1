"""The pipeline's records of history requests, and their states for the control store."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from decimal import Context, Decimal

import duckdb

from control.clock import stored_now
from control.instants import write_instant
from control.pricing.decimals import write_decimal
from control.ranges import BlockRange
from pipelines.attestations.records import attestations_wait
from pipelines.chain.coverage import tracked_kind
from pipelines.raw.database import sql, transaction
from pipelines.raw.usage import Budget, read_budget
from pipelines.rows import Kind

_OPEN = ("Pending", "Running")
_MEASURED = Context(prec=3)


@dataclass(frozen=True)
class Request:
    """An unfinished history request, in the tenant's own terms."""

    operation_key: int
    subject_key: int
    tenant_id: str
    kind: str
    address: str
    from_text: str
    to_text: str
    native: str | None
    is_cancelled: bool
    is_resolved: bool


@dataclass(frozen=True)
class RequestState:
    """State of a request.

    Attributes:
        done, total: blocks; total is None until the request is resolved.
        rate: blocks per second of collection, as decimal text.
        estimated_end: UTC without a zone; None where the rate is unknown or nothing is left.
        waits_until: start of the network's next day, UTC without a zone, if the budget of this day is used up.
    """

    operation_key: int
    status: str
    from_block: int | None
    to_block: int | None
    native: str | None
    note: str | None
    error: str | None
    done: int
    total: int | None
    rate: str | None
    estimated_end: datetime | None
    waits_until: datetime | None


def open_requests(connection: duckdb.DuckDBPyConnection, network: str) -> list[Request]:
    """Return the unfinished requests of the network, oldest first; without those of tenants that are moving."""
    rows = connection.execute(
        """
        select
            requests.operation_key, requests.subject_key, subjects.tenant_id, subjects.kind, subjects.address,
            requests.from_text, requests.to_text, requests.native, requests.is_cancelled,
            coalesce(known.status, 'Pending') != 'Pending'
        from raw.control_history_requests as requests
        inner join raw.control_subjects as subjects on requests.subject_key = subjects.subject_key
        left join raw.history_requests as known on requests.operation_key = known.operation_key
        where
            subjects.network = ?
            and coalesce(known.status, requests.status) in ('Pending', 'Running')
            and subjects.tenant_id not in (select tenant_id from raw.control_held_tenants)
        order by requests.operation_key
        """,
        [network],
    ).fetchall()
    return [Request(*row) for row in rows]


def has_open_history(connection: duckdb.DuckDBPyConnection) -> bool:
    """Return whether any network has an unfinished history request."""
    row = connection.execute(
        """
        select count(*) > 0
        from raw.control_history_requests as requests
        inner join raw.control_subjects as subjects on requests.subject_key = subjects.subject_key
        left join raw.history_requests as known on requests.operation_key = known.operation_key
        where
            coalesce(known.status, requests.status) in ('Pending', 'Running')
            and subjects.tenant_id not in (select tenant_id from raw.control_held_tenants)
        """
    ).fetchone()
    assert row is not None
    return bool(row[0])


def resolve_request(
    connection: duckdb.DuckDBPyConnection,
    request: Request,
    network: str,
    covered: BlockRange | None,
    native: str | None,
    note: str | None,
    error: str | None,
    batch_id: int,
) -> None:
    """Record the blocks of a request, which join the subject's view; or, with an error, that it fails."""
    first, last = covered or (None, None)
    status = "Running" if error is None else "Failed"
    with transaction(connection):
        _replace(connection, request, network, first, last, native, note, error, status)
        if covered is not None:
            connection.execute(
                "insert into raw.view_ranges values ('History', ?, ?, ?, ?, ?, ?)",
                [request.operation_key, request.subject_key, network, first, last, native],
            )
            _mark(connection, request.subject_key, covered, batch_id)


def note_unresolved(connection: duckdb.DuckDBPyConnection, request: Request, network: str, error: str) -> None:
    """Record why a request cannot be resolved for now; it remains Pending."""
    with transaction(connection):
        _replace(connection, request, network, None, None, None, None, error, "Pending")


def _replace(
    connection: duckdb.DuckDBPyConnection,
    request: Request,
    network: str,
    first: int | None,
    last: int | None,
    native: str | None,
    note: str | None,
    error: str | None,
    status: str,
) -> None:
    connection.execute("delete from raw.history_requests where operation_key = ?", [request.operation_key])
    connection.execute(
        "insert into raw.history_requests values (?, ?, ?, ?, ?, ?, ?, ?, ?, 0, 0)",
        [request.operation_key, request.subject_key, network, first, last, native, note, error, status],
    )


def cancel_request(connection: duckdb.DuckDBPyConnection, request: Request, batch_id: int) -> None:
    """End a request as cancelled; blocks collected from its first block on remain in the view."""
    with transaction(connection):
        if not request.is_resolved:
            _replace(connection, request, "", None, None, None, None, None, "Cancelled")
            return
        _end_early(connection, request.operation_key, "Cancelled", None, batch_id)


def concerned_requests(
    connection: duckdb.DuckDBPyConnection, network: str, kind: Kind, addresses: Sequence[str], covered: BlockRange
) -> dict[int, BlockRange]:
    """Return the running requests with blocks in the range, by operation, each with its part of the range."""
    rows = connection.execute(
        """
        select requests.operation_key, greatest(requests.from_block, $first), least(requests.to_block, $last)
        from raw.history_requests as requests
        inner join raw.control_subjects as subjects on requests.subject_key = subjects.subject_key
        where
            requests.network = $network and requests.status = 'Running'
            and requests.from_block <= $last and requests.to_block >= $first
            and subjects.kind = $kind and list_contains($addresses, subjects.address)
            and subjects.tenant_id not in (select tenant_id from raw.control_held_tenants)
        """,
        {
            "network": network,
            "kind": tracked_kind(kind),
            "addresses": list(addresses),
            "first": covered.first,
            "last": covered.last,
        },
    ).fetchall()
    return {operation_key: BlockRange(first, last) for operation_key, first, last in rows}


def fail_requests(connection: duckdb.DuckDBPyConnection, errors: Mapping[int, str], batch_id: int) -> None:
    """End running requests as failed, each with its reason; blocks collected from their first one on remain."""
    with transaction(connection):
        for operation_key, error in errors.items():
            _end_early(connection, operation_key, "Failed", error, batch_id)


def _end_early(
    connection: duckdb.DuckDBPyConnection, operation_key: int, status: str, error: str | None, batch_id: int
) -> None:
    (ended,) = connection.execute(
        """
        update raw.history_requests set status = ?, error = ? where operation_key = ?
        returning subject_key, from_block, to_block
        """,
        [status, error, operation_key],
    ).fetchall()
    subject_key, first, last = ended
    _mark(connection, subject_key, BlockRange(first, last), batch_id)
    row = connection.execute(
        """
        select least(covered.to_block, ranges.to_block)
        from raw.view_ranges as ranges
        inner join raw.covered_ranges as covered
            on ranges.subject_key = covered.subject_key and not covered.is_native
            and ranges.from_block between covered.from_block and covered.to_block
        where ranges.origin = 'History' and ranges.origin_key = ?
        """,
        [operation_key],
    ).fetchone()
    if row is None:
        connection.execute("delete from raw.view_ranges where origin = 'History' and origin_key = ?", [operation_key])
    else:
        connection.execute(
            "update raw.view_ranges set to_block = ? where origin = 'History' and origin_key = ?",
            [row[0], operation_key],
        )


def _mark(connection: duckdb.DuckDBPyConnection, subject_key: int, covered: BlockRange, batch_id: int) -> None:
    connection.execute("insert into raw.changes values (?, ?, ?, ?, 'Rows')", [batch_id, subject_key, *covered])


def note_errors(connection: duckdb.DuckDBPyConnection, errors: Mapping[int, str]) -> None:
    """Record, for requests by operation, why they cannot advance for now."""
    for operation_key, error in errors.items():
        connection.execute("update raw.history_requests set error = ? where operation_key = ?", [error, operation_key])


def note_network_error(connection: duckdb.DuckDBPyConnection, network: str, error: str) -> None:
    """Record why none of the network's unfinished requests can advance for now."""
    connection.execute(
        "update raw.history_requests set error = ? where network = ? and status = 'Running'", [error, network]
    )
    for request in open_requests(connection, network):
        if not request.is_resolved:
            note_unresolved(connection, request, network, error)


def first_error(connection: duckdb.DuckDBPyConnection, network: str) -> str | None:
    """Return why the oldest unfinished request that cannot advance for now waits; None if all can."""
    row = connection.execute(
        """
        select requests.error
        from raw.history_requests as requests
        inner join raw.control_subjects as subjects on requests.subject_key = subjects.subject_key
        where subjects.network = ? and requests.status in ('Pending', 'Running') and requests.error is not null
        order by requests.operation_key
        limit 1
        """,
        [network],
    ).fetchone()
    return None if row is None else str(row[0])


def note_work(
    connection: duckdb.DuckDBPyConnection,
    network: str,
    kind: Kind,
    addresses: Sequence[str],
    covered: BlockRange,
    seconds: float,
) -> None:
    """Add a part to the work of the running requests that contain it, and clear their errors."""
    connection.execute(
        """
        update raw.history_requests as requests
        set
            error = null,
            worked_seconds = requests.worked_seconds + $seconds,
            worked_blocks = requests.worked_blocks + if(
                $kind = 'wallet' and requests.native = 'full',
                0,
                greatest(least(requests.to_block, $last) - greatest(requests.from_block, $first) + 1, 0)
            )
        from raw.control_subjects as subjects
        where
            requests.subject_key = subjects.subject_key
            and requests.network = $network
            and requests.status = 'Running'
            and subjects.kind = $tracked_kind
            and list_contains($addresses, subjects.address)
            and requests.from_block <= $last
            and requests.to_block >= $first
        """,
        {
            "seconds": seconds,
            "kind": kind,
            "tracked_kind": tracked_kind(kind),
            "network": network,
            "addresses": list(addresses),
            "first": covered.first,
            "last": covered.last,
        },
    )


def mark_collected(
    connection: duckdb.DuckDBPyConnection,
    network: str,
    kind: Kind,
    addresses: Sequence[str],
    covered: BlockRange,
    batch_id: int,
) -> None:
    """Mark that a part became visible even if it is empty: requests must see that there are no rows."""
    connection.execute(
        """
        insert into raw.changes
        select distinct $batch::bigint, subjects.subject_key, $first::bigint, $last::bigint, 'Rows'
        from raw.control_subjects as subjects
        inner join raw.view_ranges as views on subjects.subject_key = views.subject_key
        where
            subjects.network = $network
            and subjects.kind = $kind
            and list_contains($addresses, subjects.address)
            and views.from_block <= $last
            and coalesce(views.to_block, $first) >= $first
            and (views.native = 'full' or not $is_native)
        """,
        {
            "batch": batch_id,
            "first": covered.first,
            "last": covered.last,
            "network": network,
            "kind": tracked_kind(kind),
            "addresses": list(addresses),
            "is_native": kind == "native",
        },
    )


def request_states(connection: duckdb.DuckDBPyConnection) -> list[RequestState]:
    """Return the states of all requests that the control store holds as unfinished; end those that are done.

    A request succeeds after its last part is in the marts, so that queries show it.
    """
    with transaction(connection):
        connection.execute(sql("finish_requests"))
    now = stored_now()
    states = []
    waits: dict[str, datetime | None] = {}
    for row in connection.execute(sql("request_states")).fetchall():
        key, status, first, last, native, note, error, done, total, worked_blocks, worked_seconds, network = row
        if network not in waits:
            waits[network] = read_budget(connection, network).waits_until
        rate = Decimal(worked_blocks) / Decimal(worked_seconds) if worked_blocks and worked_seconds else None
        left = None if total is None else total - done
        ends_at = now + timedelta(seconds=float(left / rate)) if rate and left else None
        states.append(
            RequestState(
                operation_key=key,
                status=status,
                from_block=first,
                to_block=last,
                native=native,
                note=note,
                error=error,
                done=done,
                total=total,
                rate=None if rate is None else write_rate(rate),
                estimated_end=ends_at,
                waits_until=waits[network] if status in _OPEN and done != total else None,
            )
        )
    return states


def write_rate(rate: Decimal) -> str:
    """Return a measured speed as a canonical decimal of three significant digits; a low one is not 0."""
    return write_decimal(_MEASURED.plus(rate))


def waits_until(connection: duckdb.DuckDBPyConnection, network: str, budget: Budget) -> datetime | None:
    """Return the time until which history or attestations of the network wait for its budget; None if none waits."""
    until = budget.waits_until
    if until is None or attestations_wait(connection, network):
        return until
    states = connection.execute(sql("request_states")).fetchall()
    is_waiting = any(
        status in _OPEN and done != total and of_network == network
        for _, status, *_, done, total, _, _, of_network in states
    )
    return until if is_waiting else None


def waiting_detail(connection: duckdb.DuckDBPyConnection, network: str) -> str | None:
    """Return a message if a network's past data waits for its budget of requests; else None."""
    budget = read_budget(connection, network)
    until = waits_until(connection, network, budget)
    if until is None:
        return None
    return (
        f"WaitingForBudget: history resumes at {write_instant(until.replace(tzinfo=UTC))}; "
        f"{sum(budget.spent.values())} of {budget.most} requests of {budget.day} are used"
    )
