"""Extraction against a real EVM node, where its bytecode or its block headers matter."""

from collections.abc import Iterator

import polars as pl
import pytest

from pipelines.extract.evm.balances import read_balances, read_supplies
from pipelines.extract.evm.blocks import read_head
from pipelines.extract.evm.blooms import confirm_empty_blocks
from pipelines.extract.evm.dialect import EVM
from pipelines.extract.evm.logs import TransferFilter, fetch_transfers
from pipelines.extract.jsonrpc.client import RpcClient
from tests.chain.node import AnvilNode
from tests.chain.world import MULTICALL_ADDRESS, World


@pytest.fixture
def client(node: AnvilNode) -> Iterator[RpcClient]:
    opened = RpcClient("local", [node.url], EVM, max_attempts=2)
    yield opened
    opened.close()


@pytest.fixture
def world(node: AnvilNode) -> World:
    return World(node, wallet_count=12, gas_price=3)


def test_blooms_reveal_transfers_that_an_answer_omitted(node: AnvilNode, client: RpcClient, world: World) -> None:
    tokens = [world.deploy_token("AAA", 18), world.deploy_token("BBB", 6)]
    for token in tokens:
        world.distribute(token, 10**12)
    first = node.head() + 1
    for _ in range(10):
        world.transfer_many(2, tokens[:1])
        world.transfer_many(3, tokens[1:])
        world.mine()
    wallets = frozenset(world.wallets[:3])
    for filters in (
        [TransferFilter(tokens=frozenset([tokens[0].address]))],
        [TransferFilter(senders=wallets), TransferFilter(recipients=wallets)],
    ):
        rows = pl.concat([piece.rows for piece in fetch_transfers(client, filters, first, node.head())])
        assert not rows.is_empty()
        assert confirm_empty_blocks(client, filters, first, node.head(), rows).is_empty()
        missing = confirm_empty_blocks(client, filters, first, node.head(), rows.clear())
        assert missing.equals(rows)


def test_contracts_that_burn_all_gas_hide_no_other_balance(node: AnvilNode, client: RpcClient, world: World) -> None:
    world.place_multicall()
    token = world.deploy_token("AAA", 18).address
    burners = [f"0x{0xBAD0 + index:040x}" for index in range(6)]
    for burner in burners:
        # The INVALID opcode.
        node.set_code(burner, "0xfe")
    world.mine()
    head = read_head(client)
    holders = [world.deployer, *world.wallets]
    pairs = [(contract, holder) for contract in (*burners, token, "native") for holder in holders]
    read = read_balances(client, pairs, head.hash, head.number, MULTICALL_ADDRESS)["quantity_raw"].to_list()
    own = [world.balance_of(token, holder, head.number) for holder in holders]
    native = [world.native_balance(holder, head.number) for holder in holders]
    assert read == [None] * len(burners) * len(holders) + [str(balance) for balance in own + native]
    supplies = read_supplies(client, [token, burners[0]], head.hash, head.number, MULTICALL_ADDRESS)
    assert supplies["total_supply_raw"].to_list() == [str(world.total_supply(token, head.number)), None]
