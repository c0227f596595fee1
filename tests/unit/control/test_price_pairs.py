"""Rules of pairs: creation, changes and removal."""

from datetime import timedelta
from decimal import Decimal
from typing import Any

import pytest
from sqlalchemy import select

from control import revision
from control.access import Principal, Role
from control.errors import Conflict, ControlError, Denied, Invalid, NotFound
from control.models import AuditEvent
from control.pages import After
from control.pricing import pairs, sources, supported_pairs
from control.pricing.matching import MappingStatus
from control.pricing.pairs import PairRow
from control.pricing.routes import find_routes, worst_status
from control.pricing.supported_pairs import SupportedPairCreate
from tests.unit.control import pricing
from tests.unit.control.conftest import World, on_both
from tests.unit.control.pricing import DEFINITIONS, NOON, add_items, add_manual, change, make, map_item, markets_of


@pytest.fixture
def acme(world: World) -> World:
    """A world where the first tenant has items."""
    add_items(world, world.acme, "BTC", "USD", "EUR", "LUNA", "OLD", "FUND", "SOL")
    add_items(world, world.other, "BTC", "USD")
    return world


def writes(world: World) -> int:
    with world.store.read() as session:
        return revision.read_revision(session)


def events(world: World, pair: PairRow) -> list[AuditEvent]:
    with world.store.read() as session:
        found = session.scalars(
            select(AuditEvent).where(AuditEvent.object_id == pair.id).order_by(AuditEvent.occurred_at, AuditEvent.id)
        )
        return list(found)


def read(world: World, pair: PairRow) -> PairRow:
    with world.store.read() as session:
        return pairs.get(session, pair.tenant_id, pair.id)


def switch(world: World, source_id: str, *, enabled: bool) -> None:
    with world.store.write() as session:
        sources.set_enabled(session, world.acme, DEFINITIONS, source_id, enabled=enabled, now=NOON)


def support(world: World, source_id: str, pair: str, price_type: str) -> None:
    priced_as, priced_in = pair.split("/")
    with world.store.write() as session:
        supported_pairs.create(
            session,
            world.acme,
            DEFINITIONS,
            source_id,
            SupportedPairCreate(priced_as=priced_as, priced_in=priced_in, price_type=price_type),
            now=NOON,
        )


def refused(world: World, error: type[ControlError], **values: Any) -> Any:
    """Check that a pair is refused and nothing is written; return the error."""
    before = writes(world)
    with pytest.raises(error) as caught:
        make(world, **values)
    assert writes(world) == before
    with world.store.read() as session:
        assert pairs.list_page(session, world.acme.tenant_id).rows == ()
    return caught.value


@on_both
def test_a_pair_is_stored_with_its_defaults(acme: World) -> None:
    before = writes(acme)
    made = make(acme, price_sources=["src_gemini", "src_kraken"])
    assert made == PairRow(
        pair_key=made.pair_key,
        id=made.id,
        tenant_id=acme.acme.tenant_id,
        priced_as="BTC",
        priced_in="USD",
        price_type="Trade",
        price_sources=["src_gemini", "src_kraken"],
        max_age="P1D",
        max_age_seconds=86_400,
        allow_inverse=False,
        bridge=None,
        max_jump=None,
        max_deviation=None,
        created_at=NOON,
        updated_at=NOON,
    )
    assert made.id.startswith("pair_")
    assert read(acme, made) == made
    assert writes(acme) == before + 1
    (event,) = events(acme, made)
    assert (event.action, event.before) == ("price-pair.create", None)
    assert event.after is not None
    assert event.after["priceSources"] == ["src_gemini", "src_kraken"]


@on_both
def test_pair_is_stored_with_all_options(acme: World) -> None:
    made = make(
        acme,
        "SOL/EUR",
        price_sources=["src_fresh"],
        max_age="PT90M",
        allow_inverse=True,
        bridge="USD",
        max_jump=Decimal("12.50"),
        max_deviation=Decimal("1e-3"),
    )
    assert (made.max_age, made.max_age_seconds) == ("PT90M", 5_400)
    assert (made.allow_inverse, made.bridge) == (True, "USD")
    assert (made.max_jump, made.max_deviation) == ("12.5", "0.001")


