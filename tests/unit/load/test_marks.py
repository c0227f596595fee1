"""Whom rows concern that were collected: what of whose is computed again."""

from collections.abc import Iterator
from pathlib import Path

import duckdb
import polars as pl
import pytest

from pipelines.load.chain import record_healthy, remove_orphaned, store_segment
from pipelines.load.warehouse import open_warehouse
from pipelines.ranges import BlockRange
from pipelines.rows import Kind, Segment

TOKEN, WALLET = "0xcoin", "0xme"
COVERED = BlockRange(1, 9)


def transfers(*amounts: tuple[int, str]) -> pl.DataFrame:
    """One transfer to the wallet per block and amount."""
    return pl.DataFrame(
        [
            {
                "block_number": block,
                "block_hash": f"0x{block}",
                "transaction_index": 0,
                "transaction_hash": f"0xt{block}",
                "log_index": 0,
                "token_address": TOKEN,
                "from_address": "0xyou",
                "to_address": WALLET,
                "amount_raw": amount,
            }
            for block, amount in amounts
        ]
    )


def collect(connection: duckdb.DuckDBPyConnection, kind: Kind, batch: int, rows: pl.DataFrame) -> dict[str, list[int]]:
    """Collect the rows for the token or for the wallet, and return the first and last block marked of each."""
    address = TOKEN if kind == "token" else WALLET
    segment = Segment(kind, COVERED, (address,))
    store_segment(connection, "n", segment, {"token_transfers": rows}, "node", batch)
    marked = connection.execute(
        """
        select subjects.kind, changes.from_block, changes.to_block
        from raw.changes
        inner join raw.control_subjects as subjects on changes.subject_key = subjects.subject_key
        where changes.batch_id = ?
        """,
        [batch],
    ).fetchall()
    return {str(kind): [first, last] for kind, first, last in marked}


@pytest.fixture
def connection(tmp_path: Path) -> Iterator[duckdb.DuckDBPyConnection]:
    """A warehouse with the token and the wallet as subjects."""
    with open_warehouse(tmp_path / "warehouse.duckdb") as connection:
        connection.execute(
            """
            insert into raw.control_subjects by name
            select unnest([1, 2]) as subject_key, unnest(['token', 'wallet']) as kind, 'n' as network,
                unnest(['0xcoin', '0xme']) as address, 's' as subject_id, 't' as tenant_id, 'l' as ledger_id,
                timestamp '2026-01-01' as created_at
            """
        )
        connection.execute(
            """
            insert into raw.blocks by name
            select 'n' as network, number as block_number, '0x' || number as block_hash, '' as parent_hash,
                timestamp '2026-01-01' as block_time, 1 as batch_id, false as is_tail
            from range(1, 10) as numbers (number)
            """
        )
        yield connection


def test_what_is_stored_already_marks_nobody_but_whom_it_is_collected_for(
    connection: duckdb.DuckDBPyConnection,
) -> None:
    assert collect(connection, "token", 1, transfers((2, "5"), (4, "6"))) == {"token": [2, 4], "wallet": [2, 4]}
    assert collect(connection, "wallet", 2, transfers((2, "5"), (4, "6"))) == {"wallet": [2, 4]}
    # One row more, and one otherwise than it was stored.
    again = collect(connection, "wallet", 3, transfers((2, "5"), (4, "7"), (8, "1")))
    assert again == {"token": [4, 8], "wallet": [2, 8]}


def test_what_an_answer_leaves_out_stays_and_belongs_to_whom_it_is_collected_for(
    connection: duckdb.DuckDBPyConnection,
) -> None:
    collect(connection, "wallet", 1, transfers((2, "5"), (4, "6"), (6, "7")))
    assert collect(connection, "token", 2, transfers((2, "5"))) == {"token": [2, 6]}
    stored = connection.execute("select block_number, amount_raw::varchar from raw.token_transfers order by all")
    assert stored.fetchall() == [(2, "5"), (4, "6"), (6, "7")]
    counts = connection.execute("select subject_kind, row_count from raw.coverage order by all")
    assert counts.fetchall() == [("token", 3), ("wallet", 3)]


def test_a_transfer_to_oneself_counts_once(connection: duckdb.DuckDBPyConnection) -> None:
    rows = pl.concat([transfers((2, "5")), transfers((4, "6")).with_columns(from_address=pl.lit(WALLET))])
    collect(connection, "wallet", 1, rows)
    collect(connection, "wallet", 2, rows)
    assert connection.execute("select row_count from raw.coverage").fetchall() == [(2,), (2,)]


def idle(block: int) -> pl.DataFrame:
    """A transfer from nobody to nobody."""
    zero = f"0x{0:040}"
    return transfers((block, "7")).with_columns(from_address=pl.lit(zero), to_address=pl.lit(zero))


def test_what_moved_between_nobody_and_nobody_marks_its_token(connection: duckdb.DuckDBPyConnection) -> None:
    collect(connection, "token", 1, transfers((2, "5")))
    assert collect(connection, "token", 2, pl.concat([transfers((2, "5")), idle(6)])) == {"token": [2, 6]}


def test_what_moved_between_nobody_and_nobody_becomes_final_and_is_orphaned(
    connection: duckdb.DuckDBPyConnection,
) -> None:
    collect(connection, "token", 1, pl.concat([transfers((2, "5")), idle(6), idle(8)]))
    record_healthy(connection, "n", {"head_number": 9}, 5, 2)
    record_healthy(connection, "n", {"head_number": 9}, 6, 3)
    marked = connection.execute("select subject_key from raw.changes where reason = 'Finality' and batch_id = 3")
    assert marked.fetchall() == [(1,)]
    remove_orphaned(connection, "n", 7, "0x8", "0xother", 4)
    assert connection.execute("select to_block, row_count from raw.coverage").fetchall() == [(7, 2)]
