"""From raw prices to the system price: each cycle's marts equal the definitions in plain Python, and a full refresh."""

from collections.abc import Mapping
from datetime import datetime, timedelta
from decimal import Decimal
from itertools import zip_longest
from pathlib import Path
from typing import Any

import duckdb
import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from tests.integration import price_oracle as oracle
from tests.integration.dbt_runner import Stores, build_over_nothing, open_marts, run_dbt
from tests.integration.price_world import LARGEST, SMALLEST, Leg, Pair, PriceWorld, Route, at

MODELS = (
    "--select",
    "ledgermart.staging.prices",
    "ledgermart.intermediate.prices",
    "ledgermart.marts.prices",
    "stg_pipeline__transforms",
)
WITHOUT_VIEWS = ("--exclude", "config.materialized:view")
DIRECT, INVERSE = Leg("AUSD", "Trade", False), Leg("USDA", "Trade", True)
BRIDGE = (Leg("AEUR", "Trade", False), Leg("EURUSD", "Trade", False))
CROSS = (Leg("AEUR", "Trade", False), Leg("USDEUR", "Trade", True))
Steps = Mapping[int, list[tuple[datetime, oracle.Step]]]
SEEDS = [0, *(pytest.param(seed, marks=pytest.mark.long) for seed in range(1, 6))]


def routes(*names: str) -> tuple[Route, ...]:
    """Routes by short names, one per source."""
    known = {
        "kraken": Route("src_kraken", (DIRECT,)),
        "gemini": Route("src_gemini", (DIRECT,)),
        "inverse": Route("src_inverse", (INVERSE,)),
        "bridge": Route("src_bridge", BRIDGE),
        "cross": Route("src_cross", CROSS),
        "upside-down": Route("src_upside-down", (Leg("EURA", "Bid", True), Leg("USDEUR", "Bid", True))),
        "backwards": Route("src_backwards", (Leg("EURA", "Trade", True), Leg("EURUSD", "Trade", False))),
        "manual": Route("src_manual", supported_pair=7),
    }
    return tuple(known[name] for name in names)


def make_world(seed: int) -> PriceWorld:
    """Pairs of every derivation, guarded and not."""
    world = PriceWorld(seed)
    for pair in (
        Pair(1, routes("kraken", "gemini", "manual")),
        Pair(2, routes("inverse", "bridge", "kraken")),
        Pair(3, routes("cross", "backwards", "upside-down"), max_age=None),
        Pair(4, routes("kraken", "gemini", "bridge"), max_jump=Decimal(20), max_deviation=Decimal(15)),
        Pair(5, routes("gemini", "kraken"), max_age=3600, max_jump=Decimal("0.000000000000000001")),
        Pair(6, routes("kraken", "gemini", "inverse", "manual"), max_age=30, max_deviation=Decimal(5)),
        Pair(7, routes("manual"), max_age=35 * 86_400, max_jump=Decimal(30)),
    ):
        world.configure(pair)
    return world


def quoted(world: PriceWorld) -> Decimal:
    """A price that is mostly near 1, seldom far from it."""
    units: int = world.random.choice(
        [
            *[world.random.randrange(9, 12) * 10**17] * 6,
            world.random.randrange(1, 10**19),
            world.random.randrange(1, 10**38),
            1,
            10**38 - 1,
        ]
    )
    return Decimal(f"{units}e-18")


def build(world: PriceWorld, stores: Stores) -> None:
    """Transform what the world wrote."""
    world.write(stores.warehouse)
    run_dbt(stores, "run", *MODELS, *WITHOUT_VIEWS)


def cycle(world: PriceWorld, stores: Stores, before: Steps | None = None) -> dict[int, list[Any]]:
    """Transform, compare with the definitions, and begin the next cycle; return the steps."""
    build(world, stores)
    after = compare(world, stores)
    if before is not None:
        assert changed_spans(stores) == expected_spans(before, after)
    world.transformed = world.batch
    world.begin()
    return after


def compare(world: PriceWorld, stores: Stores) -> dict[int, list[Any]]:
    """Hold the marts against the definitions."""
    said = {key: oracle.source_prices(world, pair) for key, pair in world.pairs.items()}
    steps = {key: oracle.steps(pair, said[key]) for key, pair in world.pairs.items()}
    same(
        rows(
            stores,
            """
            select
                tenant_id, pair_key, source_id, position, effective_from, window_start, price, price_text, is_partial,
                derivation, fresh_until, state, reason, price_id
            from marts.source_prices
            """,
        ),
        {(pair.tenant, key, *price) for key, pair in world.pairs.items() for price in said[key]},
    )
    same(
        rows(
            stores,
            """
            select
                tenant_id, pair_key, valid_from, valid_until, price_status, price, price_text, source_id, position,
                is_fallback, effective_from, window_start, is_partial, derivation
            from marts.system_prices
            """,
        ),
        {
            (pair.tenant, key, begins, ends, step.status, *step_columns(step))
            for key, pair in world.pairs.items()
            for (begins, step), ends in zip_longest(steps[key], (moment for moment, _ in steps[key][1:]))
        },
    )
    return steps


