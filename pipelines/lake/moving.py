"""Moves of a network's settled facts from the warehouse to its lake and back, and the comparison of both."""

from collections.abc import Callable, Mapping
from contextlib import closing
from typing import NamedTuple

import duckdb

from control.networks.definitions import Network
from control.ranges import BlockRange, difference, intersection
from pipelines.balances.readings import KEYS
from pipelines.chain.coverage import Watched, read_coverage, read_second_readings
from pipelines.chain.covered import frame_of, keep_ranges
from pipelines.chain.finality import read_known_chain
from pipelines.chain.missing import missing_segments
from pipelines.chain.segments import Collector, NetworkReport
from pipelines.extract.families import open_node
from pipelines.lake.giving import give
from pipelines.lake.reading import QUANTITIES, read_ranges, read_verified
from pipelines.lake.tables import READINGS, names_of, row_tables, selected
from pipelines.lake.taking import take
from pipelines.raw.builds import finish_batch
from pipelines.rows import WorkClass
from pipelines.tables.table import RowTable
from pipelines.tenants.configuration import open_batch
from warehouse.lakes import Lake, LakeError, OpenLake


class DifferentLakeError(LakeError):
    """A table of the lake and the warehouse differ; nothing is removed."""

    def __init__(self, network: str, table: str, block_number: int) -> None:
        super().__init__(
            f"{network}: the table {table} of the lake differs from the warehouse, for example in block "
            f"{block_number}; nothing was removed"
        )


class Moved(NamedTuple):
    """Result of a move.

    Attributes:
        settled: newest settled block, up to which facts were moved; None before there is one.
        rows: number of rows added.
        compared: number of equal rows by table; for coverage and second readings, of ranges.
    """

    settled: int | None
    rows: int
    compared: dict[str, int]


def move_to_lake(
    connection: duckdb.DuckDBPyConnection,
    network: Network,
    lake: Lake,
    wait_seconds: float,
    stored: Callable[[BlockRange], None] = lambda _: None,
) -> Moved:
    """Give all settled facts of a network to its lake, also those given before, and compare both.

    Args:
        connection: the open warehouse.
        network: its family has a lake.
        lake: of the network.
        wait_seconds: longest wait for another writer of the lake.
        stored: called with the blocks of each part after it is in the lake.

    Raises:
        DifferentLakeError: the lake and the warehouse differ.
        LakeError: as `give`; parts that were committed stay.
    """
    rows = give(connection, network, lake, wait_seconds, is_complete=True, stored=stored)
    return _compared(connection, network, lake, rows)


def move_back(
    connection: duckdb.DuckDBPyConnection,
    network: Network,
    lake: Lake,
    wait_seconds: float,
    stored: Callable[[BlockRange], None] = lambda _: None,
) -> tuple[Moved, int | None]:
    """Take missing blocks of the network's tokens and wallets from the lake, and compare both.

    The lake is given the warehouse's newest settled facts, too, so that all of them are compared.

    Args:
        connection: the open warehouse.
        network: its family has a lake, and its node answers.
        lake: of the network.
        wait_seconds: longest wait for another writer of the lake.
        stored: called with the blocks of each part after it is in the warehouse.

    Returns:
        The result, and the batch of the taken rows; None if nothing was missing.

    Raises:
        DifferentLakeError: the lake and the warehouse differ.
        ExtractError: the lake or the node does not answer; parts that were stored stay.
        LakeError: as `give`.
    """
    head, final = connection.execute(
        "select max(head_number), max(final_number) from raw.network_states where network = ?", [network.name]
    ).fetchall()[0]
    missing = [
        segment
        for is_live in (True, False)
        for segment in missing_segments(connection, network.name, -1 if head is None else head, is_live=is_live)
    ]
    rows, batch_id = 0, None
    if missing:
        before = _count_rows(connection, network)
        batch_id = open_batch(connection, f"facts of network {network.name} from its lake")
        with closing(open_node(network)) as node:
            final_number = -1 if final is None else final
            capabilities = node.probe()
            report = NetworkReport(network.name)
            purpose = WorkClass.HISTORY
            collector = Collector(connection, node, capabilities, final_number, batch_id, report, purpose)
            for part in take(collector, lake, missing):
                stored(part.covered)
        finish_batch(connection, batch_id)
        rows = _count_rows(connection, network) - before
    give(connection, network, lake, wait_seconds, is_complete=True)
    return _compared(connection, network, lake, rows), batch_id


def is_same_chain(connection: duckdb.DuckDBPyConnection, network: str, opened: OpenLake) -> bool:
    """Return whether the lake has a block of the warehouse, with the same hash."""
    blocks = connection.execute("select block_number, block_hash from raw.blocks where network = ?", [network])
    opened.load("own_blocks", blocks.to_arrow_reader(100_000))
    row = opened.run(
        "select count(*) from lake.blocks semi join own_blocks using (block_number, block_hash)"
    ).fetchone()
    assert row is not None
    return bool(row[0])


def compare(connection: duckdb.DuckDBPyConnection, opened: OpenLake, network: Network) -> dict[str, int]:
    """Compare the warehouse's settled facts with the lake, which may have more facts of other shards.

    Returns:
        The number of equal rows by table; for coverage and second readings, of ranges.

    Raises:
        DifferentLakeError: they differ.
    """
    settled = read_known_chain(connection, network.name).settled_number
    return _Comparison(connection, opened, network, settled).run()


def _compared(connection: duckdb.DuckDBPyConnection, network: Network, lake: Lake, rows: int) -> Moved:
    settled = read_known_chain(connection, network.name).settled_number
    if settled < 0:
        return Moved(None, rows, {})
    # One transaction reads one snapshot while other shards write.
    with lake.open(is_read_only=True) as opened, opened.transaction():
        return Moved(settled, rows, compare(connection, opened, network))


