"""Storage of balances and supplies that were read; a pending balance that is stored already is not read again."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple, TypeAlias

import duckdb
import polars as pl

from pipelines.extract.family import BALANCES, Node
from pipelines.raw.database import transaction
from pipelines.raw.frames import registered

Pair: TypeAlias = tuple[str, str]
"""Token and holder."""

Tenants: TypeAlias = Sequence[str]

KEYS: Mapping[str, tuple[str, ...]] = {
    "balance_observations": ("block_number", "token_address", "holder_address"),
    "supply_observations": ("block_number", "token_address"),
}
"""Columns that identify a reading in its network."""


def with_tenants(frame: pl.DataFrame, tenants: Sequence[Tenants]) -> pl.DataFrame:
    """Return rows with `tenant_ids`, the tenants that may see each row, in the order of the rows."""
    return frame.with_columns(pl.Series("tenant_ids", tenants, dtype=pl.List(pl.String)))


class PendingRead(NamedTuple):
    """Pending balances that were read.

    Attributes:
        balances: BALANCES with `tenant_ids`, the tenants that could not see each one before.
        failed: pairs that cannot be read.
        read_count: number of balances read from the node.
    """

    balances: pl.DataFrame
    failed: list[Pair]
    read_count: int


def read_pending(
    connection: duckdb.DuckDBPyConnection,
    node: Node,
    pending: Mapping[Pair, Tenants],
    block_number: int,
    block_hash: str,
) -> PendingRead:
    """Read the pending balances of tenants at the end of a block."""
    pairs = sorted(pending)
    known = stored_balances(connection, node.network.name, block_number, pairs)
    unread = [pair for pair in pairs if pair not in known]
    frame = node.balances(unread, block_number, block_hash) if unread else pl.DataFrame(schema=BALANCES)
    read = set(frame.select("token_address", "holder_address").iter_rows())
    again = [
        (*pair, block_number, block_hash, quantity)
        for pair, (quantity, had) in known.items()
        if not had.issuperset(pending[pair])
    ]
    frame = pl.concat([frame, pl.DataFrame(again, schema=BALANCES, orient="row")])
    had_by = {pair: had for pair, (_, had) in known.items()}
    tenants: list[Tenants] = [
        [name for name in pending[token, holder] if name not in had_by.get((token, holder), ())]
        for token, holder in frame.select("token_address", "holder_address").iter_rows()
    ]
    failed = [pair for pair in unread if pair not in read]
    return PendingRead(with_tenants(frame, tenants), failed, len(unread) - len(failed))


class Turn(NamedTuple):
    """The last reading of a tenant's previous sample."""

    block: int
    token: str
    holder: str


FIRST_TURN = Turn(-1, "", "")
"""Before the first reading."""

# Keeps the cycle in which a tenant was first allowed to see the reading.
_VISIBLE = "map(observed.tenant_ids, list_transform(observed.tenant_ids, lambda tenant: $batch::bigint))"


def stored_balances(
    connection: duckdb.DuckDBPyConnection, network: str, block_number: int, pairs: Sequence[tuple[str, str]]
) -> dict[tuple[str, str], tuple[str | None, frozenset[str]]]:
    """Return quantity and tenants of the stored readings at the block, for those of the pairs that have one."""
    asked = pl.DataFrame(pairs, schema={"token_address": pl.String, "holder_address": pl.String}, orient="row")
    with registered(connection, asked=asked):
        rows = connection.execute(
            """
            select
                stored.token_address, stored.holder_address, stored.quantity_raw::varchar, map_keys(stored.visible_to)
            from raw.balance_observations as stored
            semi join asked
                on stored.token_address = asked.token_address and stored.holder_address = asked.holder_address
            where stored.network = ? and stored.block_number = ?
            """,
            [network, block_number],
        ).fetchall()
    return {(token, holder): (quantity, frozenset(tenants or ())) for token, holder, quantity, tenants in rows}


def request_native_balances(connection: duckdb.DuckDBPyConnection, network: str) -> int:
    """Have the next cycle read the native balance of each tracked wallet at the head; return the number of wallets."""
    with transaction(connection):
        row = connection.execute(
            """
            insert into raw.lost_readings
            select distinct network, 'native', address, tenant_id
            from raw.control_subjects
            where network = ? and kind = 'wallet'
            """,
            [network],
        ).fetchone()
    assert row is not None
    return int(row[0])


def insert_balance_observations(
    connection: duckdb.DuckDBPyConnection, network: str, observations: pl.DataFrame, purpose: str, batch_id: int
) -> None:
    """Add balances as read (columns of `Node.balances`), and mark the subjects of the tenants that may see them.

    If a balance is stored already, only its tenants are added. A sample that agrees with the known balance marks
    nothing; it is processed with the next marked change.

    Args:
        observations: with `tenant_ids`, the tenants that may see each one.
    """
    with transaction(connection):
        add_balance_observations(connection, network, observations, purpose, batch_id)


