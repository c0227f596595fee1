"""The pipeline's records of attestations: their requests, pending readings, and results."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Literal, TypeAlias

import duckdb
import polars as pl

from control.clock import stored_now
from pipelines.balances.readings import add_balance_observations, add_supply_observations
from pipelines.due import latest_due, next_due
from pipelines.raw.builds import has_relation
from pipelines.raw.database import named, sql, transaction
from pipelines.raw.usage import read_budget, record_usage
from pipelines.rows import UsageRecord

_OPEN = ("Pending", "Running")
# A refused attestation without a request is retried after 1, 2, 4, ... times this interval.
_TRIED_EVERY = timedelta(days=1)

Period: TypeAlias = Literal["day", "month"]


@dataclass(frozen=True)
class AttestationRequest:
    """An unfinished request, in the tenant's own terms; the block is None until it is resolved."""

    operation_key: int
    subject_key: int
    as_of_text: str
    is_cancelled: bool
    block_number: int | None


@dataclass(frozen=True)
class Attestation:
    """A pending attestation."""

    subject_key: int
    number: int
    kind: str
    tenant_id: str
    address: str
    block_number: int
    block_hash: str


@dataclass(frozen=True)
class AttestationState:
    """State of a request.

    Attributes:
        done, total: balances read; total is None until the balances to read are listed.
        waits_until: as of a history request.
    """

    operation_key: int
    status: str
    block_number: int | None
    number: int | None
    error: str | None
    done: int
    total: int | None
    waits_until: datetime | None


def open_attestation_requests(connection: duckdb.DuckDBPyConnection, network: str) -> list[AttestationRequest]:
    """Return the unfinished requests of the network, oldest first."""
    rows = connection.execute(
        """
        select
            requests.operation_key, requests.subject_key, requests.as_of_text, requests.is_cancelled,
            known.block_number
        from raw.control_attestation_requests as requests
        inner join raw.control_subjects as subjects on requests.subject_key = subjects.subject_key
        left join raw.attestation_requests as known on requests.operation_key = known.operation_key
        where
            subjects.network = ?
            and list_contains(?, requests.status)
            and list_contains(?, coalesce(known.status, requests.status))
            and subjects.tenant_id not in (select tenant_id from raw.control_held_tenants)
        order by requests.operation_key
        """,
        [network, _OPEN, _OPEN],
    ).fetchall()
    return [AttestationRequest(*row) for row in rows]


def has_open_attestations(connection: duckdb.DuckDBPyConnection) -> bool:
    """Return whether any network has an unfinished attestation."""
    (found,) = connection.execute(
        """
        with held as (
            select subjects.subject_key
            from raw.control_subjects as subjects
            inner join raw.control_held_tenants as held on subjects.tenant_id = held.tenant_id
        )

        select
            exists (
                select 1
                from raw.attestations as known
                anti join held on known.subject_key = held.subject_key
                where known.attested_at is null and coalesce(known.due_at <= $now or known.due_at > $latest, true)
            )
            or exists (
                select 1
                from raw.control_attestation_requests as requests
                anti join held on requests.subject_key = held.subject_key
                left join raw.attestation_requests as known on requests.operation_key = known.operation_key
                where
                    list_contains($open, requests.status)
                    and list_contains($open, coalesce(known.status, requests.status))
            )
        """,
        {"open": _OPEN, **_now()},
    ).fetchall()
    return bool(found[0])


def is_built(connection: duckdb.DuckDBPyConnection, subject_key: int, block_number: int) -> bool | None:
    """Return whether the models contain all known rows of a subject up to a block; None if it is not covered."""
    covered = connection.execute(
        """
        select from_block
        from raw.covered_ranges
        where subject_key = $subject and not is_native and $block between from_block and to_block
        """,
        {"subject": subject_key, "block": block_number},
    ).fetchone()
    if covered is None:
        return None
    if not has_relation(connection, "requests__attestations"):
        return False
    (found,) = connection.execute(
        """
        select
            exists (
                select 1
                from intermediate.int_views_transformed
                where
                    subject_key = $subject and not is_native and from_block = $first and to_block >= $block
            )
            and not exists (
                select 1
                from raw.changes
                where
                    subject_key = $subject
                    and from_block <= $block
                    and reason in ('Rows', 'Reorganisation', 'View', 'Metadata')
                    and batch_id > (select max(batch_id) from raw.transforms)
            )
        """,
        {"subject": subject_key, "block": block_number, "first": covered[0]},
    ).fetchall()
    return bool(found[0])


