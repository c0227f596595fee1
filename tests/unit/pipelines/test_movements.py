"""Movements from each family's raw tables, and the addresses that they affect."""

from collections.abc import Iterator
from pathlib import Path

import duckdb
import pytest

from pipelines.raw.database import open_warehouse

ZERO = "0x" + 40 * "0"


@pytest.fixture
def warehouse(tmp_path: Path) -> Iterator[duckdb.DuckDBPyConnection]:
    with open_warehouse(tmp_path / "warehouse.duckdb") as connection:
        yield connection


def transfer(connection: duckdb.DuckDBPyConnection, log: int, sender: str, recipient: str, amount: str) -> None:
    connection.execute(
        "insert into raw.token_transfers values ('n', 7, '0xb', 2, '0xt', ?, '0xcoin', ?, ?, ?::bignum, 1)",
        [log, sender, recipient, amount],
    )


def transaction(connection: duckdb.DuckDBPyConnection, position: int, **values: object) -> None:
    row = {
        "to_address": None,
        "created_address": None,
        "value_raw": "100",
        "fee_raw": "3",
        "is_success": True,
        **values,
    }
    connection.execute(
        """
        insert into raw.transactions by name
        select 'n' as network, 8 as block_number, '0xb' as block_hash, 1 as batch_id, '0xt' as transaction_hash,
            ?::integer as transaction_index, '0xme' as from_address, ? as to_address, ? as created_address,
            ?::bignum as value_raw, ?::bignum as fee_raw, ?::boolean as is_success
        """,
        [position, *row.values()],
    )


def movements(connection: duckdb.DuckDBPyConnection, columns: str) -> list[tuple[object, ...]]:
    return connection.execute(
        f"select {columns} from raw.movements order by block_number, transaction_position, entry_position, kind"
    ).fetchall()


def test_transfer_with_the_zero_address_is_a_mint_or_burn(
    warehouse: duckdb.DuckDBPyConnection,
) -> None:
    amount = str(2**256 - 1)
    transfer(warehouse, 0, "0xa", "0xc", amount)
    transfer(warehouse, 1, ZERO, "0xc", "5")
    transfer(warehouse, 2, "0xa", ZERO, "6")
    transfer(warehouse, 3, ZERO, ZERO, "7")
    transfer(warehouse, 4, "0xa", "0xa", "8")
    columns = "entry_position, kind, asset, from_address, to_address, nobody_address, amount_raw::varchar, is_failed"
    assert movements(warehouse, columns) == [
        (0, "Transfer", "0xcoin", "0xa", "0xc", ZERO, amount, False),
        (1, "Mint", "0xcoin", None, "0xc", ZERO, "5", False),
        (2, "Burn", "0xcoin", "0xa", None, ZERO, "6", False),
        (3, "Transfer", "0xcoin", None, None, ZERO, "7", False),
        (4, "Transfer", "0xcoin", "0xa", "0xa", ZERO, "8", False),
    ]


def test_a_transaction_moves_its_value_and_its_fee(warehouse: duckdb.DuckDBPyConnection) -> None:
    transaction(warehouse, 0, to_address="0xyou")
    transaction(warehouse, 1, to_address="0xyou", is_success=False)
    transaction(warehouse, 2, to_address="0xyou", is_success=None, fee_raw=None)
    transaction(warehouse, 3, created_address="0xnew")
    transaction(warehouse, 4, to_address=ZERO)
    columns = "transaction_position, kind, from_address, to_address, nobody_address, amount_raw::varchar, is_failed"
    assert movements(warehouse, columns) == [
        (0, "Fee", "0xme", None, None, "3", False),
        (0, "Transfer", "0xme", "0xyou", None, "100", False),
        # A failed transaction pays its fee; its unmoved value is known.
        (1, "Fee", "0xme", None, None, "3", False),
        (1, "Transfer", "0xme", "0xyou", None, "100", True),
        # Status and fee of this transaction are unknown.
        (2, "Fee", "0xme", None, None, None, False),
        (2, "Transfer", "0xme", "0xyou", None, "100", None),
        (3, "Fee", "0xme", None, None, "3", False),
        (3, "Transfer", "0xme", "0xnew", None, "100", False),
        # The zero address keeps native value sent to it.
        (4, "Fee", "0xme", None, None, "3", False),
        (4, "Transfer", "0xme", ZERO, None, "100", False),
    ]
    assert movements(warehouse, "distinct asset, entry_position, transaction_hash, block_hash") == [
        ("native", -1, "0xt", "0xb")
    ]


def test_value_sent_by_contracts_is_internal(warehouse: duckdb.DuckDBPyConnection) -> None:
    warehouse.execute(
        "insert into raw.internal_transfers values ('n', 9, '0xb', 4, '0xt', 6, '0xa', '0xc', '9'::bignum, 'call', 1)"
    )
    columns = "kind, asset, transaction_position, entry_position, from_address, to_address, amount_raw::varchar"
    assert movements(warehouse, columns) == [("Internal", "native", 4, 6, "0xa", "0xc", "9")]


def test_each_party_has_a_side_except_the_zero_address(warehouse: duckdb.DuckDBPyConnection) -> None:
    transfer(warehouse, 0, "0xa", "0xc", "4")
    transfer(warehouse, 1, ZERO, "0xc", "5")
    transfer(warehouse, 2, "0xa", "0xa", "6")
    transaction(warehouse, 0, to_address="0xyou", fee_raw=None)
    sides = warehouse.execute(
        """
        select entry_position, kind, direction, holder_address, counterparty_address, movement_raw::varchar
        from raw.movement_sides order by all
        """
    ).fetchall()
    assert sides == [
        (-1, "Fee", "Out", "0xme", None, "0"),
        (-1, "Transfer", "In", "0xyou", "0xme", "100"),
        (-1, "Transfer", "Out", "0xme", "0xyou", "-100"),
        (0, "Transfer", "In", "0xc", "0xa", "4"),
        (0, "Transfer", "Out", "0xa", "0xc", "-4"),
        (1, "Mint", "In", "0xc", ZERO, "5"),
        (2, "Transfer", "In", "0xa", "0xa", "6"),
        (2, "Transfer", "Out", "0xa", "0xa", "-6"),
    ]
    parties = warehouse.execute("select distinct subject_kind, address from raw.movement_parties order by all")
    assert parties.fetchall() == [
        ("token", "0xcoin"),
        ("wallet", "0xa"),
        ("wallet", "0xc"),
        ("wallet", "0xme"),
        ("wallet", "0xyou"),
    ]
