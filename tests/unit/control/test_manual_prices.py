"""Rules of manual prices: valid values, revisions, all-or-nothing writes, lists."""

import random
import time
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sqlalchemy import select
from sqlalchemy.exc import IntegrityError

from control import audit, revision
from control.access import Principal, Role
from control.audit import AuditFilters
from control.errors import Denied, Invalid, InvalidValues, NotFound
from control.inputs import ExactNumber
from control.models import ManualPrice
from control.pages import After
from control.pricing import manual_prices, sources, supported_pairs
from control.pricing.decimals import positive_decimal
from control.pricing.manual_prices import ManualPriceCreate, ManualPriceRow, NewPrice
from control.pricing.supported_pairs import SupportedPairCreate
from tests.unit.control.conftest import World, on_both, on_postgres
from tests.unit.control.pricing import DEFINITIONS, NOON, add_items, add_manual
from tests.unit.control.second_writer import start_waiting

DAY = datetime(2026, 1, 31, tzinfo=UTC)


def priced(price: str | int, effective_from: str, note: str | None = None) -> ManualPriceCreate:
    return ManualPriceCreate(price=ExactNumber(price), effective_from=effective_from, note=note)


def check(*entries: tuple[str, str] | ManualPriceCreate, is_bulk: bool = True) -> list[NewPrice]:
    made = [entry if isinstance(entry, ManualPriceCreate) else priced(entry[0], entry[1]) for entry in entries]
    return manual_prices.check_prices(made, is_bulk=is_bulk)


class Desk:
    """A manual source with one supported pair."""

    def __init__(self, world: World) -> None:
        self.world = world
        add_items(world, world.acme, "FUND", "USD")
        self.source_id = add_manual(world, enabled=False)
        with world.store.write() as session:
            self.pair_id = supported_pairs.create(
                session,
                world.acme,
                DEFINITIONS,
                self.source_id,
                SupportedPairCreate(priced_as="FUND", priced_in="USD", price_type="NAV"),
                now=NOON,
            ).id

    def enter(
        self, *entries: tuple[str, str] | ManualPriceCreate, principal: Principal | None = None
    ) -> list[ManualPriceRow]:
        with self.world.store.write() as session:
            return manual_prices.enter(
                session,
                principal or self.world.acme,
                DEFINITIONS,
                self.source_id,
                self.pair_id,
                check(*entries),
                now=NOON,
            )

    def all(self, **asked: Any) -> list[ManualPriceRow]:
        with self.world.store.read() as session:
            page = manual_prices.list_page(
                session, self.world.acme.tenant_id, DEFINITIONS, self.source_id, self.pair_id, limit=1000, **asked
            )
        assert page.after is None
        return list(page.rows)


@pytest.fixture
def desk(world: World) -> Desk:
    return Desk(world)


def test_single_price_is_stored(desk: Desk) -> None:
    (made,) = desk.enter(priced("101.250", "2026-01-31", "Audited"))
    assert (made.price, made.effective_from, made.revision, made.is_current) == ("101.25", DAY, 1, True)
    assert (made.note, made.created_by, made.created_at) == ("Audited", desk.world.acme.key_id, NOON)
    assert desk.all() == [made]


@pytest.mark.parametrize(
    ("written", "text"),
    [
        ("1", "1"),
        ("1e-7", "0.0000001"),
        ("1E+3", "1000"),
        ("1.50", "1.5"),
        ("0.000000000000000001", "0.000000000000000001"),
        ("99999999999999999999.999999999999999999", "99999999999999999999.999999999999999999"),
        ("1.0000000000000000000000", "1"),
        ("100e-2", "1"),
        ("12345678901234567890", "12345678901234567890"),
    ],
)
def test_prices_are_exact(written: str, text: str) -> None:
    assert positive_decimal("price", Decimal(written)) == text