@pytest.mark.parametrize(
    ("given", "max_age", "seconds"), [({}, "P35D", 3_024_000), ({"max_age": None}, None, None)], ids=["left", "null"]
)
def test_maximum_age_of_a_nav(acme: World, given: dict[str, Any], max_age: str | None, seconds: int | None) -> None:
    manual = add_manual(acme)
    support(acme, manual, "FUND/USD", "NAV")
    made = make(acme, "FUND/USD", price_type="NAV", price_sources=[manual], **given)
    assert (made.max_age, made.max_age_seconds) == (max_age, seconds)


@pytest.mark.parametrize(
    ("values", "field", "code"),
    [
        ({"pair": "NONE/USD"}, "pricedAs", "unknown-symbol"),
        ({"pair": "btc/USD"}, "pricedAs", "unknown-symbol"),
        ({"pair": "BTC/NONE"}, "pricedIn", "unknown-symbol"),
        ({"pair": "BTC/BTC"}, "pricedIn", "same-item"),
        ({"bridge": "NONE"}, "bridge", "unknown-symbol"),
        ({"bridge": "BTC"}, "bridge", "same-item"),
        ({"bridge": "USD"}, "bridge", "same-item"),
        ({"price_type": "Mid"}, "priceType", "unknown-price-type"),
        ({"price_type": "NAV"}, "priceType", "unsupported-type"),
        ({"price_type": "Ask", "price_sources": ["src_kraken", "src_gemini"]}, "priceType", "unsupported-type"),
        ({"price_sources": []}, "priceSources", "out-of-range"),
        ({"price_sources": ["src_kraken", "src_kraken"]}, "priceSources", "repeated-source"),
        ({"price_sources": ["src_none"]}, "priceSources", "unknown-source"),
        ({"price_sources": ["src_" + "0" * 26]}, "priceSources", "unknown-source"),
        ({"pair": "OLD/USD"}, "priceSources", "no-market"),
        ({"price_sources": ["src_kraken", "src_gemini"], "pair": "EUR/USD"}, "priceSources", "no-market"),
        ({"max_age": "P1M"}, "maxAge", "not-exact"),
        ({"max_jump": Decimal(0)}, "maxJump", "not-positive"),
        ({"max_deviation": Decimal("NaN")}, "maxDeviation", "not-a-number"),
    ],
)
def test_invalid_fields_are_named_and_store_nothing(acme: World, values: dict[str, Any], field: str, code: str) -> None:
    error = refused(acme, Invalid, **values)
    assert (error.field, error.code) == (field, code)


def test_missing_market_names_the_searched_market_and_the_fix(acme: World) -> None:
    detail = refused(acme, Invalid, pair="USD/EUR").detail
    assert "Kraken has no such spot market; searched USD/EUR" in detail
    assert "allowInverse" in detail
    assert "mapping-symbols" in detail
    assert make(acme, "USD/EUR", allow_inverse=True).allow_inverse


def test_disabled_source_accepts_no_new_pair(acme: World) -> None:
    switch(acme, "src_kraken", enabled=False)
    error = refused(acme, Conflict, price_sources=["src_gemini", "src_kraken"])
    assert (error.code, error.existing_id) == ("price-source-disabled", "src_kraken")
    assert "/v2/price-sources/src_kraken/enable" in error.detail
    make(acme, "BTC/USD", principal=acme.other)
    assert make(acme, price_sources=["src_gemini"])


def test_a_manual_source_must_support_the_pair(acme: World) -> None:
    manual = add_manual(acme)
    support(acme, manual, "FUND/USD", "NAV")
    error = refused(acme, Invalid, pair="FUND/USD", price_type="Trade", price_sources=[manual])
    assert (error.field, error.code) == ("priceSources", "no-market")
    assert "Ours has no supported pair FUND/USD of price type Trade" in error.detail
    assert f"POST it to /v2/price-sources/{manual}/pairs" in error.detail
    assert make(acme, "FUND/USD", price_type="NAV", price_sources=[manual]).price_sources == [manual]