def step_columns(step: oracle.Step) -> tuple[Any, ...]:
    """A step's columns behind its status."""
    price = step.price
    if price is None:
        return (None,) * 9
    return (
        price.price,
        price.price_text,
        price.source,
        price.position,
        price.position > 0,
        price.effective_from,
        price.window_start,
        price.is_partial,
        price.derivation,
    )


def rows(stores: Stores, query: str) -> list[tuple[Any, ...]]:
    """Ask the marts."""
    with open_marts(stores) as connection:
        return connection.execute(query).fetchall()


def same(actual: list[tuple[Any, ...]], wanted: set[tuple[Any, ...]]) -> None:
    """No row too many, too few, or twice."""
    assert len(actual) == len(set(actual)), "duplicates"
    assert (set(actual) - wanted, wanted - set(actual)) == (set(), set())


Spans = set[tuple[int, datetime, datetime | None]]


def changed_spans(stores: Stores) -> Spans:
    """What the build says changed, united where spans touch or overlap."""
    with duckdb.connect(str(stores.warehouse)) as connection:
        found = connection.execute(
            "select pair_key, from_time, until_time from intermediate.int_changed_price_spans order by 1, 2"
        ).fetchall()
    united: list[tuple[int, datetime, datetime | None]] = []
    for key, begins, ends in found:
        if united and united[-1][0] == key and (united[-1][2] is None or begins <= united[-1][2]):
            before = united.pop()
            united.append((key, before[1], None if before[2] is None or ends is None else max(before[2], ends)))
        else:
            united.append((key, begins, ends))
    return set(united)


def expected_spans(before: Steps, after: Steps) -> Spans:
    """Where two lists of steps differ, stretch by stretch."""
    found: Spans = set()
    for key in after:
        known = before.get(key, [])
        moments = sorted({moment for moment, _ in [*known, *after[key]]})
        started: datetime | None = None
        for moment in moments:
            if contents(known, moment) != contents(after[key], moment):
                started = started or moment
            elif started is not None:
                found.add((key, started, moment))
                started = None
        if started is not None:
            found.add((key, started, None))
    return found


def contents(steps: list[tuple[datetime, oracle.Step]], moment: datetime) -> tuple[Any, ...] | None:
    """What holds at a moment."""
    until_now = [step for begins, step in steps if begins <= moment]
    return (until_now[-1].status, *step_columns(until_now[-1])) if until_now else None


@pytest.mark.parametrize("seed", SEEDS)
def test_every_cycle_equals_the_definitions_and_a_full_refresh(tmp_path: Path, seed: int) -> None:
    world, stores = make_world(seed), build_over_nothing(tmp_path)

    def price() -> Decimal:
        return quoted(world)

    world.happen(120, price, (0, 40))
    before = cycle(world, stores)
    # New prices, late ones, corrections of some.
    world.happen(25, price, (38, 44))
    before = cycle(world, stores, before)
    world.happen(8, price, (0, 44))
    before = cycle(world, stores, before)
    # Nothing at all.
    before = cycle(world, stores, before)
    assert changed_spans(stores) == set()
    # Operators decide, pairs come, go and change, a young pair sees what is polled again.
    for key in (4, 5, 6):
        for row in oracle.source_prices(world, world.pairs[key]):
            if row.state == "Quarantined" and world.random.random() < 0.5:
                world.review(key, row.price_id, row.effective_from, world.random.choice(["Accepted", "Rejected"]))
    world.remove(7)
    world.configure(Pair(8, routes("kraken", "bridge"), max_age=7200, created_at=world.now))
    world.configure(world.pairs[1]._replace(routes=routes("gemini", "kraken"), max_age=None))
    before = cycle(world, stores, before)
    world.happen(40, price, (30, 50))
    cycle(world, stores, before)

    written = {name: set(rows(stores, f"select * from marts.{name}")) for name in ("source_prices", "system_prices")}
    run_dbt(stores, "build", "--full-refresh", "--exclude-resource-type", "unit_test", *MODELS)
    compare(world, stores)
    for name, known in written.items():
        assert set(rows(stores, f"select * from marts.{name}")) == known


