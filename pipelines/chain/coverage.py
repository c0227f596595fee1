"""The collected ranges of blocks. The next range to collect is computed from them; there is no other cursor."""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import NamedTuple

import duckdb
import polars as pl

from control.clock import stored_now
from control.ranges import BlockRange
from pipelines.raw.database import transaction
from pipelines.raw.frames import registered
from pipelines.rows import Kind, Origin
from pipelines.tables.families import ROW_TABLES
from pipelines.tables.sources import TABLES


class Watched(NamedTuple):
    """An address on a network and the kind of rows that are collected for it."""

    kind: Kind
    address: str


def tracked_kind(kind: Kind) -> Kind:
    """Return the kind of the subjects to which a kind of coverage belongs: `token` or `wallet`."""
    return "token" if kind == "token" else "wallet"


def watched_frame(subjects: dict[Watched, int]) -> pl.DataFrame:
    """Return rows of kind, address and row count, for statements that join them."""
    return pl.DataFrame(
        [(subject.kind, subject.address, count) for subject, count in subjects.items()],
        schema=TABLES["coverage"].schema("subject_kind", "address", "row_count"),
        orient="row",
    )


def read_coverage(connection: duckdb.DuckDBPyConnection, network: str) -> dict[Watched, list[BlockRange]]:
    """Return the collected ranges of every address of the network, in order."""
    return _read_ranges(connection, network, "coverage")


def read_verified(
    connection: duckdb.DuckDBPyConnection, network: str
) -> tuple[dict[Watched, list[BlockRange]], dict[Watched, list[BlockRange]]]:
    """Return two sets of ranges that were read a second time, by address: in full; and in full or by a sample."""
    in_full = read_second_readings(connection, network, is_sampled=False)
    return in_full, _read_ranges(connection, network, "verified_ranges")


def reopen(
    connection: duckdb.DuckDBPyConnection,
    network: str,
    wallets: Sequence[str],
    batch_id: int,
    *,
    has_false_rows: bool = False,
) -> None:
    """Remove the coverage of wallets' native movements, so that all their blocks are collected again.

    Balances that were read are removed too; attestations remain.

    Args:
        has_false_rows: the rows are removed too. Else they remain, and the next collection replaces those that gain
            something.
    """
    if not wallets:
        return
    parameters = {"network": network, "wallets": list(wallets)}
    subjects = "select subject_key from raw.control_subjects where network = $network and address in $wallets"
    with transaction(connection):
        connection.execute(
            "delete from raw.coverage where network = $network and subject_kind = 'native' and address in $wallets",
            parameters,
        )
        connection.execute(
            """
            delete from raw.balance_observations
            where
                network = $network and token_address = 'native' and holder_address in $wallets
                and purpose != 'Attestation'
            """,
            parameters,
        )
        for table in ("opened_ranges", "closed_ranges"):
            connection.execute(f"delete from raw.{table} where subject_key in ({subjects})", parameters)
        for name, rows in ROW_TABLES.items() if has_false_rows else ():
            if rows.parties == ("address",):
                connection.execute(
                    f"delete from raw.{name} where network = $network and address in $wallets", parameters
                )
        connection.execute(
            f"insert into raw.changes select $batch, subject_key, 0, null, 'Rows' from ({subjects})",
            {**parameters, "batch": batch_id},
        )


def read_second_readings(
    connection: duckdb.DuckDBPyConnection, network: str, *, is_sampled: bool
) -> dict[Watched, list[BlockRange]]:
    """Return the ranges of every address that were read a second time: in full, or by a sample."""
    return _read_ranges(connection, network, "verified_ranges", f"is_sampled = {is_sampled}")


def _read_ranges(
    connection: duckdb.DuckDBPyConnection, network: str, table: str, condition: str = "true"
) -> dict[Watched, list[BlockRange]]:
    ranges: dict[Watched, list[BlockRange]] = defaultdict(list)
    for kind, address, first, last in connection.execute(
        f"""
        select subject_kind, address, from_block, to_block
        from raw.{table}
        where network = ? and {condition}
        order by from_block
        """,
        [network],
    ).fetchall():
        ranges[Watched(kind, address)].append(BlockRange(first, last))
    return ranges


def record_verified(
    connection: duckdb.DuckDBPyConnection,
    network: str,
    kind: Kind,
    addresses: Iterable[str],
    verified: BlockRange,
    *,
    is_sampled: bool,
) -> None:
    """Record that the range was read a second time, inside the caller's transaction, if any.

    A range that continues the previous one extends that row. A range that was read in full is no longer disputed.
    """
    frame = pl.DataFrame({"address": list(addresses)}, schema={"address": pl.String})
    known = {"network": network, "kind": kind, "is_sampled": is_sampled}
    with registered(connection, verified=frame):
        connection.execute(
            """
            update raw.verified_ranges set to_block = $last
            where
                network = $network and subject_kind = $kind and is_sampled = $is_sampled and to_block = $before
                and address in (select address from verified)
            """,
            {**known, "last": verified.last, "before": verified.first - 1},
        )
        connection.execute(
            """
            insert into raw.verified_ranges
            select $network, $kind, address, $first, $last, $is_sampled
            from verified
            where address not in (
                select address from raw.verified_ranges
                where
                    network = $network and subject_kind = $kind and is_sampled = $is_sampled and to_block = $last
            )
            """,
            {**known, "first": verified.first, "last": verified.last},
        )
        if not is_sampled:
            connection.execute(
                """
                delete from raw.disputed_answers
                where
                    network = ? and subject_kind = ? and block_number between ? and ?
                    and address in (select address from verified)
                """,
                [network, kind, *verified],
            )


def record_coverage(
    connection: duckdb.DuckDBPyConnection,
    network: str,
    subjects: dict[Watched, int],
    covered: BlockRange,
    origin: Origin,
    batch_id: int,
) -> None:
    """Record that the range was collected for every subject, with its row count.

    Runs inside the caller's transaction, which wrote the rows. A range from the same provider that continues the
    previous one extends that row, so that a live subject has one row and not one per cycle.
    """
    frame = watched_frame(subjects)
    with registered(connection, collected=frame):
        now = stored_now()
        connection.execute(
            """
            update raw.coverage
            set to_block = ?, row_count = coverage.row_count + collected.row_count, collected_at = ?, batch_id = ?
            from collected
            where
                coverage.network = ? and coverage.provider = ? and coverage.to_block = ?
                and coverage.subject_kind = collected.subject_kind and coverage.address = collected.address
            """,
            [covered.last, now, batch_id, network, origin.provider, covered.first - 1],
        )
        connection.execute(
            """
            insert into raw.coverage
            select ?, collected.subject_kind, collected.address, ?, ?, collected.row_count, ?, ?, ?, ?
            from collected
            where not exists (
                select 1 from raw.coverage
                where
                    coverage.network = ? and coverage.batch_id = ? and coverage.to_block = ?
                    and coverage.subject_kind = collected.subject_kind and coverage.address = collected.address
            )
            """,
            [network, *covered, origin.provider, now, batch_id, origin.data_set, network, batch_id, covered.last],
        )
