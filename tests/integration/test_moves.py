"""A tenant moves between two shards: its marts stay equal, and those of other tenants too."""

import io
import json
import logging
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from embit import bip32
from litestar.testing import TestClient
from rich.console import Console

from api.app import create_app
from cli.backfill import run_backfill
from cli.cycle import CycleResult
from cli.moving import run_cancel, run_move
from cli.status import read_status
from control import moves, serving, tenants
from control.access import Principal
from control.clock import stored_now, utc_now
from control.errors import Conflict
from control.inputs import ExactNumber
from control.instants import write_instant
from control.moves import Bundle
from control.operations import Status
from control.pricing import items, links, manual_prices, pairs, sources, supported_pairs
from control.pricing.items import PricedItemCreate
from control.pricing.links import PricedAsPut
from control.pricing.manual_prices import ManualPriceCreate
from control.pricing.pairs import PairCreate
from control.pricing.price_types import PriceType
from control.pricing.sources import PriceSourceCreate
from control.pricing.supported_pairs import SupportedPairCreate
from control.serving import Served
from control.settings import Settings
from control.subjects import SubjectRow
from pipelines.defs import moves as steps
from pipelines.defs.moves import settle_moves, switch_arrived
from pipelines.raw.builds import record_publication, record_transform
from pipelines.raw.database import open_warehouse
from pipelines.tenants.versions import advance
from tests.chain.node import AnvilNode
from tests.chain.utxo_node import UtxoNode
from tests.chain.utxo_world import UtxoWorld
from tests.chain.world import Token, World
from tests.integration.conftest import MakeService
from tests.integration.dbt_runner import LATER_CYCLE, WITHOUT_VIEWS, Stores, build_over_nothing, open_marts, run_dbt
from tests.integration.harness import LocalNetwork, LocalUtxoNetwork, Service
from tests.integration.test_shards import Rows, undated
from tests.integration.transformed import content
from tests.oracles.node import instant
from tests.oracles.utxo_chain import ChainOracle
from warehouse.objects import ObjectStoreError
from warehouse.shared import open_objects

_LOG = logging.getLogger(__name__)
# Depth at which the node calls a block final, and more.
_FINAL_AFTER = 70
# Measured speeds, and numbers of versions.
_OF_RUNS = {"publication", "collection_paces", "tenant_versions"}


class Shard:
    """The pipeline of a shard: cycles and builds in this process, versions that are recorded and never opened."""

    def __init__(self, service: Service, versions: Path) -> None:
        self.service = service
        self.settings: Settings = replace(service.settings, versions=str(versions))
        self.stores: Stores = build_over_nothing(service.settings.data_dir)
        self.version = 0

    def begin_cycle(self) -> None:
        """Delete and import moving tenants, as the first step of a cycle."""
        with open_warehouse(self.stores.warehouse) as connection:
            self.service.arrived = settle_moves(self.settings, self.service.store, connection, "cycle", _LOG)

    def cycle(self, *, is_killed: bool = False, is_node_down: bool = False) -> None:
        """Run a cycle with a build and a publication; a killed one does not switch tenants."""
        self.begin_cycle()
        assert (self.service.cycle().error is not None) == is_node_down
        self.service.route_prices()
        with open_warehouse(self.stores.warehouse) as connection:
            advance(connection, self.version, 1)
        run_dbt(self.stores, *LATER_CYCLE)
        self.publish(is_killed=is_killed)

    def publish(self, *, is_killed: bool = False) -> None:
        """Record a build and a version."""
        with open_warehouse(self.stores.warehouse) as connection:
            ((batch,),) = connection.execute("select max(batch_id) from raw.batches").fetchall()
            record_transform(connection, batch, "test")
            before, self.version = self.version or None, self.version + 1
            served = Served(self.version, f"version-{self.version}", 1, "hash", "{}", utc_now())
            with self.service.store.write() as session:
                serving.publish(session, self.settings.shard, before, served)
            record_publication(connection, self.version, batch)
            if not is_killed:
                switch_arrived(self.settings, self.service.store, connection, _LOG)

    def move(self, name: str, to: int) -> None:
        run_move(self.settings, name, to, Console(quiet=True))


def of_tenant(marts: dict[str, Rows], tenant: Principal, began: str) -> dict[str, Rows]:
    """Return the rows of a tenant in the marts, without times of the test itself."""
    return {
        mart: undated([row for row in rows if tenant.tenant_id in row], began)
        for mart, rows in marts.items()
        if mart not in _OF_RUNS
    }


