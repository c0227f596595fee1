"""History requests over a real node: collected blocks, without repetition, and state after cancels and failures."""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

import pytest

from control import operations, tracking
from control.operations import OperationRow, Status
from control.tracking import TrackingPut
from tests.chain.conftest import GENESIS_TIME
from tests.chain.fault_proxy import FaultProxy, HttpFault, RpcFault
from tests.chain.node import AnvilNode
from tests.chain.world import Token, World
from tests.integration.clean_collection import small_parts
from tests.integration.conftest import MakeService
from tests.integration.harness import LocalNetwork, Service
from tests.oracles.node import instant


@dataclass(frozen=True)
class Chain:
    """A finished chain: two tokens, and wallets that move them and native value."""

    node: AnvilNode
    world: World
    gold: Token
    coin: Token
    created: int
    head: int


def mine(world: World, count: int) -> None:
    """Add blocks."""
    for _ in range(count):
        world.mine()


@pytest.fixture(scope="module")
def chain() -> Iterator[Chain]:
    with AnvilNode(genesis_time=GENESIS_TIME) as node:
        world = World(node, wallet_count=6, gas_price=10**9)
        world.place_multicall()
        mine(world, 3)
        gold = world.deploy_token("GOLD", 18)
        created = node.head()
        coin = world.deploy_token("COIN", 6)
        for token in (gold, coin):
            world.distribute(token, 100_000)
        first, second, *_ = world.wallets
        for _ in range(6):
            world.transfer_many(5, [gold, coin], per_block=5)
            world.submit(first, second, value=10**18)
            world.mine()
            mine(world, 4)
        yield Chain(node, world, gold, coin, created, node.head())


@pytest.fixture
def proxy(chain: Chain) -> Iterator[FaultProxy]:
    with FaultProxy(chain.node.url) as running:
        yield running


@pytest.fixture
def service(proxy: FaultProxy, make_service: MakeService) -> Service:
    return make_service(LocalNetwork("local", proxy.url, max_log_range=5))


def failing_after(count: int) -> HttpFault:
    """Return a fault: requests for logs fail after `count` of them."""
    seen = iter(range(10**6))
    return HttpFault(status=503, methods=["eth_getLogs"], when=lambda calls: next(seen) >= count)


def stands(service: Service, operation: OperationRow) -> tuple[Status, int, int | None]:
    """Status, blocks done, and blocks in all."""
    now = service.operation(operation)
    return now.status, now.progress_done, now.progress_total


def publish(service: Service) -> None:
    """Record all collected rows as published, like the end of a cycle."""
    service.query("insert into raw.publications select 1, max(batch_id), current_timestamp::timestamp from raw.batches")
    with service.store.read():
        service.history(parts=0)


def covered(service: Service) -> list[tuple[int, int]]:
    """The covered ranges of the only subject."""
    return service.query("select from_block, to_block from raw.covered_ranges where not is_native order by 1")


def transfers(service: Service) -> list[tuple[int, int]]:
    """Block and log index of every stored transfer."""
    return service.query("select block_number, log_index from raw.token_transfers order by 1, 2")


def logs(chain: Chain, token: Token, first: int, last: int) -> list[tuple[int, int]]:
    """Block and log index of every transfer of a token, by the node."""
    return [
        (int(log["blockNumber"], 16), int(log["logIndex"], 16))
        for log in chain.world.transfer_logs(first, last)
        if log["address"] == token.address
    ]


@pytest.mark.proof("a history from creation has the whole life of a contract")
def test_history_from_creation_is_the_contracts_whole_life(chain: Chain, service: Service) -> None:
    tenant = service.tenant()
    asked = service.ask_history(tenant, service.token(tenant, chain.gold.address), "creation")
    service.good_cycle()
    assert transfers(service) == []
    service.history()
    total = chain.head - chain.created + 1
    assert covered(service) == [(chain.created, chain.head)]
    assert transfers(service) == logs(chain, chain.gold, chain.created, chain.head)
    assert stands(service, asked) == (Status.RUNNING, total, total), "done, and not yet in the marts"
    assert service.operation(asked).rate is not None
    service.good_cycle()
    anchors = service.query(
        "select distinct quantity_raw::varchar from raw.balance_observations where block_number = ?",
        [chain.created - 1],
    )
    assert anchors == [("0",)], "balances before the contract must be zero"
    publish(service)
    assert stands(service, asked) == (Status.SUCCEEDED, total, total)
    supply = service.query("select block_number, total_supply_raw::varchar from raw.supply_observations order by 1")
    assert supply[0] == (chain.created - 1, "0")
    assert supply[-1] == (chain.head, str(chain.world.total_supply(chain.gold, chain.head)))


