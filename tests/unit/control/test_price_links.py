"""Rules of links and reviews: the pair that values a token, and decisions on quarantined prices."""

from datetime import timedelta

import pytest
from sqlalchemy import select

from control import ledgers, revision, subjects, tokens, wallets
from control.access import Principal, Role
from control.errors import Conflict, ControlError, Denied, Invalid, NotFound
from control.ledgers import LedgerPut
from control.models import AuditEvent
from control.pricing import links, pairs, reviews
from control.pricing.links import PricedAsPut
from control.pricing.pairs import PairRow
from control.pricing.reviews import Decision
from control.snapshot import read_snapshot
from control.subjects import Kind, SubjectFilters, SubjectRow, TokenCreate, WalletCreate
from tests.unit.control.conftest import World, on_both, on_postgres
from tests.unit.control.pricing import NOON, add_items, make
from tests.unit.control.second_writer import start_waiting

USDC = "0xA0b86991c6218b36c1d19D4a2e9Eb0cE3606eB48"
DAI = "0x6B175474E89094C44Da98b954EedeAC495271d0F"


@pytest.fixture
def token(world: World) -> SubjectRow:
    add_items(world, world.acme, "BTC", "USD", "EUR")
    add_items(world, world.other, "BTC", "USD")
    with world.store.write() as session:
        for principal in (world.acme, world.other):
            ledgers.put(session, principal, world.networks, "ethereum", LedgerPut(name="main"))
        return tokens.create(
            session, world.acme, world.networks, TokenCreate(ledger="main", symbol="WBTC", ledger_id=USDC), now=NOON
        )


def link(
    world: World, token: SubjectRow, priced_as: str = "BTC", pair_id: str | None = None, who: Principal | None = None
) -> SubjectRow:
    with world.store.write() as session:
        later = NOON + timedelta(hours=1)
        return links.link(
            session, who or world.acme, token, PricedAsPut(priced_as=priced_as, pair_id=pair_id), now=later
        )


def unlink(world: World, token: SubjectRow) -> SubjectRow:
    with world.store.write() as session:
        return links.unlink(session, world.acme, token, NOON + timedelta(hours=2))


def remove(world: World, pair: PairRow) -> None:
    with world.store.write() as session:
        pairs.remove(session, world.acme, pair.id, NOON)


def writes(world: World) -> int:
    with world.store.read() as session:
        return revision.read_revision(session)


def audited(world: World, object_id: str) -> list[AuditEvent]:
    with world.store.read() as session:
        return list(
            session.scalars(select(AuditEvent).where(AuditEvent.object_id == object_id).order_by(AuditEvent.id))
        )


@on_both
def test_the_only_usd_pair_of_the_symbol_is_taken(world: World, token: SubjectRow) -> None:
    assert (token.pair_key, token.pair_id, token.priced_as, token.priced_in) == (None, None, None, None)
    pair = make(world)
    make(world, "EUR/USD")
    before = writes(world)
    linked = link(world, token)
    assert (linked.pair_key, linked.pair_id) == (pair.pair_key, pair.id)
    assert (linked.priced_as, linked.priced_in) == ("BTC", "USD")
    assert linked.updated_at == NOON + timedelta(hours=1)
    assert writes(world) == before + 1
    with world.store.read() as session:
        assert subjects.get(session, world.acme.tenant_id, Kind.TOKEN, token.id) == linked
        listed = subjects.list_page(
            session,
            world.acme.tenant_id,
            world.networks,
            Kind.TOKEN,
            SubjectFilters(),
            sort="name",
            limit=5,
            after=None,
        )
        assert listed.rows == (linked,)
        (seen,) = read_snapshot(session, 0).tables["control_subjects"]
        assert seen.pair_key == pair.pair_key
    event = audited(world, token.id)[-1]
    assert event.action == "token.link"
    assert event.before == {"pricedAs": None, "pricedIn": None, "pairId": None}
    assert event.after == {"pricedAs": "BTC", "pricedIn": "USD", "pairId": pair.id}
    assert link(world, token) == linked
    assert link(world, token, pair_id=pair.id) == linked
    assert writes(world) == before + 1


@on_both
def test_one_of_several_pairs_must_be_named(world: World, token: SubjectRow) -> None:
    trade, bid = make(world), make(world, price_type="Bid")
    with pytest.raises(Conflict) as caught:
        link(world, token)
    assert caught.value.code == "several-usd-pairs"
    assert f"{trade.id} (Trade), {bid.id} (Bid)" in caught.value.detail
    assert link(world, token, pair_id=bid.id).pair_id == bid.id
    assert link(world, token, pair_id=trade.id).pair_id == trade.id


@pytest.mark.parametrize(
    ("priced_as", "missing"),
    [
        ("NONE", "there is no pair NONE/USD; POST 'NONE' to /v1/priced-items, then POST the pair to /v2/pairs"),
        ("EUR", "there is no pair EUR/USD; POST the pair to /v2/pairs"),
    ],
)
def test_link_without_a_usd_pair_names_the_missing_step(
    world: World, token: SubjectRow, priced_as: str, missing: str
) -> None:
    make(world)
    make(world, "EUR/BTC", price_sources=["src_fresh"])
    before = writes(world)
    with pytest.raises(Conflict) as caught:
        link(world, token, priced_as)
    assert (caught.value.code, caught.value.detail) == ("no-usd-pair", missing)
    assert writes(world) == before


