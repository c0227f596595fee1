"""One made-up world, transformed cycle by cycle: after each cycle the marts are compared with the definitions."""

import shutil
from collections.abc import Set
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any, TypeVar

import duckdb

from control.networks.definitions import NATIVE
from control.pricing.links import LinkedToken, LinksInForce, UsdPair
from pipelines.raw.database import open_warehouse
from tests.integration.bi_views import check_bi_views
from tests.integration.dbt_runner import (
    BUILD,
    LATER_RUN,
    WITHOUT_VIEWS,
    Stores,
    build_over_nothing,
    open_marts,
    run_dbt,
)
from tests.oracles.balances import Oracle
from tests.oracles.values import ValueOracle
from tests.worlds.ledger import NETWORK, Subject, World, address
from tests.worlds.values import Pair, ValueWorld

TOKEN_A, TOKEN_B, TOKEN_C, NFT, EMPTY = (address(0xA0 + number) for number in range(5))
WALLET_A, WALLET_B = address(0xB0), address(0xB1)
Missing = Set[tuple[str, str, int]]
_PAIRS = (
    Pair(1, "ten_a", "AAA", "USD", "Market", timedelta(days=1), ("src_1", "src_2")),
    Pair(2, "ten_a", "AAA", "USD", "NAV", None, ("src_2",)),
    Pair(3, "ten_a", "USDX", "USD", "Ask", None, ("src_1",)),
    Pair(4, "ten_a", "USDX", "EUR", "Market", None, ("src_1",)),
    Pair(5, "ten_b", "CCC", "USD", "Trade", timedelta(days=2), ("src_3",)),
    Pair(6, "ten_b", "ETH", "USD", "Trade", timedelta(days=1), ("src_3",)),
)
VALUE_MARTS = ("token_activity_values", "wallet_activity_values", "token_value_days", "wallet_value_days")
PRICE = "price_text, source_id, is_fallback, price_effective_from"
# How the marts' rows read, in the order of the oracle's.
VALUE_COLUMNS = {
    "token_pairs": "subject_key, token_address, token_decimals, pair_key, origin",
    "token_activity_values": f"activity_id, pair_key, {PRICE}, value, value_status",
    "wallet_activity_values": f"activity_id, pair_key, {PRICE}, value, value_status",
    "cap_table_values": "subject_key, holder_address, pair_key, price_text, value, value_status, currency",
    "wallet_balance_values": "subject_key, token_address, pair_key, price_text, value, value_status, currency",
    "token_prices": "subject_key, pair_key, price_text, price_status, market_capitalization,"
    " market_capitalization_status, price_24h_text, change24h, change24h_status",
    "wallet_totals": "subject_key, total_value, total_value_status, value_complete, unpriced, total_value_24h,"
    " change24h, change24h_status, change24h_omitted",
    "wallet_value_days": "subject_key, range_from_block, day, value, value_status, value_complete, unpriced,"
    " holdings_complete",
    "token_value_days": "subject_key, range_from_block, day, pair_key, supply_raw::varchar,"
    f" {PRICE}, price_status, value, value_status",
    "token_holder_days": "subject_key, range_from_block, day, holder_count",
    "token_capitalization_days": "subject_key, day, supply_raw::varchar, supply_status, value, value_status",
}


AnyWorld = TypeVar("AnyWorld", bound=World)


def filled(world: AnyWorld) -> AnyWorld:
    """Give a new world two tenants, tokens of every kind, and shared and separate wallets."""
    world.tokens = [TOKEN_A, TOKEN_A, TOKEN_A, TOKEN_B, TOKEN_C, NFT]
    world.holders = [*[WALLET_A] * 4, *[WALLET_B] * 3, *(address(0xD0 + number) for number in range(25))]
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


def priced(world: ValueWorld) -> ValueWorld:
    """Give a new world tenants, tokens and wallets, and pairs of prices."""
    filled(world).describe(TOKEN_A, "Fungible", "AAA", 18)
    for pair in _PAIRS:
        world.put_pair(pair)
    return world


def cycle(world: World, stores: Stores, to_block: int, missing: Missing = frozenset(), history: int = 8) -> None:
    """Mine, collect, read, transform and compare."""
    world.mine(to_block)
    collect(world, missing, history)
    transform(world, stores)
    if isinstance(world, ValueWorld):
        with open_marts(stores) as marts:
            check_bi_views(marts)


def collect(world: World, missing: Missing = frozenset(), history: int = 8) -> None:
    """Run the collection of one cycle."""
    world.resolve()
    world.collect(missing, history)
    world.verify()
    world.observe()


def transform(world: World, stores: Stores) -> None:
    """Build the marts from the collected rows, compare them, and begin the next cycle."""
    world.write(stores.warehouse)
    version, before = newest_version(stores), shown(stores) if world.transformed is not None else Shown()
    run_dbt(stores, *LATER_RUN)
    with open_marts(stores) as marts:
        compare(world, marts)
        if isinstance(world, ValueWorld):
            compare_values(world, marts)
    check_that_changes_are_named(version, before, shown(stores), stores)
    publish(stores, world.batch)
    world.transformed = world.batch
    world.begin()


