"""The transformation: after every cycle the marts equal the definitions in plain Python and a full refresh."""

from datetime import timedelta
from pathlib import Path

import duckdb
import pytest

from pipelines.raw.database import open_warehouse
from tests.integration.dbt_runner import BUILD, LATER_CYCLE, LATER_RUN, Stores, build_over_nothing, open_marts, run_dbt
from tests.integration.transformed import (
    EMPTY,
    NFT,
    TOKEN_A,
    TOKEN_B,
    TOKEN_C,
    WALLET_A,
    WALLET_B,
    collect,
    compare_with_full_refresh,
    cycle,
    filled,
    priced,
    transform,
)
from tests.worlds.ledger import ZERO, Subject, World
from tests.worlds.values import ValueWorld, time_of

HOUR = timedelta(hours=1)
SEEDS = [0, *(pytest.param(seed, marks=pytest.mark.release) for seed in range(1, 6))]


@pytest.mark.proof("all marts equal their definitions after every cycle, and a full refresh gives the same")
@pytest.mark.parametrize(
    ("seed", "is_short"),
    [
        (0, True),
        pytest.param(0, False, marks=pytest.mark.ci),
        *(pytest.param(seed, False, marks=pytest.mark.release) for seed in range(1, 6)),
    ],
)
def test_every_cycle_equals_the_definitions_and_a_full_refresh(tmp_path: Path, seed: int, is_short: bool) -> None:
    stores = build_over_nothing(tmp_path / "stores")
    world = priced(ValueWorld(seed))
    # Tracking begins late, but one wallet is tracked from the first block on with balances only.
    world.track(1, 1, 10)
    world.track(2, 2, 15)
    world.track(3, 3, 12)
    world.track(4, 4, 1, native="balance-only")
    world.track(5, 7, 10)
    world.track(6, 8, 10)
    world.track(7, 5, 25)
    # Prices from before the first block on, at midnight, at a block's own time, and just after one.
    world.links = {1: 1, 5: 5}
    world.enter_price(1, "src_1", time_of(-3), "0.000000000000000003")
    world.enter_price(1, "src_1", time_of(12), "2345.67")
    world.enter_price(1, "src_2", time_of(14), "99999999999999999999.999999999999999999")
    world.enter_price(2, "src_2", time_of(13) + HOUR, "17.123456789012345678")
    world.enter_price(3, "src_1", time_of(4), "1.0001")
    world.enter_price(5, "src_3", time_of(26), "3")
    cycle(world, stores, 20)

    # A second tenant's windows begin; a contract turns out to be an NFT; a gap is left; blocks become final. There are
    # history requests before a window, across one, for an untracked token, and for transactions of a wallet. Prices
    # become stale; there are late, revised and current prices; the other ledger's token gets its own link.
    world.describe(NFT, "NotFungible", "NFT", None)
    world.track(8, 6, 25, 40, native="balance-only")
    world.request(1, 1, 1, 9)
    world.request(2, 2, 3, 18)
    world.request(3, 9, 4, 20)
    world.request(4, 4, 6, 16)
    world.finalize(12)
    # One window began with its token's creation, another one after it.
    world.create(TOKEN_A, 10, "ten_a")
    world.enter_price(1, "src_2", time_of(18), "2300.5")
    world.enter_price(1, "src_1", time_of(12), "2346")
    world.enter_price(6, "src_3", time_of(30), "1800.25")
    world.links[9] = 2
    cycle(world, stores, 36, {("token", TOKEN_A, 30), ("wallet", WALLET_B, 33), ("token", EMPTY, 30)}, history=6)

    # The gaps are filled, one of them without rows; decimals become known; a history joins a window.
    world.describe(TOKEN_B, "Fungible", None, 6)
    world.finalize(30)
    world.request(5, 6, 2, 30)
    cycle(world, stores, 44, {("native", WALLET_A, 20)})

    # A reorganisation is not repaired at once; a window closes; a request is cancelled.
    world.cancel(5)
    world.fork_at(38)
    world.track(1, 1, 10, 46)
    world.mine(45)
    transform(world, stores)
    if is_short:
        return

    # Single changes: a price, then links, then the order of a pair's sources, then none.
    world.enter_price(5, "src_3", time_of(28) + HOUR, "2.5")
    transform(world, stores)
    world.links |= {1: 2, 9: 1}
    transform(world, stores)
    world.put_pair(world.pairs[1]._replace(sources=("src_2", "src_1"), max_age=None))
    transform(world, stores)
    transform(world, stores)

    # Tracking resumes after a gap; a token that a wallet held all the time is configured. A build ends half-way, with
    # other prices and links than the next one.
    world.track(9, 1, 55)
    world.add(Subject(10, "token", "ten_a", "led_a", TOKEN_C))
    world.request(6, 10, 20, 40)
    world.finalize(44)
    world.enter_price(1, "src_1", time_of(20), "7")
    world.links = {1: 1, 5: 5, 9: 2}
    world.mine(52)
    collect(world)
    world.write(stores.warehouse)
    run_dbt(stores, *LATER_RUN, "--select", "+int_balances_latest", "+balance_changes", "+token_activity_values")
    world.begin()
    world.links = {1: 2, 5: 5}
    cycle(world, stores, 58)

    # Removed subjects and pairs have no marks.
    world.remove(6)
    world.remove(10)
    world.links = {5: 5}
    world.remove_pair(2)
    world.remove_pair(3)
    cycle(world, stores, 66)

    compare_with_full_refresh(stores, tmp_path / "refreshed")


