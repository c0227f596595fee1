"""The pipeline's snapshot of the configuration."""

from datetime import UTC, datetime, timedelta

from control import ledgers, subjects, tokens, wallets
from control.models import Ledger, Subject
from control.snapshot import (
    ControlSnapshot,
    SnapshotLedger,
    SnapshotSubject,
    SnapshotTenant,
    SnapshotWindow,
    networks_with_open_windows,
    networks_with_subjects,
    read_snapshot,
)
from tests.unit.control.conftest import World, on_both

NOON = datetime(2024, 5, 1, 12, tzinfo=UTC)
USDC = "0xA0b86991c6218b36c1d19D4a2e9Eb0cE3606eB48"


@on_both
def test_snapshot_contains_the_configuration(world: World) -> None:
    with world.store.write() as session:
        ledger, _ = ledgers.put(session, world.acme, world.networks, "ethereum", "main", "Main", now=NOON)
        token = tokens.create(
            session, world.acme, ledger="main", symbol="USDC", ledger_id=USDC, external_id="x", name="n", now=NOON
        )
        wallet = wallets.create(session, world.acme, ledger="main", ledger_id=USDC, now=NOON)
        subjects.set_tracking(session, world.acme, token, True, NOON)
        subjects.set_tracking(session, world.acme, token, False, NOON + timedelta(seconds=0.5))  # empty: left out
        subjects.set_tracking(session, world.acme, token, True, NOON + timedelta(seconds=1))
        subjects.set_tracking(session, world.acme, token, False, NOON + timedelta(seconds=2))
        subjects.set_tracking(session, world.acme, wallet, True, NOON + timedelta(seconds=3))
    with world.store.read() as session:
        snapshot = read_snapshot(session)
    tenant_id = world.acme.tenant_id
    common = (tenant_id, ledger.id, "ethereum", USDC.lower())
    assert snapshot == ControlSnapshot(
        revision=10,
        tenants=(SnapshotTenant(tenant_id, "acme", 9), SnapshotTenant(world.other.tenant_id, "other", 1)),
        ledgers=(SnapshotLedger(ledger.id, tenant_id, "ethereum", "main", "Main"),),
        subjects=(
            SnapshotSubject(token.subject_key, token.id, "token", *common, "USDC", "n", "x", None, NOON),
            SnapshotSubject(wallet.subject_key, wallet.id, "wallet", *common, None, None, None, None, NOON),
        ),
        windows=(
            SnapshotWindow(2, token.subject_key, NOON + timedelta(seconds=1), NOON + timedelta(seconds=2)),
            SnapshotWindow(3, wallet.subject_key, NOON + timedelta(seconds=3), None),
        ),
        history_requests=(),
    )


@on_both
def test_snapshot_omits_removed_objects(world: World) -> None:
    with world.store.write() as session:
        for name in ("kept", "removed"):
            ledgers.put(session, world.acme, world.networks, "ethereum", name)
            for kind, number in (("kept", 1), ("removed", 2)):
                token = tokens.create(
                    session, world.acme, ledger=name, symbol="T", ledger_id=f"0x{number:040x}", name=f"{name} {kind}"
                )
                subjects.set_tracking(session, world.acme, token, True, NOON)
                if kind == "removed":
                    session.get_one(Subject, token.subject_key).removed_at = NOON
        session.get_one(Ledger, ledgers.get(session, world.acme.tenant_id, "removed").id).removed_at = NOON
    with world.store.read() as session:
        snapshot = read_snapshot(session)
    assert [ledger.ledger_name for ledger in snapshot.ledgers] == ["kept"]
    assert [subject.name for subject in snapshot.subjects] == ["kept kept"]
    assert [window.subject_key for window in snapshot.windows] == [snapshot.subjects[0].subject_key]


@on_both
def test_networks_with_work(world: World) -> None:
    made = {}
    with world.store.write() as session:
        for network in ("ethereum", "polygon", "base", "gnosis"):
            ledgers.put(session, world.acme, world.networks, network, network)
            if network != "gnosis":
                made[network] = wallets.create(session, world.acme, ledger=network, ledger_id=USDC)
        subjects.set_tracking(session, world.acme, made["polygon"], True, NOON)
        subjects.set_tracking(session, world.acme, made["base"], True, NOON)
        subjects.set_tracking(session, world.acme, made["base"], False, NOON + timedelta(hours=1))
    with world.store.read() as session:
        assert networks_with_subjects(session) == {"ethereum", "polygon", "base"}
        assert networks_with_open_windows(session) == {"polygon"}
    with world.store.write() as session:
        session.get_one(Subject, made["polygon"].subject_key).removed_at = NOON
    with world.store.read() as session:
        assert networks_with_subjects(session) == {"ethereum", "base"}
        assert networks_with_open_windows(session) == set()
