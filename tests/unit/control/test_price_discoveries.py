"""Price discoveries requested and cancelled by tenants."""

from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any

import pytest

from control import operations, revision
from control.access import Principal, Role
from control.errors import Conflict, Denied, Invalid, NotFound
from control.operations import OperationKind, OperationRow, Report, Status
from control.pricing import discovery, pairs, sources, supported_pairs
from control.pricing.discovery import PriceDiscoveryRequest
from control.pricing.pairs import PairRow
from control.pricing.supported_pairs import SupportedPairCreate
from control.snapshot import read_snapshot
from tests.unit.control.conftest import World, on_both
from tests.unit.control.pricing import DEFINITIONS, NOON, add_items, add_manual, make


@pytest.fixture
def pair(world: World) -> PairRow:
    add_items(world, world.acme, "BTC", "USD")
    return make(world)


def ask(world: World, pair: PairRow, who: Principal | None = None, **values: Any) -> OperationRow:
    given = {"start": "2026-01-01", "end": "2026-02-01", "window_size": "day", "now": NOON} | values
    now, start, end = (given.pop(name) for name in ("now", "start", "end"))
    asked = PriceDiscoveryRequest(from_=start, to=end, **given)
    with world.store.write() as session:
        return discovery.request(session, who or world.acme, DEFINITIONS, pair.id, asked, now)


def read(world: World, pair: PairRow, operation_id: str) -> OperationRow:
    with world.store.read() as session:
        return operations.get(session, pair.tenant_id, operation_id, OperationKind.PRICE_DISCOVERY, pair.pair_key)


def writes(world: World) -> int:
    with world.store.read() as session:
        return revision.read_revision(session)


@on_both
def test_a_request_is_stored_canonical(world: World, pair: PairRow) -> None:
    before = writes(world)
    made = ask(world, pair, start="2026-01-01T01:00:00+01:00", multiplier=Decimal("0.50"))
    assert writes(world) == before + 1
    assert (made.kind, made.pair_key, made.subject_key) == (OperationKind.PRICE_DISCOVERY, pair.pair_key, None)
    assert made.parameters == {
        "from": "2026-01-01T00:00:00Z",
        "to": "2026-02-01T00:00:00Z",
        "windowSize": "day",
        "multiplier": "0.5",
    }
    assert (made.status, made.note, made.result, made.created_at) == (Status.PENDING, None, None, NOON)
    assert read(world, pair, made.id) == made
    with world.store.read() as session:
        (seen,) = read_snapshot(session, 0).tables["control_price_discoveries"]
        assert [operation.id for operation in operations.unfinished(session, 0)] == [made.id]
    assert (seen.operation_key, seen.pair_key, seen.multiplier) == (made.operation_key, pair.pair_key, "0.5")


def test_future_part_of_a_range_is_cut_and_noted(world: World, pair: PairRow) -> None:
    moment = NOON + timedelta(microseconds=5)
    made = ask(world, pair, end="2026-06-01", now=moment)
    assert made.to_text == "2026-05-01T12:00:00Z"
    assert made.note == "to was 2026-06-01T00:00:00Z; the range was cut at the time of the request"
    assert ask(world, pair, end="2026-05-01T12:00:00Z", now=moment).note is None
    with pytest.raises(Invalid) as caught:
        ask(world, pair, start="2026-05-01T12:00:00Z", end="2026-06-01", now=moment)
    assert caught.value.field == "from"


@pytest.mark.parametrize(
    ("values", "field"),
    [
        ({"start": "1969-12-31"}, "from"),
        ({"start": "block:5"}, "from"),
        ({"end": "2026-01-01"}, "to"),
        ({"end": "now"}, "to"),
        ({"window_size": "Day"}, "windowSize"),
        ({"window_size": "month", "multiplier": Decimal("0.5")}, "multiplier"),
    ],
)
def test_a_wrong_request_is_named_and_stores_nothing(
    world: World, pair: PairRow, values: dict[str, Any], field: str
) -> None:
    before = writes(world)
    with pytest.raises(Invalid) as caught:
        ask(world, pair, **values)
    assert caught.value.field == field
    assert writes(world) == before


