"""Rows of a file that tracked addresses need, in the database of staged rows, in the form of the raw tables."""

import hashlib
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import polars as pl

from control.networks.data_sets import DataSet
from control.ranges import BlockRange, difference
from pipelines.chain.coverage import Watched
from pipelines.data_sets.errors import FileRefused
from pipelines.data_sets.listing import Unit, unchanged
from pipelines.data_sets.reader import Reader, identifier, quoted
from pipelines.extract.data_sets import ColumnKind, FileColumn, FileForm, FileTable
from pipelines.extract.family import HEADERS
from pipelines.raw.database import form_sql
from pipelines.raw.frames import registered
from pipelines.rows import Kind, Segment
from pipelines.tables.families import ROW_TABLES
from pipelines.tables.table import BIGNUM, RowTable

# Limits of the files of a unit. A day of Ethereum's logs has some 300 MB, 1 GB unpacked, and some million rows.
_MOST_BYTES = 64 * 2**30
_MOST_UNPACKED_BYTES = 512 * 2**30
_MOST_ROWS = 2_000_000_000
_MOST_COLUMNS = 200
# Rows of tracked addresses: some 270 bytes each on the disk until they are stored.
_MOST_WANTED = 10_000_000
# Rows of coverage, which are read at once.
_MOST_CLAIMS = 1_000_000
# Texts that are longer are malformed; they are cut, so that they take no space.
_LONGEST_BYTES = 67
_LONGEST_AMOUNT = 79
_LONGEST_TEXT = 200
# Rows of a part: some 50 MB decoded. Each write costs some 15 ms of processor time, regardless of its size.
ROWS_PER_PART = 100_000

_NUMBERS = ("TINYINT", "SMALLINT", "INTEGER", "BIGINT", "UTINYINT", "USMALLINT", "UINTEGER", "UBIGINT", "HUGEINT")
_FLOATING = ("FLOAT", "DOUBLE")
# Types of columns in queries.
_TYPES = {
    ColumnKind.NUMBER: "bigint",
    ColumnKind.BYTES: "varchar",
    ColumnKind.BYTES_LIST: "varchar[]",
    ColumnKind.AMOUNT: "varchar",
    ColumnKind.TIME: "timestamp",
    ColumnKind.TEXT: "varchar",
    ColumnKind.TRUTH: "boolean",
    ColumnKind.ABSENT: "varchar",
}


@dataclass(frozen=True)
class Wanted:
    """Rows to read.

    Attributes:
        addresses: addresses with missing rows, by kind.
        blocks: range that contains all missing blocks.
        chain: hash of the chain's first block; empty where it is unknown.
    """

    addresses: Mapping[Kind, frozenset[str]]
    blocks: BlockRange
    chain: str = ""

    def fingerprint(self, unit: Unit, form: FileForm) -> str:
        """Return a hash of everything but the blocks that decides which rows are staged."""
        addresses = sorted((kind, sorted(named)) for kind, named in self.addresses.items())
        return hashlib.sha256(repr((self.chain, addresses, unit, form)).encode()).hexdigest()


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
            {"first": segment.covered.first, "last": segment.covered.last, "addresses": list(segment.addresses)},
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
            {**_ends(segment.covered), "addresses": list(segment.addresses), "seed": seed, "most": most},
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
            {**_ends(covered), "token": token, "seed": seed, "most": most},
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
            {**_ends(covered), "party": party, "most": most},
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
            {**_ends(covered), "token": token, "party": party},
        ).pl()
        amounts = (int(text) for text in _decimal(frame[amount]))
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
            {"first": segment.covered.first, "last": segment.covered.last, "most": ROWS_PER_PART},
        ).fetchall()
        first = segment.covered.first
        ends = [last for (last,) in rows[:-1]]
        for last in [*ends, segment.covered.last]:
            yield BlockRange(first, last)
            first = last + 1


def _ends(covered: BlockRange) -> dict[str, int]:
    return {"first": covered.first, "last": covered.last}


