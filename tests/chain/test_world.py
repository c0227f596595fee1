"""The world: its traffic is repeatable and of every kind, and the node's balances agree with the node's logs."""

from collections import Counter, defaultdict

import pytest

from tests.chain.conftest import GENESIS_TIME
from tests.chain.node import AnvilNode
from tests.chain.world import ZERO_ADDRESS, BlockRange, Token, World

# It tests a tool of the tests.
pytestmark = pytest.mark.release


def make_traffic(node: AnvilNode, seed: int) -> tuple[World, list[Token], BlockRange]:
    world = World(node, seed=seed, wallet_count=20)
    tokens = [
        world.deploy_token("GOLD", 18),
        world.deploy_token("TAX", 6, fee_basis_points=100),
        world.deploy_bytes32_token("OLD", 0),
    ]
    for token in tokens:
        world.distribute(token, 1_000_000)
    return world, tokens, world.transfer_many(400, tokens, per_block=25)


def test_traffic_is_the_same_for_the_same_seed() -> None:
    hashes = []
    for seed in (5, 5, 6):
        with AnvilNode(genesis_time=GENESIS_TIME) as node:
            world, _, made = make_traffic(node, seed)
            logs = world.transfer_logs(made.first, made.last)
            hashes.append([(log["transactionHash"], log["logIndex"], log["data"]) for log in logs])
    assert hashes[0] == hashes[1]
    assert hashes[0] != hashes[2]


def test_traffic_has_every_kind_and_several_transactions_in_a_block(node: AnvilNode) -> None:
    world, _, made = make_traffic(node, seed=1)
    assert made.last - made.first + 1 == 16
    logs = world.transfer_logs(made.first, made.last)
    parties = [(log["topics"][1][-40:], log["topics"][2][-40:], int(log["data"], 16)) for log in logs]
    zero = ZERO_ADDRESS[2:]
    assert any(sender == zero for sender, _, _ in parties)
    assert any(receiver == zero for _, receiver, _ in parties)
    assert any(sender == receiver for sender, receiver, _ in parties)
    assert any(amount == 0 for _, _, amount in parties)
    statuses: Counter[str] = Counter()
    for number in range(made.first, made.last + 1):
        receipts = node.rpc("eth_getBlockReceipts", [hex(number)])
        assert len(receipts) == 25
        statuses.update(receipt["status"] for receipt in receipts)
    assert 1 <= statuses["0x0"] <= 40


def test_logs_add_up_to_the_nodes_balances(node: AnvilNode) -> None:
    world, tokens, made = make_traffic(node, seed=2)
    for token in tokens:
        balances: dict[str, int] = defaultdict(int)
        for log in world.transfer_logs(0, made.last, token.address):
            balances["0x" + log["topics"][1][-40:]] -= int(log["data"], 16)
            balances["0x" + log["topics"][2][-40:]] += int(log["data"], 16)
        supply = -balances.pop(ZERO_ADDRESS)
        assert world.total_supply(token, made.last) == supply
        assert world.balances_of(token, list(balances), made.last) == list(balances.values())
        assert sum(balances.values()) == supply


def test_block_times_always_increase(node: AnvilNode) -> None:
    world = World(node, block_seconds=5)
    first = world.mine()
    later = world.mine(GENESIS_TIME + 1_000)
    pushed = world.mine(GENESIS_TIME)
    assert [node.block_time(number) - GENESIS_TIME for number in (first, later, pushed)] == [5, 1_000, 1_001]


def test_gas_price_is_paid_by_the_sender(node: AnvilNode) -> None:
    world = World(node, wallet_count=2, gas_price=10**9)
    sender, receiver = world.wallets
    before = world.native_balance(sender, node.head())
    world.submit(sender, receiver, value=5, gas=21_000)
    block = world.mine()
    assert world.native_balance(sender, block) == before - 5 - 21_000 * 10**9
    assert world.native_balance(receiver, block) == before + 5
