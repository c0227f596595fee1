"""Values: after every cycle the marts equal the definitions in plain Python and a full refresh."""

from datetime import timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import duckdb
import pytest

from control.networks.definitions import NATIVE
from control.pricing.links import LinkedToken, LinksInForce, UsdPair
from tests.bench import values
from tests.bench.measurement import Measurement
from tests.integration.bi_views import check_bi_views
from tests.integration.dbt_runner import LATER_RUN, Stores, build_over_nothing, open_marts, run_dbt
from tests.integration.test_transform import (
    TOKEN_A,
    TOKEN_B,
    TOKEN_C,
    WALLET_A,
    WALLET_B,
    collect,
    compare_with_full_refresh,
)
from tests.oracles.values import ValueOracle
from tests.worlds.ledger import NETWORK, Subject, address
from tests.worlds.values import Pair, ValueWorld, time_of

HOUR = timedelta(hours=1)
DAY = timedelta(days=1)
VALUES = ("token_activity_values", "wallet_activity_values", "token_value_days", "wallet_value_days")
PRICE = "price_text, source_id, is_fallback, price_effective_from"
# How the marts' rows read, in the order of the oracle's.
COLUMNS = {
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
SEEDS = [0, *(pytest.param(seed, marks=pytest.mark.release) for seed in range(1, 5))]


def make_world(seed: int) -> ValueWorld:
    """Tokens and wallets of two tenants; one tenant has two ledgers with the same contract."""
    world = ValueWorld(seed)
    world.tokens = [TOKEN_A, TOKEN_A, TOKEN_B, TOKEN_C]
    world.holders = [*[WALLET_A] * 4, *[WALLET_B] * 3, *(address(0xD0 + number) for number in range(8))]
    world.common = {TOKEN_B: "USDX"}
    world.begin()
    for subject in (
        Subject(1, "token", "ten_a", "led_a", TOKEN_A),
        Subject(2, "token", "ten_a", "led_a2", TOKEN_A),
        Subject(3, "wallet", "ten_a", "led_a", WALLET_A),
        Subject(4, "wallet", "ten_a", "led_a2", WALLET_B),
        Subject(5, "token", "ten_b", "led_b", TOKEN_C),
        Subject(6, "wallet", "ten_b", "led_b", WALLET_A),
        Subject(7, "token", "ten_a", "led_a", TOKEN_C),
    ):
        world.add(subject)
    world.describe(TOKEN_A, "Fungible", "AAA", 18)
    world.describe(TOKEN_B, "Fungible", None, 6)
    for pair in (
        Pair(1, "ten_a", "AAA", "USD", "Market", DAY, ("src_1", "src_2")),
        Pair(2, "ten_a", "AAA", "USD", "NAV", None, ("src_2",)),
        Pair(3, "ten_a", "USDX", "USD", "Ask", None, ("src_1",)),
        Pair(4, "ten_a", "USDX", "EUR", "Market", None, ("src_1",)),
        Pair(5, "ten_b", "CCC", "USD", "Trade", 2 * DAY, ("src_3",)),
        Pair(6, "ten_b", "ETH", "USD", "Trade", DAY, ("src_3",)),
    ):
        world.put_pair(pair)
    return world


def transform(world: ValueWorld, stores: Stores) -> None:
    """Build the marts from the collected rows, compare them, and begin the next cycle."""
    world.write(stores.warehouse)
    run_dbt(stores, *LATER_RUN)
    compare(world, stores)
    world.transformed = world.batch
    world.begin()


def cycle(world: ValueWorld, stores: Stores, to_block: int) -> None:
    """Mine, collect, read, transform and compare."""
    world.mine(to_block)
    collect(world)
    transform(world, stores)
    with open_marts(stores) as marts:
        check_bi_views(marts)


def read(marts: duckdb.DuckDBPyConnection, mart: str) -> list[tuple[Any, ...]]:
    """Return the rows of a mart in the oracle's form: hashable, without details of missing prices."""
    # The details of a stale price are tested with the price marts.
    told = [f"case when price is not null then {column} end" for column in PRICE.split(", ")]
    shown = COLUMNS[mart].replace(PRICE, ", ".join(told))
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


def compare(world: ValueWorld, stores: Stores) -> None:
    """Hold the marts against the definitions."""
    with open_marts(stores) as marts:
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
            actual = read(marts, mart)
            assert len(actual) == len(set(actual)), f"{mart}: duplicates"
            assert (mart, set(actual) - wanted, wanted - set(actual)) == (mart, set(), set())


@pytest.mark.parametrize("seed", SEEDS)
def test_every_cycle_equals_the_definitions_and_a_full_refresh(tmp_path: Path, seed: int) -> None:
    stores = build_over_nothing(tmp_path / "stores")
    world = make_world(seed)
    # Every subject is followed from some block on, one wallet from the first one.
    for key, first in ((1, 3), (2, 5), (3, 1), (4, 6), (5, 2), (6, 4)):
        world.track(key, key, first)
    world.links = {1: 1, 5: 5}
    # From before the first block on, at midnight, at a block's own time, and just after one.
    world.enter_price(1, "src_1", time_of(-3), "0.000000000000000003")
    world.enter_price(1, "src_1", time_of(8), "2345.67")
    world.enter_price(1, "src_2", time_of(10), "99999999999999999999.999999999999999999")
    world.enter_price(2, "src_2", time_of(9) + HOUR, "17.123456789012345678")
    world.enter_price(3, "src_1", time_of(4), "1.0001")
    world.enter_price(5, "src_3", time_of(5), "3")
    cycle(world, stores, 21)

    # Prices become stale; there are late, revised and current prices; the other ledger's token gets its own link.
    world.enter_price(1, "src_2", time_of(14), "2300.5")
    world.enter_price(1, "src_1", time_of(8), "2346")
    world.enter_price(6, "src_3", time_of(22), "1800.25")
    world.links[2] = 2
    world.request(1, 7, 2, 17)
    cycle(world, stores, 27)

    # Single changes: a price, then links, then the order of a pair's sources, then none.
    world.enter_price(5, "src_3", time_of(7) + HOUR, "2.5")
    transform(world, stores)
    world.links |= {1: 2, 7: 1}
    transform(world, stores)
    world.put_pair(world.pairs[1]._replace(sources=("src_2", "src_1"), max_age=None))
    transform(world, stores)
    transform(world, stores)

    # A reorganisation removes valued activities; a window closes and leaves a gap; decimals become known.
    world.fork_at(24)
    world.track(4, 4, 6, 29)
    world.describe(TOKEN_C, "Fungible", "CCC", 0)
    cycle(world, stores, 33)

    # A build ends half-way: it has applied prices, links and activities, but not days. Then links are as before.
    world.enter_price(1, "src_1", time_of(12), "7")
    world.links = {1: 1, 5: 5, 7: 2}
    world.track(10, 4, 36)
    world.mine(38)
    collect(world)
    world.write(stores.warehouse)
    run_dbt(stores, *LATER_RUN, "--select", "+token_activity_values", "+wallet_activity_values")
    world.begin()
    world.links = {1: 2, 5: 5}
    world.request(2, 4, 1, 40)
    cycle(world, stores, 42)

    # Removed objects have no marks.
    world.remove(6)
    world.links = {5: 5}
    world.remove_pair(2)
    world.remove_pair(3)
    cycle(world, stores, 49)

    compare_with_full_refresh(stores, tmp_path / "refreshed")


def spoil(stores: Stores) -> None:
    """Overwrite every stored value, so that rewritten rows can be recognised."""
    with duckdb.connect() as connection:
        connection.execute(f"attach '{stores.marts}' as written")
        for mart in VALUES:
            connection.execute(f"update written.marts.{mart} set value_approx = -1")


def rewritten(stores: Stores, mart: str, columns: str) -> set[tuple[Any, ...]]:
    """Rows written since they were spoiled."""
    with open_marts(stores) as marts:
        return set(
            marts.execute(f"select {columns} from marts.{mart} where value_approx is distinct from -1").fetchall()
        )


def views_work_under_another_name(stores: Stores) -> None:
    """A published version is a file of another name than the one that was built."""
    copy = stores.folder / "marts-000000000001.duckdb"
    copy.write_bytes(stores.marts.read_bytes())
    with duckdb.connect(str(copy), read_only=True) as connection:
        for view in ("cap_table_values", "wallet_balance_values", "token_prices"):
            assert connection.execute(f"select count(*) from marts.{view}").fetchone() != (0,)


@pytest.mark.release
def test_a_late_price_rewrites_only_the_values_that_it_affects(tmp_path: Path) -> None:
    stores = build_over_nothing(tmp_path)
    world = make_world(8)
    world.tokens = [TOKEN_A] * 5 + [TOKEN_C]
    for key in (1, 3, 4, 5, 6):
        world.track(key, key, 1)
    world.links = {1: 1, 5: 5}
    for block in range(0, 40, 4):
        world.enter_price(1, "src_1", time_of(block) + HOUR, f"{100 + block}")
        world.enter_price(5, "src_3", time_of(block) + HOUR, f"{200 + block}")
    cycle(world, stores, 43)
    views_work_under_another_name(stores)

    # Nothing new, then a price that counts from one day to the next.
    spoil(stores)
    transform(world, stores)
    for mart in VALUES:
        assert rewritten(stores, mart, "subject_key") == set()
    world.enter_price(1, "src_1", time_of(21), "50")
    transform(world, stores)
    first, last = time_of(21), time_of(24) + HOUR
    with open_marts(stores) as marts:
        moved = {
            kind: set(
                marts.execute(
                    f"""
                    select activities.activity_id from marts.{kind}_activities as activities
                    where subject_key in (1, 3, 4) and block_time >= ? and block_time < ?
                    {"" if kind == "token" else f"and token_address = '{TOKEN_A}'"}
                    """,
                    [first, last],
                ).fetchall()
            )
            for kind in ("token", "wallet")
        }
    assert moved["token"]
    assert moved["wallet"]
    assert rewritten(stores, "token_activity_values", "activity_id") == moved["token"]
    assert rewritten(stores, "wallet_activity_values", "activity_id") == moved["wallet"]
    day = (time_of(21).date(),)
    assert rewritten(stores, "token_value_days", "day") == {day}
    assert rewritten(stores, "wallet_value_days", "subject_key, day") == {(3, *day), (4, *day)}

    # A new price concerns no finished day.
    spoil(stores)
    world.enter_price(1, "src_1", time_of(43) + HOUR, "51")
    transform(world, stores)
    assert rewritten(stores, "wallet_value_days", "day") == set()
    assert rewritten(stores, "token_value_days", "day") == set()

    # A new day is one day. Nothing is read that was not, which would concern all of them.
    world.mine(44)
    world.collect()
    transform(world, stores)
    day = (time_of(43).date(),)
    assert rewritten(stores, "token_value_days", "day") == {day}
    assert rewritten(stores, "wallet_value_days", "subject_key, day") == {(3, *day), (4, *day), (6, *day)}


def test_a_daily_close_does_not_value_its_own_day(tmp_path: Path) -> None:
    stores = build_over_nothing(tmp_path)
    world = make_world(0)
    world.track(1, 1, 1)
    world.links = {1: 1}
    # Closes that jump, each effective from its day's end.
    for day in range(1, 6):
        world.enter_price(1, "src_1", time_of(4 * day), str(10**day))
    cycle(world, stores, 21)
    with open_marts(stores) as marts:
        days = marts.execute("select day, price from marts.token_capitalization_days order by day").fetchall()
    assert [price for _, price in days] == [None, 10, 100, 1000, 10000]


@pytest.mark.release
def test_a_day_is_valued_when_the_next_block_comes_after_it(tmp_path: Path) -> None:
    """Tracking ends at 18:00 with the last block of the day; the next block shows that the day had no later ones."""
    stores = build_over_nothing(tmp_path)
    world = make_world(0)
    for key in (1, 3):
        world.track(key, key, 2, 11)
    world.links = {1: 1}
    world.enter_price(1, "src_1", time_of(11), "10")
    world.enter_price(1, "src_1", time_of(11) + 5 * HOUR, "12")
    world.mine(11)
    collect(world)
    transform(world, stores)
    with open_marts(stores) as marts:
        assert marts.execute("select max(day) from marts.wallet_value_days").fetchone() == (time_of(4).date(),)
    cycle(world, stores, 13)
    with open_marts(stores) as marts:
        for mart in ("token_capitalization_days", "wallet_value_days"):
            newest = marts.execute(f"select max(day) from marts.{mart}").fetchone()
            assert (mart, newest) == (mart, (time_of(11).date(),))
        prices = marts.execute("select price_text from marts.token_capitalization_days order by day").fetchall()
    assert prices[-1] == ("12",)
    compare_with_full_refresh(stores, tmp_path / "refreshed")


@pytest.mark.release
def test_the_benchmark_measures_the_named_quantities(tmp_path: Path) -> None:
    rows: list[Measurement] = []
    values.run(tmp_path, 1, lambda _: None, rows, values.SMALL)
    measured = {row.quantity.strip(): row.value for row in rows}
    assert measured["days of wallets written"] == values.SMALL.wallets
    assert 0 < measured["activities written"] < values.SMALL.activities / 100