def test_the_number_of_windows_is_bounded(world: World, pair: PairRow) -> None:
    end = datetime(2026, 1, 1, tzinfo=UTC) + timedelta(minutes=100_000)
    assert ask(world, pair, end=end.isoformat(), window_size="minute").id
    with pytest.raises(Invalid) as caught:
        ask(world, pair, end=(end + timedelta(seconds=1)).isoformat(), window_size="minute")
    assert (caught.value.field, caught.value.code) == ("windowSize", "too-many-windows")
    assert "100001 windows" in caught.value.detail


def test_at_least_one_source_must_have_history(world: World, pair: PairRow) -> None:
    manual = add_manual(world)
    with world.store.write() as session:
        supported_pairs.create(
            session,
            world.acme,
            DEFINITIONS,
            manual,
            SupportedPairCreate(priced_as="BTC", priced_in="USD", price_type="Bid"),
        )
    bid = make(world, price_type="Bid", price_sources=["src_kraken", "src_gemini", manual])
    with pytest.raises(Invalid) as caught:
        ask(world, bid)
    assert (caught.value.field, caught.value.code) == ("from", "no-history")
    assert "Kraken has a history only of Trade; Gemini has a history of no price type" in caught.value.detail
    assert "Ours is manual" in caught.value.detail
    with world.store.write() as session:
        sources.set_enabled(session, world.acme, DEFINITIONS, "src_kraken", enabled=False)
    with pytest.raises(Invalid) as caught:
        ask(world, pair)
    assert "Kraken is disabled" in caught.value.detail


def test_only_operators_of_the_tenant_request_and_cancel(world: World, pair: PairRow) -> None:
    viewer, operator = (Principal(pair.tenant_id, world.acme.key_id, role) for role in (Role.VIEWER, Role.OPERATOR))
    with pytest.raises(Denied):
        ask(world, pair, viewer)
    with pytest.raises(NotFound):
        ask(world, pair, world.other)
    made = ask(world, pair, operator)
    with pytest.raises(Denied), world.store.write() as session:
        operations.cancel(session, viewer, made)
    with pytest.raises(NotFound), world.store.write() as session:
        operations.cancel(session, world.other, made)
    with world.store.write() as session:
        cancelled = operations.cancel(session, operator, made, NOON)
    assert (cancelled.status, cancelled.cancel_requested_at) == (Status.PENDING, NOON)
    with world.store.read() as session:
        (seen,) = read_snapshot(session, 0).tables["control_price_discoveries"]
        for tenant_id, key in ((world.other.tenant_id, pair.pair_key), (pair.tenant_id, pair.pair_key + 1)):
            with pytest.raises(NotFound):
                operations.get(session, tenant_id, made.id, OperationKind.PRICE_DISCOVERY, key)
        with pytest.raises(NotFound):
            operations.get(session, pair.tenant_id, made.id, OperationKind.HISTORY, pair.pair_key)
    assert seen.is_cancelled


@on_both
def test_the_pipelines_report_is_stored(world: World, pair: PairRow) -> None:
    made = ask(world, pair)
    missing = [{"from": "2026-01-03T00:00:00Z", "to": "2026-01-05T00:00:00Z", "priceSource": "src_kraken"}]
    with world.store.write() as session:
        result = {"pricesStored": 29, "missing": missing}
        assert operations.report(
            session, 0, made.operation_key, Report(status=Status.SUCCEEDED, result=result, progress_total=31)
        )
    done = read(world, pair, made.id)
    assert (done.status, done.result, done.progress_total) == (Status.SUCCEEDED, result, 31)
    with pytest.raises(Conflict), world.store.write() as session:
        operations.cancel(session, world.acme, done)


@on_both
def test_removal_of_a_pair_cancels_its_discoveries_and_refuses_new_ones(world: World, pair: PairRow) -> None:
    made = ask(world, pair)
    with world.store.write() as session:
        pairs.remove(session, world.acme, pair.id, NOON)
    ended = read(world, pair, made.id)
    assert (ended.status, ended.finished_at) == (Status.CANCELLED, NOON)
    with pytest.raises(NotFound):
        ask(world, pair)
    with world.store.read() as session:
        assert read_snapshot(session, 0).tables["control_price_discoveries"] == []
