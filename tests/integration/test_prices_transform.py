"""From raw prices to the system price: each cycle's marts equal the definitions in plain Python, and a full refresh."""

import shutil
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

from tests.integration.dbt_runner import Stores, build_over_nothing, open_marts, run_dbt
from tests.oracles import prices as oracle
from tests.worlds.prices import LARGEST, SMALLEST, Leg, Pair, PriceWorld, Route, at

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
SEEDS = [0, *(pytest.param(seed, marks=pytest.mark.release) for seed in range(1, 6))]


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
    """Write the world's raw rows and transform them."""
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
    """Return the build's changed spans; unite spans that touch or overlap."""
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
    """Return status and columns of the step in force at a moment."""
    until_now = [step for begins, step in steps if begins <= moment]
    return (until_now[-1].status, *step_columns(until_now[-1])) if until_now else None


@pytest.mark.proof("prices in effect equal their definition after every cycle and a full refresh")
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
    # Reviews are decided; pairs are added, removed and changed; a new pair sees repeated polls.
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


# Pairs that show one rule each, in one world: every build serves all of them.
UNTOUCHED, CORRECTED, REPEATED, POLLED, POLLED_LATER, WINDOWS = 11, 12, 13, 14, 15, 16
EXTREMES = {1: "inverse", 2: "bridge", 3: "cross", 4: "upside-down"}


def leg_of(key: int) -> Leg:
    """The market of a pair; pairs that were created at other times share one."""
    return Leg(f"M{POLLED if key == POLLED_LATER else key}", "Trade", False)


@pytest.fixture(scope="module")
def builds(tmp_path_factory: pytest.TempPathFactory) -> list[Stores]:
    """The stores as they were after each of four builds."""
    world, stores = PriceWorld(0), build_over_nothing(tmp_path_factory.mktemp("stores"))
    kept: list[Stores] = []

    def keep() -> None:
        kept.append(Stores(tmp_path_factory.mktemp("after") / "stores"))
        shutil.copytree(stores.folder, kept[-1].folder)

    def say(key: int, price: int, hour: int) -> None:
        world.poll("src_kraken", leg_of(key), Decimal(price), at(hour))

    for key in (UNTOUCHED, CORRECTED, REPEATED, POLLED):
        world.configure(Pair(key, (Route("src_kraken", (leg_of(key),)),)))
    world.configure(Pair(WINDOWS, (Route("src_kraken", (leg_of(WINDOWS),)),), max_age=60))
    say_extremes(world)
    for hour in range(0, 40, 2):
        say(UNTOUCHED, 100 + hour, hour)
        say(CORRECTED, 100 + hour, hour)
    say(REPEATED, 100, 0)
    say(POLLED, 100, 0)
    world.discover(POLLED, "src_kraken", leg_of(POLLED), Decimal(90), at(-2), at(-1))
    for day, close in enumerate([100, 1000, 10]):
        world.discover(WINDOWS, "src_kraken", leg_of(WINDOWS), Decimal(close), at(24 * day), at(24 * day + 24))
    world.begin()
    world.configure(Pair(POLLED_LATER, (Route("src_kraken", (leg_of(POLLED_LATER),)),), created_at=world.now))
    cycle(world, stores)
    keep()

    # This build writes prices, and then fails before the values: its batch does not count as transformed.
    say(REPEATED, 101, 1)
    say(POLLED, 100, 0)
    build(world, stores)
    compare(world, stores)
    keep()
    world.begin()
    say(REPEATED, 102, 2)
    cycle(world, stores)
    keep()

    say(CORRECTED, 7, 11)
    # Mark the rows that the build must not rewrite.
    with duckdb.connect(str(stores.marts)) as connection:
        connection.execute("use main")
        for mart, earlier in (("source_prices", "effective_from"), ("system_prices", "valid_until")):
            connection.execute(
                f"""
                update marts.marts.{mart} set derivation = 'Left'
                where pair_key = {UNTOUCHED} or (pair_key = {CORRECTED} and {earlier} < ?)
                """,
                [at(11)],
            )
    build(world, stores)
    keep()
    return kept


