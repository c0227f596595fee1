"""A tenant arrives in a warehouse: the rows of its bundle are imported in one transaction."""

from collections.abc import Mapping, Sequence
from pathlib import Path

import duckdb
import polars as pl

from control.clock import stored_now
from control.moves import TenantKeys
from control.ranges import BlockRange, difference
from pipelines.balances.readings import KEYS
from pipelines.chain.coverage import Watched, read_coverage
from pipelines.chain.reorganisations import remove_orphaned
from pipelines.chain.states import SERVED
from pipelines.moves.leaving import delete_rows
from pipelines.moves.tables import OWNED, tables_of
from pipelines.raw.builds import newest_publication
from pipelines.raw.database import named, open_warehouse, transaction
from pipelines.raw.frames import registered
from pipelines.rows import Kind
from pipelines.tables.families import ROW_TABLES
from pipelines.tables.sources import TABLES
from pipelines.tables.table import RowTable
from warehouse.bundles import attached, bundle_path

_BATCHES = ("batch_id", "changed_batch")
# Numbers of the other shard's versions.
_NUMBERED = "tenant_versions"


class BundleError(Exception):
    """A bundle cannot be imported for now; the message says why, and what to do."""


class NewerBundleError(BundleError):
    """The bundle is of a newer release than this process."""

    def __init__(self, table: str, column: str) -> None:
        super().__init__(f"its rows are of a newer release (raw.{table}.{column}); upgrade this shard")


class ContradictedBundleError(BundleError):
    """The bundle has another final block than this shard: the nodes of the two shards are on different chains."""

    def __init__(self, network: str, block_number: int) -> None:
        super().__init__(
            f"block {block_number} of network {network} has another hash in the other shard, where it is final; "
            "compare the nodes of the two shards, or cancel the move"
        )


def arrive(
    connection: duckdb.DuckDBPyConnection, keys: TenantKeys, folder: Path, object_name: str, batch_id: int
) -> None:
    """Import a tenant's bundle in place of all rows of the tenant, and mark its tokens, wallets and pairs.

    Facts that the warehouse has already stay as they are. Blocks that are not final, and have another hash here, are
    left out, with all that depends on them; the next cycle collects them.

    Args:
        connection: the open warehouse.
        keys: keys of the tenant's rows.
        folder: has the bundle, which is changed.
        object_name: object from which the bundle was fetched.
        batch_id: the import's own batch, before that of the cycle.

    Raises:
        BundleError: a final block differs, or the bundle is of a newer release; nothing is imported.
    """
    _remove_contradicted(connection, folder)
    with attached(connection, folder, read_only=True), transaction(connection):
        numbers = _Numbers(connection, keys.tenant_id)
        delete_rows(connection, keys)
        for table in tables_of(*OWNED):
            if table != _NUMBERED:
                connection.execute(f"insert into raw.{table} by name {_rows(table, batch_id)}")
        networks = connection.execute(
            "select distinct network from bundle.raw.control_subjects order by network"
        ).fetchall()
        for (network,) in networks:
            _Network(connection, network, keys.tenant_id, batch_id).arrive()
        _add_readings(connection, keys.tenant_id, batch_id)
        _add_prices(connection, batch_id)
        _mark(connection, batch_id)
        numbers.record(object_name, batch_id)


def _remove_contradicted(connection: duckdb.DuckDBPyConnection, folder: Path) -> None:
    """Remove the blocks of the bundle that have another hash here, from the bundle itself."""
    with open_warehouse(bundle_path(folder)):
        pass  # brings the tables of an older release up to date
    with attached(connection, folder, read_only=True):
        _check_release(connection)
        contradicted = connection.execute(
            """
            select
                moved.network,
                min(moved.block_number),
                arg_min(moved.block_hash, moved.block_number),
                arg_min(known.block_hash, moved.block_number),
                coalesce(any_value(states.final_number), -1)
            from bundle.raw.blocks as moved
            inner join raw.blocks as known
                on moved.network = known.network and moved.block_number = known.block_number
            left join bundle.raw.network_states as states on moved.network = states.network
            where moved.block_hash != known.block_hash
            group by moved.network
            """
        ).fetchall()
    for network, number, moved_hash, known_hash, final in contradicted:
        if number <= final:
            raise ContradictedBundleError(network, number)
        with open_warehouse(bundle_path(folder)) as bundle:
            remove_orphaned(bundle, network, number - 1, moved_hash, known_hash, 0)