def _decimal(texts: pl.Series) -> pl.Series:
    """Return integers as canonical decimal text; they are decimal or 0x text, or null."""
    numbers = (None if text is None else str(int(text, 16 if text.startswith("0x") else 10)) for text in texts)
    return pl.Series(texts.name, list(numbers), dtype=pl.String)


def stage(
    reader: Reader, family: str, unit: Unit, form: FileForm, wanted: Wanted, head_number: int
) -> tuple[Staged, int]:
    """Read the wanted rows of a unit into the database of staged rows; rows that are there already are not read again.

    Args:
        reader: may read the unit's files.
        family: the network's family.
        unit: the files.
        form: their form.
        wanted: addresses and blocks; other rows are left out.
        head_number: newest block of the node.

    Returns:
        The rows, and how many of them appeared again and were left out.

    Raises:
        FileRefused: the files exceed a limit, or do not have the form; nothing is staged.
        FilesUnreadable: the store does not answer.
    """
    kinds = {kind for kind, addresses in wanted.addresses.items() if addresses}
    tables = [name for name in form.rows if kinds & ROW_TABLES[name].kinds]
    staged, fingerprint = Staged(reader, unit, form, tables), wanted.fingerprint(unit, form)
    reader.run("create table if not exists stage (fingerprint varchar, first bigint, last bigint, duplicates bigint)")
    reader.run("create table if not exists checked (kind varchar, address varchar, first bigint, last bigint)")
    known = reader.run(
        "select duplicates from stage where fingerprint = ? and first <= ? and last >= ?", [fingerprint, *wanted.blocks]
    ).fetchone()
    if known is not None:
        return staged, int(known[0])
    drop_staged(reader)
    main = next(iter(form.rows.values())).name
    # Not in one transaction, which would keep all rows in memory: without the row in `stage`, they do not count.
    if form.blocks is not None:
        _stage_blocks(reader, form.blocks, unit, main)
    reader.run("create or replace table bounds (first bigint, last bigint)")
    duplicates = sum(_stage_rows(reader, ROW_TABLES[name], family, unit, form, wanted, main) for name in tables)
    _check_bounds(staged, head_number)
    _stage_facts(reader, staged)
    if not unchanged(reader, unit):
        raise FileRefused("it changed while it was read")
    reader.run("insert into stage values (?, ?, ?, ?)", [fingerprint, *wanted.blocks, duplicates])
    return staged, duplicates


def drop_staged(reader: Reader) -> None:
    """Remove all staged rows."""
    # First the record, so that no kill leaves it without its rows.
    reader.run("delete from stage")
    reader.run("delete from checked")
    for (name,) in reader.run("select table_name from duckdb_tables() where not internal").fetchall():
        if name not in ("stage", "checked"):
            reader.run(f"drop table {name}")
    # Frees the space of the rows for the next ones.
    reader.run("checkpoint")


def is_checked(reader: Reader, segments: Sequence[Segment]) -> bool:
    """Return whether the staged rows of all these segments were checked."""
    checked: dict[tuple[str, str], list[BlockRange]] = defaultdict(list)
    for kind, address, first, last in reader.run("from checked").fetchall():
        checked[kind, address].append(BlockRange(first, last))
    return not any(
        difference([segment.covered], checked[segment.kind, address])
        for segment in segments
        for address in segment.addresses
    )


def note_checked(reader: Reader, segments: Sequence[Segment]) -> None:
    """Record that the staged rows of segments were checked, so that a killed read does not check them again."""
    rows = [(segment.kind, address, *segment.covered) for segment in segments for address in segment.addresses]
    frame = pl.DataFrame(rows, schema=["kind", "address", "first", "last"], orient="row")
    with registered(reader.connection, now_checked=frame):
        reader.run("insert into checked from now_checked")


