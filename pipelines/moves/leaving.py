"""A tenant leaves a warehouse: its rows are bundled for the new shard, and later deleted."""

from pathlib import Path

import duckdb

from control.moves import TenantKeys
from pipelines.chain.coverage import Watched, read_coverage
from pipelines.chain.covered import keep_ranges, stored_in_ranges
from pipelines.moves.tables import OWNED, RULES, Rule, tables_of
from pipelines.raw.database import create_tables, open_warehouse, sql, transaction
from pipelines.tables.families import ROW_TABLES
from pipelines.tables.table import RowTable
from warehouse.bundles import attached, bundle_path


def object_prefix(tenant_id: str) -> str:
    """Return the prefix of a tenant's bundles in the store of versions."""
    return f"moves/{tenant_id}"


def write_bundle(connection: duckdb.DuckDBPyConnection, keys: TenantKeys, folder: Path) -> Path:
    """Write a tenant's rows into a bundle in a folder; return its path.

    The bundle is a warehouse with the rows of this tenant alone. It has no whole keys of wallets.

    Args:
        connection: an open copy of the warehouse.
        keys: keys of the tenant's rows.
        folder: without a bundle.
    """
    create_tables(connection)
    path = bundle_path(folder)
    with open_warehouse(path):
        pass  # makes the tables
    tenant = {"tenant": keys.tenant_id}
    with attached(connection, folder, read_only=False):
        keep_keys(connection, keys)
        connection.execute(
            "insert into bundle.raw.control_subjects by name "
            "select * replace (null as descriptor) from raw.control_subjects where tenant_id = $tenant",
            tenant,
        )
        for table in tables_of(*OWNED):
            connection.execute(f"insert into bundle.raw.{table} by name from raw.{table} where {_is_owned(table)}")
        for table in tables_of(Rule.READINGS):
            connection.execute(
                f"""
                insert into bundle.raw.{table} by name
                select * replace (map([$tenant], [visible_to[$tenant]]) as visible_to)
                from raw.{table}
                where visible_to[$tenant] is not null
                """,
                tenant,
            )
        connection.execute(sql("bundle_prices"))
        networks = connection.execute(
            "select distinct network from bundle.raw.control_subjects order by network"
        ).fetchall()
        for (network,) in networks:
            _bundle_network(connection, network)
    return path


def _bundle_network(connection: duckdb.DuckDBPyConnection, network: str) -> None:
    """Add the rows, ranges, headers and records of a network."""
    addresses = {
        Watched(kind, address)
        for kind, address in connection.execute(
            """
            select unnest(if(kind = 'token', ['token'], ['wallet', 'native'])), address
            from bundle.raw.control_subjects
            where network = ?
            """,
            [network],
        ).fetchall()
    }
    coverage = read_coverage(connection, network)
    ranges = {watched: coverage[watched] for watched in addresses & coverage.keys()}
    keep_ranges(connection, ranges)
    bounds = [edge for parts in ranges.values() for part in parts for edge in part]
    span = {"network": network, "first": min(bounds, default=0), "last": max(bounds, default=-1)}
    for table in ROW_TABLES.values():
        rows = stored_in_ranges(table) if table.kinds else _known_in_ranges(table)
        connection.execute(f"insert into bundle.raw.{table.name} by name select stored.* {rows}", span)
    for name in ("coverage", "verified_ranges"):
        connection.execute(
            f"""
            insert into bundle.raw.{name} by name
            from raw.{name}
            where network = ? and (subject_kind, address) in (select (subject_kind, address) from covered)
            """,
            [network],
        )
    # Coverage counts these blocks as collected.
    connection.execute(
        """
        insert into bundle.raw.unread_units by name
        from raw.unread_units as units
        where
            units.network = ?
            and units.unit_kind = 'traces'
            and exists (
                select 1 from covered
                where
                    covered.subject_kind = 'native'
                    and units.block_number between covered.from_block and covered.to_block
            )
        """,
        [network],
    )
    for name in ("network_states", "period_ends"):
        connection.execute(f"insert into bundle.raw.{name} by name from raw.{name} where network = ?", [network])
    # Contradictions are of this shard's node.
    connection.execute(
        """
        insert into bundle.raw.known_chains by name
        select network, genesis_hash, settled_number, settling_number, settling_since
        from raw.known_chains
        where network = ?
        """,
        [network],
    )
    # Only where all readings up to the newest movement were made: the new shard need not make them again.
    connection.execute(
        """
        insert into bundle.raw.observed_batches by name
        from raw.observed_batches as observed
        where
            network = $network
            and not exists (
                select 1 from raw.movements as movements
                where movements.network = $network and movements.batch_id > observed.batch_id
            )
        """,
        {"network": network},
    )
    connection.execute(sql("bundle_blocks").replace("$rows", _numbers_of_rows()), {"network": network})


