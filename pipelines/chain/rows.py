"""Storage of a chain's rows, in one transaction with their coverage and the marks for the marts."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import duckdb
import polars as pl

from control.ranges import BlockRange
from pipelines.chain.coverage import Watched, record_coverage, tracked_kind
from pipelines.raw.database import transaction
from pipelines.raw.frames import registered
from pipelines.raw.usage import record_usage
from pipelines.rows import Kind, Origin, Segment, UsageRecord
from pipelines.tables.families import ROW_TABLES
from pipelines.tables.table import RowTable

_SUBJECT_KINDS: tuple[Kind, ...] = ("token", "wallet")


class Replaced(NamedTuple):
    """Numbers of rows that were removed and added."""

    removed: int
    added: int


class HashMismatchError(Exception):
    """Rows name another hash for a block than its stored header: the chain changed while it was read."""

    def __init__(self, block_number: int) -> None:
        super().__init__(f"block {block_number} changed while it was being read")
        self.block_number = block_number


def _check_hashes(connection: duckdb.DuckDBPyConnection, network: str, covered: BlockRange) -> None:
    row = connection.execute(
        """
        select min(incoming.block_number)
        from incoming
        left join raw.blocks
            on blocks.network = ? and incoming.block_number = blocks.block_number
            and blocks.block_number between ? and ?
        where blocks.block_hash is distinct from incoming.block_hash
        """,
        [network, *covered],
    ).fetchone()
    if row is not None and row[0] is not None:
        raise HashMismatchError(int(row[0]))


def _insert(
    connection: duckdb.DuckDBPyConnection,
    table: RowTable,
    network: str,
    rows: pl.DataFrame,
    segment: Segment,
    batch: int,
    *,
    is_first: bool,
) -> None:
    """Insert rows of a segment, replace stored rows with the same keys, and note the changes.

    A row that is equal to the stored one remains in its cycle: it is not new to tenants who saw it before.

    Args:
        is_first: the segment has no stored rows in its range.
    """
    key = ", ".join(table.key)
    stored = f"from raw.{table.name} where {_rows_of(table, segment.kind)}"
    parameters, is_native = _parameters(network, segment), segment.kind == "native"
    with registered(connection, incoming=rows):
        _check_hashes(connection, network, segment.covered)
        connection.execute(f"create or replace temp table unchanged as select {key} from incoming limit 0")
        rows_given = "by name select *, ? as network, ? as batch_id from incoming"
        if is_first:
            connection.execute(f"insert into raw.{table.name} {rows_given}", [network, batch])
        else:
            _put(connection, network, table, f"{stored} and ({key}) in (select {key} from incoming)", parameters, batch)
            _note_changed(connection, network, table, "before", _SUBJECT_KINDS, is_native=is_native)
        # A movement without sender and recipient belongs to its token only.
        _note_changed(connection, network, table, "incoming", ("token",), is_native=is_native)


def _put(
    connection: duckdb.DuckDBPyConnection,
    network: str,
    table: RowTable,
    stored: str,
    parameters: Mapping[str, object],
    batch: int,
) -> None:
    """Replace stored rows, which move to `before`, by those of `incoming`; equal ones are listed in `unchanged`."""
    key = ", ".join(table.key)
    connection.execute(f"create or replace temp table given as from raw.{table.name} limit 0")
    connection.execute(
        "insert into given by name select *, ? as network, ? as batch_id from incoming", [network, batch]
    )
    connection.execute(f"create or replace temp table before as select * exclude (batch_id) {stored}", parameters)
    connection.execute(
        f"""
        insert into unchanged
        select {key} from (from before intersect select * exclude (batch_id) from given)
        """
    )
    connection.execute(f"delete {stored} and ({key}) not in (from unchanged)", parameters)
    connection.execute(f"insert into raw.{table.name} from given anti join unchanged using ({key})")


def _note_changed(
    connection: duckdb.DuckDBPyConnection,
    network: str,
    table: RowTable,
    rows: str,
    kinds: Sequence[Kind],
    *,
    is_native: bool,
) -> None:
    """Note the blocks of rows not in `unchanged`, and the subjects of the kinds that have these rows in their views."""
    changed = f"{rows} anti join unchanged using ({', '.join(table.key)})"
    connection.execute(f"insert into changed_blocks select distinct block_number from {changed}")
    for kind in kinds:
        for column in table.addressed(kind):
            connection.execute(
                f"""
                insert into changed_parties
                select subjects.subject_key, min(changed.block_number), max(changed.block_number)
                from (select {column}, block_number from {changed}) as changed
                inner join raw.control_subjects as subjects on changed.{column} = subjects.address
                inner join raw.view_ranges as views
                    on
                        subjects.subject_key = views.subject_key
                        and changed.block_number between views.from_block
                        and coalesce(views.to_block, changed.block_number)
                where subjects.network = ? and subjects.kind = ? and (views.native = 'full' or not ?)
                group by subjects.subject_key
                """,
                [network, kind, is_native],
            )


def _mark_parties(connection: duckdb.DuckDBPyConnection, network: str, segment: Segment, batch: int) -> None:
    """Mark every subject that has rows of the segment in its view.

    A collection may add rows that another one missed. So subjects that this collection was not made for are marked too,
    where a row was stored differently or not at all.
    """
    connection.execute(
        """
        insert into raw.changes
        with parties as (
            select subjects.subject_key, parties.block_number as from_block, parties.block_number as to_block
            from raw.movement_parties as parties
            inner join raw.control_subjects as subjects
                on parties.subject_kind = subjects.kind and parties.address = subjects.address
            inner join raw.view_ranges as views
                on
                    subjects.subject_key = views.subject_key
                    and parties.block_number between views.from_block and coalesce(views.to_block, parties.block_number)
                    and (parties.asset != 'native' or views.native = 'full')
            where
                parties.network = $network
                and subjects.network = $network
                and parties.block_number between $first and $last
                and (
                    (parties.subject_kind = $kind and parties.address in (select unnest($addresses::varchar[])))
                    or (parties.batch_id = $batch and parties.block_number in (select block_number from changed_blocks))
                )
            union all
            select subject_key, from_block, to_block from changed_parties
        )

        select $batch, subject_key, min(from_block), max(to_block), 'Rows'
        from parties
        group by subject_key
        """,
        {"batch": batch, "kind": tracked_kind(segment.kind), **_parameters(network, segment)},
    )


def _begin_changes(connection: duckdb.DuckDBPyConnection) -> None:
    connection.execute(
        """
        create or replace temp table changed_blocks (block_number bigint);
        create or replace temp table changed_parties (subject_key bigint, from_block bigint, to_block bigint)
        """
    )


def replace_rows(
    connection: duckdb.DuckDBPyConnection,
    network: str,
    segment: Segment,
    rows: Mapping[str, pl.DataFrame],
    batch_id: int,
) -> Replaced:
    """Replace all stored rows of the segment's addresses in its range, in one transaction.

    Balances that were read only because of a removed row are deleted too. Afterwards coverage counts the stored rows,
    and changed subjects are marked.

    Args:
        segment: covered blocks that were judged.
        rows: all rows of the blocks, as for `store_segment`.

    Raises:
        HashMismatchError: a row's block hash is not that of the stored header; nothing is written.
    """
    removed = added = 0
    parameters, is_native = _parameters(network, segment), segment.kind == "native"
    with transaction(connection):
        _begin_changes(connection)
        for name, frame in rows.items():
            table = ROW_TABLES[name]
            key = ", ".join(table.key)
            with registered(connection, incoming=frame):
                _check_hashes(connection, network, segment.covered)
                connection.execute(f"create or replace temp table unchanged as select {key} from incoming limit 0")
                stored = f"from raw.{name} where {_rows_of(table, segment.kind)}"
                _put(connection, network, table, stored, parameters, batch_id)
                _note_changed(connection, network, table, "before", _SUBJECT_KINDS, is_native=is_native)
                _note_changed(connection, network, table, "incoming", ("token",), is_native=is_native)
                removed += _count_again(connection, network, table, "before", -1)
                added += _count_again(connection, network, table, "incoming", 1)
                _remove_readings(connection, network, table, batch_id)
        _mark_parties(connection, network, segment, batch_id)
    return Replaced(removed, added)


def _count_again(connection: duckdb.DuckDBPyConnection, network: str, table: RowTable, rows: str, sign: int) -> int:
    """Correct the row counts of coverage by the rows that are not in `unchanged`; return their number."""
    key = ", ".join(table.key)
    connection.execute(f"create or replace temp table moved as select * from {rows} anti join unchanged using ({key})")
    for kind in table.kinds:
        addresses = ", ".join(table.addressed(kind))
        connection.execute(
            f"""
            update raw.coverage
            set row_count = coverage.row_count + $sign * moved_rows.row_count
            from (
                select ranges.address, ranges.from_block, ranges.to_block, count(*) as row_count
                from (select distinct {key}, unnest([{addresses}]) as address from moved) as named
                inner join raw.coverage as ranges
                    on
                        ranges.network = $network
                        and ranges.subject_kind = $kind
                        and named.address = ranges.address
                        and named.block_number between ranges.from_block and ranges.to_block
                group by ranges.address, ranges.from_block, ranges.to_block
            ) as moved_rows
            where
                coverage.network = $network
                and coverage.subject_kind = $kind
                and coverage.address = moved_rows.address
                and coverage.from_block = moved_rows.from_block
                and coverage.to_block = moved_rows.to_block
            """,
            {"sign": sign, "network": network, "kind": kind},
        )
    ((count,),) = connection.execute("select count(*) from moved").fetchall()
    return int(count)


def _remove_readings(connection: duckdb.DuckDBPyConnection, network: str, table: RowTable, batch_id: int) -> None:
    """Remove balances that were read because of deleted rows of `before`, and mark their subjects.

    Balances with another reason remain: another movement, a search that found the holder, or an attestation.
    Balances of tracked wallets in tracked and common tokens remain too.
    """
    if table.token is None:
        return
    key = ", ".join(table.key)
    parties = ", ".join(table.parties)
    connection.execute(
        f"""
        create or replace temp table groundless as
        select pairs.token_address, pairs.holder_address
        from (
            select distinct {table.token} as token_address, unnest([{parties}]) as holder_address
            from before
            anti join unchanged using ({key})
        ) as pairs
        anti join (select * from raw.movement_sides where network = $network) as sides
            on pairs.token_address = sides.asset and pairs.holder_address = sides.holder_address
        anti join (
            select subjects.address as token_address, found.holder_address
            from raw.found_holders as found
            inner join raw.control_subjects as subjects on found.subject_key = subjects.subject_key
            where found.network = $network
        ) as found
            on pairs.token_address = found.token_address and pairs.holder_address = found.holder_address
        where not (
            pairs.holder_address in (
                select address from raw.control_subjects where network = $network and kind = 'wallet'
            )
            and (
                pairs.token_address in (select token_address from raw.common_tokens where network = $network)
                or pairs.token_address in (
                    select address from raw.control_subjects where network = $network and kind = 'token'
                )
            )
        )
        """,
        {"network": network},
    )
    removed = connection.execute(
        """
        delete from raw.balance_observations as readings
        using groundless
        where
            readings.network = ?
            and readings.purpose != 'Attestation'
            and readings.token_address = groundless.token_address
            and readings.holder_address = groundless.holder_address
        returning readings.token_address
        """,
        [network],
    ).fetchall()
    if removed:
        connection.execute(
            """
            insert into raw.changes
            select distinct $batch::bigint, subjects.subject_key, 0, null::bigint, 'Rows'
            from raw.control_subjects as subjects
            inner join groundless
                on subjects.address in (groundless.token_address, groundless.holder_address)
            where subjects.network = $network
            """,
            {"batch": batch_id, "network": network},
        )


def store_segment(
    connection: duckdb.DuckDBPyConnection,
    network: str,
    segment: Segment,
    rows: Mapping[str, pl.DataFrame],
    origin: Origin,
    batch_id: int,
    spending: UsageRecord | None = None,
) -> None:
    """Add rows of the segment's addresses in its range, with coverage and usage, in one transaction.

    A stored row remains even if it is not among the given ones. A row in an answer is in its block, which has the
    stored header's hash, and another answer may omit rows. A given row that differs replaces the stored one.

    Args:
        segment: requested addresses and blocks; each address becomes covered, also without rows.
        rows: of each table that the segment's kind fills in the network's family; their headers are stored already.
        origin: where the rows are from.
        spending: usage of the reading.

    Raises:
        HashMismatchError: a row's block hash is not that of the stored header; nothing is written.
    """
    counts = dict.fromkeys(segment.addresses, 0)
    parameters = _parameters(network, segment)
    with transaction(connection):
        _begin_changes(connection)
        for name, frame in rows.items():
            table = ROW_TABLES[name]
            stored = f"from raw.{name} where {_rows_of(table, segment.kind)}"
            is_first = connection.execute(f"select 1 {stored} limit 1", parameters).fetchone() is None
            if not frame.is_empty():
                _insert(connection, table, network, frame, segment, batch_id, is_first=is_first)
            columns = table.addressed(segment.kind)
            # On the first storage, the frame has all rows; counting them there is faster.
            known = frame if is_first else connection.execute(f"select {', '.join(columns)} {stored}", parameters).pl()
            for address, count in _counted(known, columns):
                if address in counts:
                    counts[address] += count
        _mark_parties(connection, network, segment, batch_id)
        subjects = {Watched(segment.kind, address): count for address, count in counts.items()}
        record_coverage(connection, network, subjects, segment.covered, origin, batch_id)
        if spending is not None:
            record_usage(connection, network, spending)


def _counted(rows: pl.DataFrame, columns: Sequence[str]) -> list[tuple[str | None, int]]:
    """Return the number of rows that name each address in any of the columns."""
    named = [rows.select(pl.int_range(pl.len()).alias("row"), address=column) for column in columns]
    rows_of = named[0] if len(named) == 1 else pl.concat(named).unique()
    return rows_of.group_by("address").len().rows()


def _rows_of(table: RowTable, kind: Kind) -> str:
    """Return the condition for a segment's rows of a table; its parameters are those of `_parameters`."""
    columns = (f"{column} in (select unnest($addresses::varchar[]))" for column in table.addressed(kind))
    return f"network = $network and block_number between $first and $last and ({' or '.join(columns)})"


def _parameters(network: str, segment: Segment) -> dict[str, object]:
    first, last = segment.covered
    return {"network": network, "first": first, "last": last, "addresses": list(segment.addresses)}


def read_rows(connection: duckdb.DuckDBPyConnection, network: str, table: RowTable, segment: Segment) -> pl.DataFrame:
    """Read the stored rows of a segment's addresses, in the form in which a family returns them."""
    columns = (f"{name}::varchar as {name}" if type_ == pl.String else name for name, type_ in table.row_schema.items())
    stored = connection.execute(
        f"select {', '.join(columns)} from raw.{table.name} where {_rows_of(table, segment.kind)}",
        _parameters(network, segment),
    )
    return stored.pl()
