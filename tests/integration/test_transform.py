"""The transformation: every cycle's marts equal the definitions worked out in plain Python, and a full refresh."""

import shutil
from collections.abc import Set
from pathlib import Path

import pytest

from pipelines.load.warehouse import open_warehouse
from tests.integration.dbt_runner import CYCLE, Stores, open_marts, run_dbt
from tests.integration.transform_oracle import Oracle
from tests.integration.transform_world import Subject, Window, World, address

TOKEN_A, TOKEN_B, TOKEN_C, NFT, EMPTY = (address(0xA0 + number) for number in range(5))
WALLET_A, WALLET_B = address(0xB0), address(0xB1)
SEEDS = [0, *(pytest.param(seed, marks=pytest.mark.long) for seed in range(1, 6))]


def make_world(seed: int) -> World:
    """Two tenants, tokens of every kind, wallets shared and not."""
    world = World(seed)
    world.tokens = [TOKEN_A, TOKEN_A, TOKEN_A, TOKEN_B, TOKEN_C, NFT]
    world.holders = [WALLET_A, WALLET_A, WALLET_B, *(address(0xD0 + number) for number in range(7))]
    world.common = {TOKEN_B: "USDX"}
    world.begin()
    for subject in (
        Subject(1, "token", "ten_a", "led_a", TOKEN_A),
        Subject(2, "token", "ten_a", "led_a", TOKEN_B),
        Subject(3, "wallet", "ten_a", "led_a", WALLET_A),
        Subject(4, "wallet", "ten_a", "led_a", WALLET_B),
        Subject(5, "token", "ten_b", "led_b", TOKEN_A),
        Subject(6, "wallet", "ten_b", "led_b", WALLET_A),
        Subject(7, "token", "ten_a", "led_a", NFT),
        Subject(8, "token", "ten_a", "led_a", EMPTY),
        Subject(9, "token", "ten_a", "led_a2", TOKEN_A),
    ):
        world.add(subject)
    return world


def cycle(world: World, stores: Stores, to_block: int, missing: Set[tuple[str, str, int]] = frozenset()) -> None:
    """Mine, collect, read, transform and compare."""
    world.mine(to_block)
    world.collect(missing)
    world.observe()
    world.write(stores.warehouse)
    run_dbt(stores, *CYCLE)
    world.transformed = world.batch
    compare(world, stores)
    world.begin()


def compare(world: World, stores: Stores) -> None:
    """Hold the marts against the definitions."""
    expected = Oracle(world).expected()

    def rows(columns: str, mart: str) -> list[tuple[object, ...]]:
        with open_marts(stores) as connection:
            return connection.execute(f"select {columns} from marts.{mart}").fetchall()

    def same(name: str, actual: list[tuple[object, ...]], wanted: set[tuple[object, ...]]) -> None:
        assert len(actual) == len(set(actual)), f"{name}: duplicates"
        assert (name, set(actual) - wanted, wanted - set(actual)) == (name, set(), set())

    def integers(actual: list[tuple[object, ...]], *positions: int) -> list[tuple[object, ...]]:
        return [
            tuple(
                int(str(value)) if place in positions and value is not None else value
                for place, value in enumerate(row)
            )
            for row in actual
        ]

    same(
        "balance_changes",
        integers(
            rows(
                "subject_key, window_key, token_address, holder_address, block_number, balance_raw::varchar,"
                " is_observed",
                "balance_changes",
            ),
            5,
        ),
        set(expected.balance_changes),
    )
    same(
        "token_activities",
        integers(
            rows(
                "subject_key, activity_type, status, block_number, log_index, from_address, to_address,"
                " amount_raw::varchar, amount",
                "token_activities",
            ),
            7,
        ),
        set(expected.token_activities),
    )
    same(
        "wallet_activities",
        integers(
            rows(
                "subject_key, activity_type, direction, status, block_number, transaction_index, log_index,"
                " counterparty_address, token_address, token_id, amount_raw::varchar",
                "wallet_activities",
            ),
            10,
        ),
        set(expected.wallet_activities),
    )
    same(
        "cap_tables",
        integers(
            rows(
                "subject_key, rank, holder_address, quantity_raw::varchar, percentage, reconciliation,"
                " checked_block_number",
                "cap_tables",
            ),
            3,
        ),
        set(expected.cap_tables),
    )
    same(
        "wallet_balances",
        integers(
            rows(
                "subject_key, token_address, token_id, quantity_raw::varchar, reconciliation, checked_block_number",
                "wallet_balances",
            ),
            3,
        ),
        set(expected.wallet_balances),
    )
    summaries = rows(
        "subject_key, total_supply_raw::varchar, supply_status, holder_count, unattributed_raw::varchar,"
        " unattributed_percentage, top10_percentage, hhi, gini, nakamoto",
        "cap_table_summaries",
    )
    assert {row[0]: row[1:] for row in integers(summaries, 1, 4)} == expected.summaries
    as_of = rows("subject_key, as_of_block_number", "tokens") + rows("subject_key, as_of_block_number", "wallets")
    assert {row[0]: row[1] for row in as_of} == expected.as_of