def test_anothers_manual_source_does_not_exist(acme: World) -> None:
    manual = add_manual(acme)
    with pytest.raises(Invalid) as caught:
        make(acme, principal=acme.other, price_sources=[manual])
    assert caught.value.code == "unknown-source"


def test_several_assets_under_one_ticker_are_a_conflict_until_mapped(acme: World) -> None:
    error = refused(acme, Conflict, pair="LUNA/USD")
    assert error.code == "ambiguous-market"
    assert "LUNA2USD (LUNA2/ZUSD), LUNAUSD (LUNA/ZUSD)" in error.detail
    map_item(acme, "LUNA", "src_kraken", "LUNA2")
    made = make(acme, "LUNA/USD")
    with acme.store.read() as session:
        ((route,),) = find_routes(session, made.tenant_id, DEFINITIONS, [made.question], markets_of)
    assert route.outcome.legs == (("LUNA2USD", "Trade", False),)  # type: ignore[union-attr]


def test_uncollected_list_is_pending(acme: World) -> None:
    made = make(acme, "SOL/USD", price_sources=["src_fresh"])
    mixed = make(acme, price_sources=["src_kraken", "src_fresh"])
    with acme.store.read() as session:
        questions = [made.question, mixed.question]
        found = find_routes(session, made.tenant_id, DEFINITIONS, questions, markets_of)
        assert [worst_status(routes) for routes in found] == [MappingStatus.PENDING] * 2
        assert [route.outcome.status.value for route in found[1]] == ["Resolved", "Pending"]
        assert find_routes(session, made.tenant_id, {}, questions, markets_of)[1][0].detail == (
            "src_kraken does not supply the price type Trade; it is no longer defined"
        )


@on_both
def test_the_same_pair_again_names_the_first(acme: World) -> None:
    made = make(acme)
    with pytest.raises(Conflict) as caught:
        make(acme, price_sources=["src_gemini"])
    assert (caught.value.code, caught.value.existing_id) == ("duplicate-pair", made.id)
    assert made.id in caught.value.detail
    other_type = make(acme, price_type="Bid")
    theirs = make(acme, principal=acme.other)
    assert len({made.id, other_type.id, theirs.id}) == 3


def test_only_operators_create_pairs_and_only_admins_remove_them(acme: World) -> None:
    made = make(acme)
    viewer = Principal(acme.acme.tenant_id, acme.acme.key_id, Role.VIEWER)
    operator = Principal(acme.acme.tenant_id, acme.acme.key_id, Role.OPERATOR)
    with pytest.raises(Denied):
        make(acme, "EUR/USD", principal=viewer)
    with pytest.raises(Denied):
        change(acme, made, viewer, max_age="P2D")
    with pytest.raises(Denied), acme.store.write() as session:
        pairs.remove(session, operator, made.id)
    assert make(acme, "EUR/USD", principal=operator).price_type == "Trade"
    with pytest.raises(NotFound):
        change(acme, made, acme.other, max_age="P2D")
    with pytest.raises(NotFound), acme.store.write() as session:
        pairs.remove(session, acme.other, made.id)
    with acme.store.read() as session:
        for tenant_id, pair_id in (
            (acme.other.tenant_id, made.id),
            (acme.acme.tenant_id, "pair_" + "0" * 26),
            (acme.acme.tenant_id, "pair_\x00"),
            (acme.acme.tenant_id, "spair_" + made.id[5:]),
        ):
            with pytest.raises(NotFound):
                pairs.get(session, tenant_id, pair_id)
        assert pairs.list_page(session, acme.other.tenant_id).rows == ()


@on_both
def test_pages_hold_each_once_oldest_first(acme: World) -> None:
    made = [make(acme, price_type=kind) for kind in ("Trade", "Bid", "Ask")]
    make(acme, principal=acme.other)
    for limit in (1, 2, 3):
        seen: list[PairRow] = []
        after: After | None = None
        while True:
            with acme.store.read() as session:
                page = pairs.list_page(session, acme.acme.tenant_id, limit, after)
            seen += page.rows
            after = page.after
            if after is None:
                break
        assert seen == made


