"""A chain with a past that several tests collect by different roads, and the comparison of their rows."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from control.networks.data_sets import DataSet
from tests.chain.conftest import GENESIS_TIME
from tests.chain.node import AnvilNode
from tests.chain.world import Token, World, call_data
from tests.integration.harness import LocalNetwork, Service

FINALITY = 64
Tables = dict[str, list[tuple[object, ...]]]


@dataclass(frozen=True)
class Chain:
    """A chain of some days with two tokens, an NFT and traffic of every kind, all of it final."""

    node: AnvilNode
    world: World
    gold: Token
    coin: Token
    head: int


@contextmanager
def chain_with_past() -> Iterator[Chain]:
    with AnvilNode(genesis_time=GENESIS_TIME) as node:
        world = World(node, wallet_count=6, block_seconds=7_200)
        world.place_multicall()
        gold = world.deploy_token("GOLD", 18, supply=2**255)
        coin = world.deploy_token("COIN", 6)
        nft = world.deploy("Nft721", "Art", "ART")
        world.distribute(gold, 2**200 + 1)
        world.distribute(coin, 100_000)
        for number in range(6):
            world.transfer_many(12, [gold, coin], per_block=4)
            world.submit(world.deployer, nft, call_data("Nft721", "mint", world.wallets[0], number))
            world.mine()
            world.mine()
        # The node calls a block final after 64 others.
        for _ in range(70):
            world.mine()
        yield Chain(node, world, gold, coin, node.head())


def network(url: str, *data_sets: DataSet, **options: Any) -> LocalNetwork:
    return LocalNetwork("local", url, finality_depth=FINALITY, data_sets=data_sets, **options)


def collect(service: Service, chain: Chain) -> None:
    """Request the past, collect it, and read balances."""
    configure(service, chain)
    service.history()
    service.good_cycle()


def configure(service: Service, chain: Chain, tenant_name: str = "acme") -> None:
    """Request the whole past of both tokens and two wallets, and run a cycle."""
    tenant = service.tenant(tenant_name)
    first, second, *_ = chain.world.wallets
    for token in (chain.gold, chain.coin):
        service.ask_history(tenant, service.token(tenant, token.address), "block:0")
    for wallet in (first, second):
        service.ask_history(tenant, service.wallet(tenant, wallet), "block:0", native="balance-only")
    service.good_cycle()


def stored(service: Service) -> Tables:
    """Everything that marts are computed from, by table."""
    rows = service.raw_rows()
    rows["covered_ranges"] = service.query("select * from raw.covered_ranges order by all")
    rows["blocks"] = service.query(
        """
        select block_number, block_hash, block_time from raw.blocks
        where block_number in (select block_number from raw.token_transfers) order by all
        """
    )
    return rows


def check_equal(service: Service, expected: Tables) -> None:
    """Compare all tables, one by one."""
    found = stored(service)
    for table, rows in expected.items():
        assert found[table] == rows, table
