"""Reading a second time: logs that a provider left out come in, whoever left them out."""

import random
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.chain.fault_proxy import FaultProxy, HttpFault, LieFault, LostLogsFault
from tests.chain.node import AnvilNode
from tests.chain.world import Token, World
from tests.integration.conftest import MakeService
from tests.integration.harness import LocalNetwork, Service
from tests.integration.oracle import check_truth, instant


@pytest.fixture
def world(node: AnvilNode) -> World:
    made = World(node, wallet_count=6, gas_price=10**9)
    made.place_multicall()
    return made


@pytest.fixture
def token(world: World) -> Token:
    made = world.deploy_token("GOLD", 18)
    world.distribute(made, 100_000)
    return made


@pytest.fixture
def proxy(node: AnvilNode) -> Iterator[FaultProxy]:
    with FaultProxy(node.url) as running:
        yield running


def mine(world: World, count: int) -> None:
    """Add blocks."""
    for _ in range(count):
        world.mine()


def stored(service: Service) -> int:
    """How many transfers there are."""
    return int(service.query("select count(*) from raw.token_transfers")[0][0])


def track(service: Service, world: World, token: Token, opening: int) -> None:
    """Track the token and a wallet from a block on."""
    tenant = service.tenant()
    service.token(tenant, token.address, tracked_from=instant(world.node, opening))
    service.wallet(tenant, world.wallets[0], tracked_from=instant(world.node, opening))


def test_logs_left_out_of_the_tail_come_in_once_it_is_final(
    node: AnvilNode, world: World, token: Token, proxy: FaultProxy, make_service: MakeService
) -> None:
    service = make_service(LocalNetwork("local", proxy.url))
    opening = node.head() + 1
    world.transfer_many(40, [token], per_block=8)
    track(service, world, token, opening)
    proxy.inject(LostLogsFault(times=1))
    service.good_cycle()
    assert stored(service) < 40
    mine(world, 70)
    report = service.good_cycle()
    assert report.corrected_ranges == 1
    assert stored(service) == 40
    check_truth(service, node)
    (row,) = service.query("select stored_rows < read_rows, read_rows from raw.verifications")
    assert row[0]
    mine(world, 70)
    assert service.good_cycle().corrected_ranges == 0


def test_another_provider_reads_what_was_final_already(
    node: AnvilNode, world: World, token: Token, proxy: FaultProxy, make_service: MakeService
) -> None:
    opening = node.head() + 1
    world.transfer_many(40, [token], per_block=8)
    mine(world, 70)
    service = make_service(LocalNetwork("local", proxy.url, second_url=node.url))
    track(service, world, token, opening)
    proxy.inject(LostLogsFault(times=1))
    assert service.good_cycle().corrected_ranges == 0
    assert stored(service) < 40
    report = service.good_cycle()
    assert report.corrected_ranges == 1
    assert stored(service) == 40
    check_truth(service, node)
    ((provider,),) = service.query("select provider from raw.verifications")
    assert provider == node.url.removeprefix("http://")


def nothing(logs: list[Any]) -> list[Any]:
    """Every log left out."""
    return []


def halves(logs: list[Any]) -> list[Any]:
    """A random half of the logs, another one each time."""
    return [log for log in logs if random.getrandbits(1)]


@pytest.mark.parametrize("omit", [nothing, halves])
def test_logs_of_final_blocks_that_the_only_node_left_out_in_its_first_cycle_come_in(
    omit: Callable[[list[Any]], list[Any]],
    node: AnvilNode,
    world: World,
    token: Token,
    proxy: FaultProxy,
    make_service: MakeService,
    tmp_path: Path,
) -> None:
    opening = node.head() + 1
    world.transfer_many(40, [token], per_block=8)
    mine(world, 70)
    service = make_service(LocalNetwork("local", proxy.url))
    track(service, world, token, opening)
    proxy.inject(LieFault(methods=["eth_getLogs"], tell=lambda params, logs: omit(logs)))
    service.good_cycle()
    assert stored(service) < 40
    assert service.query("select * from raw.verified_ranges") == []
    proxy.clear()
    service.good_cycle()
    check_truth(service, node)
    assert service.raw_rows()["token_transfers"] == service.clean_rows(tmp_path)["token_transfers"]
    # Once read a second time, it is not asked for again.
    proxy.calls.clear()
    service.good_cycle()
    assert proxy.count("eth_getLogs") == 0


def test_a_second_provider_that_is_down_stops_nothing_and_is_asked_later(
    node: AnvilNode, world: World, token: Token, proxy: FaultProxy, make_service: MakeService
) -> None:
    opening = node.head() + 1
    world.transfer_many(40, [token], per_block=8)
    mine(world, 70)
    service = make_service(LocalNetwork("local", node.url, second_url=proxy.url))
    track(service, world, token, opening)
    proxy.inject(HttpFault(status=503, times=1000))
    for _ in range(2):
        service.good_cycle()
    assert stored(service) == 40
    (failure,) = service.query("select detail from raw.collection_failures")
    assert "second reading" in failure[0]
    assert service.query("select * from raw.verified_ranges") == []
    proxy.clear()
    service.good_cycle()
    assert service.query("select count(*) > 0 from raw.verified_ranges") == [(True,)]
    assert service.query("select * from raw.verifications") == []
