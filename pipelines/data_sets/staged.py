"""Staged rows of a unit of files, in the form of the raw tables."""

from collections.abc import Iterator, Sequence

import polars as pl

from control.ranges import BlockRange
from pipelines.data_sets.listing import Unit
from pipelines.data_sets.reader import Reader
from pipelines.extract.data_sets import FileForm
from pipelines.extract.family import HEADERS
from pipelines.rows import Kind, Segment
from pipelines.tables.families import ROW_TABLES
from pipelines.tables.table import BIGNUM, RowTable

# Rows of a part: some 50 MB decoded. Each write costs some 15 ms of processor time, regardless of its size.
ROWS_PER_PART = 100_000


class Staged:
    """The staged rows of a unit.

    Args:
        reader: has the rows.
        unit: its files.
        form: the form of the files.
        tables: the raw tables with rows.
    """

    def __init__(self, reader: Reader, unit: Unit, form: FileForm, tables: Sequence[str]) -> None:
        self.reader = reader
        self.unit = unit
        self.form = form
        self.tables = tables

    def tables_of(self, kind: Kind) -> list[str]:
        """Return the raw tables that a kind of segment fills."""
        return [name for name in self.tables if kind in ROW_TABLES[name].kinds]

    def bounds(self) -> BlockRange | None:
        """Return the first and the last block of all rows in the files, also those of other addresses."""
        row = self.reader.run("select min(first), max(last) from bounds").fetchone()
        return None if row is None or row[0] is None else BlockRange(*row)

    def row_count(self) -> int:
        """Return the number of staged rows."""
        return sum(self.reader.run(f"select count(*) from staged_{name}").fetchall()[0][0] for name in self.tables)

    def headers(self, blocks: BlockRange) -> pl.DataFrame:
        """Return the blocks of the rows in a range (HEADERS, without parents), in order."""
        return (
            self.reader.run(
                """
                select block_number, block_hash, null::varchar as parent_hash, block_time
                from block_facts where block_number between ? and ? order by block_number
                """,
                list(blocks),
            )
            .pl()
            .cast(HEADERS)
        )

    def rows(self, segment: Segment) -> dict[str, pl.DataFrame]:
        """Return the rows of a segment, in the form in which a family returns them, by raw table."""
        return {name: self._rows(ROW_TABLES[name], segment) for name in self.tables_of(segment.kind)}

    def _rows(self, table: RowTable, segment: Segment) -> pl.DataFrame:
        named = " or ".join(f"{column} in (select unnest($addresses))" for column in table.addressed(segment.kind))
        frame = self.reader.run(
            f"""
            select {", ".join(table.row_schema)} from staged_{table.name}
            where block_number between $first and $last and ({named})
            """,
            {**ends_of(segment.covered), "addresses": list(segment.addresses)},
        ).pl()
        integers = [column.name for column in table.columns if column.type == BIGNUM]
        return frame.with_columns(_decimal(frame[name]) for name in integers).cast(table.row_schema).sort(table.key)

    def drawn(self, segment: Segment, seed: str, most: int) -> list[str]:
        """Choose some of the segment's addresses with rows, by a secret, so that a file cannot foresee them."""
        named = " union ".join(
            f"select distinct {column} as address from staged_{name} where block_number between $first and $last"
            for name in self.tables_of(segment.kind)
            for column in ROW_TABLES[name].addressed(segment.kind)
        )
        rows = self.reader.run(
            f"""
            select address from ({named}) where address in (select unnest($addresses))
            order by md5($seed || address) limit $most
            """,
            {**ends_of(segment.covered), "addresses": list(segment.addresses), "seed": seed, "most": most},
        ).fetchall()
        return [address for (address,) in rows]

    def parties(self, covered: BlockRange, token: str, seed: str, most: int) -> list[str]:
        """Choose some parties of a token's movements in a range, by a secret."""
        table = self._of_tokens()
        named = " union ".join(
            f"select distinct {party} as address from staged_{table.name} "
            f"where {table.token} = $token and block_number between $first and $last"
            for party in table.parties
        )
        rows = self.reader.run(
            f"select address from ({named}) where address is not null order by md5($seed || address) limit $most",
            {**ends_of(covered), "token": token, "seed": seed, "most": most},
        ).fetchall()
        return [address for (address,) in rows]

    def tokens(self, covered: BlockRange, party: str, most: int) -> list[str]:
        """Return some tokens that moved from or to a party in a range."""
        table = self._of_tokens()
        rows = self.reader.run(
            f"""
            select distinct {table.token} from staged_{table.name}
            where block_number between $first and $last and $party in ({", ".join(table.parties)})
            order by 1 limit $most
            """,
            {**ends_of(covered), "party": party, "most": most},
        ).fetchall()
        return [token for (token,) in rows]

    def changes(self, covered: BlockRange, token: str, party: str) -> list[tuple[int, int]]:
        """Return the changes of a party's balance by the rows in a range: block and base units."""
        table = self._of_tokens()
        sender, recipient = table.parties
        (amount,) = (column.name for column in table.columns if column.type == BIGNUM)
        frame = self.reader.run(
            f"""
            select block_number, {amount}, ({recipient} is not distinct from $party) as is_in
            from staged_{table.name}
            where
                {table.token} = $token and block_number between $first and $last
                and $party in ({sender}, {recipient}) and {sender} is distinct from {recipient}
            """,
            {**ends_of(covered), "token": token, "party": party},
        ).pl()
        amounts = map(_integer, frame[amount])
        return [
            (block, number if is_in else -number)
            for block, number, is_in in zip(frame["block_number"], amounts, frame["is_in"], strict=True)
        ]

    def _of_tokens(self) -> RowTable:
        return next(table for name in self.tables if (table := ROW_TABLES[name]).token is not None)

    def parts(self, segment: Segment) -> Iterator[BlockRange]:
        """Yield the blocks of a segment in ranges of a bounded number of rows."""
        counts = " union all ".join(
            f"select block_number from staged_{name} where block_number between $first and $last"
            for name in self.tables_of(segment.kind)
        )
        rows = self.reader.run(
            f"""
            select max(block_number)
            from (
                select block_number, (sum(rows) over (order by block_number) - 1) // $most as part
                from (select block_number, count(*) as rows from ({counts}) group by block_number)
            )
            group by part order by part
            """,
            {**ends_of(segment.covered), "most": ROWS_PER_PART},
        ).fetchall()
        first = segment.covered.first
        ends = [last for (last,) in rows[:-1]]
        for last in [*ends, segment.covered.last]:
            yield BlockRange(first, last)
            first = last + 1


def ends_of(covered: BlockRange) -> dict[str, int]:
    """Return the parameters `first` and `last` of a query."""
    return {"first": covered.first, "last": covered.last}


def _decimal(texts: pl.Series) -> pl.Series:
    """Return integers as canonical decimal text; they are decimal or 0x text, or null."""
    numbers = (None if text is None else str(_integer(text)) for text in texts)
    return pl.Series(texts.name, list(numbers), dtype=pl.String)


def _integer(text: str) -> int:
    return int(text, 16 if text.startswith("0x") else 10)