def read_claims(reader: Reader, unit: Unit, form: FileForm) -> dict[Watched, list[BlockRange]] | None:
    """Read for which addresses and blocks the files are complete; None where they are for every address.

    Raises:
        FileRefused: the file that says so is malformed.
        FilesUnreadable: the store does not answer.
    """
    if form.coverage is None:
        return None
    source = _relation(reader, form.coverage, unit, next(iter(form.rows.values())).name)
    count = reader.run(f"select count(*) from ({source})").fetchone()
    if count is None or count[0] > _MOST_CLAIMS:
        raise FileRefused(f"its coverage has more than {_MOST_CLAIMS:,} rows")
    claims: dict[Watched, list[BlockRange]] = {}
    kinds: dict[str, Kind] = {"token": "token", "wallet": "wallet", "native": "native"}
    for kind, address, first, last in reader.run(
        f"select subject_kind, address, from_block, to_block from ({source})"
    ).fetchall():
        if kind not in kinds or not isinstance(address, str) or first is None or last is None or first > last:
            raise FileRefused("its coverage is malformed")
        claims.setdefault(Watched(kinds[kind], address), []).append(BlockRange(first, last))
    return claims


def _stage_blocks(reader: Reader, table: FileTable, unit: Unit, main: str) -> None:
    source = _relation(reader, table, unit, main)
    reader.run(
        f"""
        create or replace table blocks_of_files as
        select distinct block_number, block_hash, block_time from ({source}) limit {_MOST_WANTED + 1}
        """
    )
    _check_count(reader, "blocks_of_files", "blocks")
    row = reader.run(
        "select block_number from blocks_of_files group by block_number having count(*) > 1 limit 1"
    ).fetchone()
    if row is not None:
        raise FileRefused(f"its blocks have two hashes or times for block {row[0]}")


def _stage_rows(
    reader: Reader, table: RowTable, family: str, unit: Unit, form: FileForm, wanted: Wanted, main: str
) -> int:
    """Stage the wanted rows of one raw table; return how many appeared again and were left out."""
    of_form = form.rows[table.name]
    source = _relation(reader, of_form, unit, main)
    reader.run(f"insert into bounds select min(block_number), max(block_number) from ({source})")
    query = "from file" if of_form.query is None else form_sql(family, of_form.query)
    names = list(table.row_schema)
    facts = "" if form.blocks is None else "left join blocks_of_files as facts using (block_number)"
    columns = ", ".join(
        f"facts.{name}" if form.blocks is not None and name in ("block_hash", "block_time") else f"rows.{name}"
        for name in (*names, "block_time")
    )
    conditions = []
    # Each condition costs as much as a third of the reading.
    kinds = sorted(kind for kind in table.kinds if wanted.addresses.get(kind))
    for kind in kinds:
        addresses = pl.DataFrame({"address": sorted(wanted.addresses[kind])})
        reader.connection.register(f"wanted_{kind}", addresses)
        conditions += [f"rows.{column} in (from wanted_{kind})" for column in table.addressed(kind)]
    try:
        reader.run(
            f"""
            create or replace table staged_{table.name} as
            with file as ({source}), rows as ({query})
            select {columns} from rows {facts}
            where rows.block_number between $first and $last and ({" or ".join(conditions)})
            limit {_MOST_WANTED + 1}
            """,
            _ends(wanted.blocks),
        )
    finally:
        for kind in kinds:
            reader.connection.unregister(f"wanted_{kind}")
    _check_count(reader, f"staged_{table.name}", "rows of tracked addresses")
    key = ", ".join(table.key)
    check = form.checks[table.name]
    faulty = reader.run(
        f"""
        select {key} from staged_{table.name}
        where block_time is null or ({check}) is not true
        order by {key} limit 1
        """
    ).fetchone()
    if faulty is not None:
        raise FileRefused(f"{row_named(table, faulty)} is malformed, or its block has no hash or time")
    return _without_duplicates(reader, table)


def _check_count(reader: Reader, table: str, what: str) -> None:
    if reader.run(f"select count(*) > {_MOST_WANTED} from {table}").fetchone() == (True,):
        raise FileRefused(f"it has more than {_MOST_WANTED:,} {what}; cut it into smaller files")


def row_named(table: RowTable, key: Sequence[object]) -> str:
    """Return a row's key in words, such as `the row of block 7, log index 3`."""
    named = (
        f"{name.removesuffix('_number').replace('_', ' ')} {value}" for name, value in zip(table.key, key, strict=True)
    )
    return f"the row of {', '.join(named)}"