def test_blocks_are_included_and_clipped_and_instants_are_half_open(chain: Chain, service: Service) -> None:
    tenant = service.tenant()
    wallet = service.wallet(tenant, chain.world.wallets[0])
    early, late = (f"{instant(chain.node, number):%Y-%m-%dT%H:%M:%SZ}" for number in (8, 15))
    cases = [
        ("block:7", "block:12", 7, 12),
        ("block:9", "block:9", 9, 9),
        ("block:0", "block:3", 1, 3),
        (early, late, 8, 14),
        ("block:20", "block:999999", 20, chain.head),
        ("block:21", "now", 21, chain.head),
    ]
    asked = [service.ask_history(tenant, wallet, start, end) for start, end, _, _ in cases]
    service.good_cycle()
    service.history()
    found = [service.operation(one) for one in asked]
    assert [(one.from_block, one.to_block) for one in found] == [(first, last) for _, _, first, last in cases]
    assert covered(service) == [(1, 3), (7, 14), (20, chain.head)]


def test_request_without_a_block_in_its_range_fails_with_the_reason(chain: Chain, service: Service) -> None:
    tenant = service.tenant()
    nobody = service.token(tenant, "0x" + "12" * 20)
    no_contract = service.ask_history(tenant, nobody, "creation")
    future = service.ask_history(tenant, nobody, "2100-01-01")
    service.good_cycle()
    service.history()
    assert service.operation(no_contract).status is Status.FAILED
    assert "no contract" in str(service.operation(no_contract).error)
    assert service.operation(future).status is Status.FAILED
    assert f"newest block, {chain.head}" in str(service.operation(future).error)
    assert service.query("select * from raw.view_ranges") == []


def asked_blocks(proxy: FaultProxy) -> list[int]:
    """Return every block requested by eth_getLogs, with repetitions."""
    return sorted(
        number
        for method, params in proxy.calls
        if method == "eth_getLogs" and "fromBlock" in params[0]
        for number in range(int(params[0]["fromBlock"], 16), int(params[0]["toBlock"], 16) + 1)
    )


@pytest.mark.proof("overlapping history requests collect nothing twice")
def test_overlapping_requests_collect_nothing_twice(chain: Chain, service: Service, proxy: FaultProxy) -> None:
    one, two = service.tenant("one"), service.tenant("two")
    for tenant, ranges in ((one, [(5, 20), (15, 30)]), (two, [(10, 25), (5, 20)])):
        token = service.token(tenant, chain.gold.address)
        for first, last in ranges:
            service.ask_history(tenant, token, f"block:{first}", f"block:{last}")
    service.good_cycle()
    proxy.calls.clear()
    service.history()
    assert asked_blocks(proxy) == list(range(5, 31))
    assert sorted(covered(service)) == [(5, 25), (5, 30)]
    proxy.calls.clear()
    service.history()
    assert asked_blocks(proxy) == []


@pytest.mark.ci
def test_each_slice_continues_after_the_one_before(chain: Chain, service: Service, proxy: FaultProxy) -> None:
    tenant = service.tenant()
    token = service.token(tenant, chain.gold.address)
    asked = service.ask_history(tenant, token, "block:1", f"block:{chain.head}")
    service.good_cycle()
    proxy.inject(failing_after(2))
    (report,) = service.history()
    assert report.error is not None
    status, done, total = stands(service, asked)
    assert (status, total) == (Status.RUNNING, chain.head)
    assert 0 < done < chain.head
    assert "eth_getLogs" in str(service.operation(asked).error)
    proxy.clear()
    proxy.calls.clear()
    service.history()
    assert asked_blocks(proxy) == list(range(done + 1, chain.head + 1))
    assert stands(service, asked)[1] == chain.head
    assert service.operation(asked).error is None
    assert transfers(service) == logs(chain, chain.gold, 1, chain.head)


def test_a_slow_network_delays_no_other_in_short_slices(
    chain: Chain, make_service: MakeService, proxy: FaultProxy
) -> None:
    """Each call to the slow node uses up the rest of a slice."""
    service = make_service(
        LocalNetwork("slow", proxy.url, max_log_range=5), LocalNetwork("quick", chain.node.url, max_log_range=5)
    )
    tenant = service.tenant(network="slow")
    service.ledger(tenant, "quick")
    asked = {}
    for name in ("slow", "quick"):
        token = service.token(tenant, chain.gold.address, ledger=name)
        asked[name] = service.ask_history(tenant, token, "block:1", f"block:{chain.head}")
        service.good_cycle(name)
    done = []
    for _ in range(2):
        before = len(proxy.calls)
        service.history(is_over=lambda: len(proxy.calls) > before)  # noqa: B023 - called in this turn alone
        done.append(tuple(stands(service, asked[name])[1] for name in ("slow", "quick")))
    assert [min(one) > 0 for one in done] == [False, True]