def happen(world: World, number: int) -> None:
    """Make one random change of configuration, requests or chain; `number` makes keys unique."""
    chance, key = world.random, 100 + number
    subject = chance.choice(list(world.subjects.values()))
    windows = [view for view in world.views.values() if (view.origin, view.subject) == ("Window", subject.key)]
    requests = [view for view in world.views.values() if view.origin == "History"]
    native = chance.choice(["full", "balance-only"])
    match chance.choice(["window", "window", "request", "request", "request", "cancel", "fork", "final", "contract"]):
        case "window":
            newest = max(windows, key=lambda view: view.first, default=None)
            if newest is None or (newest.last is not None and newest.last < world.head):
                world.track(key, subject.key, chance.randint(max(world.head - 2, 1), world.head + 8), native=native)
            elif newest.last is None:
                last = max(chance.randint(world.head - 3, world.head + 4), newest.first)
                world.track(newest.key, subject.key, newest.first, last, newest.native or native)
        case "request":
            first = chance.randint(1, world.head)
            world.request(key, subject.key, first, chance.randint(first, first + 30), native)
        case "cancel" if requests:
            world.cancel(chance.choice(requests).key)
        case "fork":
            world.fork_at(chance.randint(max(world.final or 0, world.head - 12, 1), world.head))
        case "final":
            world.finalize(chance.randint(world.final or 1, world.head))
        case "contract":
            token, decimals = chance.choice([TOKEN_A, TOKEN_B, TOKEN_C, EMPTY]), chance.randint(0, 20)
            world.describe(token, "Fungible", "TTT", decimals, chance.choice(["ten_a", "ten_b"]))
            token, block = chance.choice([TOKEN_A, TOKEN_B, TOKEN_C]), chance.randint(1, world.head)
            world.create(token, block, chance.choice(["ten_a", "ten_b"]))


@pytest.mark.release
@pytest.mark.parametrize("seed", SEEDS)
def test_marts_equal_the_definitions_after_random_events(tmp_path: Path, seed: int) -> None:
    stores = build_over_nothing(tmp_path / "stores")
    world = filled(World(1000 + seed))
    world.describe(NFT, "NotFungible", "NFT", None)
    for key, first in ((1, 8), (3, 12), (4, 5), (5, 15)):
        world.track(key, key, first, native=world.random.choice(["full", "balance-only"]))
    cycle(world, stores, 25)
    for number in range(4 if seed == 0 else 12):
        for attempt in range(world.random.randint(1, 5)):
            happen(world, number * 10 + attempt)
        world.mine(max(world.head, world.known_head) + world.random.randint(0, 8))
        if world.random.random() < 0.15:
            # The network's cycle fails in its first step.
            transform(world, stores)
            continue
        missing = {
            (kind, subject.address, world.random.randint(1, world.head))
            for subject in world.subjects.values()
            for kind in (subject.kind, "native")
        }
        collect(world, missing if world.random.random() < 0.5 else frozenset(), history=world.random.randint(1, 12))
        if world.random.random() < 0.15:
            # The build ends half-way.
            world.write(stores.warehouse)
            run_dbt(stores, *LATER_RUN, "--select", "+token_positions", "+wallet_activities")
            world.begin()
            collect(world)
        transform(world, stores)
    if seed:
        compare_with_full_refresh(stores, tmp_path / "refreshed")


def touched(stores: Stores, first: int) -> set[str]:
    """Return the holders of the first subject that the newest build recomputed in the covered range."""
    with open_warehouse(stores.warehouse) as connection:
        rows = connection.execute(
            """
            select holder_address from intermediate.int_balances_to_recompute
            where subject_key = 1 and range_from_block = ?
            """,
            [first],
        ).fetchall()
    return {str(holder) for (holder,) in rows}