def enter_price(service: Service, tenant: Principal, token: SubjectRow, at: datetime) -> None:
    """Give a token a manual price in USD from an instant on."""
    with service.store.write() as session:
        for symbol in ("FUND", "USD"):
            items.create(session, tenant, PricedItemCreate(symbol=symbol, name=symbol, class_="Other"))
        desk = sources.create(session, tenant, PriceSourceCreate(name="Desk")).id
        sources.set_enabled(session, tenant, {}, desk, enabled=True)
        supported = SupportedPairCreate(priced_as="FUND", priced_in="USD", price_type="NAV")
        supported_id = supported_pairs.create(session, tenant, {}, desk, supported).id
        price = ManualPriceCreate(price=ExactNumber("2.5"), effective_from=write_instant(at))
        checked = manual_prices.check_prices([price], is_bulk=False)
        manual_prices.enter(session, tenant, {}, desk, supported_id, checked)
        pair = PairCreate(priced_as="FUND", priced_in="USD", price_type=PriceType.NAV, price_sources=[desk])
        pairs.create(session, tenant, {}, lambda _: {}, pair)
        links.link(session, tenant, token, PricedAsPut(priced_as="FUND"))


class Case:
    """Shard 0 with the tenants `mover` and `stayer`, and shard 1 with `resident`; they track the same token."""

    def __init__(self, node: AnvilNode, make_service: MakeService, folder: Path) -> None:
        self.began = str(stored_now())
        self.node = node
        self.world = World(node, wallet_count=4)
        self.gold: Token = self.world.deploy_token("GOLD", 18)
        self.tin: Token = self.world.deploy_token("TIN", 0)
        for token in (self.gold, self.tin):
            self.world.distribute(token, 1_000)
        self.world.transfer_many(10, [self.gold, self.tin], per_block=2)
        first_block = node.head() + 1
        self.live()
        opening = instant(node, first_block)
        network = LocalNetwork("local", node.url, finality_depth=3)
        first = make_service(network, name="first")
        second = make_service(
            network, name="second", LEDGERMART_SHARD="1", LEDGERMART_CONTROL_URL=first.settings.control_url
        )
        self.mover = first.tenant("mover")
        self.stayer, self.resident = first.tenant("stayer"), second.tenant("resident")
        self.subjects: list[SubjectRow] = []
        for service, tenant in ((first, self.mover), (first, self.stayer), (second, self.resident)):
            token = service.token(tenant, self.gold.address, tracked_from=opening)
            wallet = service.wallet(tenant, self.world.wallets[1], tracked_from=opening)
            # The newest price in the second shard has a later key than that of the mover.
            enter_price(service, tenant, token, opening)
            if tenant is self.mover:
                self.subjects = [token, wallet]
        self.finished = first.ask_history(self.mover, self.subjects[0], "creation")
        self.shards = (Shard(first, folder / "versions"), Shard(second, folder / "versions"))

    def live(self) -> None:
        """Mine blocks with transfers."""
        self.world.transfer_many(8, [self.gold, self.tin], per_block=2)
        self.world.mine()

    def settle(self) -> None:
        """Run cycles, history and attestations in both shards until nothing is left, with readings at several heads."""
        for _ in range(2):
            self.live()
            for shard in self.shards:
                shard.cycle()
                shard.service.history()
                shard.service.attest()
        # Days with values end, and blocks so far become final.
        self.world.mine(self.node.block_time(self.node.head()) + 3 * 86_400)
        for _ in range(_FINAL_AFTER):
            self.world.mine()
        # The first cycle makes these blocks final. The second one reads them a second time, which changes `verified` in
        # the mart coverage. Later cycles change nothing, so marts are comparable after any number of them.
        for shard in self.shards * 2:
            shard.cycle()

    def where(self) -> tuple[int, int | None]:
        """Return the shard of the mover, and that to which it is moving."""
        with self.shards[0].service.store.read() as session:
            tenant = tenants.get(session, self.mover.tenant_id)
            return tenant.shard, tenant.next_shard

    def of(self, shard: int, tenant: Principal) -> dict[str, Rows]:
        return of_tenant(content(self.shards[shard].stores), tenant, self.began)


@pytest.fixture
def case(node: AnvilNode, make_service: MakeService, tmp_path: Path) -> Case:
    return Case(node, make_service, tmp_path)


def differing(found: dict[str, Rows], expected: dict[str, Rows]) -> dict[str, tuple[Rows, Rows]]:
    """Return the marts that differ, each with its rows on either side alone."""
    return {
        mart: (
            [row for row in found[mart] if row not in expected[mart]],
            [row for row in expected[mart] if row not in found[mart]],
        )
        for mart in expected
        if found[mart] != expected[mart]
    }


