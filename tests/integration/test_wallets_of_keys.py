"""A wallet of keys from a real node to the marts. Its addresses come into use one by one."""

import itertools
from collections.abc import Iterator
from datetime import UTC, datetime

import pytest
from embit import bip32

from control import subjects
from control.networks.addresses import KEYS
from control.networks.descriptors import WalletKeys
from pipelines.chain.segments import NetworkReport
from pipelines.extract.budget import Budget
from pipelines.raw.builds import record_transform
from pipelines.raw.database import open_warehouse
from tests.chain.utxo_node import UtxoNode
from tests.chain.utxo_world import UtxoWorld
from tests.integration.conftest import MakeService
from tests.integration.dbt_runner import LATER_CYCLE, build_over_nothing, open_marts, run_dbt
from tests.integration.harness import LocalUtxoNetwork, Service
from tests.oracles.utxo_chain import ChainOracle
from tests.waiting import Naps

COIN = 10**8


@pytest.fixture
def node() -> Iterator[UtxoNode]:
    with UtxoNode() as running:
        yield running


class KeyWallet:
    """A wallet with two branches, whose keys the world can spend."""

    def __init__(self, world: UtxoWorld) -> None:
        self._world = world
        self._root = bip32.HDKey.from_seed(b"wallet of keys" * 3, version=bytes.fromhex("04358394"))
        self.key = self._root.to_public().to_base58()
        self.descriptor = f"wpkh({self.key}/<0;1>/*)"
        self.used: list[str] = []

    def address(self, index: int, branch: int = 0) -> str:
        """Take an address into use."""
        address = self._world.take_key(self._root.derive([branch, index]).key)
        if address not in self.used:
            self.used.append(address)
        return address


def time(node: UtxoNode, number: int) -> datetime:
    """Return the median time past of a block."""
    return datetime.fromtimestamp(node.rpc("getblockheader", node.block_hash(number))["mediantime"], UTC)


def check_rows(service: Service, oracle: ChainOracle, wallet: KeyWallet) -> None:
    """Assert that each transaction of the wallet's covered blocks is one row, net of all its own addresses."""
    ((first, last),) = service.query(
        f"select min(from_block), max(to_block) from raw.coverage where address like '{KEYS}%'"
    )
    expected = {}
    for one in oracle.transactions():
        change = sum(one.net.get(address, 0) for address in wallet.used)
        if first <= one.height <= last and not one.net.keys().isdisjoint(wallet.used):
            payers = {output.address for output in one.inputs}
            expected[one.height, one.txid] = (change, one.fee if payers and payers <= set(wallet.used) else None)
    rows = service.query(
        f"""
        select block_number, transaction_hash, (received_raw - spent_raw)::varchar, fee_raw::varchar
        from raw.utxo_transactions where address like '{KEYS}%'
        """
    )
    found = {(number, txid): (int(net), None if fee is None else int(fee)) for number, txid, net, fee in rows}
    assert len(rows) == len(found)
    assert found == expected