@pytest.mark.release
def test_history_recomputes_only_balances_of_its_holders(tmp_path: Path) -> None:
    stores = build_over_nothing(tmp_path)
    world = filled(World(0))
    wallets, others = world.holders[:7], world.holders[7:]
    # Past holders never move the token in the tracked blocks, but are read there.
    world.holders = others[:12]
    world.mine(20)
    world.holders = [*wallets, *others[12:]]
    world.track(1, 1, 21)
    world.track(2, 3, 21)
    world.track(3, 6, 21, native="balance-only")
    world.mine(40)
    collect(world)
    for holder in others[:12]:
        world.read(TOKEN_A, holder, 35, "Sample", "ten_a")
    # These readings are just before the history to be collected.
    for holder in others[12:]:
        world.read(TOKEN_A, holder, 3, "Sample", "ten_a")
    transform(world, stores)

    # The other tenant requests transactions already collected for the first one, so they cause no mark.
    world.request(1, 1, 3, 18)
    world.request(2, 6, 25, 35)
    world.holders = others[12:15]
    world.mine(42)
    world.collect({("token", TOKEN_A, 3)}, history=16)
    transform(world, stores)
    token_rows = [row for row in world.transfers if row.token == TOKEN_A]
    past = {holder for row in token_rows for holder in row[4:6] if row.block < 20} - {ZERO}
    moving = {holder for row in token_rows for holder in row[4:6] if row.block > 40} - {ZERO}
    read = {
        row.holder
        for row in world.readings
        if row.token == TOKEN_A and row.block > 20 and row.quantity is not None and "ten_a" in row.visible_to
    }
    assert past <= touched(stores, 4)
    assert touched(stores, 21) - {"supply"} == past & read | moving

    # The request's first block is missing, so cancelling the request deletes all of it and its holders become unknown.
    world.cancel(1)
    transform(world, stores)
    assert touched(stores, 4) == set()
    assert touched(stores, 21) - {"supply"} == past & read


@pytest.mark.ci
def test_a_movement_rewrites_only_its_own_holders(tmp_path: Path) -> None:
    stores = build_over_nothing(tmp_path)
    world = filled(World(11))
    world.track(1, 1, 5)
    cycle(world, stores, 30)
    with duckdb.connect() as connection:
        connection.execute(f"attach '{stores.marts}' as published; use published")
        # Rewritten rows have a different value.
        connection.execute("update marts.token_positions set checked_block_number = -1 where subject_key = 1")
        held = {row[0] for row in connection.execute(_MARKED).fetchall()}
    world.holders = sorted(held)[:2]
    world.mine(32)
    collect(world)
    world.write(stores.warehouse)
    run_dbt(stores, *LATER_CYCLE)
    with open_marts(stores) as connection:
        kept = {row[0] for row in connection.execute(_MARKED).fetchall()}
    written = touched(stores, 5)
    assert written & held
    assert kept == held - written
    assert kept


_MARKED = "select holder_address from marts.token_positions where subject_key = 1 and checked_block_number = -1"


@pytest.mark.ci
def test_tables_of_an_earlier_release_become_views_in_a_file_of_any_name(tmp_path: Path) -> None:
    stores = Stores(tmp_path)
    with open_warehouse(stores.warehouse):
        pass
    run_dbt(stores, "run")
    names = ("cap_tables", "token_holders", "wallet_balances", "token_capitalization_days")
    with duckdb.connect() as connection:
        connection.execute(f"attach '{stores.marts}' as published; use published")
        for name in names:
            connection.execute(f"drop view marts.{name}; create table marts.{name} as select 1 as rank")
    run_dbt(stores, "run", "--full-refresh", "--select", *names)
    with duckdb.connect() as connection:
        connection.execute(f"attach '{stores.marts}' as copied (read_only)")
        views = connection.execute("select view_name from duckdb_views() where schema_name = 'marts'").fetchall()
        assert set(names) <= {name for (name,) in views}
        for name in names:
            assert connection.execute(f"select * from copied.marts.{name}").fetchall() == []


def numbers(stores: Stores) -> dict[str, int]:
    """Return the key of each address in balances."""
    with open_warehouse(stores.warehouse) as connection:
        return dict(connection.execute("select address, address_key from intermediate.int_addresses").fetchall())


@pytest.mark.release
def test_an_address_keeps_its_number(tmp_path: Path) -> None:
    stores = build_over_nothing(tmp_path)
    world = filled(World(0))
    world.track(1, 1, 10)
    world.track(2, 4, 10)
    holders = world.holders
    world.holders = holders[len(holders) // 2 :]
    cycle(world, stores, 20)
    first = numbers(stores)
    assert (first["supply"], first["native"]) == (0, 1)

    # Other holders move; their addresses precede the known ones in text order.
    world.holders = holders[: len(holders) // 2]
    cycle(world, stores, 30)
    second = numbers(stores)
    assert first.items() < second.items()
    assert min(second.keys() - first.keys()) < max(first.keys() - {"supply", "native"})
    assert len(set(second.values())) == len(second)

    run_dbt(stores, *BUILD, "--full-refresh")
    assert numbers(stores) == second


@pytest.mark.ci
def test_the_models_own_tests_pass(tmp_path: Path) -> None:
    stores = Stores(tmp_path)
    with open_warehouse(stores.warehouse):
        pass
    run_dbt(stores, "build")