@dataclass
class Shown:
    """Rows of the marts as (subject, block, text), and the last covered block of each subject."""

    rows: set[tuple[int, int, str]] = field(default_factory=set)
    last_blocks: dict[int, int] = field(default_factory=dict)


def shown(stores: Stores) -> Shown:
    """Return the rows of the marts; skip readings that change nothing."""
    said = {
        "marts.balance_changes where is_moved or is_adjusted or is_first": (
            "token_address, holder_address, balance_raw::varchar, is_adjusted"
        ),
        "marts.supply_changes qualify total_supply_raw is distinct from lag(total_supply_raw) over ("
        "partition by subject_key, range_from_block order by block_number)": "total_supply_raw::varchar",
        "marts.token_activities": "activity_id, from_address, to_address, amount_raw::varchar",
        "marts.wallet_activities": "activity_id, direction, amount_raw::varchar",
    }
    with open_marts(stores) as connection:
        rows = {
            (subject, block, f"{mart}: {what}")
            for mart, columns in said.items()
            for subject, block, *what in connection.execute(
                f"select subject_key, block_number, {columns} from {mart}"
            ).fetchall()
        }
        covered = connection.execute(
            "select subject_key, max(to_block) from marts.coverage where is_covered group by subject_key"
        )
        return Shown(rows, dict(covered.fetchall()))


def newest_version(stores: Stores) -> int | None:
    """Return the number of the newest published version."""
    with open_warehouse(stores.warehouse) as connection:
        ((version,),) = connection.execute("select max(version) from raw.publications").fetchall()
    return version


def publish(stores: Stores, batch: int) -> None:
    """Record the marts as the next version."""
    with open_warehouse(stores.warehouse) as connection:
        connection.execute(
            """
            insert into raw.publications
            select coalesce(max(version), 0) + 1, ?, current_timestamp::timestamp from raw.publications
            """,
            [batch],
        )


def check_that_changes_are_named(version: int | None, before: Shown, after: Shown, stores: Stores) -> None:
    """Assert that all changes in already shown blocks lie in ranges that the marts list as recomputed."""
    with open_marts(stores) as connection:
        named = connection.execute(
            "select subject_key, from_block, to_block from marts.recomputed_ranges where shown_until_version = ?",
            [version],
        ).fetchall()
        configured = {key for (key,) in connection.execute("select subject_key from marts.coverage").fetchall()}
    unnamed = {
        (subject, block, what)
        for subject, block, what in before.rows ^ after.rows
        if subject in configured
        and block <= before.last_blocks.get(subject, -1)
        and not any(key == subject and first <= block <= last for key, first, last in named)
    }
    assert unnamed == set()


def compare(world: World, marts: duckdb.DuckDBPyConnection) -> None:
    """Compare the marts of balances and activities with the definitions."""
    expected = Oracle(world).expected()

    def rows(columns: str, mart: str) -> list[tuple[object, ...]]:
        return marts.execute(f"select {columns} from marts.{mart}").fetchall()

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
                "subject_key, range_from_block, token_address, holder_address, block_number, movement_raw::varchar,"
                " balance_raw::varchar, holder_change, is_first, is_moved, is_observed, is_checked,"
                " is_adjusted, opened_by",
                "balance_changes",
            ),
            5,
            6,
        ),
        set(expected.balance_changes),
    )
    same(
        "supply_changes",
        integers(
            rows(
                "subject_key, range_from_block, block_number, total_supply_raw::varchar, is_observed", "supply_changes"
            ),
            3,
        ),
        set(expected.supply_changes),
    )
    same(
        "coverage",
        rows("subject_key, from_block, to_block, is_covered, reason, source", "coverage"),
        set(expected.coverage),
    )
    same(
        "token_activities",
        integers(
            rows(
                "subject_key, activity_type, status, block_number, log_index, from_address, to_address,"
                " amount_raw::varchar, amount, is_located",
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
                " trace_index, transaction_hash, counterparty_address, token_address, token_id, amount_raw::varchar",
                "wallet_activities",
            ),
            12,
        ),
        set(expected.wallet_activities),
    )
    same(
        "statuses of amounts",
        rows("distinct activity_type = 'Fee' and amount_raw is null, amount_status", "wallet_activities"),
        {(row[-1] is None, "UnknownFee" if row[-1] is None else "Known") for row in expected.wallet_activities},
    )
    same(
        "cap_tables",
        integers(
            rows(
                "subject_key, rank, holder_address, quantity_raw::varchar, percentage, reconciliation,"
                " checked_block_number, opened_by",
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
                "subject_key, token_address, token_id, quantity_raw::varchar, reconciliation, checked_block_number,"
                " opened_by",
                "wallet_balances",
            ),
            3,
        ),
        set(expected.wallet_balances),
    )
    summaries = rows(
        "subject_key, total_supply_raw::varchar, supply_status, holder_count, unattributed_raw::varchar,"
        " unattributed_status, holders_status, unattributed_percentage, top10_percentage, top10_status,"
        " hhi, hhi_status, gini, gini_status, nakamoto, nakamoto_status",
        "cap_table_summaries",
    )
    assert {row[0]: row[1:] for row in integers(summaries, 1, 4)} == expected.summaries
    columns = "subject_key, view_from_block, as_of_block_number"
    assert {row[0]: row[1:] for row in rows(columns, "tokens") + rows(columns, "wallets")} == expected.as_of
    assert {row[0]: row[1] for row in rows("subject_key, behaviour", "tokens")} == expected.behaviours
    assert {row[0]: row[1] for row in rows("subject_key, holdings_complete", "wallets")} == expected.holdings_complete