def _known_in_ranges(table: RowTable) -> str:
    """Return the clauses for rows that no segment fills by itself, such as unspent outputs of a scan."""
    (address,) = table.parties
    return f"""
        from raw.{table.name} as stored
        where
            stored.network = $network
            and stored.block_number between $first and $last
            and exists (
                select 1 from covered
                where
                    covered.subject_kind = 'native'
                    and covered.address = stored.{address}
                    and stored.block_number between covered.from_block and covered.to_block
            )
    """


def _numbers_of_rows() -> str:
    return " union ".join(f"select block_number from bundle.raw.{name} where network = $network" for name in ROW_TABLES)


def keep_keys(connection: duckdb.DuckDBPyConnection, keys: TenantKeys) -> None:
    """Create the temporary table `moving_keys` of a tenant's keys, one column for each rule of `OWNED`."""
    lists = [[keys.tenant_id], keys.subjects, keys.operations, keys.pairs]
    columns = ", ".join(f"unnest(?::{'varchar' if rule is Rule.TENANT else 'bigint'}[]) as {rule}" for rule in OWNED)
    connection.execute(f"create or replace temp table moving_keys as select {columns}", lists)


def _is_owned(table: str) -> str:
    key = RULES[table].value
    return f"{key} in (select moving_keys.{key} from moving_keys where moving_keys.{key} is not null)"


def delete_rows(connection: duckdb.DuckDBPyConnection, keys: TenantKeys) -> None:
    """Delete the rows of a tenant, inside the caller's transaction; facts stay, without the tenant in `visible_to`.

    The tenant then counts as new: its configuration and all manual prices are copied again.
    """
    keep_keys(connection, keys)
    for table in tables_of(*OWNED):
        connection.execute(f"delete from raw.{table} where {_is_owned(table)}")
    for table in tables_of(Rule.READINGS):
        connection.execute(
            f"""
            update raw.{table}
            set visible_to = map_from_entries(
                list_filter(map_entries(visible_to), lambda entry: entry.key != $tenant)
            )
            where visible_to[$tenant] is not null
            """,
            {"tenant": keys.tenant_id},
        )
        connection.execute(f"delete from raw.{table} where cardinality(visible_to) = 0")
    connection.execute("delete from raw.control_tenants where tenant_id = ?", [keys.tenant_id])
    connection.execute(
        "delete from raw.control_manual_prices where list_contains(?::bigint[], supported_pair_key)",
        [keys.supported_pairs],
    )


def leave(connection: duckdb.DuckDBPyConnection, keys: TenantKeys) -> None:
    """Delete the rows of a tenant that is in another shard now, and record its greatest data version here."""
    with transaction(connection):
        ((version,),) = connection.execute(
            """
            select max(data_version)
            from (
                select data_version from raw.tenant_versions where tenant_id = $tenant
                union all
                select data_version from raw.tenant_moves where tenant_id = $tenant
            )
            """,
            {"tenant": keys.tenant_id},
        ).fetchall()
        delete_rows(connection, keys)
        connection.execute("delete from raw.tenant_moves where tenant_id = ?", [keys.tenant_id])
        connection.execute(
            "insert into raw.tenant_moves values (?, 'Left', null, null, null, ?)", [keys.tenant_id, version]
        )