@pytest.mark.release
def test_marts_of_a_moved_tenant_are_equal_and_those_of_others_too(case: Case) -> None:
    old, new = case.shards
    case.settle()
    asked = old.service.ask_attestation(case.mover, case.subjects[0], f"block:{case.node.head() - _FINAL_AFTER}")
    for _ in range(2):
        old.service.attest()
        for shard in case.shards:
            shard.cycle()
    old.service.attest()
    assert old.service.operation(case.finished).status is Status.SUCCEEDED
    before = case.of(0, case.mover)
    others = case.of(0, case.stayer), case.of(1, case.resident)
    assert before["attestations"]
    for mart in ("token_activities", "system_prices", "token_value_days", "token_activity_values"):
        assert before[mart], mart

    old.move("mover", 1)
    assert case.where() == (0, 1)
    # Until the switch, the tenant is in both shards, and served from the first.
    old.cycle()
    assert differing(case.of(0, case.mover), before) == {}
    new.cycle()
    assert case.where() == (1, None)
    assert differing(case.of(1, case.mover), before) == {}
    assert differing(case.of(1, case.resident), others[1]) == {}
    # The switch came between the first step of a cycle of the old shard and its snapshot.
    old.service.good_cycle()
    old.cycle()
    assert not any(case.of(0, case.mover).values())
    assert old.service.query("select count(*) from raw.history_requests") == [(0,)]
    assert differing(case.of(0, case.stayer), others[0]) == {}
    assert old.service.query("select count(*) from raw.view_ranges where subject_key = ?", [1]) == [(0,)]
    assert list(open_objects(old.settings).list("moves")) == []
    assert old.service.operation(asked).status is Status.SUCCEEDED

    # And back, after more blocks. A build from nothing has the same rows.
    case.live()
    new.cycle()
    before = case.of(1, case.mover)
    new.move("mover", 0)
    old.cycle()
    assert case.where() == (0, None)
    assert differing(case.of(0, case.mover), before) == {}
    run_dbt(old.stores, "run", "--full-refresh", "--exclude", *WITHOUT_VIEWS)
    assert differing(case.of(0, case.mover), before) == {}


@pytest.mark.release
def test_running_requests_wait_and_continue_in_the_new_shard(case: Case, monkeypatch: pytest.MonkeyPatch) -> None:
    old, new = case.shards
    case.settle()
    running = old.service.ask_history(case.mover, case.subjects[1], "block:1")
    attested = old.service.ask_attestation(case.mover, case.subjects[0], f"block:{case.node.head() - _FINAL_AFTER}")
    old.move("mover", 1)
    assert [row["status"] for row in read_status(old.settings)["operations"]] == ["WaitingForMove"] * 2
    printed = io.StringIO()
    monkeypatch.setattr("cli.backfill.run_cycle", lambda *_: CycleResult(0, None, None, None, is_new_version=False))
    assert run_backfill(old.settings, None, Console(file=printed)).exit_code == 0
    assert printed.getvalue() == "mover is moving to another shard; its requests wait until then\n"
    old.begin_cycle()
    old.service.good_cycle()
    old.service.history()
    old.service.attest()
    assert old.service.query("select count(*) from raw.attestation_requests") == [(0,)]
    assert old.service.query("select count(*) from raw.history_requests where status = 'Running'") == [(0,)]
    new.cycle()
    assert case.where() == (1, None)
    new.service.arrived = []
    for _ in range(2):
        new.service.history()
        new.service.attest()
        new.cycle()
    new.service.history()
    new.service.attest()
    for operation in (running, attested):
        assert new.service.operation(operation).status is Status.SUCCEEDED


@pytest.mark.release
def test_cancelled_move_leaves_nothing_in_the_new_shard(case: Case, caplog: pytest.LogCaptureFixture) -> None:
    old, new = case.shards
    case.settle()
    resident = case.of(1, case.resident)
    old.move("mover", 1)
    # The tenant is not switched while the new shard has no newer blocks.
    url = case.node.url
    new.service.point_at("local", "http://127.0.0.1:1")
    new.cycle(is_node_down=True)
    assert new.service.arrived == [case.mover.tenant_id]
    assert case.where() == (0, 1)
    assert "until shard 1 has collected local" in caplog.text
    new.service.point_at("local", url)
    run_cancel(old.settings, "mover")
    new.cycle()
    assert case.where() == (0, None)
    assert not any(case.of(1, case.mover).values())
    assert differing(case.of(1, case.resident), resident) == {}
    assert new.service.query("select status from raw.tenant_moves") == [("Left",)]
    old.service.history()
    with pytest.raises(Conflict, match="is not moving"):
        run_cancel(old.settings, "mover")