def test_a_named_pair_must_be_the_tenants_own_of_the_symbol_in_usd(world: World, token: SubjectRow) -> None:
    make(world)
    other_symbol = make(world, "EUR/USD")
    in_euro = make(world, "BTC/EUR", price_sources=["src_gemini"])
    theirs = make(world, principal=world.other)
    removed = make(world, price_type="Bid")
    remove(world, removed)
    for pair_id, code in (
        (other_symbol.id, "other-symbol"),
        (in_euro.id, "not-in-usd"),
        (theirs.id, "unknown-pair"),
        (removed.id, "unknown-pair"),
        ("BTC", "unknown-pair"),
    ):
        with pytest.raises(Invalid) as caught:
            link(world, token, pair_id=pair_id)
        assert (caught.value.field, caught.value.code) == ("pairId", code)


def test_linked_pair_cannot_be_removed(world: World, token: SubjectRow) -> None:
    pair = make(world)
    link(world, token)
    with pytest.raises(Conflict) as caught:
        remove(world, pair)
    assert caught.value.code == "pair-in-use"
    assert token.id in caught.value.detail
    before = writes(world)
    free = unlink(world, token)
    assert (free.pair_key, free.pair_id, free.priced_as, free.priced_in) == (None, None, None, None)
    assert writes(world) == before + 1
    assert audited(world, token.id)[-1].action == "token.unlink"
    assert unlink(world, token) == free
    assert writes(world) == before + 1
    remove(world, pair)


@on_both
def test_removed_token_does_not_keep_its_pair(world: World, token: SubjectRow) -> None:
    pair = make(world)
    link(world, token)
    with world.store.write() as session:
        subjects.remove(session, world.acme, token)
    with pytest.raises(NotFound):
        link(world, token)
    remove(world, pair)


def test_viewers_and_other_tenants_cannot_link(world: World, token: SubjectRow) -> None:
    make(world)
    make(world, principal=world.other)
    viewer = Principal(world.acme.tenant_id, world.acme.key_id, Role.VIEWER)
    with pytest.raises(Denied):
        link(world, token, who=viewer)
    with pytest.raises(Denied), world.store.write() as session:
        links.unlink(session, viewer, token)
    with pytest.raises(NotFound):
        link(world, token, who=world.other)
    operator = Principal(world.acme.tenant_id, world.acme.key_id, Role.OPERATOR)
    assert link(world, token, who=operator).priced_as == "BTC"


@on_postgres
def test_concurrent_link_and_removal_leave_no_dangling_link(world: World, token: SubjectRow) -> None:
    pair = make(world)
    with world.store.write() as session:
        pairs.remove(session, world.acme, pair.id)
        second = start_waiting(world.settings, lambda: link(world, token))
    assert isinstance(second.exception(), ControlError)
    with world.store.read() as session:
        assert subjects.get(session, world.acme.tenant_id, Kind.TOKEN, token.id).pair_key is None


def test_wallets_have_no_pair(world: World, token: SubjectRow) -> None:
    with world.store.write() as session:
        wallet = wallets.create(session, world.acme, world.networks, WalletCreate(ledger="main", ledger_id=DAI))
    assert (wallet.pair_key, wallet.priced_as) == (None, None)


def decide(world: World, pair: PairRow, price_id: str, decision: Decision, who: Principal | None = None) -> None:
    with world.store.write() as session:
        reviews.decide(session, who or world.acme, pair.id, price_id, decision, NOON)


@on_both
def test_decision_on_a_price_is_stored_and_may_change(world: World, token: SubjectRow) -> None:
    pair = make(world)
    before = writes(world)
    decide(world, pair, "price_a", Decision.ACCEPTED)
    decide(world, pair, "price_a", Decision.ACCEPTED)
    decide(world, pair, "price_b", Decision.REJECTED)
    assert writes(world) == before + 2
    decide(world, pair, "price_a", Decision.REJECTED)
    with world.store.read() as session:
        found = reviews.decisions(session, pair.pair_key, ["price_a", "price_b", "price_c"])
        assert found == {"price_a": Decision.REJECTED, "price_b": Decision.REJECTED}
        stored = read_snapshot(session, 0).tables["control_price_reviews"]
    assert [review.decision for review in stored] == ["Rejected", "Rejected"]
    words = [event for event in audited(world, pair.id) if event.action == "price-pair.review"]
    assert [(word.before, word.after) for word in words if word.after and word.after["priceId"] == "price_a"] == [
        ({"priceId": "price_a", "decision": None}, {"priceId": "price_a", "decision": "Accepted"}),
        ({"priceId": "price_a", "decision": "Accepted"}, {"priceId": "price_a", "decision": "Rejected"}),
    ]


def test_viewers_and_other_tenants_cannot_decide(world: World, token: SubjectRow) -> None:
    pair = make(world)
    with pytest.raises(Denied):
        decide(world, pair, "price_a", Decision.ACCEPTED, Principal(pair.tenant_id, world.acme.key_id, Role.VIEWER))
    with pytest.raises(NotFound):
        decide(world, pair, "price_a", Decision.ACCEPTED, world.other)