def _without_duplicates(reader: Reader, table: RowTable) -> int:
    """Leave out rows that appear again; refuse files with two rows of the same key that differ."""
    name, key = f"staged_{table.name}", ", ".join(table.key)
    counted = f"select count(*), (select count(*) from (select distinct {key} from {name})) from {name}"
    rows, keys = reader.run(counted).fetchone() or (0, 0)
    if rows == keys:
        return 0
    reader.run(f"create or replace table {name} as select distinct * from {name}")
    twice = reader.run(f"select {key} from {name} group by {key} having count(*) > 1 limit 1").fetchone()
    if twice is not None:
        raise FileRefused(f"{row_named(table, twice)} appears twice, with different values")
    return int(rows - keys)


def _stage_facts(reader: Reader, staged: Staged) -> None:
    """Stage hash and time of each block with rows; refuse blocks with two of them, and times out of order."""
    facts = " union ".join(f"select block_number, block_hash, block_time from staged_{name}" for name in staged.tables)
    reader.run(f"create or replace table block_facts as select distinct * from ({facts})")
    row = reader.run(
        f"""
        select block_number
        from (
            select
                block_number,
                ({staged.form.block_check}) is not true
                or lag(block_number) over later = block_number
                or lag(block_time) over later > block_time
                or lag(block_hash) over later = block_hash as is_false
            from block_facts
            window later as (order by block_number, block_time)
        )
        where is_false limit 1
        """
    ).fetchone()
    if row is not None:
        raise FileRefused(
            f"block {row[0]} has a malformed hash, two hashes or times, or a time before an earlier block"
        )


def _check_bounds(staged: Staged, head_number: int) -> None:
    bounds, blocks = staged.bounds(), staged.unit.blocks
    if bounds is None:
        return
    if bounds.last > head_number:
        raise FileRefused(f"it has rows of block {bounds.last}, and the chain ends at block {head_number}")
    if blocks is not None and (bounds.first < blocks.first or bounds.last > blocks.last):
        raise FileRefused(
            f"it has rows of blocks {bounds.first} to {bounds.last}, its name says {blocks.first} to {blocks.last}"
        )


def _relation(reader: Reader, table: FileTable, unit: Unit, main: str) -> str:
    """Return a query of a kind of files with the columns that the form names, after checks of limits and types."""
    is_parquet = unit.data_set.files.endswith(".parquet")
    found = unit.paths_of(table.name, main)
    sizes = reader.run("select filename, size from read_blob(?) order by filename", [found]).fetchall()
    byte_count = sum(size for _, size in sizes)
    reader.allow_for(byte_count)
    if byte_count > _MOST_BYTES:
        raise FileRefused(f"it has more than {_MOST_BYTES:,} bytes; cut it into smaller files")
    # A CSV file without rows may be empty, without names of columns.
    paths = [quoted(path) for path, size in sizes if is_parquet or size]
    if not paths:
        empty = (f"null::{_TYPES[column.kind]} as {name}" for name, column in table.columns.items())
        return f"select {', '.join(empty)} where false"
    if is_parquet:
        _check_footers(reader, ", ".join(paths))
    # Of several files, the first one gives the types, and the others are converted to them without a word.
    described = [_types_of(reader, _files([path], is_parquet=is_parquet)) for path in paths]
    types = described[0]
    if any(other != types for other in described):
        raise FileRefused("its files have different columns or types")
    columns = [
        f"{_expression(name, column, unit.data_set, table, types)} as {name}" for name, column in table.columns.items()
    ]
    return f"select {', '.join(columns)} from {_files(paths, is_parquet=is_parquet)}"


def _files(paths: Sequence[str], *, is_parquet: bool) -> str:
    """Return the relation of files as they are, without columns from the names of their folders."""
    listed = ", ".join(paths)
    if is_parquet:
        return f"read_parquet([{listed}], hive_partitioning = false)"
    return f"read_csv([{listed}], header = true, all_varchar = true, delim = ',', hive_partitioning = false)"