def read_values(marts: duckdb.DuckDBPyConnection, mart: str) -> list[tuple[Any, ...]]:
    """Return the rows of a mart in the oracle's form: hashable, without details of missing prices."""
    # The details of a stale price are tested with the price marts.
    told = [f"case when price is not null then {column} end" for column in PRICE.split(", ")]
    shown = VALUE_COLUMNS[mart].replace(PRICE, ", ".join(told))
    rows = marts.execute(f"select {shown} from marts.{mart}").fetchall()
    return [tuple(tuple(cell) if isinstance(cell, list) else cell for cell in row) for row in rows]


def links_of_wallets(world: ValueWorld) -> set[tuple[Any, ...]]:
    """Return wallet, asset and pair as the API reads them from the configuration."""
    subjects, found = world.subjects.values(), set()
    network: Any = SimpleNamespace(common_symbols={**world.common, NATIVE: "ETH"})
    for wallet in subjects:
        usable = {
            pair.key: pair for pair in world.pairs.values() if (pair.tenant, pair.priced_in) == (wallet.tenant, "USD")
        }
        tokens = [
            LinkedToken(one.key, one.ledger, NETWORK, one.address, world.links[one.key])
            for one in subjects
            if (one.kind, one.tenant) == ("token", wallet.tenant) and world.links.get(one.key) in usable
        ]
        pairs = [UsdPair(pair.key, pair.priced_as, pair.price_type) for pair in usable.values()]
        row: Any = SimpleNamespace(network=NETWORK, ledger_id=wallet.ledger)
        if wallet.kind == "wallet":
            links = LinksInForce({NETWORK: network}, tokens, pairs).of_wallet(row)
            found |= {(wallet.key, asset, pair_key) for asset, pair_key in links.items()}
    return found


def compare_values(world: ValueWorld, marts: duckdb.DuckDBPyConnection) -> None:
    """Compare the marts of values with the definitions."""
    oracle = ValueOracle(world, marts)
    expected = {
        "token_pairs": oracle.token_pairs(),
        "token_activity_values": oracle.activity_values("token"),
        "wallet_activity_values": oracle.activity_values("wallet"),
        "cap_table_values": oracle.position_values("cap_tables"),
        "wallet_balance_values": oracle.position_values("wallet_balances"),
        "token_prices": oracle.token_prices(),
        "wallet_totals": oracle.wallet_totals(),
        "wallet_value_days": oracle.wallet_value_days(),
        "token_value_days": oracle.token_value_days(),
        "token_capitalization_days": oracle.token_capitalization_days(),
        "token_holder_days": oracle.token_holder_days(),
    }
    wallets = {subject.key for subject in world.subjects.values() if subject.kind == "wallet"}
    assert links_of_wallets(world) == {row[:2] + row[3:4] for row in oracle.token_pairs() if row[0] in wallets}
    for mart, wanted in expected.items():
        actual = read_values(marts, mart)
        assert len(actual) == len(set(actual)), f"{mart}: duplicates"
        assert (mart, set(actual) - wanted, wanted - set(actual)) == (mart, set(), set())


def content(stores: Stores) -> dict[str, list[tuple[object, ...]]]:
    """Return every mart as sorted rows of text."""
    with open_marts(stores) as connection:
        tables = [
            row[0]
            for row in connection.execute(
                "select table_name from duckdb_tables() where database_name = 'published' and schema_name = 'marts'"
            ).fetchall()
            if row[0] != "recomputed_ranges"  # empty after a full refresh
        ]
        return {
            table: sorted(
                connection.execute(f"select cast(columns(*) as varchar) from marts.{table}").fetchall(), key=repr
            )
            for table in tables
        }


def compare_with_full_refresh(stores: Stores, folder: Path) -> None:
    """Compare the marts with a full refresh in many stretches, which must pass all data tests."""
    incremental = content(stores)
    refreshed = build_over_nothing(folder)
    shutil.copy(stores.warehouse, refreshed.warehouse)
    parts = "{rows_per_stretch: 20, rows_per_share: 200}"
    run_dbt(refreshed, *BUILD, "--full-refresh", "--vars", parts, "--exclude", *WITHOUT_VIEWS)
    full = content(refreshed)
    assert incremental.keys() == full.keys()
    for mart in incremental:
        assert (mart, incremental[mart]) == (mart, full[mart])
