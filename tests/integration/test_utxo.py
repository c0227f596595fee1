"""A chain of outputs from a real node to the marts, compared with the blocks' JSON and the node's own scan."""

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from pipelines.raw.builds import record_transform
from pipelines.raw.database import open_warehouse
from tests.chain.utxo_node import UtxoNode
from tests.chain.utxo_world import OPEN_SCRIPT, UtxoWorld, data_script
from tests.integration.conftest import MakeService
from tests.integration.dbt_runner import LATER_CYCLE, Stores, build_over_nothing, open_marts, run_dbt
from tests.integration.harness import LocalUtxoNetwork, Service
from tests.oracles.utxo_chain import ChainOracle

KINDS = ("p2wpkh", "p2pkh", "p2sh-p2wpkh", "p2wsh", "p2tr")
COIN = 10**8


@pytest.fixture
def node() -> Iterator[UtxoNode]:
    with UtxoNode() as running:
        yield running


@pytest.fixture
def bare_node() -> Iterator[UtxoNode]:
    """A node that gives no outputs of inputs."""
    with UtxoNode(txindex=False) as running:
        yield running


class Case:
    """Wallets of all kinds on a chain, each with older outputs, and a service."""

    def __init__(self, node: UtxoNode, make_service: MakeService, **network: Any) -> None:
        self.node = node
        self.world = UtxoWorld(node)
        self.world.mature(60)
        self.wallets = [self.world.address(kind) for kind in KINDS]
        self.world.pay([(wallet, COIN + number) for wallet in self.wallets for number in range(4)])
        self.world.mine(3)
        self.service = make_service(LocalUtxoNetwork("local", node.url, **network))
        self.stores = build_over_nothing(self.service.settings.data_dir)
        self.tenant = self.service.tenant()
        self.subjects: dict[str, Any] = {}

    def time(self, number: int) -> datetime:
        """Return the median time past of a block."""
        header = self.node.rpc("getblockheader", self.node.block_hash(number))
        return datetime.fromtimestamp(header["mediantime"], UTC)

    def track(self, since: datetime, *wallets: str) -> None:
        """Track wallets from an instant on; default: all."""
        for wallet in wallets or self.wallets:
            self.subjects[wallet] = self.service.wallet(self.tenant, wallet, tracked_from=since)

    def build(self) -> None:
        """Run a cycle and an incremental build."""
        self.service.good_cycle()
        self.transform(self.stores)

    def transform(self, stores: Stores, *arguments: str) -> None:
        run_dbt(stores, *LATER_CYCLE, *arguments)
        with open_warehouse(stores.warehouse) as connection:
            ((batch_id,),) = connection.execute("select max(batch_id) from raw.batches").fetchall()
            record_transform(connection, batch_id, "tests")

    def ranges(self) -> dict[str, list[tuple[int, int]]]:
        """Return the covered blocks of each wallet."""
        found: dict[str, list[tuple[int, int]]] = {}
        for wallet, first, last in self.service.query(
            "select address, from_block, to_block from raw.coverage where subject_kind = 'native' order by all"
        ):
            found.setdefault(wallet, []).append((first, last))
        return found

    def check(self) -> None:
        """Assert that rows, readings, headers, balances and activities are those of the chain."""
        oracle = ChainOracle(self.node)
        self.check_rows(oracle)
        self.check_readings(oracle)
        self.check_balances(oracle, self.stores)

    def check_rows(self, oracle: ChainOracle) -> None:
        ranges = self.ranges()
        expected = []
        for wallet in self.subjects:
            for one in oracle.transactions(wallet):
                if any(first <= one.height <= last for first, last in ranges.get(wallet, [])):
                    spent = sum(output.amount for output in one.inputs if output.address == wallet)
                    received = sum(output.amount for output in one.outputs if output.address == wallet)
                    payers = {output.address or output.script for output in one.inputs}
                    if one.is_coinbase or not spent:
                        status = "NotPaid"
                    else:
                        status = "Paid" if payers == {wallet} else "Shared"
                    fee = one.fee if status == "Paid" else None
                    parties = (
                        {output.address or output.script for output in one.outputs if output.is_spendable}
                        if spent
                        else payers
                    ) - {wallet}
                    key = (one.height, oracle.hashes[one.height], one.index, one.txid, wallet)
                    expected.append((*key, spent, received, fee, status, len(parties)))
        rows = self.service.query(
            """
            select
                block_number, block_hash, transaction_index, transaction_hash, address, spent_raw::varchar,
                received_raw::varchar, fee_raw::varchar, fee_status, counterparty_count
            from raw.utxo_transactions
            """
        )
        found = [
            (*row[:5], int(row[5]), int(row[6]), None if row[7] is None else int(row[7]), *row[8:]) for row in rows
        ]
        assert sorted(found) == sorted(expected)

    def check_readings(self, oracle: ChainOracle) -> None:
        readings = self.service.query(
            "select holder_address, block_number, block_hash, quantity_raw::varchar from raw.balance_observations"
        )
        assert readings
        for wallet, number, block_hash, quantity in readings:
            assert (block_hash, int(quantity)) == (oracle.hashes[number], oracle.balance(wallet, number))
        headers = self.service.query("select block_number, block_hash, block_time from raw.blocks")
        for number, block_hash, time in headers:
            assert (block_hash, time.replace(tzinfo=UTC)) == (oracle.hashes[number], self.time(number))

    def check_balances(self, oracle: ChainOracle, stores: Stores) -> None:
        """Assert that each balance at each covered block is the chain's, and that nothing was adjusted."""
        with open_marts(stores) as connection:
            points = connection.execute(
                """
                select wallets.address, range_from_block, block_number, balance_raw::varchar, movement_raw::varchar
                from marts.balance_changes as changes
                inner join marts.wallets as wallets using (subject_key)
                where changes.token_address = 'native'
                order by all
                """
            ).fetchall()
            adjusted = connection.execute(
                "select * from marts.wallet_activities where transaction_hash is null"
            ).fetchall()
        assert adjusted == []
        known: dict[tuple[str, int], list[tuple[int, int]]] = {}
        for wallet, range_from, number, balance, movement in points:
            # A range opens with what its first balance was before its first movement.
            steps = known.setdefault((wallet, range_from), [(range_from - 1, int(balance) - int(movement))])
            steps.append((number, int(balance)))
        newest = {}
        for wallet, ranges in self.ranges().items():
            for first, last in ranges:
                for number in range(first, last + 1):
                    newest[wallet] = [quantity for at, quantity in known[wallet, first] if at <= number][-1]
                    assert newest[wallet] == oracle.balance(wallet, number), (wallet, number)
        assert newest == oracle.scan(self.subjects)


