"""Giving: settled facts that the lake lacks are added to it, part by part, each with its coverage in one transaction.

Settled blocks are final for an hour, and no answer of a node removes them, so the lake never has an orphaned block.
The missing facts follow from coverage, which is the only cursor. A killed writer leaves whole parts.
"""

import logging
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import NamedTuple

import duckdb

from control.clock import stored_now
from control.networks.definitions import Network
from control.ranges import BlockRange, difference, intersection, merged
from pipelines.balances.readings import KEYS
from pipelines.chain.coverage import Watched, read_coverage, read_second_readings
from pipelines.chain.covered import frame_of, keep_ranges, parts_of, rows_in_ranges, stored_in_ranges
from pipelines.chain.finality import read_known_chain
from pipelines.chain.states import record_failure
from pipelines.lake.reading import QUANTITIES, ContradictedLakeError, read_ranges, read_verified
from pipelines.lake.tables import READINGS, names_of, row_tables, selected
from pipelines.raw.database import transaction
from pipelines.raw.frames import registered
from pipelines.tables.table import RowTable
from warehouse.lakes import Lake, LakeError, OpenLake

_LOG = logging.getLogger(__name__)

MOST_ROWS = 1_000_000
"""Rows of one transaction in all tables together; a single block may have more."""

_FRAME_ROWS = 100_000
# Live collection does not wait longer for another writer.
_WAIT_SECONDS = 5.0
# Null where a node no longer has the receipt.
_OF_RECEIPTS = ("fee_raw", "gas_used", "is_success")
_ORIGIN = ("provider", "data_set", "collected_at")


class _Rows(NamedTuple):
    """Rows that are added to a table of the lake, which may have some of them.

    Attributes:
        table: its name.
        key: columns that identify a row.
        compared: further columns that must be equal.
        token: the column by which the lake's rows are narrowed; None where the table has none.
        bounds: blocks of the rows.
    """

    table: str
    key: tuple[str, ...]
    compared: Sequence[str]
    token: str | None
    bounds: BlockRange


class Given(NamedTuple):
    """The settled block and the cycle up to which facts were given before."""

    settled: int
    batch: int


def give(
    connection: duckdb.DuckDBPyConnection,
    network: Network,
    lake: Lake,
    wait_seconds: float,
    *,
    is_complete: bool = False,
    stored: Callable[[BlockRange], None] = lambda _: None,
) -> int:
    """Add the settled facts of a network that the lake lacks; return the number of rows added.

    Args:
        connection: the open warehouse.
        network: its family has a lake.
        lake: of the network.
        wait_seconds: longest wait for another writer.
        is_complete: compare all facts with the lake, not only those since the last time; for a restored lake.
        stored: called with the blocks of each missing part after it is in the lake.

    Raises:
        ContradictedLakeError: the lake has another fact for the same block.
        LakeError: the lake does not answer, or another writer holds it; committed parts stay.
    """
    settled = read_known_chain(connection, network.name).settled_number
    given = Given(-1, -1) if is_complete else _read_given(connection, network.name)
    batch = _newest_batch(connection, network.name, settled)
    if settled < 0 or (settled <= given.settled and batch <= given.batch):
        return 0
    own = {
        watched: ranges
        for watched, parts in read_coverage(connection, network.name).items()
        if (ranges := intersection(parts, [BlockRange(0, settled)]))
    }
    untraced = [
        BlockRange(number, number)
        for (number,) in connection.execute(
            "select block_number from raw.unread_units where network = ? and unit_kind = 'traces'", [network.name]
        ).fetchall()
    ]
    # Their rows are not complete before they are traced.
    own |= {watched: difference(ranges, untraced) for watched, ranges in own.items() if watched.kind == "native"}
    with lake.writing("giving facts", wait_seconds) as opened:
        giving = _Giving(connection, opened, network, own)
        rows = giving.correct(given)
        rows += giving.add_missing(stored)
        giving.add_verified(settled)
        rows += giving.add_readings(settled, given)
    with transaction(connection):
        connection.execute("delete from raw.lake_states where network = ?", [network.name])
        note = [network.name, settled, batch, stored_now()]
        connection.execute("insert into raw.lake_states values (?, ?, ?, ?)", note)
    return rows