def _count_rows(connection: duckdb.DuckDBPyConnection, network: Network) -> int:
    counts = [
        connection.execute(f"select count(*) from raw.{table.name} where network = ?", [network.name]).fetchall()
        for table in row_tables(network)
    ]
    return sum(count for ((count,),) in counts)


class _Comparison:
    """Comparison of settled facts, which shares no statement with giving and taking."""

    def __init__(self, connection: duckdb.DuckDBPyConnection, opened: OpenLake, network: Network, settled: int) -> None:
        self.connection = connection
        self.opened = opened
        self.network = network.name
        self.tables = row_tables(network)
        self.span = BlockRange(0, settled)

    def run(self) -> dict[str, int]:
        """Compare all tables; return the numbers of equal rows.

        Raises:
            DifferentLakeError: they differ.
        """
        coverage = self._settled(read_coverage(self.connection, self.network))
        held = read_ranges(self.opened, "coverage", list(coverage))
        counts = {"coverage": self._check_ranges("coverage", coverage, held)}
        verified = 0
        for is_sampled in (False, True):
            ranges = self._settled(read_second_readings(self.connection, self.network, is_sampled=is_sampled))
            held = read_verified(self.opened, list(ranges), is_sampled=is_sampled)
            verified += self._check_ranges("verified_ranges", ranges, held)
        counts["verified_ranges"] = verified
        keep_ranges(self.connection, coverage)
        self.opened.load("covered", frame_of(coverage))
        own = {table.name: self._own_rows(table) for table in self.tables}
        lake = {table.name: self._lake_rows(table) for table in self.tables}
        for name in own:
            counts[name] = self._check_rows(name, own[name], lake[name])
        counts["blocks"] = self._check_rows(
            "blocks",
            _headers(f"(select * from raw.blocks where network = '{self.network}')", list(own.values())),
            _headers("lake.blocks", list(lake.values())),
        )
        for name in READINGS:
            counts[name] = self._check_readings(name)
        return counts

    def _settled(self, ranges: Mapping[Watched, list[BlockRange]]) -> dict[Watched, list[BlockRange]]:
        found = {watched: intersection(parts, [self.span]) for watched, parts in ranges.items()}
        return {watched: parts for watched, parts in found.items() if parts}

    def _check_ranges(
        self, table: str, own: Mapping[Watched, list[BlockRange]], held: Mapping[Watched, list[BlockRange]]
    ) -> int:
        """Check that the lake has these ranges; it may have more of other shards. Return their number."""
        lacking = [part.first for watched, parts in own.items() for part in difference(parts, held.get(watched, []))]
        if lacking:
            raise DifferentLakeError(self.network, table, min(lacking))
        return sum(map(len, own.values()))

    def _own_rows(self, table: RowTable) -> str:
        rows = f"select {selected(table.name)} from raw.{table.name} as stored"
        return f"{rows} where stored.network = '{self.network}' and ({_is_covered(table)})"

    def _lake_rows(self, table: RowTable) -> str:
        columns = ", ".join(f"stored.{name}" for name in names_of(table.name))
        return f"select {columns} from lake.{table.name} as stored where {_is_covered(table)}"

    def _check_readings(self, table: str) -> int:
        """Check that the lake has the warehouse's readings, with their tenants; it may have more of other shards."""
        key = ", ".join(KEYS[table])
        quantity = QUANTITIES[table]
        own = f"""
            select {key}, {quantity}, tenant_ids
            from (select {selected(table)} from raw.{table} as stored where stored.network = '{self.network}')
            where block_number <= {self.span.last}
        """
        self.opened.load("own_readings", self.connection.execute(own).to_arrow_reader(100_000))
        lake = f"""
            select
                {key}, known.{quantity},
                list_sort(list_intersect(known.tenant_ids, own_readings.tenant_ids)) as tenant_ids
            from lake.{table} as known inner join own_readings using ({key})
        """
        return self._check_rows(table, own, lake)

    def _check_rows(self, table: str, own: str, lake: str) -> int:
        """Compare the results of two queries by their number and an order-free hash; return the number.

        Raises:
            DifferentLakeError: they differ.
        """

        def digest(blocks: BlockRange, *, is_own: bool) -> tuple[int, int | None]:
            rows = own if is_own else lake
            statement = f"""
                select count(*), bit_xor(hash(facts::varchar))
                from (select * from ({rows}) where block_number between {blocks.first} and {blocks.last}) as facts
            """
            found = (self.connection.execute(statement) if is_own else self.opened.run(statement)).fetchone()
            assert found is not None
            return found[0], found[1]

        def differs(blocks: BlockRange) -> bool:
            return digest(blocks, is_own=True) != digest(blocks, is_own=False)

        if not differs(self.span):
            return digest(self.span, is_own=True)[0]
        first, last = self.span
        while first < last:
            middle = (first + last) // 2
            first, last = (first, middle) if differs(BlockRange(first, middle)) else (middle + 1, last)
        raise DifferentLakeError(self.network, table, first)


def _is_covered(table: RowTable) -> str:
    """Return the condition that an address of a row, `stored`, has a range in the table `covered` with its block."""
    return " or ".join(
        f"exists (select 1 from covered where covered.subject_kind = '{kind}' and covered.address = stored.{column} "
        "and stored.block_number between covered.from_block and covered.to_block)"
        for kind in sorted(table.kinds)
        for column in table.addressed(kind)
    )


def _headers(blocks: str, queries: list[str]) -> str:
    """Return the query of the headers of the rows' blocks; parents are left out, since files do not have them."""
    numbers = " union all ".join(f"select block_number from ({query})" for query in queries)
    return f"select block_number, block_hash, block_time from {blocks} where block_number in ({numbers})"
