"""Extent and pieces of second readings, with a node that lists its requests."""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import duckdb
import polars as pl
import pytest

from control.networks.definitions import Verification
from control.ranges import BlockRange, merged
from pipelines.chain import verification
from pipelines.chain.comparison import sample
from pipelines.chain.coverage import Watched, read_verified
from pipelines.chain.headers import insert_blocks
from pipelines.chain.rows import store_segment
from pipelines.chain.segments import Collector, NetworkReport
from pipelines.chain.verification import verify
from pipelines.extract.errors import NotProvable
from pipelines.extract.family import HEADERS, PROVABLE, Part
from pipelines.extract.metering import Meter
from pipelines.raw.database import open_warehouse
from pipelines.rows import Kind, Origin, Segment
from pipelines.tables.evm import TOKEN_TRANSFERS

LIVE, PAST = "0x" + "aa" * 20, "0x" + "bb" * 20
FINAL = 30_000


class Definition:
    """The part of a network's definition that second readings use."""

    def __init__(self, verification: Verification | None) -> None:
        self.name, self.verification = "n", verification


class ListedNode:
    """A node with given transfers, by token and block, that lists the requested ranges."""

    header_call = "header"
    provider = "node"

    reread_kinds: frozenset[Kind] = frozenset({"token", "wallet"})

    def __init__(self, verification: Verification | None = None) -> None:
        self.network: Any = Definition(verification)
        self.meter = Meter()
        self.asked: list[tuple[str, int, int]] = []
        self.given: dict[str, set[int]] = {LIVE: set(), PAST: set()}
        self.held: dict[str, set[int]] | None = None

    def held_by(self, token: str, blocks: set[int]) -> set[int]:
        """Set the blocks with a transfer of a token that receipts prove."""
        self.held = {**(self.held or {}), token: blocks}
        return blocks

    def other(self) -> "ListedNode":
        """Return the same node, like a client with one URL."""
        return self

    def close(self) -> None:
        """Do nothing: the node is reused."""

    def headers(self, numbers: Sequence[int]) -> pl.DataFrame:
        """Return headers in order, one per second."""
        return headers(numbers)

    def collect(self, segment: Segment, final_number: int) -> Iterator[Part]:
        """Return the transfers as the node returns them."""
        assert segment.covered.last <= final_number
        self.asked += [(address, *segment.covered) for address in segment.addresses]
        yield Part(segment.covered, {"token_transfers": rows(self.given, segment)})

    def proven(self, segment: Segment, hashes: Mapping[int, str]) -> Mapping[str, pl.DataFrame]:
        """Return the transfers in the blocks."""
        if self.held is None:
            raise NotProvable("n", "receipts", *segment.covered, "there are none", reason="missing")
        return {"token_transfers": rows(self.held, segment)}


def headers(numbers: Sequence[int]) -> pl.DataFrame:
    """Return rows of headers."""
    return pl.DataFrame(
        {"block_number": numbers, "block_hash": [f"0x{number}" for number in numbers]}, schema_overrides=HEADERS
    ).with_columns(
        parent_hash=pl.lit("0x"),
        block_time=pl.from_epoch(pl.col("block_number"), time_unit="s").cast(pl.Datetime("us")),
    )


def rows(blocks: Mapping[str, set[int]], segment: Segment) -> pl.DataFrame:
    """Return one transfer in each block of the segment, by token."""
    found = [
        (number, f"0x{number}", 0, f"0xt{number}", position, token, "0xfrom", f"0xto{number}", "7")
        for position, (token, numbers) in enumerate(sorted(blocks.items()))
        for number in sorted(numbers)
        if token in segment.addresses and segment.covered.first <= number <= segment.covered.last
    ]
    return pl.DataFrame(found, schema=TOKEN_TRANSFERS.row_schema, orient="row")


@pytest.fixture
def connection(tmp_path: Path) -> Iterator[duckdb.DuckDBPyConnection]:
    """A warehouse with two tokens collected from block 1 to 35,000: one by a window, one by a history request."""
    with open_warehouse(tmp_path / "warehouse.duckdb") as opened:
        for key, address, origin in ((1, LIVE, "Window"), (2, PAST, "History")):
            opened.execute(
                """
                insert into raw.control_subjects by name
                select
                    $key as subject_key, 'tok_' || $key as subject_id, 'token' as kind, 'ten_a' as tenant_id,
                    'led_a' as ledger_id, 'n' as network, $address as address, timestamp '2026-01-01' as created_at
                """,
                {"key": key, "address": address},
            )
            opened.execute("insert into raw.view_ranges values (?, ?, ?, 'n', 1, null, null)", [origin, key, key])
        opened.execute("insert into raw.sample_seeds values ('n', 'secret')")
        yield opened