def give_or_note(connection: duckdb.DuckDBPyConnection, network: Network, lake: Lake, batch_id: int) -> None:
    """Give facts as `give`; a failure is recorded, and the next cycle gives them."""
    try:
        give(connection, network, lake, _WAIT_SECONDS)
    except LakeError as error:
        _LOG.warning("%s", error)
        record_failure(connection, network.name, "lake", (None, None), str(error), batch_id)


def _read_given(connection: duckdb.DuckDBPyConnection, network: str) -> Given:
    row = connection.execute(
        "select settled_number, batch_id from raw.lake_states where network = ?", [network]
    ).fetchone()
    return Given(-1, -1) if row is None else Given(*row)


def _newest_batch(connection: duckdb.DuckDBPyConnection, network: str, settled: int) -> int:
    """Return the newest cycle with settled facts; -1 without any."""
    row = connection.execute(
        """
        select max(batch_id)
        from (
            select batch_id from raw.collections where network = $network and from_block <= $settled
            union all
            select batch_id from raw.balance_observations where network = $network and block_number <= $settled
            union all
            select batch_id from raw.supply_observations where network = $network and block_number <= $settled
            union all
            select batch_id from raw.verifications where network = $network and from_block <= $settled
        )
        """,
        {"network": network, "settled": settled},
    ).fetchone()
    return -1 if row is None or row[0] is None else int(row[0])