def test_a_change_keeps_the_rest_and_is_audited(acme: World) -> None:
    made = make(acme, max_jump=Decimal(10))
    later = NOON + timedelta(hours=1)
    before = writes(acme)
    changed = change(acme, made, price_sources=["src_gemini", "src_kraken"], max_age=None, now=later)
    assert changed.price_sources == ["src_gemini", "src_kraken"]
    assert (changed.max_age, changed.max_age_seconds, changed.max_jump) == (None, None, "10")
    assert (changed.created_at, changed.updated_at) == (NOON, later)
    assert read(acme, made) == changed
    assert writes(acme) == before + 1
    event = events(acme, made)[-1]
    assert event.action == "price-pair.update"
    assert event.before is not None
    assert event.after is not None
    assert (event.before["maxAge"], event.after["maxAge"]) == ("P1D", None)
    assert change(acme, made, max_jump=None, max_deviation=Decimal("2.0")).max_deviation == "2"


def test_writing_the_stored_values_changes_nothing(acme: World) -> None:
    made = make(acme, bridge="EUR")
    before = writes(acme)
    again = change(
        acme,
        made,
        price_sources=["src_kraken"],
        max_age="P1D",
        allow_inverse=False,
        bridge="EUR",
        max_jump=None,
        now=NOON + timedelta(hours=1),
    )
    assert again == made
    assert change(acme, made) == made
    assert writes(acme) == before
    assert len(events(acme, made)) == 1


def test_existing_source_may_stay_disabled_but_new_source_may_not(acme: World) -> None:
    made = make(acme)
    switch(acme, "src_kraken", enabled=False)
    switch(acme, "src_gemini", enabled=False)
    with pytest.raises(Conflict) as caught:
        change(acme, made, price_sources=["src_kraken", "src_gemini"])
    assert caught.value.existing_id == "src_gemini"
    assert read(acme, made) == made
    switch(acme, "src_gemini", enabled=True)
    assert change(acme, made, price_sources=["src_gemini", "src_kraken"]).price_sources == ["src_gemini", "src_kraken"]


@pytest.mark.parametrize(
    ("values", "field"),
    [
        ({"price_sources": []}, "priceSources"),
        ({"price_sources": ["src_kraken", "src_none"]}, "priceSources"),
        ({"price_sources": ["src_kraken", "src_gemini"]}, "priceSources"),
        ({"allow_inverse": False}, "priceSources"),
        ({"max_age": "P0D"}, "maxAge"),
        ({"bridge": "USD"}, "bridge"),
        ({"max_jump": Decimal(-1)}, "maxJump"),
    ],
)
def test_a_wrong_change_is_named_and_changes_nothing(acme: World, values: dict[str, Any], field: str) -> None:
    made = make(acme, "USD/EUR", allow_inverse=True)
    before = writes(acme)
    with pytest.raises(Invalid) as caught:
        change(acme, made, **values)
    assert caught.value.field == field
    assert read(acme, made) == made
    assert writes(acme) == before


def test_delisted_market_does_not_block_a_change(acme: World, monkeypatch: pytest.MonkeyPatch) -> None:
    made = make(acme)
    monkeypatch.setitem(pricing.MARKETS, "src_kraken", [])
    changed = change(acme, made, price_sources=["src_kraken", "src_gemini"], max_age="P2D")
    assert changed.price_sources == ["src_kraken", "src_gemini"]


@on_both
def test_removed_pair_is_gone_and_can_be_created_again(acme: World) -> None:
    made = make(acme)
    with acme.store.write() as session:
        pairs.remove(session, acme.acme, made.id, NOON)
    with acme.store.read() as session, pytest.raises(NotFound):
        pairs.get(session, acme.acme.tenant_id, made.id)
    with pytest.raises(NotFound):
        change(acme, made, max_age="P2D")
    with pytest.raises(NotFound), acme.store.write() as session:
        pairs.remove(session, acme.acme, made.id)
    again = make(acme)
    assert again.id != made.id
    assert [event.action for event in events(acme, made)] == ["price-pair.create", "price-pair.remove"]