def store(connection: duckdb.DuckDBPyConnection, token: str, blocks: set[int], covered: BlockRange) -> None:
    """Collect a token over a range with a transfer in each of the blocks."""
    segment = Segment("token", covered, (token,))
    insert_blocks(connection, "n", headers(sorted(blocks)), 1)
    store_segment(connection, "n", segment, {"token_transfers": rows({token: blocks}, segment)}, Origin("node"), 1)


def run(connection: duckdb.DuckDBPyConnection, node: Any, batch: int = 2) -> NetworkReport:
    """Verify like one cycle."""
    report = NetworkReport("n")
    capabilities = frozenset() if node.held is None else frozenset({PROVABLE})
    verify(Collector(connection, node, capabilities, FINAL, batch, report))
    return report


def stored(connection: duckdb.DuckDBPyConnection, token: str) -> set[int]:
    """Return the blocks of a token's stored transfers."""
    found = connection.execute("select block_number from raw.token_transfers where token_address = ?", [token])
    return {number for (number,) in found.fetchall()}


def verified(connection: duckdb.DuckDBPyConnection, token: str) -> tuple[list[BlockRange], list[BlockRange]]:
    """Return the ranges read a second time: those in full, and those in full or by a sample."""
    in_full, either = read_verified(connection, "n")
    watched = Watched("token", token)
    return merged(in_full.get(watched, [])), merged(either.get(watched, []))


def test_windows_are_read_in_full_and_history_by_a_sample(connection: duckdb.DuckDBPyConnection) -> None:
    """20,000 blocks of a window use up a cycle; the pieces begin one block before those of the first reading."""
    for token in (LIVE, PAST):
        store(connection, token, set(), BlockRange(1, 35_000))
    node = ListedNode()
    run(connection, node)
    assert node.asked == [(LIVE, max(2_000 * number, 1), 2_000 * (number + 1)) for number in range(15)] + [
        (PAST, max(chosen.first - 1, 1), chosen.last)
        for number in range(3)
        for chosen in sample(BlockRange(10_000 * number + 1, 10_000 * (number + 1)), "secret")
    ]
    whole = [BlockRange(1, FINAL)]
    assert verified(connection, LIVE) == (whole, whole)
    assert verified(connection, PAST) == ([], whole)
    node.asked.clear()
    run(connection, node, 3)
    assert node.asked == []


@pytest.mark.parametrize(
    ("mode", "tokens"),
    [(Verification.OFF, set()), (Verification.SAMPLE, set()), (Verification.FULL, {LIVE, PAST})],
)
def test_network_definition_sets_the_extent_of_second_readings(
    mode: Verification, tokens: set[str], connection: duckdb.DuckDBPyConnection
) -> None:
    for token in (LIVE, PAST):
        store(connection, token, set(), BlockRange(1, 4_000))
    run(connection, ListedNode(mode))
    for token in (LIVE, PAST):
        in_full, either = verified(connection, token)
        assert in_full == ([BlockRange(1, 4_000)] if token in tokens else [])
        assert either == ([] if mode is Verification.OFF else [BlockRange(1, 4_000)])


def test_sample_has_both_ends_and_two_percent_chosen_by_a_secret() -> None:
    covered = BlockRange(1_234, 5_001_233)
    chosen = sample(covered, "secret")
    assert (chosen[0].first, chosen[-1].last) == (1_234, 5_001_233)
    blocks = sum(last - first + 1 for first, last in chosen)
    assert 0.015 < blocks / 5_000_000 < 0.025
    assert chosen == sample(covered, "secret")
    assert chosen != sample(covered, "another")


def test_differing_sample_causes_a_reading_of_the_whole_range(connection: duckdb.DuckDBPyConnection) -> None:
    held = {1, 5_000, 9_000}
    store(connection, PAST, set(), BlockRange(1, 20_000))
    node = ListedNode()
    node.given[PAST] = node.held_by(PAST, held)
    run(connection, node)
    assert stored(connection, PAST) == held
    assert verified(connection, PAST) == ([BlockRange(1, 10_000)], [BlockRange(1, 20_000)])