def say_extremes(world: PriceWorld) -> None:
    """Quote every two of the smallest and largest prices together, over every kind of route."""
    middle = [Decimal(text) for text in ("0.000000001", "1", "3", "7", "1e11", "333333333333.333333333333333333")]
    edges = [SMALLEST, SMALLEST * 3, *middle, LARGEST]
    for key, name in EXTREMES.items():
        world.configure(Pair(key, routes(name), max_age=None))
    hour = 0
    for first in edges:
        world.poll("src_inverse", INVERSE, first, at(hour))
        for second in edges:
            for route in routes("bridge", "cross", "upside-down"):
                world.poll(route.source, route.legs[0], first, at(hour))
                world.poll(route.source, route.legs[1], second, at(hour))
            hour += 1


def spans_of(stores: Stores, *pairs: int) -> Spans:
    """Changed spans of some pairs."""
    return {span for span in changed_spans(stores) if span[0] in pairs}


@pytest.mark.ci
def test_extreme_prices(builds: list[Stores]) -> None:
    # The build of these prices was compared with the definitions.
    query = f"select count(*) from marts.source_prices where reason = 'OutOfRange' and pair_key <= {max(EXTREMES)}"
    ((refused,),) = rows(builds[0], query)
    assert refused > 0


def test_a_late_price_changes_its_own_span(builds: list[Stores]) -> None:
    stores = builds[3]
    assert changed_spans(stores) == {(CORRECTED, at(11), at(12))}
    left = f"""
        select pair_key, count(*) filter (where derivation = 'Left'), count(*) from marts.{{}}
        where pair_key in ({UNTOUCHED}, {CORRECTED}) group by 1 order by 1
    """
    # Prices of 0, 2, ... 10, and of 11 to 38; the last step is the stale one.
    assert rows(stores, left.format("source_prices")) == [(UNTOUCHED, 20, 20), (CORRECTED, 6, 21)]
    assert rows(stores, left.format("system_prices")) == [(UNTOUCHED, 21, 21), (CORRECTED, 5, 22)]


def test_spans_are_repeated_until_a_build_succeeds(builds: list[Stores]) -> None:
    age = timedelta(hours=4, microseconds=1)
    assert spans_of(builds[1], REPEATED) == {(REPEATED, at(1), at(1) + age)}
    # The second build failed after writing the prices; the third one has another new price.
    assert spans_of(builds[2], REPEATED) == {(REPEATED, at(1), at(2) + age)}
    assert spans_of(builds[3], REPEATED) == set()
    stale = f"select valid_from from marts.system_prices where price_status = 'StalePrice' and pair_key = {REPEATED}"
    assert rows(builds[3], stale) == [(at(2) + age,)]


def test_a_polled_price_is_shown_to_pairs_that_existed(builds: list[Stores]) -> None:
    seen = f"select pair_key, price_text from marts.source_prices where pair_key in ({POLLED}, {POLLED_LATER})"
    assert set(rows(builds[0], seen)) == {(POLLED, "100"), (POLLED, "90")}
    # The source quotes the same price again, now to both pairs.
    assert set(rows(builds[1], seen)) == {(POLLED, "100"), (POLLED, "90"), (POLLED_LATER, "100")}


def test_a_window_does_not_value_the_time_that_led_to_it(builds: list[Stores]) -> None:
    # Each close counts for the day behind it, although maxAge is a minute.
    priced = f"""
        select valid_from, valid_until, price_text from marts.system_prices
        where price_status = 'Priced' and pair_key = {WINDOWS} order by 1
    """
    assert rows(builds[0], priced) == [
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


@pytest.mark.ci
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

    # Steps are contiguous, never use later prices, and never use prices older than allowed.
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
    """Return the row in force for each pair and whole hour; skip rows without a price."""
    return {
        (key, moment): content
        for key, begins, ends, *content in spells
        for moment in HOURS
        if begins <= moment and (ends is None or moment < ends) and content != [None, None]
    }