def _check_release(connection: duckdb.DuckDBPyConnection) -> None:
    """Raise NewerBundleError if the bundle has a table or a column that this release lacks."""
    columns = connection.execute(
        """
        select columns.table_name, columns.column_name
        from duckdb_columns() as columns
        semi join duckdb_tables() as tables using (database_name, schema_name, table_name)
        where columns.database_name = 'bundle' and columns.schema_name = 'raw'
        order by all
        """
    ).fetchall()
    for table, column in columns:
        if table not in TABLES or column not in TABLES[table].schema():
            raise NewerBundleError(table, column)


def _rows(table: str, batch_id: int, clauses: str = "") -> str:
    """Return the query of a table's rows in the bundle, `moved`, with the importing batch in place of cycles."""
    replaced = [
        f"if(moved.{column.name} is null, null, {batch_id}) as {column.name}"
        for column in TABLES[table].columns
        if column.name in _BATCHES
    ]
    columns = f"moved.* replace ({', '.join(replaced)})" if replaced else "moved.*"
    return f"select {columns} from bundle.raw.{table} as moved {clauses}"


class _Numbers:
    """The greatest data version of the tenant, here and in the bundle, from before the import."""

    def __init__(self, connection: duckdb.DuckDBPyConnection, tenant_id: str) -> None:
        self._connection = connection
        self._tenant_id = tenant_id
        ((self._newest, self._known),) = connection.execute(
            """
            select max(data_version), max(data_version) filter (where is_here)
            from (
                select data_version, false as is_here from bundle.raw.tenant_versions where tenant_id = $tenant
                union all
                select data_version, true from raw.tenant_versions where tenant_id = $tenant
                union all
                select data_version, true from raw.tenant_moves where tenant_id = $tenant
            )
            """,
            {"tenant": tenant_id},
        ).fetchall()

    def record(self, object_name: str, batch_id: int) -> None:
        """Record the import; data versions continue after all numbers of either shard.

        A number that this shard used before, in the same epoch, must not return with other data.
        """
        if self._newest is not None:
            self._connection.execute(
                "insert into raw.tenant_versions values (?, ?, ?, ?, null, '')",
                [self._tenant_id, self._newest + 1, newest_publication(self._connection), stored_now()],
            )
        self._connection.execute("delete from raw.tenant_moves where tenant_id = ?", [self._tenant_id])
        self._connection.execute(
            "insert into raw.tenant_moves values (?, 'Arriving', ?, ?, ?, ?)",
            [self._tenant_id, object_name, batch_id, stored_now(), self._known],
        )