def set_request(
    connection: duckdb.DuckDBPyConnection, request: AttestationRequest, status: str, error: str | None = None
) -> None:
    """Record the status of a request that has no block yet, or that ends without a record."""
    with transaction(connection):
        known = connection.execute(
            "update raw.attestation_requests set status = ?, error = ? where operation_key = ? returning 1",
            [status, error, request.operation_key],
        ).fetchall()
        if not known:
            connection.execute(
                "insert into raw.attestation_requests values (?, ?, null, null, ?, ?)",
                [request.operation_key, request.subject_key, error, status],
            )


def begin_requested(
    connection: duckdb.DuckDBPyConnection, network: str, request: AttestationRequest, number: int, block_hash: str
) -> None:
    """Record the block of a request, and begin its attestation unless the block has a valid one."""
    with transaction(connection):
        attestation = _begin(connection, network, request.subject_key, number, block_hash, None)
        connection.execute("delete from raw.attestation_requests where operation_key = ?", [request.operation_key])
        connection.execute(
            "insert into raw.attestation_requests values (?, ?, ?, ?, null, 'Running')",
            [request.operation_key, request.subject_key, number, attestation],
        )


def begin_period(
    connection: duckdb.DuckDBPyConnection,
    network: str,
    subject_key: int,
    block_number: int,
    block_hash: str,
    period_end: datetime,
) -> None:
    """Begin the attestation of a period's end unless the block has a valid one."""
    with transaction(connection):
        _begin(connection, network, subject_key, block_number, block_hash, period_end)


def _begin(
    connection: duckdb.DuckDBPyConnection,
    network: str,
    subject_key: int,
    block_number: int,
    block_hash: str,
    period_end: datetime | None,
) -> int:
    """Return the number of a block's valid or unfinished attestation, else of a new one."""
    superseded = "select null::bigint as subject_key, null::bigint as attestation_number where false"
    if has_relation(connection, "int_attestations"):
        superseded = (
            "select subject_key, attestation_number from intermediate.int_attestations where superseded_by is not null"
        )
    standing = connection.execute(
        f"""
        select max(attestation_number)
        from raw.attestations as known
        anti join ({superseded}) as superseded using (subject_key, attestation_number)
        where known.subject_key = ? and known.block_number = ? and known.block_hash = ?
        """,
        [subject_key, block_number, block_hash],
    ).fetchone()
    if standing is not None and standing[0] is not None:
        return int(standing[0])
    (made,) = connection.execute(
        """
        insert into raw.attestations
            (subject_key, attestation_number, network, block_number, block_hash, period_end, read_count,
            difference_count)
        select
            $subject,
            coalesce(
                (select max(attestation_number) from raw.attestations where subject_key = $subject), 0
            ) + 1,
            $network, $block, $hash, $period_end, 0, 0
        returning attestation_number
        """,
        {
            "subject": subject_key,
            "network": network,
            "block": block_number,
            "hash": block_hash,
            "period_end": period_end,
        },
    ).fetchall()
    return int(made[0])


def drop_unwanted(connection: duckdb.DuckDBPyConnection, network: str) -> None:
    """Delete unfinished attestations that no request or period needs, and those of blocks no longer in the chain."""
    with transaction(connection):
        connection.execute(sql("unwanted_attestations"), {"network": network})
        connection.execute(
            """
            update raw.attestation_requests as requests
            set block_number = null, attestation_number = null, status = 'Pending'
            from unwanted
            where
                requests.subject_key = unwanted.subject_key
                and requests.attestation_number = unwanted.attestation_number
                and requests.status = 'Running'
            """
        )
        connection.execute(
            """
            delete from raw.attestations
            using unwanted
            where
                attestations.subject_key = unwanted.subject_key
                and attestations.attestation_number = unwanted.attestation_number
            """
        )
        connection.execute("drop table unwanted")


