"""Shards: the pipeline of a shard reads and reports on its own tenants alone."""

from datetime import UTC, datetime
from typing import Any

import pytest
from sqlalchemy.orm import Session

from control import access, collected, ledgers, operations, tenants
from control.access import Principal
from control.errors import Invalid
from control.ledgers import LedgerPut
from control.models import (
    ManualPrice,
    ManualSource,
    MappingSymbol,
    Operation,
    PairSource,
    PricedItem,
    PricePair,
    PriceReview,
    SourceSwitch,
    Subject,
    SupportedPair,
    TrackingWindow,
)
from control.operations import OperationKind, Report, Status
from control.settings import HIGHEST_SHARD
from control.snapshot import (
    TABLES,
    networks_with_open_windows,
    networks_with_subjects,
    read_history_snapshot,
    read_manual_prices,
    read_snapshot,
)
from tests.unit.control.conftest import World, on_both

NOON = datetime(2026, 5, 1, 12, tzinfo=UTC)


@pytest.fixture
def sharded(world: World) -> tuple[Principal, Principal]:
    """Admins of a tenant in shard 0 and of one in shard 1; the two have the same objects on different networks."""
    with world.store.write() as session:
        other = tenants.create(session, "in shard 1", 1)
        _, bearer = access.create_key(session, other.id, access.Role.ADMIN)
        first, second = world.acme, access.authenticate(session, bearer)
        _fill(session, world, first, "ethereum")
        _fill(session, world, second, "polygon")
    return first, second


def _fill(session: Session, world: World, owner: Principal, network: str) -> None:
    """Give a tenant one row in every table of the snapshot, but two items."""
    ledger, _ = ledgers.put(session, owner, world.networks, network, LedgerPut(name="main"))
    made = {"tenant_id": owner.tenant_id, "created_at": NOON}
    changed = {**made, "updated_at": NOON}

    def store(row: Any) -> Any:
        session.add(row)
        session.flush()
        return row

    def name(prefix: str) -> str:
        return f"{prefix}_{owner.tenant_id}"

    token = store(
        Subject(
            **changed,
            id=name("tok"),
            kind="token",
            ledger_id=ledger.id,
            address=f"0x{1:040x}",
            symbol="T",
            search_text="t",
            metadata_requested_at=NOON,
        )
    )
    store(TrackingWindow(subject_key=token.subject_key, opened_at=NOON, opened_by=owner.key_id))
    gold, euro = (
        store(PricedItem(**changed, id=name(symbol), symbol=symbol, name=symbol, item_class="Other"))
        for symbol in ("GLD", "EUR")
    )
    keys = {"priced_as_key": gold.item_key, "priced_in_key": euro.item_key}
    store(MappingSymbol(item_key=gold.item_key, source_id="src_kraken", symbol="XAU"))
    source = store(ManualSource(**changed, id=name("src"), name="Desk"))
    store(SourceSwitch(tenant_id=owner.tenant_id, source_id=source.id, is_enabled=True, changed_at=NOON))
    pair = store(PricePair(**changed, **keys, id=name("pair"), price_type="NAV", allow_inverse=False))
    store(PairSource(pair_key=pair.pair_key, position=0, source_id=source.id))
    store(
        PriceReview(pair_key=pair.pair_key, price_id="p", decision="Accepted", decided_by=owner.key_id, decided_at=NOON)
    )
    supported = store(SupportedPair(**made, **keys, id=name("sup"), source_key=source.source_key, price_type="NAV"))
    store(
        ManualPrice(
            id=name("price"),
            supported_pair_key=supported.supported_pair_key,
            price="1",
            effective_from=NOON,
            revision=1,
            created_by=owner.key_id,
            created_at=NOON,
        )
    )
    for kind, owned in (
        (OperationKind.HISTORY, {"subject_key": token.subject_key}),
        (OperationKind.ATTESTATION, {"subject_key": token.subject_key}),
        (OperationKind.PRICE_DISCOVERY, {"pair_key": pair.pair_key}),
    ):
        store(
            Operation(
                **made,
                **owned,
                id=name(kind.value[:3]),
                kind=kind,
                parameters={},
                status=Status.PENDING,
                progress_done=0,
                created_by=owner.key_id,
                reported_at=NOON,
            )
        )