@pytest.mark.parametrize(
    ("written", "code"),
    [
        ("0", "not-positive"),
        ("-0", "not-positive"),
        ("-1", "not-positive"),
        ("NaN", "not-a-number"),
        ("sNaN", "not-a-number"),
        ("Infinity", "not-a-number"),
        ("100000000000000000000", "too-large"),
        ("1e999999", "too-large"),
        ("0.0000000000000000001", "too-precise"),
        ("1e-999999", "too-precise"),
        ("1.0000000000000000001", "too-precise"),
    ],
)
def test_invalid_prices_are_refused(written: str, code: str) -> None:
    with pytest.raises(Invalid) as caught:
        positive_decimal("price", Decimal(written))
    assert (caught.value.field, caught.value.code) == ("price", code)


@given(st.integers(1, 10**38 - 1))
def test_every_price_of_38_digits_is_exact(units: int) -> None:
    whole, fraction = divmod(units, 10**18)
    text = positive_decimal("price", Decimal(f"{whole}.{fraction:018d}"))
    assert "e" not in text.lower()
    assert not text.endswith((".", "0")) or "." not in text
    shown, _, decimals = text.partition(".")
    assert int(shown) * 10**18 + int(decimals.ljust(18, "0")) == units


@pytest.mark.parametrize(
    ("written", "instant"),
    [
        ("2026-01-31", DAY),
        ("2026-01-31T10:00:00+02:00", DAY.replace(hour=8)),
        ("2026-01-31T10:00", DAY.replace(hour=10)),
        ("2026-01-31t10:00:00.123456z", DAY.replace(hour=10, microsecond=123456)),
        ("2026-01-31T10:00:00.123456000Z", DAY.replace(hour=10, microsecond=123456)),
        ("1970-01-01", datetime(1970, 1, 1, tzinfo=UTC)),
        ("2199-12-31T23:59:59.999999Z", datetime(2199, 12, 31, 23, 59, 59, 999999, tzinfo=UTC)),
    ],
)
def test_instants(written: str, instant: datetime) -> None:
    assert check(("1", written))[0].effective_from == instant


@pytest.mark.parametrize(
    ("written", "code"),
    [
        ("31.01.2026", "malformed"),
        ("2026-02-30", "malformed"),
        ("", "malformed"),
        ("20260131", "malformed"),
        ("1969-12-31T23:59:59Z", "out-of-range"),
        ("1970-01-01T00:30:00+01:00", "out-of-range"),
        ("2200-01-01", "out-of-range"),
        ("2026-01-31T10:00:00.1234567Z", "too-precise"),
    ],
)
def test_invalid_instants_are_refused(written: str, code: str) -> None:
    with pytest.raises(InvalidValues) as caught:
        check(("1", written), is_bulk=False)
    assert [(error.field, error.code) for error in caught.value.errors] == [("effectiveFrom", code)]


def test_every_wrong_value_is_named_with_its_row() -> None:
    with pytest.raises(InvalidValues) as caught:
        check(
            ("1", "2026-01-01"),
            ("0", "yesterday"),
            priced(1, "2026-01-02", "a\x00"),
            ("2", "2026-01-01T01:00:00+01:00"),
        )
    assert [(error.field, error.code) for error in caught.value.errors] == [
        ("1/price", "not-positive"),
        ("1/effectiveFrom", "malformed"),
        ("2/note", "control-character"),
        ("3/effectiveFrom", "repeated-instant"),
    ]
    details = [error.detail for error in caught.value.errors]
    assert details[0] == "row 2: price must be above 0"
    assert "rows 1 and 4 are both effective from 2026-01-01T00:00:00Z" in details[3]


@on_both
def test_second_price_of_an_instant_is_a_revision(desk: Desk) -> None:
    (first,) = desk.enter(("1", "2026-01-31"))
    second, other = desk.enter(("2", "2026-01-31T00:00:00Z"), ("7", "2026-01-30"))
    (third,) = desk.enter(("1", "2026-01-31"))
    assert [(row.price, row.revision, row.is_current) for row in desk.all()] == [
        ("1", 3, True),
        ("2", 2, False),
        ("1", 1, False),
        ("7", 1, True),
    ]
    assert [row.id for row in desk.all()] == [third.id, second.id, first.id, other.id]