def content(stores: Stores) -> dict[str, list[tuple[object, ...]]]:
    """Every mart as sorted rows of text."""
    with open_marts(stores) as connection:
        tables = [
            row[0]
            for row in connection.execute(
                "select table_name from duckdb_tables() where database_name = 'published'"
            ).fetchall()
        ]
        return {
            table: sorted(
                connection.execute(f"select cast(columns(*) as varchar) from marts.{table}").fetchall(), key=repr
            )
            for table in tables
        }


@pytest.mark.timeout(600)
@pytest.mark.parametrize("seed", SEEDS)
def test_every_cycle_equals_the_definitions_and_a_full_refresh(tmp_path: Path, seed: int) -> None:
    stores = Stores(tmp_path / "stores")
    world = make_world(seed)
    # Tracking begins in the middle of a life; one wallet is followed from the first block.
    world.open(Window(1, 1, 10, None))
    world.open(Window(2, 2, 15, None))
    world.open(Window(3, 3, 12, None))
    world.open(Window(4, 4, 0, None))
    world.open(Window(5, 7, 10, None))
    world.open(Window(6, 8, 10, None))
    world.open(Window(7, 5, 25, None))
    world.describe(TOKEN_A, "Fungible", "AAA", 18)
    cycle(world, stores, 20)

    # A second tenant's windows begin; a contract turns out to be an NFT; a gap is left; blocks become final.
    world.describe(NFT, "NotFungible", "NFT", None)
    world.open(Window(8, 6, 25, 40))
    world.finalize(12)
    cycle(world, stores, 36, {("token", TOKEN_A, 30), ("wallet", WALLET_B, 33), ("token", EMPTY, 30)})

    # The gaps are filled, one of them with nothing in it; decimals become known.
    world.describe(TOKEN_B, "Fungible", None, 6)
    world.finalize(30)
    cycle(world, stores, 44)

    # A reorganisation; a window closes.
    world.fork_at(38)
    world.open(Window(1, 1, 10, 46))
    cycle(world, stores, 48)

    # Tracking again after a gap; a token is configured that a wallet held all the time.
    world.open(Window(9, 1, 55, None))
    world.add(Subject(10, "token", "ten_a", "led_a", TOKEN_C))
    world.finalize(48)
    cycle(world, stores, 58)

    # Nothing marks what is removed.
    world.remove(6)
    world.remove(10)
    cycle(world, stores, 66)

    incremental = content(stores)
    refreshed = Stores(tmp_path / "refreshed")
    refreshed.folder.mkdir()
    shutil.copy(stores.warehouse, refreshed.warehouse)
    run_dbt(refreshed, *CYCLE, "--full-refresh")
    full = content(refreshed)
    assert incremental.keys() == full.keys()
    for mart in incremental:
        assert (mart, incremental[mart]) == (mart, full[mart])
    run_dbt(stores, "test", "--exclude-resource-type", "unit_test")


def test_the_models_own_tests_pass(tmp_path: Path) -> None:
    stores = Stores(tmp_path)
    with open_warehouse(stores.warehouse):
        pass
    run_dbt(stores, "build")
