"""Rows of a file that tracked addresses need, in the database of staged rows, in the form of the raw tables."""

import hashlib
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import polars as pl

from control.ranges import BlockRange, difference
from pipelines.chain.coverage import Watched
from pipelines.data_sets.columns import relation
from pipelines.data_sets.errors import CHANGED, FileRefused
from pipelines.data_sets.listing import Unit, unchanged
from pipelines.data_sets.reader import Reader
from pipelines.data_sets.staged import Staged, ends_of
from pipelines.extract.data_sets import FileForm, FileTable
from pipelines.raw.database import form_sql
from pipelines.raw.frames import registered
from pipelines.rows import Kind, Segment
from pipelines.tables.families import ROW_TABLES
from pipelines.tables.table import RowTable

# Rows of tracked addresses: some 270 bytes each on the disk until they are stored.
_MOST_WANTED = 10_000_000
# Rows of coverage, which are read at once.
_MOST_CLAIMS = 1_000_000


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
        raise FileRefused(CHANGED)
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
    source = relation(reader, form.coverage, unit, next(iter(form.rows.values())).name)
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
    source = relation(reader, table, unit, main)
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
    source = relation(reader, of_form, unit, main)
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
            ends_of(wanted.blocks),
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
        raise FileRefused(f"{table.named(faulty)} is malformed, or its block has no hash or time")
    return _without_duplicates(reader, table)


def _check_count(reader: Reader, table: str, what: str) -> None:
    if reader.run(f"select count(*) > {_MOST_WANTED} from {table}").fetchone() == (True,):
        raise FileRefused(f"it has more than {_MOST_WANTED:,} {what}; cut it into smaller files")


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
        raise FileRefused(f"{table.named(twice)} appears twice, with different values")
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