class _Network:
    """Facts of one network in the bundle."""

    def __init__(self, connection: duckdb.DuckDBPyConnection, network: str, tenant_id: str, batch_id: int) -> None:
        self.connection = connection
        self.network = network
        self.tenant_id = tenant_id
        self.batch_id = batch_id
        self.parameters = {"network": network, "batch": batch_id}

    def arrive(self) -> None:
        """Add the missing facts, and mark subjects of other tenants if the facts are in their views."""
        # Before rows are added.
        self._add_records()
        own = read_coverage(self.connection, self.network)
        self._add_headers()
        for table in ROW_TABLES.values():
            key = ", ".join(table.key)
            known = (
                f"anti join (select {key} from raw.{table.name} where network = $network) as known using ({key}) "
                "where moved.network = $network"
            )
            rows = _rows(table.name, self.batch_id, known)
            self._delete_incomplete(table)
            self.connection.execute(f"insert into raw.{table.name} by name {rows}", {"network": self.network})
        unknown = "anti join raw.unread_units as known using (network, unit_kind, block_number) where network = ?"
        rows = _rows("unread_units", self.batch_id, unknown)
        self.connection.execute(f"insert into raw.unread_units by name {rows}", [self.network])
        self._add_coverage(own)
        self._add_verified(own)
        self._mark_others()

    def _add_records(self) -> None:
        """Add the network's records if they are unknown here, and note that all readings are made if they are."""
        for table in ("network_states", "known_chains"):
            unknown = f"where moved.network = $network and not exists (from raw.{table} where network = $network)"
            rows = _rows(table, self.batch_id, unknown)
            self.connection.execute(f"insert into raw.{table} by name {rows}", {"network": self.network})
        self.connection.execute(
            """
            insert into raw.period_ends by name
            select moved.* from bundle.raw.period_ends as moved
            anti join raw.period_ends as known
                on moved.network = known.network and moved.period_end = known.period_end
            where moved.network = ?
            """,
            [self.network],
        )
        observed = self.connection.execute(
            """
            select
                exists (select 1 from bundle.raw.observed_batches where network = $network)
                and not exists (
                    select 1 from raw.movements as movements
                    where
                        movements.network = $network
                        and movements.batch_id > (
                            select coalesce(max(batch_id), -1) from raw.observed_batches where network = $network
                        )
                )
            """,
            {"network": self.network},
        ).fetchone()
        if observed == (True,):
            self.connection.execute("delete from raw.observed_batches where network = ?", [self.network])
            self.connection.execute("insert into raw.observed_batches values (?, ?)", [self.network, self.batch_id])
        # The imported headers were not compared with those that are here.
        self.connection.execute("delete from raw.checked_times where network = ?", [self.network])

    def _add_headers(self) -> None:
        """Add unknown headers. They belong to the tail only if they join it, or if the warehouse has none."""
        tail = self.connection.execute(
            "select max(block_number) from raw.blocks where network = ? and is_tail is distinct from false",
            [self.network],
        ).fetchone()
        assert tail is not None
        joins = tail[0] is None or (
            self.connection.execute(
                "select 1 from bundle.raw.blocks where network = ? and block_number = ?", [self.network, tail[0]]
            ).fetchone()
            is not None
        )
        self.connection.execute(
            """
            insert into raw.blocks by name
            select moved.* replace ($batch as batch_id, if($joins, moved.is_tail, false) as is_tail)
            from bundle.raw.blocks as moved
            anti join (select block_number from raw.blocks where network = $network) as known using (block_number)
            where moved.network = $network
            """,
            {**self.parameters, "joins": joins},
        )

    def _delete_incomplete(self, table: RowTable) -> None:
        """Delete the rows of which the bundle knows more: its coverage began earlier, with outputs unknown here."""
        if table.known is not None:
            same = " and ".join(f"stored.{column} = moved.{column}" for column in ("network", "block_hash", *table.key))
            self.connection.execute(
                f"delete from raw.{table.name} as stored using bundle.raw.{table.name} as moved "
                f"where stored.network = $network and {same} and stored.{table.known} < moved.{table.known}",
                {"network": self.network},
            )

    def _add_coverage(self, own: Mapping[Watched, Sequence[BlockRange]]) -> None:
        """Add the ranges that coverage lacks, and count the rows of all ranges that the import adds or fills."""
        columns = [column.name for column in TABLES["coverage"].columns]
        moved = self.connection.execute(
            f"select {', '.join(columns)} from bundle.raw.coverage where network = ? order by all", [self.network]
        ).pl()
        pieces = []
        for row in moved.iter_rows(named=True):
            whole = BlockRange(row["from_block"], row["to_block"])
            for piece in difference([whole], own.get(Watched(row["subject_kind"], row["address"]), [])):
                changed = {"from_block": piece.first, "to_block": piece.last, "row_count": 0, "batch_id": self.batch_id}
                pieces.append({**row, **changed})
        frame = pl.DataFrame(pieces, TABLES["coverage"].schema(*columns), orient="row")
        with registered(self.connection, pieces=frame):
            self.connection.execute("create or replace temp table moved_pieces as select * from pieces")
        self.connection.execute("insert into raw.coverage by name select * from moved_pieces")
        rows = " union all ".join(
            f"select subject_kind, named_address, block_number, batch_id from ({one})" for one in _named_rows()
        )
        self.connection.execute(
            f"""
            update raw.coverage as stored
            set row_count = counted.row_count
            from (
                select ranges.subject_kind, ranges.address, ranges.from_block, count(*) as row_count
                from ({rows}) as named
                inner join raw.coverage as ranges
                    on
                        ranges.network = $network
                        and named.subject_kind = ranges.subject_kind
                        and named.named_address = ranges.address
                        and named.block_number between ranges.from_block and ranges.to_block
                group by ranges.subject_kind, ranges.address, ranges.from_block
                having max(named.batch_id) = $batch or max(ranges.batch_id) = $batch
            ) as counted
            where
                stored.network = $network
                and stored.subject_kind = counted.subject_kind
                and stored.address = counted.address
                and stored.from_block = counted.from_block
            """,
            self.parameters,
        )

    def _add_verified(self, own: Mapping[Watched, Sequence[BlockRange]]) -> None:
        """Add second readings of ranges that were not collected here: those of other rows say nothing."""
        moved = self.connection.execute(
            """
            select subject_kind, address, from_block, to_block, is_sampled
            from bundle.raw.verified_ranges
            where network = ?
            order by all
            """,
            [self.network],
        ).fetchall()
        pieces = [
            (self.network, kind, address, *piece, is_sampled)
            for kind, address, first, last, is_sampled in moved
            for piece in difference([BlockRange(first, last)], own.get(Watched(kind, address), []))
        ]
        frame = pl.DataFrame(pieces, TABLES["verified_ranges"].schema(), orient="row")
        with registered(self.connection, pieces=frame):
            self.connection.execute("insert into raw.verified_ranges by name select * from pieces")

    def _mark_others(self) -> None:
        """Mark tokens and wallets of other tenants with a view in which rows or collected blocks were added."""
        self.connection.execute(*named("mark_filled_views", {**self.parameters, "tenant": self.tenant_id}))


