"""Values: which stored ones a new price, link or block rewrites, and which price values a day."""

from datetime import timedelta
from pathlib import Path
from typing import Any

import duckdb
import pytest

from tests.integration.dbt_runner import Stores, build_over_nothing, open_marts
from tests.integration.transformed import (
    TOKEN_A,
    TOKEN_C,
    VALUE_MARTS,
    collect,
    compare_with_full_refresh,
    cycle,
    priced,
    transform,
)
from tests.worlds.values import ValueWorld, time_of

HOUR = timedelta(hours=1)


def spoil(stores: Stores) -> None:
    """Overwrite every stored value, so that rewritten rows can be recognised."""
    with duckdb.connect() as connection:
        connection.execute(f"attach '{stores.marts}' as written")
        for mart in VALUE_MARTS:
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
    world = priced(ValueWorld(8))
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
    for mart in VALUE_MARTS:
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


@pytest.mark.ci
def test_a_daily_close_does_not_value_its_own_day(tmp_path: Path) -> None:
    stores = build_over_nothing(tmp_path)
    world = priced(ValueWorld(0))
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
    world = priced(ValueWorld(0))
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