@pytest.mark.ci
@pytest.mark.proof("addresses of a wallet of keys come into use one by one")
def test_addresses_come_into_use_one_by_one_and_the_marts_show_no_key(
    node: UtxoNode, make_service: MakeService
) -> None:
    world = UtxoWorld(node)
    world.mature(40)
    wallet = KeyWallet(world)
    world.pay([(wallet.address(0), COIN), (wallet.address(0, 1), COIN)])
    opened = world.mine(3)
    service = make_service(LocalUtxoNetwork("local", node.url))
    stores = build_over_nothing(service.settings.data_dir)
    tenant = service.tenant()
    subject = service.wallet(tenant, wallet.descriptor, tracked_from=time(node, opened))
    # Another tenant tracks one of its addresses by itself.
    other = service.tenant("other")
    service.wallet(other, wallet.address(0), tracked_from=time(node, opened))
    world.mine(12)

    def build() -> None:
        service.good_cycle()
        run_dbt(stores, *LATER_CYCLE)
        with open_warehouse(stores.warehouse) as connection:
            ((batch_id,),) = connection.execute("select max(batch_id) from raw.batches").fetchall()
            record_transform(connection, batch_id, "tests")

    def check() -> None:
        oracle = ChainOracle(node)
        check_rows(service, oracle, wallet)
        for holder, number, quantity in service.query(
            "select holder_address, block_number, quantity_raw::varchar from raw.balance_observations"
        ):
            held = wallet.used if holder.startswith(KEYS) else [holder]
            assert int(quantity) == sum(oracle.balance(one, number) for one in held), (holder, number)
        with open_marts(stores) as connection:
            ((balance,),) = connection.execute(
                "select quantity_raw::varchar from marts.wallet_positions where subject_key = ?", [subject.subject_key]
            ).fetchall()
            adjusted = connection.execute(
                "select * from marts.wallet_activities where transaction_hash is null"
            ).fetchall()
        assert adjusted == []
        assert int(balance) == sum(oracle.scan(wallet.used).values())

    build()
    # Each payment goes to the next address, and its change to the next one of the other branch.
    for index in range(1, 6):
        world.pay({wallet.address(index): COIN + index})
        world.mine()
        world.pay(
            {world.address(): 10**6}, senders=[wallet.address(index - 1)], change=wallet.address(index, 1), fee=900
        )
        world.mine()
        service.good_cycle()
    # To itself alone: only the fee leaves the wallet.
    kept = world.pay({wallet.address(6): 10**6}, senders=[wallet.address(5)], change=wallet.address(6, 1), fee=700)
    world.mine()
    build()
    check()
    with open_marts(stores) as connection:
        assert connection.execute(
            """
            select activity_type, amount_raw::varchar, fee_raw::varchar, counterparty_count
            from marts.wallet_activities where transaction_hash = ? and subject_key = ?
            """,
            [kept, subject.subject_key],
        ).fetchall() == [("Self", "0", "700", 0)]
    # An output behind the range is not collected yet; another one is within the gap of its end.
    world.pay({wallet.address(1_010): COIN})
    world.mine()
    service.good_cycle()
    world.pay({wallet.address(985): COIN})
    world.mine()
    service.good_cycle()
    # The next cycle collects all blocks again, with the addresses up to 1,999.
    service.good_cycle()
    check_rows(service, ChainOracle(node), wallet)
    ranges = service.query("select distinct scanned_to from raw.utxo_key_ranges order by all")
    assert ranges == [(999,), (1_999,)] or ranges == [(1_999,)]
    # A reorganisation takes an address out of use.
    coins = world.coins(wallet.address(985))
    world.pay({wallet.address(7): 10**5}, inputs=coins, change=wallet.address(7, 1))
    world.mine(2)
    service.good_cycle()
    world.reorganise(2, 3, lambda: world.pay({world.address(): 10**5}, inputs=coins, change=wallet.address(8, 1)))
    build()
    check()
    # The marts show shortened keys alone.
    assert wallet.key.encode() not in stores.marts.read_bytes()
    with open_marts(stores) as connection:
        tables = connection.execute("select table_name from duckdb_tables() where schema_name = 'marts'").fetchall()
        for (name,) in tables:
            assert wallet.key not in str(connection.execute(f"select * from marts.{name}").fetchall()), name