@pytest.mark.ci
def test_requests_made_while_the_node_is_down_have_an_error(chain: Chain, service: Service, proxy: FaultProxy) -> None:
    """Pending and running requests show the error, which disappears when they continue."""
    tenant = service.tenant()
    token = service.token(tenant, chain.gold.address)
    running = service.ask_history(tenant, token, "block:1", f"block:{chain.head}")
    service.good_cycle()
    service.history(parts=1)
    assert (service.operation(running).status, service.operation(running).error) == (Status.RUNNING, None)
    proxy.stop()
    pending, cancelled = (service.ask_history(tenant, token, "block:1", "block:9") for _ in range(2))
    for _ in range(2):
        assert service.cycle().error is not None
        service.history()
        (detail,) = service.query("select detail from raw.network_states")[0]
        for asked, status in ((running, Status.RUNNING), (pending, Status.PENDING), (cancelled, Status.PENDING)):
            assert (service.operation(asked).status, service.operation(asked).error) == (status, detail)
    with service.store.write() as session:
        operations.cancel(session, tenant, cancelled)
    service.cycle()
    service.history()
    assert (service.operation(cancelled).status, service.operation(cancelled).error) == (Status.CANCELLED, None)
    proxy.start()
    service.good_cycle()
    service.history()
    publish(service)
    assert {service.operation(asked).status for asked in (running, pending)} == {Status.SUCCEEDED}
    assert {service.operation(asked).error for asked in (running, pending)} == {None}


@pytest.mark.ci
def test_cancel_keeps_the_collected_blocks(chain: Chain, service: Service, proxy: FaultProxy) -> None:
    tenant = service.tenant()
    token = service.token(tenant, chain.gold.address)
    asked = service.ask_history(tenant, token, "block:1", f"block:{chain.head}")
    unresolved = service.ask_history(tenant, token, "block:2", "block:3")
    service.good_cycle()
    with service.store.write() as session:
        operations.cancel(session, tenant, unresolved)
    with small_parts():
        service.history(parts=2)
    done = stands(service, asked)[1]
    assert 0 < done < chain.head
    with service.store.write() as session:
        operations.cancel(session, tenant, asked)
    service.history()
    assert stands(service, asked) == (Status.CANCELLED, done, chain.head)
    assert service.operation(unresolved).status is Status.CANCELLED
    assert covered(service) == [(1, done)]
    proxy.calls.clear()
    service.history()
    service.good_cycle()
    assert not [block for block in asked_blocks(proxy) if block > done]


@pytest.mark.ci
@pytest.mark.parametrize("is_refusal", [False, True])
def test_an_error_is_shown_only_on_requests_with_the_failed_blocks(
    chain: Chain, service: Service, proxy: FaultProxy, is_refusal: bool
) -> None:
    """Two tenants request the same token, so their blocks form one segment; one of them also requests another token."""
    one, two = service.tenant("one"), service.tenant("two")
    gold = service.token(one, chain.gold.address)
    early = service.ask_history(one, gold, "block:1", "block:5")
    middle = service.ask_history(one, gold, "block:6", "block:13")
    late = service.ask_history(two, service.token(two, chain.gold.address), "block:14", "block:30")
    other = service.ask_history(two, service.token(two, chain.coin.address), "block:1", "block:5")
    service.good_cycle()

    def has_failed(params: Any) -> bool:
        asked = params[0]
        return "toBlock" in asked and int(asked["fromBlock"], 16) <= 14 and int(asked["toBlock"], 16) >= 13

    def one_has_failed(calls: Any) -> bool:
        return any(call["method"] == "eth_getLogs" and has_failed(call["params"]) for call in calls)

    methods = ["eth_getLogs"]
    proxy.inject(
        RpcFault(code=-32601, message="not available", methods=methods, when=has_failed)
        if is_refusal
        else HttpFault(status=503, methods=methods, when=one_has_failed)
    )
    service.history()
    # All other blocks are collected.
    for asked, failed, done, total in ((middle, 13, 7, 8), (late, 14, 16, 17)):
        assert f"eth_getLogs of block {failed}: " in str(service.operation(asked).error)
        assert stands(service, asked) == (Status.RUNNING, done, total)
    assert [service.operation(asked).error for asked in (early, other)] == [None, None]
    assert stands(service, other) == (Status.RUNNING, 5, 5)