@on_both
def test_revisions_are_of_one_pair(world: World, desk: Desk) -> None:
    desk.enter(("1", "2026-01-31"))
    add_items(world, world.acme, "EUR")
    with world.store.write() as session:
        desk.pair_id = supported_pairs.create(
            session,
            world.acme,
            DEFINITIONS,
            desk.source_id,
            SupportedPairCreate(priced_as="FUND", priced_in="EUR", price_type="NAV"),
        ).id
    assert [row.revision for row in desk.enter(("1", "2026-01-31"))] == [1]
    assert len(desk.all()) == 1


@on_both
def test_lists_by_time_in_pages(desk: Desk) -> None:
    days = [f"2026-01-{day:02d}" for day in range(1, 11)]
    random.Random(1).shuffle(days)
    desk.enter(*(("1", day) for day in days))
    desk.enter(*(("2", day) for day in days[:4]))
    whole = desk.all()
    assert [(row.effective_from, row.revision) for row in whole] == sorted(
        ((row.effective_from, row.revision) for row in whole), reverse=True
    )
    assert len(whole) == 14
    assert [row for row in whole if row.is_current] == [
        row for row in whole if row.revision == (2 if f"{row.effective_from:%Y-%m-%d}" in days[:4] else 1)
    ]
    start, end = datetime(2026, 1, 3, tzinfo=UTC), datetime(2026, 1, 6, tzinfo=UTC)
    assert desk.all(start=start, end=end) == [row for row in whole if start <= row.effective_from < end]
    for size in (1, 3, 7, 14):
        seen: list[ManualPriceRow] = []
        after: After | None = None
        while True:
            with desk.world.store.read() as session:
                page = manual_prices.list_page(
                    session,
                    desk.world.acme.tenant_id,
                    DEFINITIONS,
                    desk.source_id,
                    desk.pair_id,
                    limit=size,
                    after=after,
                )
            seen += page.rows
            after = page.after
            if after is None:
                break
        assert seen == whole
    with pytest.raises(Invalid):
        desk.all(after=After("x", "1"))


def test_many_prices_make_one_event_and_one_configuration_revision(desk: Desk) -> None:
    with desk.world.store.read() as session:
        before = revision.read_revision(session)
    many = desk.enter(("1", "2026-01-02"), ("2", "2026-01-01"))
    (one,) = desk.enter(priced("3.10", "2026-01-01", "n"))
    with desk.world.store.read() as session:
        assert revision.read_revision(session) == before + 2
        found = audit.list_page(session, desk.world.acme.tenant_id, AuditFilters(object_id=desk.pair_id)).rows
    by_count = {event.after["count"]: event for event in found if event.action == "manual-price.create"}
    assert by_count[2].after == {
        "count": 2,
        "firstId": many[0].id,
        "lastId": many[1].id,
        "firstEffectiveFrom": "2026-01-01T00:00:00Z",
        "lastEffectiveFrom": "2026-01-02T00:00:00Z",
    }
    expected = {"price": "3.1", "revision": 2, "note": "n", "firstId": one.id, "lastId": one.id}
    assert by_count[1].after.items() >= expected.items()
    assert {event.object_kind for event in by_count.values()} == {"supported-pair"}


@on_both
def test_failed_write_stores_no_price(desk: Desk) -> None:
    twice = [NewPrice(price, DAY, None) for price in ("1", "2")]
    with pytest.raises(IntegrityError), desk.world.store.write() as session:
        manual_prices.enter(session, desk.world.acme, DEFINITIONS, desk.source_id, desk.pair_id, twice)
    assert desk.all() == []