def test_extreme_prices(tmp_path: Path) -> None:
    world, stores = PriceWorld(0), build_over_nothing(tmp_path)
    middle = [Decimal(text) for text in ("0.000000001", "1", "3", "7", "1e11", "333333333333.333333333333333333")]
    edges = [SMALLEST, SMALLEST * 3, *middle, LARGEST]
    legs = {"cross": CROSS, "bridge": BRIDGE}
    world.configure(Pair(1, routes("inverse"), max_age=None))
    world.configure(Pair(2, routes("bridge"), max_age=None))
    world.configure(Pair(3, routes("cross"), max_age=None))
    world.configure(Pair(4, routes("upside-down"), max_age=None))
    hour = 0
    for first in edges:
        world.poll("src_inverse", INVERSE, first, at(hour))
        for second in edges:
            for source in ("src_bridge", "src_cross", "src_upside-down"):
                route = {**legs, "upside-down": routes("upside-down")[0].legs}[source.removeprefix("src_")]
                world.poll(source, route[0], first, at(hour))
                world.poll(source, route[1], second, at(hour))
            hour += 1
    cycle(world, stores)
    kept = rows(stores, "select count(*) from marts.source_prices where reason = 'OutOfRange'")
    assert kept[0][0] > 0


def test_a_late_price_changes_its_own_span(tmp_path: Path) -> None:
    world, stores = PriceWorld(0), build_over_nothing(tmp_path)
    world.configure(Pair(1, routes("kraken")))
    world.configure(Pair(2, routes("gemini")))
    for hour in range(0, 40, 2):
        world.poll("src_kraken", DIRECT, Decimal(100 + hour), at(hour))
        world.poll("src_gemini", DIRECT, Decimal(100 + hour), at(hour))
    cycle(world, stores)
    world.poll("src_kraken", DIRECT, Decimal(7), at(11))
    # What the build must leave alone is marked.
    with duckdb.connect(str(stores.marts)) as connection:
        connection.execute("use main")
        for mart, earlier in (("source_prices", "effective_from"), ("system_prices", "valid_until")):
            connection.execute(
                f"update marts.marts.{mart} set derivation = 'Left' where pair_key = 2 or {earlier} < ?", [at(11)]
            )
    build(world, stores)
    assert changed_spans(stores) == {(1, at(11), at(12))}
    left = "select pair_key, count(*) filter (where derivation = 'Left'), count(*) from marts.{} group by 1 order by 1"
    # Prices of 0, 2, ... 10, and of 11 to 38; the last step is the stale one.
    assert rows(stores, left.format("source_prices")) == [(1, 6, 21), (2, 20, 20)]
    assert rows(stores, left.format("system_prices")) == [(1, 5, 22), (2, 21, 21)]


def test_spans_are_told_again_until_a_build_came_to_its_end(tmp_path: Path) -> None:
    world, stores = PriceWorld(0), build_over_nothing(tmp_path)
    world.configure(Pair(1, routes("kraken")))
    world.poll("src_kraken", DIRECT, Decimal(100), at(0))
    cycle(world, stores)
    world.poll("src_kraken", DIRECT, Decimal(101), at(1))
    build(world, stores)
    age = timedelta(hours=4, microseconds=1)
    assert changed_spans(stores) == {(1, at(1), at(1) + age)}
    # That build wrote the steps and then ended before the values; the next one has a price of its own.
    world.begin()
    world.poll("src_kraken", DIRECT, Decimal(102), at(2))
    build(world, stores)
    assert changed_spans(stores) == {(1, at(1), at(2) + age)}
    world.transformed = world.batch
    world.begin()
    build(world, stores)
    assert changed_spans(stores) == set()
    assert rows(stores, "select valid_from from marts.system_prices where price_status = 'StalePrice'") == [
        (at(2) + age,)
    ]


def test_a_polled_price_is_seen_by_pairs_that_were_there(tmp_path: Path) -> None:
    world, stores = PriceWorld(0), build_over_nothing(tmp_path)
    world.configure(Pair(1, routes("kraken")))
    world.poll("src_kraken", DIRECT, Decimal(100), at(0))
    world.discover(1, "src_kraken", DIRECT, Decimal(90), at(-2), at(-1))
    world.begin()
    world.configure(Pair(2, routes("kraken"), created_at=world.now))
    cycle(world, stores)
    seen = "select pair_key, price_text from marts.source_prices"
    assert set(rows(stores, seen)) == {(1, "100"), (1, "90")}
    # The source says the same once more, to both of them now.
    world.poll("src_kraken", DIRECT, Decimal(100), at(0))
    cycle(world, stores)
    assert set(rows(stores, seen)) == {(1, "100"), (1, "90"), (2, "100")}