@on_both
def test_snapshot_of_a_shard_has_the_rows_of_its_tenants_alone(
    world: World, sharded: tuple[Principal, Principal]
) -> None:
    with world.store.read() as session:
        snapshots = [read_snapshot(session, shard) for shard in range(3)]
        prices = [read_manual_prices(session, shard, 0) for shard in range(3)]
    for table in TABLES:
        if table == "control_revisions":
            assert len({snapshot.revision for snapshot in snapshots}) == 1
            continue
        first, second, none = (snapshot.tables[table] for snapshot in snapshots)
        # Shard 0 has one more tenant, without objects.
        others = {"control_tenants": (2, 1), "control_held_tenants": (0, 0), "control_priced_items": (2, 2)}
        expected = others.get(table, (1, 1))
        assert (len(first), len(second), len(none)) == (*expected, 0), table
        assert not set(first) & set(second), table
        if second and hasattr(second[0], "tenant_id"):
            assert {row.tenant_id for row in second} == {sharded[1].tenant_id}, table
    for shard, owner in enumerate(sharded):
        snapshot = snapshots[shard]
        assert [row.tenant_id for row in snapshot.manual_sources] == [owner.tenant_id]
        assert [row.tenant_id for row in snapshot.source_switches] == [owner.tenant_id]
        assert [row.price_id for row in prices[shard]] == [f"price_{owner.tenant_id}"]
    assert (snapshots[2].manual_sources, snapshots[2].source_switches, prices[2]) == ([], [], [])


@on_both
def test_history_snapshot_has_requests_and_subjects_of_all_shards(
    world: World, sharded: tuple[Principal, Principal]
) -> None:
    with world.store.read() as session:
        found = read_history_snapshot(session)
        expected = [read_snapshot(session, shard) for shard in range(2)]
    assert found.tables.keys() == TABLES.keys()
    for table, rows in found.tables.items():
        if table in ("control_subjects", "control_history_requests"):
            assert set(rows) == {row for snapshot in expected for row in snapshot.tables[table]}
            assert len(rows) > 1
        else:
            assert not rows, table


@on_both
def test_networks_and_counts_are_those_of_the_shard(world: World, sharded: tuple[Principal, Principal]) -> None:
    with world.store.write() as session:
        for operation in operations.unfinished(session, 1):
            operations.report(session, 1, operation.operation_key, Report(status=Status.SUCCEEDED))
    with world.store.read() as session:
        for read in (networks_with_subjects, networks_with_open_windows):
            assert [read(session, shard) for shard in range(3)] == [{"ethereum"}, {"polygon"}, set()]
        assert [collected.has_finished_operations(session, shard) for shard in range(3)] == [False, True, False]
        assert [collected.history_by_network(session, shard) for shard in range(3)] == [{}, {"polygon": 1}, {}]
        assert [collected.describe_collected(session, shard) for shard in range(3)] == [
            "1 token or wallet, 1 price pair",
            "1 token or wallet, 1 price pair, 1 finished history request, 1 finished attestation, 1 finished price "
            "discovery",
            "",
        ]


@on_both
def test_pipeline_of_a_shard_reports_on_no_operation_of_another(
    world: World, sharded: tuple[Principal, Principal]
) -> None:
    with world.store.read() as session:
        found = [operations.unfinished(session, shard) for shard in range(3)]
    assert [{row.tenant_id for row in rows} for rows in found] == [{one.tenant_id} for one in sharded] + [set()]
    with world.store.write() as session:
        for row in found[1]:
            assert not operations.report(session, 0, row.operation_key, Report(status=Status.FAILED, error="no"))
    with world.store.read() as session:
        assert operations.unfinished(session, 1) == found[1]


@on_both
def test_tenant_is_created_in_a_shard_that_exists(world: World) -> None:
    with world.store.write() as session:
        tenants.create(session, "last", HIGHEST_SHARD)
    for shard in (-1, HIGHEST_SHARD + 1):
        with pytest.raises(Invalid) as found, world.store.write() as session:
            tenants.create(session, "none", shard)
        assert found.value.field == "shard"
    with world.store.read() as session:
        assert [(row.name, row.shard) for row in tenants.list_all(session)] == [
            ("acme", 0),
            ("last", HIGHEST_SHARD),
            ("other", 0),
        ]
