"""The pipeline's snapshot of the configuration."""

from datetime import UTC, datetime, timedelta

from control import ledgers, subjects, tokens, wallets
from control.ledgers import LedgerPut
from control.models import Ledger, Subject
from control.snapshot import (
    MANUAL_PRICES,
    TABLES,
    ControlSnapshot,
    networks_with_open_windows,
    networks_with_subjects,
    read_snapshot,
)
from control.subjects import TokenCreate, WalletCreate
from pipelines.tables import control, prices
from pipelines.tables.sources import TABLES as RAW_TABLES
from tests.unit.control.conftest import World, on_both

NOON = datetime(2024, 5, 1, 12, tzinfo=UTC)
USDC = "0xA0b86991c6218b36c1d19D4a2e9Eb0cE3606eB48"


@on_both
def test_snapshot_contains_the_configuration(world: World) -> None:
    with world.store.write() as session:
        ledger, _ = ledgers.put(
            session, world.acme, world.networks, "ethereum", LedgerPut(name="main", display_name="Main"), now=NOON
        )
        token = tokens.create(
            session,
            world.acme,
            world.networks,
            TokenCreate(ledger="main", symbol="USDC", ledger_id=USDC, external_id="x", name="n"),
            now=NOON,
        )
        wallet = wallets.create(
            session, world.acme, world.networks, WalletCreate(ledger="main", ledger_id=USDC), now=NOON
        )
        subjects.set_tracking(session, world.acme, token, True, NOON)
        subjects.set_tracking(session, world.acme, token, False, NOON + timedelta(seconds=0.5))  # empty: left out
        subjects.set_tracking(session, world.acme, token, True, NOON + timedelta(seconds=1))
        subjects.set_tracking(session, world.acme, token, False, NOON + timedelta(seconds=2))
        subjects.set_tracking(session, world.acme, wallet, True, NOON + timedelta(seconds=3))
    with world.store.read() as session:
        snapshot = read_snapshot(session, 0)
    tenant_id = world.acme.tenant_id
    common = (tenant_id, ledger.id, "ethereum", USDC.lower())
    assert snapshot.revision == 10
    assert _described(snapshot, "control_tenants") == [(tenant_id, "acme", 9), (world.other.tenant_id, "other", 1)]
    assert _described(snapshot, "control_ledgers") == [(ledger.id, tenant_id, "ethereum", "main", "Main")]
    assert _described(snapshot, "control_subjects") == [
        (token.subject_key, token.id, "token", *common, "USDC", "n", "x", None, NOON, None, None),
        (wallet.subject_key, wallet.id, "wallet", *common, None, None, None, None, NOON, None, None),
    ]
    assert _described(snapshot, "control_windows") == [
        (2, token.subject_key, NOON + timedelta(seconds=1), NOON + timedelta(seconds=2)),
        (3, wallet.subject_key, NOON + timedelta(seconds=3), None),
    ]
    assert snapshot.tables["control_history_requests"] == []


def _described(snapshot: ControlSnapshot, table: str) -> list[tuple[object, ...]]:
    """The rows of a table as the pipeline copies them."""
    columns = RAW_TABLES[table].schema()
    return [tuple(getattr(row, name) for name in columns) for row in snapshot.tables[table]]


def test_queries_have_every_described_column() -> None:
    queries = TABLES | {"control_manual_prices": MANUAL_PRICES}
    described = {table.name for source in (control.SOURCE, prices.SOURCE) for table in source.tables}
    # The sources of a tenant depend on definitions, which are not in the store.
    assert queries.keys() == {name for name in described if name.startswith("control_")} - {"control_price_sources"}
    for name, query in queries.items():
        columns = [column.key for column in query.selected_columns]
        assert len(columns) == len(set(columns)), name
        assert set(RAW_TABLES[name].schema()) <= set(columns), name


@on_both
def test_snapshot_omits_removed_objects(world: World) -> None:
    with world.store.write() as session:
        for name in ("kept", "removed"):
            ledgers.put(session, world.acme, world.networks, "ethereum", LedgerPut(name=name))
            for kind, number in (("kept", 1), ("removed", 2)):
                token = tokens.create(
                    session,
                    world.acme,
                    world.networks,
                    TokenCreate(ledger=name, symbol="T", ledger_id=f"0x{number:040x}", name=f"{name} {kind}"),
                )
                subjects.set_tracking(session, world.acme, token, True, NOON)
                if kind == "removed":
                    session.get_one(Subject, token.subject_key).removed_at = NOON
        session.get_one(Ledger, ledgers.get(session, world.acme.tenant_id, "removed").id).removed_at = NOON
    with world.store.read() as session:
        snapshot = read_snapshot(session, 0)
    assert [ledger.ledger_name for ledger in snapshot.tables["control_ledgers"]] == ["kept"]
    (subject,) = snapshot.tables["control_subjects"]
    assert subject.name == "kept kept"
    assert [window.subject_key for window in snapshot.tables["control_windows"]] == [subject.subject_key]


@on_both
def test_networks_with_work(world: World) -> None:
    made = {}
    with world.store.write() as session:
        for network in ("ethereum", "polygon", "base", "gnosis"):
            ledgers.put(session, world.acme, world.networks, network, LedgerPut(name=network))
            if network != "gnosis":
                made[network] = wallets.create(
                    session, world.acme, world.networks, WalletCreate(ledger=network, ledger_id=USDC)
                )
        subjects.set_tracking(session, world.acme, made["polygon"], True, NOON)
        subjects.set_tracking(session, world.acme, made["base"], True, NOON)
        subjects.set_tracking(session, world.acme, made["base"], False, NOON + timedelta(hours=1))
    with world.store.read() as session:
        assert networks_with_subjects(session, 0) == {"ethereum", "polygon", "base"}
        assert networks_with_open_windows(session, 0) == {"polygon"}
    with world.store.write() as session:
        session.get_one(Subject, made["polygon"].subject_key).removed_at = NOON
    with world.store.read() as session:
        assert networks_with_subjects(session, 0) == {"ethereum", "base"}
        assert networks_with_open_windows(session, 0) == set()