class _Giving:
    """One writing of the lake.

    Args:
        own: this shard's settled coverage.
    """

    def __init__(
        self,
        connection: duckdb.DuckDBPyConnection,
        opened: OpenLake,
        network: Network,
        own: Mapping[Watched, list[BlockRange]],
    ) -> None:
        self.connection = connection
        self.opened = opened
        self.network = network.name
        self.tables = row_tables(network)
        self.own = own
        self.held = read_ranges(opened, "coverage", list(own))

    def correct(self, given: Given) -> int:
        """Replace rows that second readings have corrected since; return the number of rows added."""
        corrected = [
            BlockRange(first, last)
            for first, last in self.connection.execute(
                """
                select from_block, to_block from raw.verifications
                where network = ? and batch_id > ? and coalesce(removed_rows, 0) + coalesce(added_rows, 0) > 0
                """,
                [self.network, given.batch],
            ).fetchall()
        ]
        added = 0
        for part in merged(corrected):
            ranges = {
                watched: intersection(intersection(self.own[watched], held), [part])
                for watched, held in self.held.items()
            }
            if any(ranges.values()):
                keep_ranges(self.connection, ranges)
                self.opened.load("covered", frame_of(ranges))
                added += self.opened.commit(partial(self._replace, part))
        return added

    def _replace(self, part: BlockRange) -> int:
        added = 0
        self._begin_numbers()
        for table in self.tables:
            self._read_incoming(table, part)
            key, names = ", ".join(table.key), names_of(table.name)
            stored = rows_in_ranges(table, f"lake.{table.name}")
            self.opened.run(
                f"create or replace temp table outdated as select {key} from "
                f"(select {_prefixed(names, 'stored')} {stored} except select {', '.join(names)} from incoming)",
                {"first": part.first, "last": part.last},
            )
            self.opened.run(
                f"delete from lake.{table.name} where block_number between ? and ? and ({key}) in (from outdated)",
                list(part),
            )
            added += self._add_incoming(_rows_of(table, part))
        self._add_headers()
        return added

    def add_missing(self, stored: Callable[[BlockRange], None]) -> int:
        """Add the rows, headers and coverage of ranges that the lake lacks; return the number of rows added."""
        self._keep_missing(self.own, self.held)
        added = 0
        for part, _ in parts_of(self.connection, self.network, self.tables, MOST_ROWS):
            added += self.opened.commit(partial(self._add_part, part))
            stored(part)
        return added

    def _keep_missing(self, own: Mapping[Watched, list[BlockRange]], held: Mapping[Watched, list[BlockRange]]) -> None:
        missing = {watched: difference(ranges, held.get(watched, [])) for watched, ranges in own.items()}
        keep_ranges(self.connection, missing)

    def _add_part(self, part: BlockRange) -> int:
        # In the transaction that adds them: a writer that has lost its lock must not add a range twice.
        held = read_ranges(self.opened, "coverage", list(self.own))
        self._keep_missing({watched: intersection(ranges, [part]) for watched, ranges in self.own.items()}, held)
        added = 0
        self._begin_numbers()
        for table in self.tables:
            self._read_incoming(table, part)
            rows = _rows_of(table, part)
            self._check_known(rows)
            added += self._add_incoming(rows)
        self._add_coverage(part)
        self._add_headers()
        return added

    def _begin_numbers(self) -> None:
        """Begin the table `numbers`: blocks with headers that must be in the lake."""
        self.opened.run("create or replace temp table numbers (block_number bigint)")

    def _read_incoming(self, table: RowTable, part: BlockRange) -> None:
        """Copy a part's rows into the table `incoming` of the lake's engine, and their blocks into `numbers`."""
        order = ", ".join(f"stored.{name}" for name in dict.fromkeys([*filter(None, [table.token]), *table.key]))
        rows = self.connection.execute(
            f"select {selected(table.name)} {stored_in_ranges(table)} order by {order}",
            {"network": self.network, "first": part.first, "last": part.last},
        ).to_arrow_reader(_FRAME_ROWS)
        self.opened.load("incoming", rows)
        self.opened.run("insert into numbers select distinct block_number from incoming")

    def _check_known(self, rows: _Rows) -> None:
        """Raise if the lake has another row with the key of an incoming one."""
        row = self.opened.run(
            f"""
            select min(known.block_number)
            from {_known(rows)} as known inner join incoming using ({", ".join(rows.key)})
            where {" or ".join(_differs(name) for name in rows.compared)}
            """,
            list(rows.bounds),
        ).fetchone()
        if row is not None and row[0] is not None:
            raise ContradictedLakeError(self.network, rows.table, row[0])

    def _add_incoming(self, rows: _Rows) -> int:
        """Add the incoming rows that the lake lacks; return their number."""
        columns = ", ".join(names_of(rows.table))
        row = self.opened.run(
            f"""
            insert into lake.{rows.table} ({columns})
            select {columns} from incoming anti join {_known(rows)} as known using ({", ".join(rows.key)})
            """,
            list(rows.bounds),
        ).fetchone()
        assert row is not None
        return int(row[0])

    def _add_headers(self) -> None:
        """Add the headers of the blocks in `numbers` that the lake lacks."""
        numbers = self.opened.run("select distinct block_number from numbers").pl()
        with registered(self.connection, numbers=numbers):
            headers = self.connection.execute(
                f"""
                select {selected("blocks")} from raw.blocks as stored
                where stored.network = ? and stored.block_number in (from numbers)
                order by stored.block_number
                """,
                [self.network],
            ).pl()
        self.opened.load("headers", headers)
        differing = self.opened.run(
            """
            select min(block_number) from lake.blocks as known inner join headers using (block_number)
            where known.block_hash != headers.block_hash
            """
        ).fetchone()
        if differing is not None and differing[0] is not None:
            raise ContradictedLakeError(self.network, "blocks", differing[0])
        self.opened.run(
            """
            insert into lake.blocks by name
            select * from headers
            where block_number not in (
                select block_number from lake.blocks
                where block_number between
                    (select min(block_number) from headers) and (select max(block_number) from headers)
            )
            """
        )

    def _add_coverage(self, part: BlockRange) -> None:
        """Record a part's ranges; one that continues a range of the same origin extends it."""
        ranges = self.connection.execute(
            f"""
            select
                stored.subject_kind,
                stored.address,
                greatest(stored.from_block, covered.from_block, $first) as from_block,
                least(stored.to_block, covered.to_block, $last) as to_block,
                {", ".join(f"stored.{name}" for name in _ORIGIN)}
            from raw.coverage as stored
            inner join covered on stored.subject_kind = covered.subject_kind and stored.address = covered.address
            where
                stored.network = $network
                and greatest(stored.from_block, covered.from_block, $first)
                <= least(stored.to_block, covered.to_block, $last)
            """,
            {"network": self.network, "first": part.first, "last": part.last},
        ).pl()
        self.opened.load("ranges", ranges)
        self.opened.run("insert into numbers select from_block from ranges union select to_block from ranges")
        same = """
            stored.subject_kind = ranges.subject_kind and stored.address = ranges.address
            and stored.provider = ranges.provider and stored.data_set is not distinct from ranges.data_set
        """
        self.opened.run(
            f"""
            update lake.coverage as stored set to_block = ranges.to_block, collected_at = ranges.collected_at
            from ranges where {same} and stored.to_block = ranges.from_block - 1
            """
        )
        self.opened.run(
            f"""
            insert into lake.coverage by name
            select * from ranges
            where not exists (select 1 from lake.coverage as stored where {same} and stored.to_block = ranges.to_block)
            """
        )

    def add_verified(self, settled: int) -> None:
        """Add the ranges that were read a second time."""
        for is_sampled in (False, True):
            read = read_second_readings(self.connection, self.network, is_sampled=is_sampled)
            ranges = {watched: intersection(parts, [BlockRange(0, settled)]) for watched, parts in read.items()}
            self.opened.commit(partial(self._add_verified, ranges, is_sampled=is_sampled))

    def _add_verified(self, ranges: Mapping[Watched, list[BlockRange]], *, is_sampled: bool) -> None:
        held = read_verified(self.opened, list(ranges), is_sampled=is_sampled)
        new = {watched: difference(parts, held.get(watched, [])) for watched, parts in ranges.items()}
        if any(new.values()):
            self.opened.load("ranges", frame_of(new))
            self.opened.run(
                f"insert into lake.verified_ranges by name select *, {is_sampled} as is_sampled from ranges"
            )

    def add_readings(self, settled: int, given: Given) -> int:
        """Add readings of balances and supplies that are new, or settled by now, with the tenants that may see them."""
        return sum(self.opened.commit(partial(self._add_readings, table, settled, given)) for table in READINGS)

    def _add_readings(self, table: str, settled: int, given: Given) -> int:
        readings = self.connection.execute(
            f"""
            select {selected(table)} from raw.{table} as stored
            where
                stored.network = ? and stored.block_number <= ?
                and (stored.block_number > ? or stored.batch_id > ?)
            """,
            [self.network, settled, *given],
        ).to_arrow_reader(_FRAME_ROWS)
        self.opened.load("incoming", readings)
        bounds = self.opened.run("select min(block_number), max(block_number) from incoming").fetchone()
        if bounds is None or bounds[0] is None:
            return 0
        rows = _Rows(table, KEYS[table], (QUANTITIES[table],), "token_address", BlockRange(*bounds))
        self._check_known(rows)
        self.opened.run(
            f"""
            update lake.{table} as stored
            set tenant_ids = list_sort(list_distinct(list_concat(stored.tenant_ids, incoming.tenant_ids)))
            from incoming
            where {" and ".join(f"stored.{name} = incoming.{name}" for name in rows.key)}
                and not list_has_all(stored.tenant_ids, incoming.tenant_ids)
            """
        )
        added = self._add_incoming(rows)
        self._begin_numbers()
        self.opened.run("insert into numbers select distinct block_number from incoming")
        self._add_headers()
        return added


def _rows_of(table: RowTable, bounds: BlockRange) -> _Rows:
    compared = [name for name in names_of(table.name) if name not in table.key]
    return _Rows(table.name, table.key, compared, table.token, bounds)


def _known(rows: _Rows) -> str:
    """Return the rows of the lake that may have the keys of incoming ones; the parameters are the bounds."""
    token = "" if rows.token is None else f" and {rows.token} in (select distinct {rows.token} from incoming)"
    return f"(select * from lake.{rows.table} where block_number between ? and ?{token})"


def _differs(name: str) -> str:
    operator = "!=" if name in _OF_RECEIPTS else "is distinct from"
    return f"known.{name} {operator} incoming.{name}"


def _prefixed(names: Sequence[str], source: str) -> str:
    return ", ".join(f"{source}.{name}" for name in names)
