"""Rows of covered ranges, in parts of a bounded size: for exports and for lakes."""

from collections.abc import Iterable, Iterator, Mapping, Sequence

import duckdb
import polars as pl

from control.ranges import BlockRange
from pipelines.chain.coverage import Watched
from pipelines.raw.frames import registered
from pipelines.tables.sources import TABLES
from pipelines.tables.table import RowTable

RANGE = ("subject_kind", "address", "from_block", "to_block")
"""Columns of a range of coverage."""


def keep_ranges(connection: duckdb.DuckDBPyConnection, ranges: Mapping[Watched, Iterable[BlockRange]]) -> None:
    """Create the temporary table `covered` of these ranges, which are disjoint for each address."""
    with registered(connection, kept=frame_of(ranges)):
        connection.execute("create or replace temp table covered as select * from kept")


def frame_of(ranges: Mapping[Watched, Iterable[BlockRange]]) -> pl.DataFrame:
    """Return one row (columns of RANGE) for each range."""
    rows = [(*watched, *one) for watched, parts in ranges.items() for one in parts]
    return pl.DataFrame(rows, TABLES["coverage"].schema(*RANGE), orient="row")


def rows_in_ranges(table: RowTable, stored: str, joined: str = "") -> str:
    """Return the clauses of a query for the rows of which an address has a range in the table `covered`.

    Other rows may be incomplete, or no longer checked. No row is doubled.

    Args:
        table: description of the rows.
        stored: table with the rows, which the query calls `stored`. Its parameters are `first` and `last`.
        joined: further joins.
    """
    places = [(kind, column) for kind in sorted(table.kinds) for column in table.addressed(kind)]
    joins = " ".join(
        f"left join covered as covered_{number} on covered_{number}.subject_kind = '{kind}' "
        f"and covered_{number}.address = stored.{column} "
        f"and stored.block_number between covered_{number}.from_block and covered_{number}.to_block"
        for number, (kind, column) in enumerate(places)
    )
    found = " or ".join(f"covered_{number}.address is not null" for number in range(len(places)))
    return f"from {stored} as stored {joined} {joins} where stored.block_number between $first and $last and ({found})"


def stored_in_ranges(table: RowTable, joined: str = "") -> str:
    """Return the clauses as `rows_in_ranges` for the stored rows of one network, the parameter `network`."""
    return f"{rows_in_ranges(table, f'raw.{table.name}', joined)} and stored.network = $network"


def parts_of(
    connection: duckdb.DuckDBPyConnection, network: str, tables: Sequence[RowTable], most_rows: int
) -> list[tuple[BlockRange, int]]:
    """Cut the blocks of the table `covered` into adjoining ranges; return each with its number of stored rows.

    Args:
        tables: the rows to count.
        most_rows: limit of a part; a single block may have more.
    """
    row = connection.execute("select min(from_block), max(to_block) from covered").fetchone()
    if row is None or row[0] is None:
        return []
    span = BlockRange(*row)
    numbers = " union all ".join(f"select stored.block_number {stored_in_ranges(table)}" for table in tables)
    counts = connection.execute(
        f"select block_number, count(*) from ({numbers}) group by block_number order by block_number",
        {"network": network, "first": span.first, "last": span.last},
    )
    return list(cut(iter(counts.fetchone, None), span, most_rows))


def cut(counts: Iterable[tuple[int, int]], span: BlockRange, most_rows: int) -> Iterator[tuple[BlockRange, int]]:
    """Cut a range of blocks between blocks, so that no part has more than `most_rows` rows.

    A block with more rows shares its part only with blocks without rows.

    Args:
        counts: number of rows of each block that has rows, in the order of blocks.
        span: range that contains these blocks.
        most_rows: limit.

    Yields:
        Adjoining parts, each with the number of its rows.
    """
    first, total = span.first, 0
    for number, count in counts:
        if total and total + count > most_rows:
            yield BlockRange(first, number - 1), total
            first, total = number, 0
        total += count
    yield BlockRange(first, span.last), total
