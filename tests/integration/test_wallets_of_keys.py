"""A wallet of keys from a real node to the marts. Its addresses come into use one by one."""

from collections.abc import Iterator
from datetime import UTC, datetime

import pytest
from embit import bip32

from control.networks.addresses import KEYS
from pipelines.raw.builds import record_transform
from pipelines.raw.database import open_warehouse
from tests.chain.utxo_node import UtxoNode
from tests.chain.utxo_world import UtxoWorld
from tests.integration.conftest import MakeService
from tests.integration.dbt_runner import LATER_CYCLE, build_over_nothing, open_marts, run_dbt
from tests.integration.harness import LocalUtxoNetwork, Service
from tests.oracles.utxo_chain import ChainOracle

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