@pytest.mark.ci
def test_balance_only_finds_the_blocks_in_which_value_moved(chain: Chain, service: Service) -> None:
    tenant = service.tenant()
    wallet = chain.world.wallets[1]
    asked = service.ask_history(tenant, service.wallet(tenant, wallet), "block:1", "now", "balance-only")
    service.good_cycle()
    service.history()
    assert service.query("select count(*) from raw.transactions") == [(0,)]
    assert service.operation(asked).native == "balance-only"
    service.good_cycle()
    readings = service.query(
        """
        select block_number, quantity_raw::varchar from raw.balance_observations
        where token_address = 'native' and holder_address = ? order by 1
        """,
        [wallet],
    )
    truth = [chain.world.native_balance(wallet, number) for number in range(chain.head + 1)]
    assert all(truth[number] == int(quantity) for number, quantity in readings)
    known = {number for number, _ in readings}
    changed = [number for number in range(1, chain.head + 1) if truth[number] != truth[number - 1]]
    assert len(changed) > 5
    assert all({number - 1, number} <= known for number in changed)


def test_full_reads_the_transactions(chain: Chain, service: Service) -> None:
    tenant = service.tenant()
    wallet = chain.world.wallets[0]
    asked = service.ask_history(tenant, service.wallet(tenant, wallet), "block:1", "now", "full")
    service.good_cycle()
    service.history()
    (count,) = service.query("select count(*) from raw.transactions where ? in (from_address, to_address)", [wallet])
    sent = chain.world.node.rpc("eth_getTransactionCount", [wallet, "latest"])
    assert count[0] >= int(sent, 16) > 0
    assert str(chain.head) in str(service.operation(asked).note), "what full costs"


@pytest.mark.ci
def test_history_requested_with_tracking_joins_it_without_a_gap(node: AnvilNode, make_service: MakeService) -> None:
    """The window begins between two blocks that no node knows yet when the history is resolved."""
    world = World(node, wallet_count=3, gas_price=10**9)
    world.place_multicall()
    mine(world, 2)
    gold = world.deploy_token("GOLD", 18)
    created = node.head()
    world.distribute(gold, 100_000)
    service = make_service(LocalNetwork("local", node.url))
    tenant = service.tenant()
    opened_at = instant(node, node.head()) + timedelta(minutes=1)
    subject = service.token(tenant, gold.address)
    with service.store.write() as session:
        request = TrackingPut(tracking_status="enabled", history="creation")
        asked = tracking.set_tracking(session, tenant, subject, request, now=opened_at).history
    assert asked is not None
    service.good_cycle()
    service.history()
    publish(service)
    known = node.head()
    assert covered(service) == [(created, known)]
    assert stands(service, asked)[0] is Status.SUCCEEDED
    first, second, _ = world.wallets
    for seconds in (-20, -10, 10):
        world.transfer(gold, first, second, 5)
        world.mine(int(opened_at.timestamp()) + seconds)
    service.good_cycle()
    assert service.query("select from_block from raw.view_ranges where origin = 'Window'") == [(known + 3,)]
    assert covered(service) == [(created, known + 3)]
    assert transfers(service)[-3:] == [(known + 1, 0), (known + 2, 0), (known + 3, 0)]


@pytest.mark.ci
def test_history_beside_live_tracking_joins_it(chain: Chain, service: Service) -> None:
    tenant = service.tenant()
    token = service.token(tenant, chain.gold.address, tracked_from=instant(chain.node, 20))
    service.good_cycle()
    assert covered(service) == [(20, chain.head)]
    service.ask_history(tenant, token, "block:10", "block:15")
    service.good_cycle()
    service.history()
    assert covered(service) == [(10, 15), (20, chain.head)]
    service.ask_history(tenant, token, "block:12", "block:19")
    service.good_cycle()
    service.history()
    assert covered(service) == [(10, chain.head)]
    assert transfers(service) == logs(chain, chain.gold, 10, chain.head)
    service.good_cycle()
    moved = {
        party
        for log in chain.world.transfer_logs(10, chain.head)
        if log["address"] == chain.gold.address
        for party in ("0x" + topic[26:] for topic in log["topics"][1:])
    } - {"0x" + "0" * 40}
    anchored = service.query("select holder_address from raw.balance_observations where block_number = 9")
    assert {holder for (holder,) in anchored} == moved