class Traffic:
    """A wallet of keys and a single address of another tenant, both with payments, and a service that tracks them."""

    def __init__(self, node: UtxoNode, make_service: MakeService) -> None:
        self.node, self.world = node, UtxoWorld(node)
        self.world.mature(20)
        self.wallet = KeyWallet(self.world)
        self.single = self.world.address()
        self.opened = self.world.mine()
        self.service = make_service(LocalUtxoNetwork("local", node.url))
        self.tenant = self.service.tenant()
        since = time(node, self.opened)
        self.subject = self.service.wallet(self.tenant, self.wallet.descriptor, tracked_from=since)
        self.service.wallet(self.service.tenant("other"), self.single, tracked_from=since)
        self.move(0)

    def move(self, index: int) -> None:
        """Pay to both, in a block."""
        self.world.pay({self.wallet.address(index): COIN, self.wallet.address(index, 1): 7, self.single: 9})
        self.world.mine()

    def cycle(self, seconds: float = 1e9) -> NetworkReport:
        """Run a cycle with a budget; its clock advances by a second at each reading."""
        # The client's own clock begins there too.
        ticks = itertools.count(int(Naps().now))
        used = self.service.node(budget=Budget(seconds, 1_000, lambda: float(next(ticks))))
        try:
            return self.service.cycle(node=used)
        finally:
            used.close()

    def covered_to(self) -> dict[bool, int]:
        """Return the newest covered block, of the wallet of keys (True) and of the single address."""
        rows = self.service.query(
            f"""
            select address like '{KEYS}%' as is_of_keys, max(to_block)
            from raw.coverage where subject_kind = 'native' group by is_of_keys
            """
        )
        return dict(rows)

    def check(self) -> None:
        """Assert that the wallet of keys is collected from its opening to the head, and read exactly."""
        oracle = ChainOracle(self.node)
        check_rows(self.service, oracle, self.wallet)
        firsts = self.service.query(f"select min(from_block) from raw.coverage where address like '{KEYS}%'")
        assert (firsts, self.covered_to()) == ([(self.opened,)], dict.fromkeys((True, False), self.node.head()))
        readings = self.service.query(
            f"""
            select block_number, quantity_raw::varchar from raw.balance_observations
            where holder_address like '{KEYS}%'
            """
        )
        assert readings
        for number, quantity in readings:
            assert int(quantity) == sum(oracle.balance(one, number) for one in self.wallet.used)


@pytest.mark.ci
@pytest.mark.proof("deriving the addresses of a wallet of keys does not hold up the network")
def test_a_new_wallet_of_keys_waits_for_its_scripts_alone_and_they_are_derived_once(
    node: UtxoNode, make_service: MakeService, monkeypatch: pytest.MonkeyPatch
) -> None:
    traffic = Traffic(node, make_service)
    service, derived = traffic.service, "select count(*) from raw.utxo_scripts"
    asked = service.ask_history(traffic.tenant, traffic.subject, "block:1", native="full")
    # Scripts of 500 indices take a tenth of the cycle's time.
    assert traffic.cycle(5_000).error is None
    ((first,),) = service.query(derived)
    assert 900 <= first <= 1_000
    assert traffic.covered_to() == {False: node.head()}
    holders = service.query("select distinct holder_address from raw.balance_observations")
    assert holders == [(traffic.single,)]
    assert [report.error for report in service.history()] == [None]
    assert service.query("select status, from_block from raw.history_requests") == [("Pending", None)]
    waiting = service.operation(asked)
    assert waiting.error is not None
    assert "the addresses of the wallet are derived first" in waiting.error
    traffic.move(1)
    assert traffic.cycle(5_000).error is None
    traffic.move(2)
    assert traffic.cycle(5_000).error is None
    assert service.query(derived) == [(2_000,)]
    traffic.check()
    with monkeypatch.context() as patched:
        patched.setattr(WalletKeys, "script", None)
        traffic.move(3)
        service.good_cycle()
    traffic.check()
    assert [report.error for report in service.history()] == [None]
    assert service.query("select from_block from raw.history_requests") == [(1,)]
    assert service.query(f"select min(from_block) from raw.coverage where address like '{KEYS}%'") == [(1,)]
    # Those of a removed wallet are removed with the next ones.
    with service.store.write() as session:
        subjects.remove(session, traffic.tenant, traffic.subject)
    other = service.wallet(traffic.tenant, f"wpkh({traffic.wallet.key}/7/*)")
    service.good_cycle()
    assert service.query("select address, count(*) from raw.utxo_scripts group by all") == [(other.address, 1_000)]


@pytest.mark.ci
def test_collected_wallets_of_keys_without_stored_scripts_are_not_collected_further_before_they_have_them(
    node: UtxoNode, make_service: MakeService
) -> None:
    traffic = Traffic(node, make_service)
    traffic.service.good_cycle()
    traffic.check()
    collected = traffic.covered_to()
    # A folder of an earlier release.
    traffic.service.query("drop table raw.utxo_scripts")
    traffic.service.query("comment on view raw.movements is null")
    traffic.move(1)
    for _ in range(2):
        report = traffic.cycle(500)
        assert report.error is not None
        assert "scripts of wallets of keys: the network used up its 500 s of this cycle" in report.error
        assert traffic.covered_to() == collected
    traffic.service.good_cycle()
    traffic.check()