def add_balance_observations(
    connection: duckdb.DuckDBPyConnection, network: str, observations: pl.DataFrame, purpose: str, batch_id: int
) -> None:
    """Add balances as `insert_balance_observations`, inside the caller's transaction."""
    parameters = {"network": network, "batch": batch_id}
    with registered(connection, observed=observations):
        connection.execute(
            f"""
            update raw.balance_observations as stored
            set visible_to = map_concat({_VISIBLE}, stored.visible_to), batch_id = $batch
            from observed
            where
                stored.network = $network
                and stored.token_address = observed.token_address
                and stored.holder_address = observed.holder_address
                and stored.block_number = observed.block_number
            """,
            parameters,
        )
        connection.execute(
            f"""
            insert into raw.balance_observations
            select
                $network, observed.token_address, observed.holder_address, observed.block_number, observed.block_hash,
                observed.quantity_raw::bignum, $purpose, $batch, {_VISIBLE}
            from observed
            anti join (select * from raw.balance_observations where network = $network) as stored
                on observed.token_address = stored.token_address
                and observed.holder_address = stored.holder_address
                and observed.block_number = stored.block_number
            """,
            {**parameters, "purpose": purpose},
        )
        if purpose != "Sample":
            connection.execute(
                """
                insert into raw.changes
                with pending as (
                    select token_address, holder_address, block_number, unnest(tenant_ids) as tenant_id
                    from observed
                ),

                concerned as (
                    select subjects.subject_key, pending.block_number
                    from pending
                    inner join raw.control_subjects as subjects
                        on pending.tenant_id = subjects.tenant_id and pending.token_address = subjects.address
                    where subjects.network = $network and subjects.kind = 'token'
                    union
                    select subjects.subject_key, pending.block_number
                    from pending
                    inner join raw.control_subjects as subjects
                        on pending.tenant_id = subjects.tenant_id and pending.holder_address = subjects.address
                    where subjects.network = $network and subjects.kind = 'wallet'
                )

                select $batch, subject_key, block_number, block_number, 'Observation'
                from concerned
                """,
                parameters,
            )


def insert_supply_observations(
    connection: duckdb.DuckDBPyConnection, network: str, observations: pl.DataFrame, batch_id: int
) -> None:
    """Add total supplies as read (columns of `Node.supplies`), and mark the tokens of the tenants that may see them.

    Args:
        observations: with `tenant_ids`, as for balances.
    """
    with transaction(connection):
        add_supply_observations(connection, network, observations, batch_id)


def add_supply_observations(
    connection: duckdb.DuckDBPyConnection, network: str, observations: pl.DataFrame, batch_id: int
) -> None:
    """Add supplies as `insert_supply_observations`, inside the caller's transaction."""
    parameters = {"network": network, "batch": batch_id}
    with registered(connection, observed=observations):
        connection.execute(
            f"""
            update raw.supply_observations as stored
            set visible_to = map_concat({_VISIBLE}, stored.visible_to), batch_id = $batch
            from observed
            where
                stored.network = $network
                and stored.token_address = observed.token_address
                and stored.block_number = observed.block_number
            """,
            parameters,
        )
        connection.execute(
            f"""
            insert into raw.supply_observations
            select
                $network, observed.token_address, observed.block_number, observed.block_hash,
                observed.total_supply_raw::bignum, $batch, {_VISIBLE}
            from observed
            anti join (select * from raw.supply_observations where network = $network) as stored
                on observed.token_address = stored.token_address and observed.block_number = stored.block_number
            """,
            parameters,
        )
        connection.execute(
            """
            insert into raw.changes
            select $batch, subjects.subject_key, pending.block_number, pending.block_number, 'Observation'
            from (select token_address, block_number, unnest(tenant_ids) as tenant_id from observed) as pending
            inner join raw.control_subjects as subjects
                on pending.tenant_id = subjects.tenant_id and pending.token_address = subjects.address
            where subjects.network = $network and subjects.kind = 'token'
            """,
            parameters,
        )


def replace_suspected_tokens(
    connection: duckdb.DuckDBPyConnection,
    network: str,
    suspected: Sequence[tuple[str, str]],
    block_number: int,
    batch_id: int,
) -> None:
    """Mark tokens as suspected since a block, each for a tenant; mark its subject and the tenant's wallets."""
    frame = pl.DataFrame(suspected, schema={"token_address": pl.String, "tenant_id": pl.String}, orient="row")
    parameters = {"network": network, "block": block_number}
    with registered(connection, suspected=frame), transaction(connection):
        connection.execute(
            """
            delete from raw.suspected_tokens as known
            using suspected
            where
                known.network = $network
                and known.token_address = suspected.token_address
                and known.tenant_id = suspected.tenant_id
            """,
            {"network": network},
        )
        connection.execute(
            """
            insert into raw.suspected_tokens
            select distinct $network, token_address, $block::bigint, tenant_id from suspected
            """,
            parameters,
        )
        connection.execute(
            """
            insert into raw.changes
            select distinct $batch::bigint, subjects.subject_key, $block::bigint, $block::bigint, 'Observation'
            from raw.control_subjects as subjects
            inner join suspected on subjects.tenant_id = suspected.tenant_id
            where
                subjects.network = $network
                and (subjects.kind = 'wallet' or subjects.address = suspected.token_address)
            """,
            {**parameters, "batch": batch_id},
        )


def read_turn(connection: duckdb.DuckDBPyConnection, network: str, tenant_id: str) -> Turn:
    """Return the last reading of the tenant's previous sample."""
    row = connection.execute(
        """
        select block_number, token_address, holder_address
        from raw.sample_turns
        where network = ? and tenant_id = ?
        """,
        [network, tenant_id],
    ).fetchone()
    return FIRST_TURN if row is None else Turn(*row)


def record_turn(connection: duckdb.DuckDBPyConnection, network: str, tenant_id: str, turn: Turn) -> None:
    """Store the last reading of a tenant's sample."""
    with transaction(connection):
        connection.execute("delete from raw.sample_turns where network = ? and tenant_id = ?", [network, tenant_id])
        connection.execute("insert into raw.sample_turns values (?, ?, ?, ?, ?)", [network, tenant_id, *turn])