def test_a_window_does_not_value_the_time_that_led_to_it(tmp_path: Path) -> None:
    world, stores = PriceWorld(0), build_over_nothing(tmp_path)
    world.configure(Pair(1, routes("kraken"), max_age=60))
    for day, close in enumerate([100, 1000, 10]):
        world.discover(1, "src_kraken", DIRECT, Decimal(close), at(24 * day), at(24 * day + 24))
    cycle(world, stores)
    # Each close counts for the day behind it, although maxAge is a minute.
    assert rows(
        stores, "select valid_from, valid_until, price_text from marts.system_prices where price_status = 'Priced'"
    ) == [
        (at(24), at(48), "100"),
        (at(48), at(72), "1000"),
        (at(72), at(96) + timedelta(microseconds=1), "10"),
    ]


few = settings(
    max_examples=1,
    derandomize=True,
    phases=[Phase.generate],
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.function_scoped_fixture],
)
said_prices = st.lists(
    st.tuples(st.sampled_from(["src_kraken", "src_gemini", "src_third"]), st.integers(1, 60), st.integers(90, 110)),
    min_size=5,
    max_size=30,
)
many_pairs = st.lists(
    st.tuples(said_prices, st.sampled_from([None, 3600, 7200, 20_000]), st.sampled_from([None, 3, 8])),
    min_size=30,
    max_size=60,
)


@few
@given(pairs=many_pairs)
def test_properties_of_the_price_used(tmp_path_factory: pytest.TempPathFactory, pairs: list[Any]) -> None:
    """Two pairs alike, but for the last source of one being the first of the other."""
    world, stores = PriceWorld(0), build_over_nothing(tmp_path_factory.mktemp("stores"))
    sources = ["src_kraken", "src_gemini", "src_third"]
    # One of which it is known that the order matters.
    known = ([("src_kraken", 1, 100), ("src_third", 1, 90)], 7200, None)
    for number, (prices, max_age, guard) in enumerate([known, *pairs]):
        leg = Leg(f"M{number}", "Trade", False)
        order = [Route(source, (leg,)) for source in sources]
        limit = None if guard is None else Decimal(guard)
        world.configure(Pair(2 * number, tuple(order), max_age, max_jump=limit, max_deviation=limit))
        raised = (order[-1], *order[:-1])
        world.configure(Pair(2 * number + 1, raised, max_age, max_jump=limit, max_deviation=limit))
        for source, hour, price in prices:
            world.poll(source, leg, Decimal(price), at(hour))
    build(world, stores)

    # Contiguous; never later than what it values; nor older than allowed.
    assert not rows(
        stores,
        """
        select steps.*
        from (
            select
                *,
                lead(valid_from) over (partition by pair_key order by valid_from) as next_from
            from marts.system_prices
        ) as steps
        inner join marts.price_pairs as pairs on steps.pair_key = pairs.pair_key
        where
            valid_until is distinct from next_from
            or valid_from >= valid_until
            or effective_from > valid_from
            or (price_status = 'Priced') != (price is not null)
            or (
                price is not null
                and coalesce(valid_until, 'infinity') - interval 1 microsecond
                > effective_from + to_seconds(max_age_seconds)
            )
        """,
    )
    steps = by_hour(
        rows(stores, "select pair_key, valid_from, valid_until, source_id, price_text from marts.system_prices")
    )
    usable = by_hour(
        rows(
            stores,
            """
            select pair_key, effective_from, fresh_until
            from marts.source_prices
            where source_id = 'src_third' and state = 'Used'
            """,
        )
    )
    differing = {
        (key, moment)
        for key in range(0, 2 * len(pairs), 2)
        for moment in HOURS
        if steps.get((key, moment)) != steps.get((key + 1, moment))
    }
    assert differing
    assert differing <= usable.keys()


HOURS = [at(hour) for hour in range(80)]


def by_hour(spells: list[tuple[Any, ...]]) -> dict[tuple[int, datetime], tuple[Any, ...]]:
    """What holds at whole hours, of rows with pair, beginning and end; without what has no price."""
    return {
        (key, moment): content
        for key, begins, ends, *content in spells
        for moment in HOURS
        if begins <= moment and (ends is None or moment < ends) and content != [None, None]
    }