def test_block_with_a_wrong_balance_is_read_besides_the_sample(
    connection: duckdb.DuckDBPyConnection,
) -> None:
    store(connection, PAST, set(), BlockRange(1, 10_000))
    node = ListedNode()
    run(connection, node)
    left_out = 5_050
    assert not any(first <= left_out <= last for first, last in sample(BlockRange(1, 10_000), "secret"))
    connection.execute(
        """
        create schema requests;
        create table requests.requests__readings as
        select 2 as subject_key, 'n' as network, $block - 1 as explained_to_block, $block as block_number
        union all
        select 2, 'n', 8000, 8003
        """.replace("$block", str(left_out))
    )
    node.given[PAST] = node.held_by(PAST, {left_out, 8_002})
    node.asked.clear()
    run(connection, node, 3)
    assert node.asked == [(PAST, left_out - 1, left_out), (PAST, 8_000, 8_003)]
    assert stored(connection, PAST) == {left_out, 8_002}
    node.asked.clear()
    run(connection, node, 4)
    assert node.asked == []


def test_disputed_blocks_do_not_delay_other_blocks(connection: duckdb.DuckDBPyConnection) -> None:
    """Readings differ in distant blocks without receipts; such blocks get a quarter of a cycle's places."""
    store(connection, LIVE, set(), BlockRange(1, FINAL))
    node = ListedNode()
    node.given[LIVE] = {2_000 * number + 1 for number in range(15)}
    run(connection, node)
    assert stored(connection, LIVE) == set()
    store(connection, PAST, set(), BlockRange(1, FINAL))
    node.given[LIVE] = set()
    run(connection, node, 3)
    assert verified(connection, PAST)[1] == [BlockRange(1, FINAL)]
    assert connection.execute("select count(*) from raw.disputed_answers").fetchone() == (10,)
    for batch in (4, 5):
        run(connection, node, batch)
    assert verified(connection, LIVE)[0] == [BlockRange(1, FINAL)]
    assert connection.execute("select count(*) from raw.disputed_answers").fetchone() == (0,)


def test_repeated_reading_in_the_same_cycle_is_not_a_third_reading(connection: duckdb.DuckDBPyConnection) -> None:
    """A cycle is retried if the chain changed while it was read."""
    store(connection, LIVE, {5}, BlockRange(1, 10))
    node = ListedNode()
    for _ in range(3):
        run(connection, node, 2)
        assert stored(connection, LIVE) == {5}
    run(connection, node, 3)
    assert stored(connection, LIVE) == set()


def test_coverage_counts_the_remaining_rows(connection: duckdb.DuckDBPyConnection) -> None:
    store(connection, LIVE, {5, 7, 8}, BlockRange(1, 10))
    node = ListedNode()
    node.given[LIVE] = node.held_by(LIVE, {5, 9})
    assert run(connection, node).corrected_ranges == 1
    assert connection.execute("select from_block, to_block, row_count from raw.coverage").fetchall() == [(1, 10, 2)]
    assert connection.execute(
        "select stored_rows, read_rows, removed_rows, added_rows, judged_by from raw.verifications"
    ).fetchall() == [(3, 2, 2, 1, "Proof")]


def test_one_cycle_judges_a_bounded_number_of_blocks(
    connection: duckdb.DuckDBPyConnection, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All blocks differ; judging a block requires its receipts."""
    monkeypatch.setattr(verification, "_BLOCKS_JUDGED_PER_CYCLE", 2)
    held = set(range(1, 6))
    store(connection, LIVE, set(), BlockRange(1, 9))
    node = ListedNode()
    node.given[LIVE] = node.held_by(LIVE, held)
    for batch, known in ((2, 2), (3, 4), (4, 5)):
        run(connection, node, batch)
        assert stored(connection, LIVE) == set(range(1, known + 1))
        assert (verified(connection, LIVE)[0] == [BlockRange(1, 9)]) == (known == 5)


def test_another_provider_supplies_a_missing_proof(connection: duckdb.DuckDBPyConnection) -> None:
    store(connection, LIVE, {5, 6}, BlockRange(1, 10))
    node, other = ListedNode(), ListedNode()
    other.provider = "other"
    other.given[LIVE] = set()
    other.held_by(LIVE, {5})
    node.other = lambda: other  # type: ignore[method-assign]
    run(connection, node)
    assert stored(connection, LIVE) == {5}
