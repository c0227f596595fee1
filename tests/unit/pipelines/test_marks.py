"""Marks of collected rows: the subjects and blocks to recompute."""

from collections.abc import Iterator
from pathlib import Path

import duckdb
import polars as pl
import pytest

from control.ranges import BlockRange
from pipelines.balances.readings import insert_balance_observations
from pipelines.chain.contracts import store_metadata
from pipelines.chain.reorganisations import remove_orphaned
from pipelines.chain.rows import store_segment
from pipelines.chain.states import record_healthy
from pipelines.raw.database import open_warehouse
from pipelines.rows import Kind, Origin, Segment
from pipelines.tables.sources import TABLES

TOKEN, WALLET = "0xcoin", "0xme"
COVERED = BlockRange(1, 9)


def transfers(*amounts: tuple[int, str]) -> pl.DataFrame:
    """Return one transfer to the wallet per block and amount."""
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
    """Collect the rows for the token or the wallet; return the first and last marked block of each."""
    address = TOKEN if kind == "token" else WALLET
    segment = Segment(kind, COVERED, (address,))
    store_segment(connection, "n", segment, {"token_transfers": rows}, Origin("node"), batch)
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
            insert into raw.view_ranges by name
            select 'Window' as origin, subject_key as origin_key, subject_key, network, 1 as from_block,
                if(kind = 'wallet', 'full', null) as native
            from raw.control_subjects
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


def test_stored_rows_mark_only_the_subject_they_are_collected_for(
    connection: duckdb.DuckDBPyConnection,
) -> None:
    assert collect(connection, "token", 1, transfers((2, "5"), (4, "6"))) == {"token": [2, 4], "wallet": [2, 4]}
    assert collect(connection, "wallet", 2, transfers((2, "5"), (4, "6"))) == {"wallet": [2, 4]}
    # One new row, and one with a changed amount.
    again = collect(connection, "wallet", 3, transfers((2, "5"), (4, "7"), (8, "1")))
    assert again == {"token": [4, 8], "wallet": [2, 8]}


def test_stored_rows_missing_in_a_response_stay_and_count(
    connection: duckdb.DuckDBPyConnection,
) -> None:
    collect(connection, "wallet", 1, transfers((2, "5"), (4, "6"), (6, "7")))
    assert collect(connection, "token", 2, transfers((2, "5"))) == {"token": [2, 6]}
    stored = connection.execute("select block_number, amount_raw::varchar from raw.token_transfers order by all")
    assert stored.fetchall() == [(2, "5"), (4, "6"), (6, "7")]
    counts = connection.execute("select subject_kind, row_count from raw.coverage order by all")
    assert counts.fetchall() == [("token", 3), ("wallet", 3)]


def test_transfer_to_oneself_counts_once(connection: duckdb.DuckDBPyConnection) -> None:
    rows = pl.concat([transfers((2, "5")), transfers((4, "6")).with_columns(from_address=pl.lit(WALLET))])
    collect(connection, "wallet", 1, rows)
    collect(connection, "wallet", 2, rows)
    assert connection.execute("select row_count from raw.coverage").fetchall() == [(2,), (2,)]


def idle(block: int) -> pl.DataFrame:
    """Return a transfer from the zero address to the zero address."""
    zero = f"0x{0:040}"
    return transfers((block, "7")).with_columns(from_address=pl.lit(zero), to_address=pl.lit(zero))


def test_transfer_between_zero_addresses_marks_its_token(connection: duckdb.DuckDBPyConnection) -> None:
    collect(connection, "token", 1, transfers((2, "5")))
    assert collect(connection, "token", 2, pl.concat([transfers((2, "5")), idle(6)])) == {"token": [2, 6]}


def test_transfer_between_zero_addresses_becomes_final_and_orphaned(
    connection: duckdb.DuckDBPyConnection,
) -> None:
    collect(connection, "token", 1, pl.concat([transfers((2, "5")), idle(6), idle(8)]))
    record_healthy(connection, "n", {"head_number": 9}, 5, 2)
    record_healthy(connection, "n", {"head_number": 9}, 6, 3)
    marked = connection.execute("select subject_key from raw.changes where reason = 'Finality' and batch_id = 3")
    assert marked.fetchall() == [(1,)]
    remove_orphaned(connection, "n", 7, "0x8", "0xother", 4)
    assert connection.execute("select to_block, row_count from raw.coverage").fetchall() == [(7, 2)]