def open_attestations(connection: duckdb.DuckDBPyConnection, network: str) -> list[Attestation]:
    """Return the network's attestations that are due: requested ones first, then those of the newest blocks.

    A refused attestation without a request waits until its next retry.
    """
    rows = connection.execute(
        """
        select
            known.subject_key, known.attestation_number, subjects.kind, subjects.tenant_id, subjects.address,
            known.block_number, known.block_hash
        from raw.attestations as known
        inner join raw.control_subjects as subjects on known.subject_key = subjects.subject_key
        where
            known.network = $network
            and known.attested_at is null
            and subjects.tenant_id not in (select tenant_id from raw.control_held_tenants)
            and (
                coalesce(known.due_at <= $now or known.due_at > $latest, true)
                or exists (
                    select 1
                    from raw.attestation_requests as requests
                    where
                        requests.subject_key = known.subject_key
                        and requests.attestation_number = known.attestation_number
                        and requests.status = 'Running'
                )
            )
        order by
            known.period_end is not null,
            known.block_number desc,
            known.subject_key,
            known.attestation_number
        """,
        {"network": network, **_now()},
    ).fetchall()
    return [Attestation(*row) for row in rows]


def list_balances(connection: duckdb.DuckDBPyConnection, attestation: Attestation) -> list[tuple[str, str, str, bool]]:
    """List the balances at the attestation's block, for `finish_attestation`, and store the number of those to read.

    Returns:
        Those to read, in order: token, holder, known balance, and a flag. The flag says that the balance before the
        range was derived from a later reading, so that it must be read too.
    """
    parameters = {
        "subject": attestation.subject_key,
        "number": attestation.number,
        "block": attestation.block_number,
        "tenant": attestation.tenant_id,
    }
    connection.execute(*named("attested_balances", parameters))
    pending = connection.execute(
        """
        select token_address, holder_address, balance_raw::varchar, is_derived
        from attested_balances
        where confirming_block is null and not is_read
        order by token_address, holder_address
        """
    ).fetchall()
    connection.execute(
        """
        update raw.attestations
        set owed_count = read_count + ?
        where subject_key = ? and attestation_number = ?
        """,
        [len(pending), attestation.subject_key, attestation.number],
    )
    return pending


def store_part(
    connection: duckdb.DuckDBPyConnection,
    network: str,
    attestation: Attestation,
    openings: pl.DataFrame | None,
    balances: pl.DataFrame,
    difference_count: int,
    spending: UsageRecord,
    batch_id: int,
) -> None:
    """Store a part of an attestation's balances, its counts and its usage, in one transaction.

    Args:
        openings: balances at the block before the range; None if they need not be read.
        balances: balances at the attestation's block.
        difference_count: number of balances that differ from the known ones.
    """
    with transaction(connection):
        if openings is not None and not openings.is_empty():
            add_balance_observations(connection, network, openings, "Anchor", batch_id)
        add_balance_observations(connection, network, balances, "Attestation", batch_id)
        connection.execute(
            """
            update raw.attestations
            set read_count = read_count + ?, difference_count = difference_count + ?
            where subject_key = ? and attestation_number = ?
            """,
            [balances.height, difference_count, attestation.subject_key, attestation.number],
        )
        record_usage(connection, network, spending)


def has_supply(connection: duckdb.DuckDBPyConnection, network: str, attestation: Attestation) -> bool:
    """Return whether the supply at the attestation's block was read for its tenant."""
    row = connection.execute(
        """
        select 1
        from raw.supply_observations
        where network = ? and token_address = ? and block_number = ? and visible_to[?] is not null
        """,
        [network, attestation.address, attestation.block_number, attestation.tenant_id],
    ).fetchone()
    return row is not None