def _named_rows() -> list[str]:
    """Return a query of the kinds and addresses that each row names, for each table and kind."""
    return [_named(table, kind) for table in ROW_TABLES.values() for kind in sorted(table.kinds)]


def _named(table: RowTable, kind: Kind) -> str:
    key = ", ".join(table.key)
    addresses = ", ".join(table.addressed(kind))
    return f"""
        select distinct '{kind}' as subject_kind, {key}, batch_id, unnest([{addresses}]) as named_address
        from raw.{table.name}
        where network = $network
    """


def _add_readings(connection: duckdb.DuckDBPyConnection, tenant_id: str, batch_id: int) -> None:
    """Add readings that are unknown here, and let the tenant see those that are known."""
    for table, key in KEYS.items():
        same = " and ".join(f"stored.{column} = moved.{column}" for column in ("network", *key))
        parameters = {"tenant": tenant_id, "batch": batch_id}
        connection.execute(
            f"""
            update raw.{table} as stored
            set
                visible_to = if(
                    stored.visible_to is null,
                    map([$tenant], [$batch::bigint]),
                    map_concat(stored.visible_to, map([$tenant], [$batch::bigint]))
                ),
                batch_id = $batch
            from bundle.raw.{table} as moved
            where {same}
            """,
            parameters,
        )
        connection.execute(
            f"""
            insert into raw.{table} by name
            select moved.* replace ($batch as batch_id, map([$tenant], [$batch::bigint]) as visible_to)
            from bundle.raw.{table} as moved
            anti join raw.{table} as stored on {same}
            """,
            parameters,
        )


