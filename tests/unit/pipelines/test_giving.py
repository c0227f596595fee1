"""Facts that shards give to one lake and take from it: each once, and corrected by readings alone."""

from collections.abc import Callable
from pathlib import Path
from typing import Any
from unittest import mock

import polars as pl
import pytest

from cli.network import run_reset
from control.networks.definitions import load_networks
from control.ranges import BlockRange, merged
from control.settings import load_settings
from pipelines.chain.finality import record_settled
from pipelines.chain.headers import insert_blocks
from pipelines.chain.rows import store_segment
from pipelines.chain.segments import Collector, NetworkReport
from pipelines.extract.family import HEADERS
from pipelines.extract.metering import Meter
from pipelines.lake import giving
from pipelines.lake.tables import open_lake
from pipelines.lake.taking import take
from pipelines.raw.database import open_warehouse
from pipelines.rows import Kind, Origin, Segment
from pipelines.tables.evm import TOKEN_TRANSFERS, TRANSACTIONS
from tests.integration.killing import Killed
from tests.unit.warehouse.test_lakes import end_sessions
from warehouse.lakes import OpenLake

NETWORK = "ethereum"
TOKEN, WALLET, SENDER = ("0x" + byte * 20 for byte in ("aa", "bb", "cc"))
SETTLED = 9
Rows = list[tuple[object, ...]]
MakeShard = Callable[..., "Shard"]


class SettledNode:
    """A node that has headers alone."""

    meter = Meter()

    def __init__(self, shard: "Shard") -> None:
        self.network = shard.network

    def headers(self, numbers: list[int]) -> pl.DataFrame:
        return headers(numbers)


def hash_of(number: int) -> str:
    return f"0x{number:064x}"


def headers(numbers: Any) -> pl.DataFrame:
    """Return headers, one per second."""
    return pl.DataFrame(
        {"block_number": numbers, "block_hash": [hash_of(number) for number in numbers]}, schema_overrides=HEADERS
    ).with_columns(
        parent_hash=pl.lit("0x"),
        block_time=pl.from_epoch(pl.col("block_number"), time_unit="s").cast(pl.Datetime("us")),
    )


class Shard:
    """A shard that has collected one transfer in each block from 1 to `SETTLED`, for a token or its receiver."""

    def __init__(self, folder: Path, lake: dict[str, str], kind: Kind = "token", amount: str = "7") -> None:
        self.settings = load_settings({**lake, "LEDGERMART_DATA_DIR": str(folder)})
        self.network = load_networks(self.settings.networks_file, {})[NETWORK]
        opened = open_lake(self.settings, self.network)
        assert opened is not None
        self.lake = opened
        blocks = BlockRange(1, SETTLED)
        segment = Segment(kind, blocks, (TOKEN if kind == "token" else WALLET,))
        rows = [
            (number, hash_of(number), 0, hash_of(number + 100), 0, TOKEN, SENDER, WALLET, amount)
            for number in range(1, SETTLED + 1)
        ]
        frame = pl.DataFrame(rows, schema=TOKEN_TRANSFERS.row_schema, orient="row")
        folder.mkdir()
        with open_warehouse(self.settings.warehouse_path) as connection:
            insert_blocks(connection, NETWORK, headers(range(1, SETTLED + 1)), 1)
            store_segment(connection, NETWORK, segment, {"token_transfers": frame}, Origin("node"), 1)
            record_settled(connection, NETWORK, SETTLED)

    def run(self, statement: str) -> Rows:
        """Run a statement in the warehouse."""
        with open_warehouse(self.settings.warehouse_path) as connection:
            return connection.execute(statement).fetchall()

    def give(self) -> None:
        with open_warehouse(self.settings.warehouse_path) as connection:
            giving.give(connection, self.network, self.lake, 0)

    def facts(self) -> list[Rows]:
        """Return transfers, blocks and covered ranges of the lake."""
        with self.lake.open() as opened:
            return [
                opened.run(f"select {columns} from lake.{table} order by all").fetchall()
                for table, columns in (
                    ("token_transfers", "block_number, amount_raw"),
                    ("blocks", "block_number, block_hash"),
                    ("coverage", "subject_kind, address, from_block, to_block"),
                )
            ]


FACTS: list[Rows] = [
    [(number, "7") for number in range(1, SETTLED + 1)],
    [(number, hash_of(number)) for number in range(1, SETTLED + 1)],
    [("token", TOKEN, 1, SETTLED)],
]


@pytest.fixture
def make_shard(empty_database: str, tmp_path: Path) -> MakeShard:
    lake = {"LEDGERMART_LAKE": f"ducklake:postgres:{empty_database}", "LEDGERMART_LAKE_DATA": str(tmp_path / "lake")}
    return lambda name, **options: Shard(tmp_path / name, lake, **options)


@pytest.mark.proof("a writer of the lake that lost its lock adds nothing twice")
def test_writer_that_lost_its_lock_in_a_transaction_adds_nothing_twice(
    make_shard: MakeShard, empty_database: str
) -> None:
    first, second = make_shard("first"), make_shard("second")
    add_part = giving._Giving._add_part
    overtaken: list[BlockRange] = []

    def add_part_late(writing: giving._Giving, part: BlockRange) -> int:
        added = add_part(writing, part)
        if not overtaken:
            overtaken.append(part)
            assert end_sessions(empty_database, "application_name = 'ledgermart: giving facts'") == 1
            second.give()
        return added

    with mock.patch.object(giving, "MOST_ROWS", 4), mock.patch.object(giving._Giving, "_add_part", add_part_late):
        first.give()
    assert overtaken == [BlockRange(1, 4)]
    assert first.facts() == FACTS