def finish_attestation(
    connection: duckdb.DuckDBPyConnection,
    network: str,
    attestation: Attestation,
    supply: pl.DataFrame | None,
    spending: UsageRecord,
    batch_id: int,
) -> None:
    """Store the supply, if it was read, and finish the record from the list of `list_balances` and later readings."""
    with transaction(connection):
        if supply is not None:
            add_supply_observations(connection, network, supply, batch_id)
        connection.execute(
            *named(
                "finish_attestation",
                {
                    "network": network,
                    "subject": attestation.subject_key,
                    "number": attestation.number,
                    "block": attestation.block_number,
                    "tenant": attestation.tenant_id,
                    "token": attestation.address if attestation.kind == "token" else None,
                    "now": stored_now(),
                    "batch": batch_id,
                },
            )
        )
        # A record without a new reading must be shown as well.
        connection.execute(
            "insert into raw.changes values (?, ?, ?, ?, 'Observation')",
            [batch_id, attestation.subject_key, attestation.block_number, attestation.block_number],
        )
        record_usage(connection, network, spending)


def note_attestation_error(
    connection: duckdb.DuckDBPyConnection, attestations: Sequence[Attestation], error: str
) -> None:
    """Record, for the requests of attestations, why they cannot advance."""
    with transaction(connection):
        for attestation in attestations:
            _set_requests(connection, attestation, "Running", error)


def refuse_attestation(connection: duckdb.DuckDBPyConnection, attestation: Attestation, error: str) -> None:
    """Record that the node refused to answer for an attestation: its requests fail; without one it is due later."""
    with transaction(connection):
        _set_requests(connection, attestation, "Failed", error)
        of_it = [attestation.subject_key, attestation.number]
        ((refusals,),) = connection.execute(
            """
            update raw.attestations
            set refusal_count = coalesce(refusal_count, 0) + 1
            where subject_key = ? and attestation_number = ?
            returning refusal_count
            """,
            of_it,
        ).fetchall()
        connection.execute(
            "update raw.attestations set due_at = ? where subject_key = ? and attestation_number = ?",
            [next_due(stored_now(), _TRIED_EVERY, refusals), *of_it],
        )


def _now() -> dict[str, datetime]:
    """Return the present instant and the latest due time that may be stored now."""
    now = stored_now()
    return {"now": now, "latest": latest_due(now, _TRIED_EVERY)}


def _set_requests(connection: duckdb.DuckDBPyConnection, attestation: Attestation, status: str, error: str) -> None:
    connection.execute(
        """
        update raw.attestation_requests
        set error = ?, status = ?
        where subject_key = ? and attestation_number = ? and status = 'Running'
        """,
        [error, status, attestation.subject_key, attestation.number],
    )


def due_periods(
    connection: duckdb.DuckDBPyConnection,
    network: str,
    length: Period,
    most_holders: int,
    final_number: int,
    most: int,
) -> list[tuple[int, datetime, int | None]]:
    """Return ends of periods that are due for an attestation, newest first.

    Returns:
        Subject, end (UTC without a zone), and the last block before it; None where it is not known yet.
    """
    if not has_relation(connection, "int_attestations"):
        return []
    parameters = {
        "network": network,
        "period": length,
        "length": f"1 {length}",
        "most_holders": most_holders,
        "final": final_number,
        "most": most,
    }
    return connection.execute(*named("due_periods", parameters)).fetchall()


def record_period_end(
    connection: duckdb.DuckDBPyConnection, network: str, period_end: datetime, block_number: int
) -> None:
    """Store the last block before the end of a period; the block is final."""
    connection.execute("insert into raw.period_ends values (?, ?, ?)", [network, period_end, block_number])


def attestation_states(connection: duckdb.DuckDBPyConnection) -> list[AttestationState]:
    """Return the states of requests that the control store holds as unfinished; end those with a published record."""
    with transaction(connection):
        connection.execute(sql("finish_attestation_requests"))
    states = []
    waits: dict[str, datetime | None] = {}
    for row in connection.execute(sql("attestation_states")).fetchall():
        key, status, block_number, number, error, done, total, network = row
        if network not in waits:
            waits[network] = read_budget(connection, network).waits_until
        until = waits[network] if status in _OPEN else None
        states.append(AttestationState(key, status, block_number, number, error, done, total, until))
    return states


def attestations_wait(connection: duckdb.DuckDBPyConnection, network: str) -> bool:
    """Return whether the network has an unfinished attestation."""
    return any(
        status in _OPEN and of_network == network
        for _, status, *_, of_network in connection.execute(sql("attestation_states")).fetchall()
    )
