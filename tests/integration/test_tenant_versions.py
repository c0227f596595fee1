"""Data versions of tenants: raised by changes of a tenant's own rows, and never by other tenants."""

from collections.abc import Set
from datetime import datetime, timedelta
from pathlib import Path

import pytest

from pipelines.raw.database import open_warehouse
from pipelines.tenants.versions import advance
from tests.integration.dbt_runner import LATER_CYCLE, LATER_RUN, Stores, build_over_nothing, open_marts, run_dbt
from tests.integration.transformed import TOKEN_A, TOKEN_B, WALLET_A, WALLET_B, publish
from tests.worlds.ledger import GENESIS_TIME, Subject, World, address

_PERIOD = 300
_TENANTS = ("ten_a", "ten_b")
_OTHERS = [address(0xD0 + number) for number in range(10)]
# Not compared: it has the version numbers themselves.
_NOT_ROWS = ("tenant_versions",)
Said = dict[str, set[tuple[object, ...]]]


def make_world(seed: int) -> World:
    """Create a world of two tenants with one common token, and a separate token and wallet each."""
    world = World(seed)
    world.begin()
    for key, kind, tenant, where in (
        (1, "token", "ten_a", TOKEN_A),
        (2, "wallet", "ten_a", WALLET_A),
        (3, "token", "ten_b", TOKEN_A),
        (4, "token", "ten_b", TOKEN_B),
        (5, "wallet", "ten_b", WALLET_B),
    ):
        world.add(Subject(key, kind, tenant, f"led_{tenant}", where))
    return world


def said(stores: Stores) -> dict[str, Said]:
    """Every row that each tenant sees, by mart."""
    with open_marts(stores) as connection:
        marts = [
            mart
            for (mart,) in connection.execute(
                "select table_name from information_schema.columns"
                " where table_schema = 'marts' and column_name = 'tenant_id' order by all"
            ).fetchall()
            if mart not in _NOT_ROWS
        ]
        return {
            tenant: {
                mart: set(
                    connection.execute(
                        f"select cast(columns(*) as varchar) from marts.{mart} where tenant_id = ?", [tenant]
                    ).fetchall()
                )
                for mart in marts
            }
            for tenant in _TENANTS
        }


def happen(world: World, tenant: str, number: int) -> None:
    """Make a random change of a tenant's configuration or of the chain."""
    subject = world.random.choice([row for row in world.subjects.values() if row.tenant == tenant])
    windows = [view for view in world.views.values() if (view.origin, view.subject) == ("Window", subject.key)]
    native = world.random.choice(["full", "balance-only"])
    match world.random.choice(["window", "request", "request", "nothing", "nothing", "fork", "final"]):
        case "window":
            newest = max(windows, key=lambda view: view.first, default=None)
            if newest is not None and newest.last is None:
                world.track(
                    newest.key, subject.key, newest.first, max(world.head, newest.first), newest.native or native
                )
            elif newest is None or (newest.last is not None and newest.last < world.head):
                world.track(100 + number, subject.key, world.head + 1, native=native)
        case "request":
            first = world.random.randint(1, world.head)
            world.request(100 + number, subject.key, first, first + 10, native)
        case "fork":
            world.fork_at(world.random.randint(max(world.final or 0, world.head - 6, 1), world.head))
        case "final":
            world.finalize(world.random.randint(world.final or 1, world.head))


def moving(tenants: Set[str]) -> tuple[list[str], list[str]]:
    """Return tokens and wallets that only these tenants track, together with untracked holders."""
    tokens = {"ten_a": [TOKEN_A, TOKEN_A], "ten_b": [TOKEN_B]}
    wallets = {"ten_a": [WALLET_A] * 2, "ten_b": [WALLET_B] * 2}
    return (
        [token for tenant in sorted(tenants) for token in tokens[tenant]],
        [*(wallet for tenant in sorted(tenants) for wallet in wallets[tenant]), *_OTHERS],
    )


def begin_build(stores: Stores, now: datetime) -> set[str]:
    """Advance the tenants' versions before a build; return the tenants with new rows."""
    with open_warehouse(stores.warehouse) as connection:
        ((version,),) = connection.execute("select coalesce(max(version), 0) from raw.publications").fetchall()
        return set(advance(connection, version, _PERIOD, now))


# With seed 3, six cycles contain every kind of change, and a build that ends half-way.
@pytest.mark.release
@pytest.mark.parametrize(
    ("seed", "cycles"), [(3, 6), *(pytest.param(seed, 30, marks=pytest.mark.release) for seed in range(1, 9))]
)
def test_a_version_is_raised_exactly_when_rows_change(tmp_path: Path, seed: int, cycles: int) -> None:
    stores, world, now = build_over_nothing(tmp_path / "stores"), make_world(seed), GENESIS_TIME
    for key in (1, 2, 4, 5):
        world.track(key, key, 3 + key)
    raised_at: dict[str, int] = {}
    untouched = 0
    for number in range(cycles):
        acting = world.random.choice([{"ten_a"}, {"ten_a"}, {"ten_b"}, set(_TENANTS)]) if number else set(_TENANTS)
        for tenant in sorted(acting) if number else ():
            happen(world, tenant, number)
        # New blocks have no movements of inactive tenants, but are collected for them.
        world.tokens, world.holders = moving(acting)
        world.mine(max(world.head, world.known_head) + world.random.randint(0, 5) + (15 if number == 0 else 0))
        world.resolve()
        world.collect(history=1000)
        with world.only(acting):
            world.observe()
        now += timedelta(seconds=world.random.randint(1, 120))
        period = int((now - GENESIS_TIME).total_seconds()) // _PERIOD
        world.write(stores.warehouse)
        viewed = {view.subject for view in world.views.values()}
        marked = {
            world.subjects[key].tenant for batch, key, *_ in world.changes if batch == world.batch and key in viewed
        }
        raised = begin_build(stores, now)
        before = said(stores) if number else {}
        if number and world.random.random() < 0.15:
            # The build ends half-way; the next cycle has no new rows.
            run_dbt(stores, *LATER_RUN, "--select", "+token_holders", "+wallet_activities")
            world.begin()
            world.write(stores.warehouse)
            raised |= begin_build(stores, now)
        run_dbt(stores, *LATER_CYCLE)
        after = said(stores)
        for tenant in _TENANTS if number else ():
            changed = {mart for mart in after[tenant] if after[tenant][mart] != before[tenant][mart]}
            assert (tenant, number, tenant in raised or changed) == (tenant, number, tenant in raised or set())
            is_quiet = tenant not in acting | marked and raised_at[tenant] == period
            assert not (is_quiet and tenant in raised), f"{tenant} was raised for others"
            untouched += is_quiet
        raised_at |= dict.fromkeys(raised, period)
        publish(stores, world.batch)
        world.transformed = world.batch
        world.begin()
    assert untouched > 0