def _add_prices(connection: duckdb.DuckDBPyConnection, batch_id: int) -> None:
    """Add the prices and markets that are unknown here; the pairs' windows are imported already.

    Markets get no batch: tenants that use the same source would get another data version.
    """
    connection.execute(
        """
        insert into raw.prices by name
        select moved.* replace ($batch as batch_id) from bundle.raw.prices as moved
        anti join raw.prices as known
            on
                moved.source_id = known.source_id
                and moved.market_id = known.market_id
                and moved.price_type = known.price_type
                and moved.window_start = known.window_start
                and moved.effective_from = known.effective_from
        """,
        {"batch": batch_id},
    )
    connection.execute(
        """
        insert into raw.markets by name
        select moved.* replace (0 as batch_id) from bundle.raw.markets as moved
        anti join raw.markets as known
            on moved.source_id = known.source_id and moved.market_id = known.market_id
        """
    )


def _mark(connection: duckdb.DuckDBPyConnection, batch_id: int) -> None:
    """Mark all tokens, wallets and pairs of the tenant."""
    connection.execute(
        "insert into raw.changes select ?, subject_key, 0, null, 'View' from bundle.raw.control_subjects", [batch_id]
    )
    connection.execute(
        "insert into raw.price_changes select ?, pair_key, null from moving_keys where pair_key is not null", [batch_id]
    )


def is_imported(connection: duckdb.DuckDBPyConnection, tenant_id: str, object_name: str) -> bool:
    """Return whether the rows of a tenant were imported from this object."""
    row = connection.execute(
        "select 1 from raw.tenant_moves where tenant_id = ? and object_name = ?", [tenant_id, object_name]
    ).fetchone()
    return row is not None


def find_imported(connection: duckdb.DuckDBPyConnection, batch_id: int | None = None) -> dict[str, str]:
    """Return the objects of imported tenants that are not served from here, by tenant.

    Args:
        connection: the open warehouse.
        batch_id: return those that a build up to this batch contains; None: all.
    """
    return dict(
        connection.execute(
            """
            select tenant_id, object_name
            from raw.tenant_moves
            where
                status = 'Arriving'
                and ($batch is null or (
                    batch_id <= $batch and tenant_id in (select tenant_id from raw.control_tenants)
                ))
            order by tenant_id
            """,
            {"batch": batch_id},
        ).fetchall()
    )


def find_uncollected(connection: duckdb.DuckDBPyConnection, tenant_id: str, batch_id: int) -> list[str]:
    """Return the networks on which a tenant tracks, and that no complete cycle since the import has collected.

    Args:
        connection: the open warehouse.
        tenant_id: an imported tenant.
        batch_id: newest cycle that counts.
    """
    rows = connection.execute(
        """
        select distinct subjects.network
        from raw.control_subjects as subjects
        inner join raw.control_windows as windows on subjects.subject_key = windows.subject_key
        inner join raw.tenant_moves as moves on subjects.tenant_id = moves.tenant_id
        left join raw.network_states as states
            on
                subjects.network = states.network
                and states.batch_id > moves.batch_id
                and states.batch_id <= $batch
                and list_contains($served, states.status)
        where
            subjects.tenant_id = $tenant
            and windows.closed_at is null
            and states.network is null
        order by subjects.network
        """,
        {"tenant": tenant_id, "batch": batch_id, "served": SERVED},
    ).fetchall()
    return [network for (network,) in rows]


def record_arrived(connection: duckdb.DuckDBPyConnection, tenant_id: str) -> None:
    """Record that a tenant is served from this shard."""
    connection.execute("update raw.tenant_moves set status = 'Arrived' where tenant_id = ?", [tenant_id])