def kill_import(monkeypatch: pytest.MonkeyPatch, shard: Shard) -> None:
    """Kill a cycle within the import, before its commit."""

    def fail(*_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr("pipelines.moves.arriving._mark", fail)
        with pytest.raises(KeyboardInterrupt):
            shard.begin_cycle()


def kill_after_import(_: pytest.MonkeyPatch, shard: Shard) -> None:
    """Kill a cycle after the import, before the configuration is copied."""
    shard.begin_cycle()


def kill_before_switch(_: pytest.MonkeyPatch, shard: Shard) -> None:
    """Kill a cycle between the publication and the switch."""
    shard.cycle(is_killed=True)


def kill_after_switch(monkeypatch: pytest.MonkeyPatch, shard: Shard) -> None:
    """Kill a cycle between the switch in the control store and its record in the warehouse."""

    def fail(*_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(steps, "record_arrived", fail)
        with pytest.raises(KeyboardInterrupt):
            shard.cycle()


@pytest.mark.release
@pytest.mark.parametrize("kill", [kill_import, kill_after_import, kill_before_switch, kill_after_switch])
def test_next_cycle_completes_a_killed_move(
    case: Case, kill: Callable[[pytest.MonkeyPatch, Shard], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    old, new = case.shards
    case.settle()
    before = case.of(0, case.mover)
    old.move("mover", 1)
    kill(monkeypatch, new)
    old.cycle()
    new.cycle()
    assert case.where() == (1, None)
    assert differing(case.of(1, case.mover), before) == {}
    assert new.service.query("select status from raw.tenant_moves") == [("Arrived",)]


@pytest.mark.release
def test_move_is_repeated_after_a_kill_and_a_store_that_does_not_answer(
    case: Case, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    old, new = case.shards
    case.settle()
    before = case.of(0, case.mover)

    def fail(*_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(moves, "record", fail)
        with pytest.raises(KeyboardInterrupt):
            old.move("mover", 1)
    assert case.where() == (0, 1)
    new.begin_cycle()
    assert new.service.arrived == []
    old.move("mover", 1)
    with old.service.store.read() as session:
        (bundle,) = moves.find_arriving(session, 1)
    path = Path(str(new.settings.versions)) / bundle.object_name
    content_before = path.read_bytes()
    path.write_bytes(content_before[:-1] + b"?")
    new.begin_cycle()
    assert new.service.arrived == []
    assert "cannot move to shard 1 yet" in caplog.text
    path.write_bytes(content_before)
    new.cycle()
    assert case.where() == (1, None)
    assert differing(case.of(1, case.mover), before) == {}
    with pytest.raises(ObjectStoreError):
        open_objects(new.settings).delete(bundle.object_name)


@pytest.mark.release
def test_older_bundle_is_not_switched(case: Case) -> None:
    old, new = case.shards
    case.settle()
    old.move("mover", 1)
    new.begin_cycle()
    with old.service.store.write() as session:
        (bundle,) = moves.find_arriving(session, 1)
        moves.record(session, Bundle(bundle.tenant_id, "newer", 1, "hash"), 0, 1)
    new.service.good_cycle()
    new.publish()
    assert case.where() == (0, 1)


@pytest.mark.release
def test_wallets_of_outputs_move_with_their_older_outputs_and_keys(make_service: MakeService, tmp_path: Path) -> None:
    """Two addresses, of which the new shard tracks one from a later block on, and a wallet of keys."""
    began = str(stored_now())
    keys = bip32.HDKey.from_seed(b"move" * 8, version=bytes.fromhex("04358394"))
    # The node does not give the outputs that inputs spend. So each shard scans older ones where its coverage begins.
    with UtxoNode(txindex=False) as node:
        world = UtxoWorld(node)
        world.mature(20)
        one, other, paid = world.address(), world.address("p2pkh"), world.address("p2tr")
        of_keys = [world.take_key(keys.derive([0, number]).key) for number in range(3)]

        def live(number: int) -> None:
            """Mine blocks with payments of all wallets."""
            world.pay({paid: 10**6}, senders=[one, other, of_keys[number]])
            world.pay({one: 10**7, other: 10**7, of_keys[number]: 10**6}, senders=[world.miner])
            world.mine()
            world.mine(8)

        def now() -> datetime:
            header = node.rpc("getblockheader", node.block_hash(node.head()))
            return datetime.fromtimestamp(header["mediantime"] + 1, UTC)

        for _ in range(3):
            world.pay(dict.fromkeys((one, other, *of_keys), 10**9))
        world.mine(2)
        network = LocalUtxoNetwork("local", node.url)
        first = make_service(network, name="first")
        url = first.settings.control_url
        second = make_service(network, name="second", LEDGERMART_SHARD="1", LEDGERMART_CONTROL_URL=url)
        mover, resident = first.tenant("mover"), second.tenant("resident")
        old, new = shards = Shard(first, tmp_path / "versions"), Shard(second, tmp_path / "versions")
        for address in (one, other, f"wpkh({keys.to_public().to_base58()}/<0;1>/*)"):
            first.wallet(mover, address, tracked_from=now())
        old.cycle()
        live(0)
        second.wallet(resident, one, tracked_from=now())
        # An output that this payment spends is older than the scan of the second shard, and not there any more.
        live(1)
        for shard in shards * 3:
            shard.cycle()
        before = of_tenant(content(old.stores), mover, began)
        assert before["wallet_activities"]
        old.move("mover", 1)
        for shard in (new, new, old):
            shard.cycle()
        assert first.query("select count(*) from raw.control_tenants") == [(0,)]
        assert differing(of_tenant(content(new.stores), mover, began), before) == {}

        live(2)
        for _ in range(2):
            new.cycle()
        unspent = ChainOracle(node).scan([one, other, *of_keys])
        assert balances(new, mover) == {
            one: unspent[one],
            other: unspent[other],
            "keys": sum(unspent[key] for key in of_keys),
        }
        assert balances(new, resident) == {one: unspent[one]}


def balances(shard: Shard, tenant: Principal) -> dict[str, int]:
    """Return the newest balances of a tenant's wallets by address; that of a wallet of keys is called `keys`."""
    with open_marts(shard.stores) as marts:
        found = marts.execute(
            """
            select split_part(wallets.address, ':', 1), arg_max(changes.balance_raw, changes.block_number)::varchar
            from marts.balance_changes as changes
            inner join marts.wallets as wallets using (subject_key)
            where changes.tenant_id = ? and changes.token_address = 'native'
            group by wallets.address
            """,
            [tenant.tenant_id],
        ).fetchall()
    return {address: int(balance) for address, balance in found}


@pytest.mark.ci
@pytest.mark.proof("the command moves a tenant that an API node serves")
def test_commands_move_a_tenant_that_an_api_node_serves(
    node: AnvilNode, make_service: MakeService, empty_database: str, tmp_path: Path
) -> None:
    world = World(node, wallet_count=3)
    gold = world.deploy_token("GOLD", 18)
    first_block = node.head() + 1
    world.distribute(gold, 1_000)
    opening = instant(node, first_block)
    shared = {
        "LEDGERMART_CONTROL_URL": empty_database,
        "LEDGERMART_VERSIONS": str(tmp_path / "versions"),
    }
    network = LocalNetwork("local", node.url)
    old = make_service(network, name="old", **shared)
    new = make_service(network, name="new", LEDGERMART_SHARD="1", **shared)
    api = make_service(network, name="api", **shared)
    tenant = old.tenant("acme")
    token = old.token(tenant, gold.address, tracked_from=opening)
    enter_price(old, tenant, token, opening)

    def run(service: Service, *arguments: str) -> str:
        done = service.ledgermart(*arguments)
        assert done.returncode == 0, done.stderr
        return done.stdout

    with TestClient(create_app(api.settings)) as client:
        client.headers["Authorization"] = f"Bearer {old.bearer(tenant)}"

        def cap_table() -> Any:
            answer = client.get(f"/v1/tokens/{token.id}/cap-table")
            assert answer.status_code == 200, answer.text
            return answer.json()["data"]

        run(old, "cycle")
        before = cap_table()
        assert before
        old.ask_history(tenant, token, "creation")
        moved = run(old, "tenant", "move", "acme", "--to", "1")
        assert "are stored for shard 1" in moved
        assert "moving to" in run(old, "tenant", "list")
        assert "WaitingForMove" in run(old, "status")
        run(new, "cycle")
        assert cap_table() == before
        (listed,) = json.loads(run(new, "tenant", "list", "--json"))["data"]
        assert (listed["shard"], listed["nextShard"]) == (1, None)
        assert new.published("select count(*) > 0 from marts.system_prices") == [(True,)]
        again = old.ledgermart("tenant", "move", "acme", "--to", "2")
        refused = new.ledgermart("tenant", "move", "acme", "--to", "2")
        assert (again.returncode, refused.returncode) == (2, 2)
        assert "is in shard 1" in again.stderr
        assert "shard 0 still has rows of tenant acme" in refused.stderr
        run(old, "cycle")
        assert old.published("select count(*) from marts.tokens") == [(0,)]
        run(new, "tenant", "move", "acme", "--to", "2")
