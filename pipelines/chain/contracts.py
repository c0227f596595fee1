"""Storage of contracts' metadata, and comparison with second readings."""

from typing import Literal, TypeAlias

import duckdb
import polars as pl

from control.clock import stored_now
from pipelines.raw.database import named, sql, transaction
from pipelines.raw.frames import registered

Reason: TypeAlias = Literal["Metadata", "MetadataStatus"]


def store_metadata(
    connection: duckdb.DuckDBPyConnection, network: str, metadata: pl.DataFrame, block_number: int, batch_id: int
) -> None:
    """Compare readings of contracts with the stored ones, store the outcome, and mark subjects that show a change.

    A first reading is stored at once. A later reading never replaces a confirmed one by itself: a reading that differs
    is stored separately until a tenant accepts the change. While no reading was confirmed, two equal readings decide.

    Args:
        connection: the open warehouse.
        network: of the contracts.
        metadata: columns of `Node.metadata`, and `tenant_id`: a row for each tenant that the reading is for.
        block_number: the contracts were read at the end of this block; not the block of their latest reading.
        batch_id: the cycle's batch.
    """
    with registered(connection, incoming=metadata), transaction(connection):
        connection.execute(
            *named("compare_metadata", {"network": network, "block_number": block_number, "now": stored_now()})
        )
        for reason, condition in _MARKED.items():
            connection.execute(
                f"create or replace temp table changed_contracts as select token_address, tenant_id from compared "
                f"where {condition}"
            )
            mark_changed_contracts(connection, network, batch_id, reason)
        connection.execute(sql("write_metadata"))
        connection.execute("drop table compared; drop table changed_contracts")


_MARKED: dict[Reason, str] = {
    "Metadata": "is_replaced and is_changed",
    "MetadataStatus": "is_status_changed and not (is_replaced and is_changed)",
}


def record_creation(
    connection: duckdb.DuckDBPyConnection, network: str, token: str, tenant_id: str, block_number: int, batch_id: int
) -> None:
    """Store the block of a token contract's creation, for a tenant with a history request from `creation`.

    The tenant's subjects that show the token are marked.
    """
    key = [network, token, tenant_id]
    with transaction(connection):
        removed = connection.execute(
            """
            delete from raw.token_creations
            where network = ? and token_address = ? and tenant_id = ?
            returning block_number
            """,
            key,
        ).fetchall()
        connection.execute(
            "insert into raw.token_creations values (?, ?, ?, ?)", [network, token, block_number, tenant_id]
        )
        if removed != [(block_number,)]:
            connection.execute(
                "create or replace temp table changed_contracts as select ? as token_address, ? as tenant_id",
                [token, tenant_id],
            )
            mark_changed_contracts(connection, network, batch_id)
            connection.execute("drop table changed_contracts")


def mark_changed_contracts(
    connection: duckdb.DuckDBPyConnection, network: str, batch_id: int, reason: Reason = "Metadata"
) -> None:
    """Mark subjects with rows that show a contract, for each contract and tenant in temp table `changed_contracts`.

    Args:
        reason: `Metadata`, if their amounts must be computed again; `MetadataStatus`, if the tenant only needs a new
            data version.
    """
    connection.execute(
        """
        insert into raw.changes
        with subjects as (
            select * from raw.control_subjects
            where network = $network
        ),

        shown as (
            select subjects.subject_key
            from subjects
            inner join changed_contracts as changed
                on
                    subjects.address = changed.token_address
                    and subjects.tenant_id = changed.tenant_id
            where subjects.kind = 'token'
            union
            select subjects.subject_key
            from raw.movement_sides as sides
            inner join changed_contracts as changed on sides.asset = changed.token_address
            inner join subjects
                on
                    sides.holder_address = subjects.address
                    and subjects.tenant_id = changed.tenant_id
            inner join raw.view_ranges as views
                on
                    subjects.subject_key = views.subject_key
                    and sides.block_number between views.from_block and coalesce(views.to_block, sides.block_number)
            where sides.network = $network and subjects.kind = 'wallet'
            union
            select subjects.subject_key
            from raw.balance_observations as readings
            inner join changed_contracts as changed on readings.token_address = changed.token_address
            inner join subjects
                on
                    readings.holder_address = subjects.address
                    and subjects.tenant_id = changed.tenant_id
            where
                readings.network = $network
                and subjects.kind = 'wallet'
                and readings.visible_to[subjects.tenant_id] is not null
        )

        select $batch, subject_key, 0, null, $reason
        from shown
        """,
        {"batch": batch_id, "network": network, "reason": reason},
    )
