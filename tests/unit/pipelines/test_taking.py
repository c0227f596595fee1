"""False rows of a lake: they are refused with their segment, and nothing of them is stored."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import duckdb
import pytest

from control.networks.definitions import load_networks
from control.ranges import BlockRange
from control.settings import load_settings
from pipelines.chain.finality import record_settled
from pipelines.chain.segments import Collector, NetworkReport
from pipelines.extract.metering import Meter
from pipelines.lake.tables import columns_of, table_names
from pipelines.lake.taking import take
from pipelines.raw.database import open_warehouse
from pipelines.rows import Segment
from tests.unit.pipelines.test_giving import NETWORK, SENDER, SETTLED, TOKEN, WALLET, hash_of, headers
from warehouse.lakes import Lake, OpenLake

_READING = f"('{TOKEN}', '{WALLET}', 5, '{hash_of(5)}', '35', 'Check', ['ten_a'])"

TRUTHS = {
    "as given": "select 1",
    "a reversed range more": "insert into lake.coverage select * replace (8 as from_block, 2 as to_block) "
    "from lake.coverage",
    "a reading twice": "insert into lake.balance_observations from lake.balance_observations",
}
LIES = {
    "an amount of letters": "update lake.token_transfers set amount_raw = 'abc' where block_number = 3",
    "a negative amount": "update lake.token_transfers set amount_raw = '-5' where block_number = 3",
    "an amount beyond 256 bits": "update lake.token_transfers set amount_raw = repeat('9', 78) where block_number = 3",
    "an amount in another form": f"update lake.token_transfers set amount_raw = '{hash_of(7)}' where block_number = 3",
    "a row twice": "insert into lake.token_transfers from lake.token_transfers where block_number = 3",
    "two amounts": "insert into lake.token_transfers select * replace ('9' as amount_raw) from lake.token_transfers "
    "where block_number = 3",
    "another block": f"update lake.token_transfers set block_hash = '{hash_of(33)}' where block_number = 3",
    "two headers": f"insert into lake.blocks select * replace ('{hash_of(33)}' as block_hash) from lake.blocks "
    "where block_number = 3",
    "a time ahead": "update lake.blocks set block_time = timestamp '2099-01-01' where block_number = 3",
    "no time": "update lake.blocks set block_time = null where block_number = 3",
    "no index": "update lake.token_transfers set log_index = null where block_number = 3",
    "another form of address": "update lake.token_transfers set to_address = upper(to_address) where block_number = 3",
}


class FalseLake:
    """A lake's tables in memory, with the facts that a shard gave; `change` changes them."""

    def __init__(self, change: str) -> None:
        self.connection = duckdb.connect()
        self.connection.execute("attach ':memory:' as lake")
        network = load_networks(load_settings({}).networks_file, {})[NETWORK]
        for table in table_names(network):
            columns = ", ".join(f"{name} {type_}" for name, type_ in columns_of(table))
            self.connection.execute(f"create table lake.{table} ({columns})")
        for number in range(1, SETTLED + 1):
            self.connection.execute(
                "insert into lake.token_transfers values (?, ?, 0, ?, 0, ?, ?, ?, '7')",
                [number, hash_of(number), hash_of(number + 100), TOKEN, SENDER, WALLET],
            )
        self.connection.register("given", headers(range(1, SETTLED + 1)))
        self.connection.execute("insert into lake.blocks by name from given")
        self.connection.execute(
            f"""
            insert into lake.coverage by name
            select
                'token' as subject_kind, '{TOKEN}' as address, 1 as from_block, {SETTLED} as to_block,
                'node' as provider, now()::timestamp as collected_at
            """
        )
        self.connection.execute(
            "insert into lake.balance_observations (token_address, holder_address, block_number, block_hash, "
            f"quantity_raw, purpose, tenant_ids) values {_READING}"
        )
        self.connection.execute(change)

    @contextmanager
    def open(self) -> Iterator[OpenLake]:
        yield OpenLake(self.connection, NETWORK, "postgresql://user:password@host/lake")


def _taken(folder: Path, change: str) -> tuple[list[tuple[Any, ...]], list[tuple[Any, ...]], list[tuple[Any, ...]]]:
    """Take from a lake; return the stored blocks and amounts, the readings, and the noted failures."""
    settings = load_settings({"LEDGERMART_DATA_DIR": str(folder)})
    node: Any = SimpleNamespace(
        network=load_networks(settings.networks_file, {})[NETWORK],
        meter=Meter(),
        header_call="eth_getBlockByNumber",
        headers=headers,
    )
    with open_warehouse(settings.warehouse_path) as connection:
        connection.execute(
            "insert into raw.control_subjects (subject_key, subject_id, kind, tenant_id, ledger_id, network, address, "
            f"created_at) values (1, '1', 'token', 'ten_a', 'led', '{NETWORK}', '{TOKEN}', now()::timestamp)"
        )
        record_settled(connection, NETWORK, SETTLED)
        collector = Collector(connection, node, frozenset(), SETTLED, 2, NetworkReport(NETWORK))
        lake = cast(Lake, FalseLake(change))
        for _ in take(collector, lake, [Segment("token", BlockRange(1, SETTLED), (TOKEN,))]):
            pass
        rows, readings, failures = (
            connection.execute(f"select {columns} from raw.{table} order by all").fetchall()
            for table, columns in (
                ("token_transfers", "block_number, amount_raw::varchar"),
                ("balance_observations", "quantity_raw::varchar"),
                ("collection_failures", "detail"),
            )
        )
        return rows, readings, failures


@pytest.mark.parametrize("change", TRUTHS.values(), ids=TRUTHS)
def test_rows_of_the_lake_are_taken_once(change: str, tmp_path: Path) -> None:
    rows, readings, failures = _taken(tmp_path, change)
    assert rows == [(number, "7") for number in range(1, SETTLED + 1)]
    assert (readings, failures) == ([("35",)], [])


@pytest.mark.parametrize("change", LIES.values(), ids=LIES)
def test_false_rows_of_the_lake_are_refused_and_named(change: str, tmp_path: Path) -> None:
    rows, readings, ((detail,),) = _taken(tmp_path, change)
    assert (rows, readings) == ([], [])
    assert "its rows are refused" in detail


@pytest.mark.parametrize("value", ["'x'", "'-1'", f"'{hash_of(1)}'"])
def test_false_readings_of_the_lake_are_refused_and_named(value: str, tmp_path: Path) -> None:
    _, readings, ((detail,),) = _taken(tmp_path, f"update lake.balance_observations set quantity_raw = {value}")
    assert readings == []
    assert "a row of balance_observations is malformed" in detail