def spend(case: Case, number: int) -> None:
    """Queue payments of every form, different ones for each number."""
    world, wallets = case.world, case.wallets
    one, two = wallets[number % 5], wallets[(number + 1) % 5]
    world.pay({two: 10**6 + number}, senders=[one])
    if number % 3 == 0:
        # To itself, by several inputs.
        world.pay([(two, 500)], inputs=sorted(world.coins(two), key=lambda coin: -coin.amount)[:2], change=two)
    if number % 3 == 1:
        # Several senders and recipients, data, and scripts without an address.
        outputs = [(one, 7_000), (world.multisig_script(), 600), (OPEN_SCRIPT, 700), (data_script(b"note"), 0)]
        world.pay(outputs, senders=[one, two], change=world.address())
    if number % 3 == 2:
        world.pay([(wallet, 20_000 + number) for wallet in wallets] * 3)
        # An output of the same block.
        world.pay({world.address(): 900}, inputs=world.coins(one)[-1:])


def test_wallets_agree_with_the_chain_through_everything(node: UtxoNode, make_service: MakeService) -> None:
    case = Case(node, make_service)
    world = case.world
    first = node.head() - 1
    # A range from the past: older outputs are spent in it before the first scan.
    spend(case, 0)
    world.mine()
    spend(case, 1)
    world.mine(to=case.wallets[0])
    case.track(case.time(first))
    case.build()
    case.check()
    for number in range(2, 6):
        spend(case, number)
        world.mine()
        case.build()
    case.check()
    # A payment is replaced by another one that spends the same outputs.
    coins = world.coins(case.wallets[1])[:1]
    world.pay({case.wallets[2]: 50_000}, inputs=coins)
    world.mine(2)
    case.build()
    world.reorganise(2, 3, lambda: world.pay({case.wallets[3]: 60_000}, inputs=coins))
    case.build()
    case.check()
    # Tracking pauses.
    subject = case.subjects[case.wallets[4]]
    case.service.track(case.tenant, subject, False, case.time(node.head()) + timedelta(seconds=1))
    world.mine(12)
    case.build()
    spend(case, 7)
    world.mine(12)
    case.build()
    case.service.track(case.tenant, subject, True, case.time(node.head()) + timedelta(seconds=1))
    world.mine(12)
    spend(case, 8)
    world.mine()
    case.build()
    case.check()
    # The node loses its newest blocks.
    node.kill()
    node.start()
    world.sync()
    spend(case, 9)
    world.mine(3)
    while node.head() <= case.service.query("select max(block_number) from raw.blocks")[0][0]:
        world.mine()
    case.build()
    case.check()