@on_both
def test_only_operators_of_the_tenant_enter_prices_of_supported_pairs(desk: Desk) -> None:
    world = desk.world
    viewer = Principal(world.acme.tenant_id, world.acme.key_id, Role.VIEWER)
    prices = check(("1", "2026-01-01"))
    with pytest.raises(Denied):
        desk.enter(("1", "2026-01-01"), principal=viewer)
    with world.store.write() as session:
        for principal, source_id, pair_id in (
            (world.other, desk.source_id, desk.pair_id),
            (world.acme, "src_kraken", desk.pair_id),
            (world.acme, desk.source_id, "spair_" + "0" * 26),
            (world.acme, desk.source_id, "\x00"),
        ):
            with pytest.raises(NotFound):
                manual_prices.enter(session, principal, DEFINITIONS, source_id, pair_id, prices)
            with pytest.raises(NotFound):
                manual_prices.list_page(session, principal.tenant_id, DEFINITIONS, source_id, pair_id)
    assert desk.all() == []


def test_prices_of_a_removed_source_are_not_shown(desk: Desk) -> None:
    desk.enter(("1", "2026-01-01"))
    with desk.world.store.write() as session:
        sources.remove(session, desk.world.acme, DEFINITIONS, desk.source_id)
    with pytest.raises(NotFound):
        desk.all()
    with pytest.raises(NotFound):
        desk.enter(("1", "2026-01-01"))


@on_postgres
def test_two_writers_of_one_instant_make_revisions_in_commit_order(desk: Desk) -> None:
    with desk.world.store.write() as session:
        asked = (session, desk.world.acme, DEFINITIONS, desk.source_id, desk.pair_id)
        manual_prices.enter(*asked, check(("1", "2026-01-31")))
        second = start_waiting(desk.world.settings, lambda: desk.enter(("2", "2026-01-31")))
    assert [row.revision for row in second.result()] == [2]
    with desk.world.store.read() as session:
        found = session.execute(select(ManualPrice.price).order_by(ManualPrice.manual_price_key)).scalars().all()
    assert found == ["1", "2"]


@on_postgres
def test_keys_follow_commits_across_pairs(world: World, desk: Desk) -> None:
    """The pipeline reads prices after its last known key, so it would skip a lower key that commits later."""
    other = Desk.__new__(Desk)
    other.world, other.source_id = world, desk.source_id
    add_items(world, world.acme, "EUR")
    with world.store.write() as session:
        other.pair_id = supported_pairs.create(
            session,
            world.acme,
            DEFINITIONS,
            desk.source_id,
            SupportedPairCreate(priced_as="FUND", priced_in="EUR", price_type="NAV"),
        ).id
    with world.store.write() as session:
        revision.bump(session, world.acme.tenant_id)
        second = start_waiting(world.settings, lambda: other.enter(("2", "2026-01-31")))
        # The second writer has no key yet, so this price commits first and gets the lower key.
        asked = (session, world.acme, DEFINITIONS, desk.source_id, desk.pair_id)
        manual_prices.enter(*asked, check(("1", "2026-01-31")))
    second.result()
    with world.store.read() as session:
        found = session.execute(select(ManualPrice.price).order_by(ManualPrice.manual_price_key)).scalars().all()
    assert found == ["1", "2"]


@pytest.mark.ci
@on_both
def test_ten_thousand_prices(desk: Desk) -> None:
    first = datetime(2000, 1, 1, tzinfo=UTC)
    entries = [
        priced(f"{number}.{number:018d}", f"{first + timedelta(hours=number):%Y-%m-%dT%H:%M:%SZ}")
        for number in range(1, 10_001)
    ]
    started = time.process_time()
    prices = manual_prices.check_prices(entries, is_bulk=True)
    with desk.world.store.write() as session:
        asked = (session, desk.world.acme, DEFINITIONS, desk.source_id, desk.pair_id)
        manual_prices.enter(*asked, prices)
        made = manual_prices.enter(*asked, prices)
    assert {row.revision for row in made} == {2}
    # Measured: 0.8 s for each 10,000 on SQLite, 1.3 s on Postgres.
    assert time.process_time() - started < 20