class Others:
    """A second tenant that tracks the same token and wallet only in blocks 6 and 7, with native mode balance-only."""

    def __init__(self, connection: duckdb.DuckDBPyConnection) -> None:
        self.connection = connection
        connection.execute(
            """
            insert into raw.control_subjects by name
            select subject_key + 2 as subject_key, 'u' as tenant_id, * exclude (subject_key, tenant_id)
            from raw.control_subjects;
            insert into raw.view_ranges by name
            select 'Window' as origin, 3 as origin_key, unnest([3, 4]) as subject_key, 'n' as network, 6 as from_block,
                7 as to_block, unnest([null, 'balance-only']) as native
            """
        )

    def marked(self, batch: int) -> list[int]:
        """Return the second tenant's subjects marked by a batch."""
        found = self.connection.execute(
            "select distinct subject_key from raw.changes where batch_id = ? and subject_key > 2 order by 1", [batch]
        ).fetchall()
        return [key for (key,) in found]


@pytest.fixture
def others(connection: duckdb.DuckDBPyConnection) -> Others:
    return Others(connection)


@pytest.mark.parametrize(("blocks", "marked"), [((2, 4, 9), []), ((2, 6, 9), [3, 4])])
def test_rows_mark_subjects_with_views_that_contain_them(
    connection: duckdb.DuckDBPyConnection, others: Others, blocks: tuple[int, ...], marked: list[int]
) -> None:
    """This includes batches of rows that begin before the view and end after it."""
    rows = transfers(*((block, "5") for block in blocks))
    collect(connection, "token", 1, rows)
    assert others.marked(1) == marked
    collect(connection, "wallet", 2, rows.with_columns(amount_raw=pl.lit("6")))
    assert others.marked(2) == marked
    record_healthy(connection, "n", {"head_number": 9}, 9, 3)
    assert others.marked(3) == marked
    schema = TABLES["token_metadata"].schema_without("network", "read_at")
    tenants = connection.execute("select distinct tenant_id from raw.control_subjects").fetchall()
    said = [(TOKEN, "Fungible", "ERC-20", "C", "Coin", 18, None, tenant) for (tenant,) in tenants]
    store_metadata(connection, "n", pl.DataFrame(said, schema=schema, orient="row"), 9, 4)
    # The token's metadata changed; the wallet shows it if the token moved in the view.
    assert others.marked(4) == sorted({3, *marked})


def test_transactions_mark_wallets_that_track_them(connection: duckdb.DuckDBPyConnection, others: Others) -> None:
    row = transfers((6, "5")).drop("log_index", "token_address", "amount_raw")
    rest = {"created_address": None, "value_raw": "1", "fee_raw": "1", "gas_used": 1, "is_success": True}
    rows = row.with_columns(**{name: pl.lit(value) for name, value in rest.items()})
    store_segment(connection, "n", Segment("native", COVERED, (WALLET,)), {"transactions": rows}, Origin("node"), 1)
    assert others.marked(1) == []
    assert connection.execute("select subject_key from raw.changes where batch_id = 1").fetchall() == [(2,)]
    record_healthy(connection, "n", {"head_number": 9}, 9, 2)
    assert others.marked(2) == []


def test_readings_mark_subjects_of_tenants_that_may_see_them(
    connection: duckdb.DuckDBPyConnection, others: Others
) -> None:
    read = {
        "token_address": TOKEN,
        "holder_address": WALLET,
        "block_number": 6,
        "block_hash": "0x6",
        "quantity_raw": "5",
    }
    insert_balance_observations(connection, "n", pl.DataFrame([{**read, "tenant_ids": ["t"]}]), "Check", 1)
    record_healthy(connection, "n", {"head_number": 9}, 7, 2)
    assert (others.marked(1), others.marked(2)) == ([], [])
    insert_balance_observations(connection, "n", pl.DataFrame([{**read, "tenant_ids": ["u"]}]), "Check", 3)
    assert others.marked(3) == [3, 4]