def _types_of(reader: Reader, files: str) -> dict[str, str]:
    types = {row[0]: row[1] for row in reader.run(f"describe from {files}").fetchall()}
    if len(types) > _MOST_COLUMNS:
        raise FileRefused(f"it has {len(types)} columns, more than {_MOST_COLUMNS}")
    return types


def _check_footers(reader: Reader, paths: str) -> None:
    rows, columns, unpacked = reader.run(
        f"""
        select
            (select sum(num_rows) from parquet_file_metadata([{paths}])),
            count(distinct path_in_schema),
            sum(total_uncompressed_size)
        from parquet_metadata([{paths}])
        """
    ).fetchone() or (0, 0, 0)
    if (rows or 0) > _MOST_ROWS:
        raise FileRefused(f"it has {rows:,} rows, more than {_MOST_ROWS:,}; cut it into smaller files")
    if columns > _MOST_COLUMNS:
        raise FileRefused(f"it has {columns} columns, more than {_MOST_COLUMNS}")
    if (unpacked or 0) > _MOST_UNPACKED_BYTES:
        raise FileRefused(f"it has {unpacked:,} bytes unpacked, more than {_MOST_UNPACKED_BYTES:,}")


def _expression(name: str, column: FileColumn, data_set: DataSet, table: FileTable, types: Mapping[str, str]) -> str:
    """Return the expression of a column as queries of the form know it.

    Raises:
        FileRefused: the files lack the column, or it has another type.
    """
    if column.kind is ColumnKind.ABSENT:
        return "null"
    names = column.names or (name,)
    if own := data_set.columns.get(names[0]):
        names = (own,)
    found = next((one for one in names if one in types), None)
    if found is None:
        for refused, reason in table.refused.items():
            if refused in types:
                raise FileRefused(reason)
        raise FileRefused(f"it lacks the column {names[0]}")
    text = _converted(column.kind, identifier(found), types[found])
    if text is None:
        if types[found] in _FLOATING:
            raise FileRefused(f"its column {found} is {types[found]}: a floating-point number is not exact")
        raise FileRefused(f"its column {found} has the type {types[found]}, which is not {column.kind}")
    return text


def _converted(kind: ColumnKind, column: str, type_: str) -> str | None:
    """Return the expression that converts a column of a type; None where the type does not fit."""
    is_text, is_whole = type_ == "VARCHAR", type_ in _NUMBERS
    match kind:
        case ColumnKind.NUMBER:
            return f"{column}::bigint" if is_text or is_whole else None
        case ColumnKind.BYTES:
            if type_ == "BLOB":
                return f"left('0x' || lower(hex({column})), {_LONGEST_BYTES})"
            return f"lower(left({column}, {_LONGEST_BYTES}))" if is_text else None
        case ColumnKind.BYTES_LIST:
            if is_text:
                return f"string_split({column}, ',')"
            if type_ == "BLOB[]":
                return f"list_transform({column}, lambda one: '0x' || hex(one))"
            return column if type_ == "VARCHAR[]" else None
        case ColumnKind.AMOUNT:
            if type_ == "BLOB":
                return f"left('0x' || lower(hex({column})), {_LONGEST_BYTES})"
            is_decimal = type_.startswith("DECIMAL(") and type_.endswith(",0)")
            if is_text:
                return f"lower(left({column}, {_LONGEST_AMOUNT}))"
            return f"{column}::varchar" if is_whole or is_decimal or type_ == "UHUGEINT" else None
        case ColumnKind.TIME:
            if type_.startswith("TIMESTAMP"):
                return f"{column}::timestamp"
            seconds = f"make_timestamp(try_cast({column} as bigint) * 1000000)"
            if is_text:
                return f"coalesce({seconds}, {column}::timestamp)"
            return seconds if is_whole else None
        case ColumnKind.TRUTH:
            return column if type_ == "BOOLEAN" else None
        case ColumnKind.TEXT:
            return f"left({column}, {_LONGEST_TEXT})" if is_text else None
        case _:
            return None
