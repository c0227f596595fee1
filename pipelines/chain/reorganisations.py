"""Removal of all rows and readings that depend on orphaned blocks."""

import duckdb

from control.clock import stored_now
from pipelines.chain.contracts import mark_changed_contracts
from pipelines.chain.finality import withdraw_final
from pipelines.raw.database import sql, transaction
from pipelines.tables.families import ROW_TABLES

_OF_BLOCKS = (*ROW_TABLES, "balance_observations", "supply_observations", "blocks")


def remove_orphaned(
    connection: duckdb.DuckDBPyConnection,
    network: str,
    ancestor: int,
    orphaned_hash: str,
    canonical_hash: str,
    batch_id: int,
    *,
    was_false: bool = False,
) -> int:
    """Remove everything that depends on blocks after the common ancestor, in one transaction; return the rows removed.

    Rows, headers and readings are deleted; coverage is cut at the ancestor. Windows that an orphaned block resolved are
    resolved again. The subjects are marked from the first orphaned block on, and the event is recorded. If the
    orphaned blocks were final or `was_false`, no block after the settled one remains final.

    Args:
        was_false: the node's chain was false, without a reorganisation. A final block of that chain no longer counts.
    """
    removed = 0
    with transaction(connection):
        changed_after = withdraw_final(connection, network, ancestor, was_false=was_false)
        connection.execute(sql("mark_reorganised"), {"network": network, "ancestor": changed_after, "batch": batch_id})
        connection.execute(sql("uncount_orphaned"), {"network": network, "ancestor": ancestor})
        connection.execute(
            """
            insert into raw.lost_readings
            select distinct network, token_address, holder_address, unnest(map_keys(visible_to))
            from raw.balance_observations
            where network = ? and block_number > ? and token_address != 'native'
            """,
            [network, ancestor],
        )
        for table in _OF_BLOCKS:
            row = connection.execute(
                f"delete from raw.{table} where network = ? and block_number > ?", [network, ancestor]
            ).fetchone()
            assert row is not None
            removed += int(row[0])
        for table in ("coverage", "verified_ranges"):
            connection.execute(f"delete from raw.{table} where network = ? and from_block > ?", [network, ancestor])
            connection.execute(
                f"update raw.{table} set to_block = ? where network = ? and to_block > ?", [ancestor, network, ancestor]
            )
        connection.execute(
            "delete from raw.disputed_answers where network = ? and block_number > ?", [network, ancestor]
        )
        connection.execute(
            """
            delete from raw.view_ranges
            where origin = 'Window' and network = ? and (from_block > ? or to_block >= ?)
            """,
            [network, ancestor, ancestor],
        )
        for table, block in (("opened_ranges", "from_block - 1"), ("closed_ranges", "to_block")):
            connection.execute(
                f"""
                delete from raw.{table}
                where
                    {block} > ?
                    and subject_key in (select subject_key from raw.control_subjects where network = ?)
                """,
                [ancestor, network],
            )
        connection.execute(
            """
            update raw.opened_ranges set to_block = ?
            where
                to_block > ?
                and subject_key in (select subject_key from raw.control_subjects where network = ?)
            """,
            [ancestor, ancestor, network],
        )
        connection.execute(
            "delete from raw.suspected_tokens where network = ? and since_block > ?", [network, ancestor]
        )
        connection.execute("delete from raw.period_ends where network = ? and block_number > ?", [network, ancestor])
        # Searches must read the transactions that replaced orphaned ones.
        connection.execute(
            """
            update raw.searched_remainders set from_block = ?, from_position = -1
            where network = ? and coalesce(from_block > ?, true)
            """,
            [ancestor + 1, network, ancestor],
        )
        connection.execute(
            """
            create or replace temp table changed_contracts as
            select token_address, tenant_id from raw.token_creations where network = ? and block_number > ?
            """,
            [network, ancestor],
        )
        mark_changed_contracts(connection, network, batch_id)
        connection.execute(
            "delete from raw.token_creations where network = ? and block_number > ?", [network, ancestor]
        )
        connection.execute("drop table changed_contracts")
        connection.execute(
            "insert into raw.reorganisations values (?, ?, ?, ?, ?, ?, ?, ?)",
            [batch_id, network, ancestor, ancestor + 1, orphaned_hash, canonical_hash, removed, stored_now()],
        )
    return removed