@pytest.mark.proof("a killed writer of the lake leaves whole parts")
def test_writer_killed_before_the_coverage_of_its_second_part_leaves_the_first(
    make_shard: MakeShard, empty_database: str
) -> None:
    shard = make_shard("first")
    run, left = OpenLake.run, 2

    def run_or_end(opened: OpenLake, statement: str, *arguments: Any) -> Any:
        nonlocal left
        left -= "insert into lake.coverage" in statement
        if left == 0:
            assert end_sessions(empty_database) > 0
            raise Killed
        return run(opened, statement, *arguments)

    with mock.patch.object(giving, "MOST_ROWS", 4):
        with mock.patch.object(OpenLake, "run", run_or_end), pytest.raises(Killed):
            shard.give()
        assert shard.facts() == [FACTS[0][:4], FACTS[1][:4], [("token", TOKEN, 1, 4)]]
        shard.give()
    assert shard.facts() == FACTS


@pytest.mark.proof("a contradicted lake is not changed")
def test_shard_with_another_amount_records_the_failure_and_leaves_the_lake(make_shard: MakeShard) -> None:
    make_shard("first").give()
    second = make_shard("second", kind="wallet", amount="8")
    with open_warehouse(second.settings.warehouse_path) as connection:
        giving.give_or_note(connection, second.network, second.lake, 1)
    ((detail,),) = second.run("select detail from raw.collection_failures")
    assert str(detail).startswith("ethereum: the lake has another row of token_transfers in block 1 than this shard")
    assert second.run("from raw.lake_states") == []
    assert second.facts() == FACTS


@pytest.mark.proof("a correction by a second reading reaches the lake")
def test_corrected_row_replaces_the_rows_of_its_block_in_the_lake(make_shard: MakeShard) -> None:
    shard = make_shard("first")
    shard.give()
    with shard.lake.open() as opened:
        opened.run("update lake.token_transfers set amount_raw = '1' where block_number = 3")
        opened.run(
            "insert into lake.token_transfers select * replace (9 as log_index) from lake.token_transfers "
            "where block_number = 3"
        )
    # As a second reading records it.
    shard.run(f"insert into raw.verifications values (2, '{NETWORK}', 3, 3, 'node', 1, 1, now()::timestamp, 1, 1, '')")
    shard.give()
    assert shard.facts() == FACTS


@pytest.mark.proof("a false row of a shard is repaired from the lake")
def test_shard_takes_true_rows_from_the_lake_after_a_reset_that_keeps_it(make_shard: MakeShard) -> None:
    make_shard("first").give()
    shard = make_shard("second")
    shard.run("update raw.token_transfers set amount_raw = 1::bignum where block_number = 3")
    reset = run_reset(shard.settings, NETWORK, keeps_lake=True)
    assert not reset.is_lake_cleared
    assert shard.run("from raw.token_transfers") == []
    node: Any = SettledNode(shard)
    with open_warehouse(shard.settings.warehouse_path) as connection:
        collector = Collector(connection, node, frozenset(), SETTLED, 2, NetworkReport(NETWORK))
        segments = [Segment("token", BlockRange(1, SETTLED), (TOKEN,))]
        assert list(take(collector, shard.lake, segments)) == segments
    assert shard.run("select block_number, amount_raw::varchar from raw.token_transfers order by all") == FACTS[0]
    assert shard.facts() == FACTS


@pytest.mark.proof("a reset deletes the facts of a lake of the same chain")
def test_reset_clears_the_lake_unless_it_is_of_another_chain(make_shard: MakeShard) -> None:
    first, other = make_shard("first"), make_shard("other")
    first.give()
    other.run("update raw.blocks set block_hash = block_hash || 'f'")
    assert not run_reset(other.settings, NETWORK).is_lake_cleared
    assert first.facts() == FACTS
    assert run_reset(first.settings, NETWORK).is_lake_cleared
    assert first.facts() == [[], [], []]


def test_blocks_that_wait_for_their_traces_are_given_when_these_are_read(make_shard: MakeShard) -> None:
    shard = make_shard("one")
    with open_warehouse(shard.settings.warehouse_path) as connection:
        segment = Segment("native", BlockRange(1, SETTLED), (WALLET,))
        store_segment(connection, NETWORK, segment, {}, Origin("node"), 1)
        connection.execute(
            "insert into raw.unread_units values (?, 'traces', '', '', 5, 'trace_block', 'no', 1, now(), now(), 1)",
            [NETWORK],
        )
    shard.give()
    assert [row for row in shard.facts()[2] if row[0] == "native"] == [
        ("native", WALLET, 1, 4),
        ("native", WALLET, 6, SETTLED),
    ]
    with open_warehouse(shard.settings.warehouse_path) as connection:
        connection.execute("delete from raw.unread_units")
        giving.give(connection, shard.network, shard.lake, 0, is_complete=True)
    given = BlockRange(1, SETTLED)
    assert merged(BlockRange(*row[2:]) for row in shard.facts()[2] if row[0] == "native") == [given]


def test_an_unknown_fee_is_no_contradiction(make_shard: MakeShard) -> None:
    for name, address, fee, gas in (("one", WALLET, None, None), ("two", SENDER, "21000", 1)):
        shard = make_shard(name)
        row = (5, hash_of(5), 0, hash_of(105), SENDER, WALLET, None, "7", fee, gas, True)
        rows = {"transactions": pl.DataFrame([row], schema=TRANSACTIONS.row_schema, orient="row")}
        with open_warehouse(shard.settings.warehouse_path) as connection:
            segment = Segment("native", BlockRange(1, SETTLED), (address,))
            store_segment(connection, NETWORK, segment, rows, Origin("node"), 1)
        shard.give()
    with shard.lake.open() as opened:
        assert opened.run("select value_raw, fee_raw from lake.transactions").fetchall() == [("7", None)]
