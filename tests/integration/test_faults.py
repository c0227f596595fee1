"""A failing provider: the cycle retries within bounds or reports the failure, and the next one catches up.

Every case ends in the same state as a collection without faults.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pytest

from pipelines.deliver.progress import read_progress
from tests.chain.conftest import GENESIS_TIME
from tests.chain.fault_proxy import (
    CutFault,
    Fault,
    FaultProxy,
    GarbageFault,
    HttpFault,
    LateFault,
    RangeFault,
    ResultSwap,
    RpcFault,
)
from tests.chain.http_server import Reply
from tests.chain.late_answers import late_answers_time_out
from tests.chain.node import AnvilNode
from tests.chain.world import Token, World
from tests.integration.conftest import MakeService
from tests.integration.harness import LocalNetwork, Service
from tests.oracles.node import check_anchors, check_truth, instant

Rows = dict[str, list[tuple[Any, ...]]]


@dataclass(frozen=True)
class Chain:
    """A node with traffic, of which only the part from `opening` on is tracked."""

    node: AnvilNode
    world: World
    tokens: list[Token]
    opening: int


@pytest.fixture(scope="module")
def chain() -> Iterator[Chain]:
    with AnvilNode(genesis_time=GENESIS_TIME) as node:
        world = World(node, wallet_count=8, gas_price=10**9)
        world.place_multicall()
        tokens = [world.deploy_token("GOLD", 18), world.deploy_bytes32_token("OLD", 0)]
        for token in tokens:
            world.distribute(token, 10_000)
        opening = node.head() + 1
        world.transfer_many(60, tokens, per_block=5)
        yield Chain(node, world, tokens, opening)


@pytest.fixture(autouse=True)
def late_answers() -> Iterator[None]:
    with late_answers_time_out():
        yield


@pytest.fixture
def proxy(chain: Chain) -> Iterator[FaultProxy]:
    with FaultProxy(chain.node.url) as running:
        yield running


def configure(service: Service, chain: Chain) -> None:
    """Have two tokens and a wallet tracked."""
    tenant = service.tenant()
    for token in chain.tokens:
        service.token(tenant, token.address, tracked_from=instant(chain.node, chain.opening))
    service.wallet(tenant, chain.world.wallets[0], tracked_from=instant(chain.node, chain.opening))


@pytest.fixture
def service(chain: Chain, proxy: FaultProxy, make_service: MakeService) -> Service:
    """A service that reaches the node through the proxy."""
    service = make_service(LocalNetwork("local", proxy.url, max_log_range=4))
    configure(service, chain)
    return service


@pytest.fixture(scope="module")
def clean(chain: Chain, tmp_path_factory: pytest.TempPathFactory) -> Rows:
    """The expected end state of `service`: one cycle without faults, compared with the node."""
    service = Service(tmp_path_factory.mktemp("clean"), [LocalNetwork("local", chain.node.url)])
    configure(service, chain)
    service.good_cycle()
    check_truth(service, chain.node)
    assert check_anchors(service, chain.node) > 10
    service.close()
    return service.raw_rows()


# Of each kind, and on each method at most two: a call has three attempts.
PASSING: tuple[Fault, ...] = (
    HttpFault(status=429, retry_after="1", times=2, methods=["eth_chainId"]),
    HttpFault(status=503, times=2, methods=["eth_getBlockByNumber"]),
    CutFault(times=1, methods=["eth_getLogs"], part=0.9),
    LateFault(times=1, methods=["eth_getLogs"]),
    RpcFault(code=-32005, message="daily request count exceeded, slow down", times=2, methods=["eth_call"]),
    GarbageFault(times=2, methods=["eth_getTransactionReceipt"]),
)


@pytest.mark.ci
def test_passing_faults_are_overcome_in_the_same_cycle(proxy: FaultProxy, service: Service, clean: Rows) -> None:
    proxy.inject(*PASSING)
    report = service.cycle()
    assert proxy.faults() == [], "these faults did not act"
    assert report.error is None
    assert service.query("select * from raw.collection_failures") == []
    assert service.raw_rows() == clean


def test_refused_ranges_are_asked_for_in_parts(proxy: FaultProxy, service: Service, clean: Rows) -> None:
    proxy.inject(RangeFault(blocks=3))
    assert service.cycle().error is None
    assert proxy.count("eth_getLogs") > 6
    proxy.clear()
    assert service.raw_rows() == clean


@pytest.mark.proof("a cycle after a fault of the node catches up")
@pytest.mark.parametrize("call", ["eth_getLogs", "eth_call"])
def test_lasting_fault_is_recorded_and_the_next_cycle_catches_up(
    call: str, chain: Chain, proxy: FaultProxy, service: Service, clean: Rows
) -> None:
    proxy.inject(HttpFault(status=503, methods=[call]))
    report = service.cycle()
    assert report.error is not None
    assert call in report.error
    ((named, first, last, detail),) = service.query(
        "select call, from_block, to_block, detail from raw.collection_failures"
    )
    assert (named, detail) == (call, report.error)
    assert service.query("select status, detail, failures_in_a_row from raw.network_states") == [
        ("Unreachable", report.error, 1)
    ]
    if call == "eth_getLogs":
        assert chain.opening <= first <= last <= chain.node.head()
        assert service.raw_rows()["coverage"] == []
        assert f"{first}" in detail
    proxy.clear()
    assert service.cycle().error is None
    assert service.query("select status, detail, failures_in_a_row from raw.network_states") == [("Healthy", None, 0)]
    assert service.raw_rows() == clean


@pytest.mark.ci
def test_node_that_is_down_is_recorded_and_later_cycles_catch_up(
    chain: Chain, proxy: FaultProxy, service: Service, clean: Rows
) -> None:
    proxy.stop()
    for failures in (1, 2):
        assert service.cycle().error is not None
        assert service.query("select status, failures_in_a_row from raw.network_states") == [("Unreachable", failures)]
        progress = read_progress(service.settings.data_dir)
        assert progress is not None
        known = progress.networks["local"]
        assert (known.failures_in_a_row, known.tried_at is None) == (failures, False)
    assert service.raw_rows()["coverage"] == []
    proxy.start()
    assert service.cycle().error is None
    assert service.raw_rows() == clean


class _NoLogsFrom(FaultProxy):
    """Refuses logs from block `refused_from` on."""

    refused_from: int | None = None

    def answer(self, body: bytes) -> Reply:
        text = body.decode()
        if self.refused_from is not None and '"eth_getLogs"' in text:
            last = int(text.split('"toBlock":"')[1].split('"')[0], 16)
            if last >= self.refused_from:
                return Reply(b"no", 503)
        return super().answer(body)


def asked_ranges(proxy: FaultProxy) -> list[tuple[int, int, bool]]:
    """Return (first, last, filters by token) of every eth_getLogs request."""
    return [
        (int(params[0]["fromBlock"], 16), int(params[0]["toBlock"], 16), "address" in params[0])
        for method, params in proxy.calls
        if method == "eth_getLogs"
    ]


@pytest.mark.ci
def test_blocks_before_a_failure_stay_and_only_the_rest_is_requested(chain: Chain, make_service: MakeService) -> None:
    middle = chain.opening + 6
    with _NoLogsFrom(chain.node.url) as proxy:
        service = make_service(LocalNetwork("local", proxy.url, max_log_range=2))
        service.token(service.tenant(), chain.tokens[0].address, tracked_from=instant(chain.node, chain.opening))
        proxy.refused_from = middle
        assert service.cycle(node=service.node(max_attempts=1)).error is not None
        ((first, last),) = service.query("select from_block, to_block from raw.coverage")
        assert first == chain.opening
        assert last < middle
        proxy.refused_from = None
        proxy.calls.clear()
        service.good_cycle()
        assert min(start for start, _, _ in asked_ranges(proxy)) == last + 1
    check_truth(service, chain.node)
    check_anchors(service, chain.node)


@pytest.mark.ci
def test_transfers_are_not_asked_for_again_when_only_transactions_failed(
    chain: Chain, proxy: FaultProxy, service: Service, clean: Rows
) -> None:
    proxy.inject(HttpFault(status=503, methods=["eth_getTransactionReceipt"]))
    assert service.cycle().error is not None
    assert {row[1] for row in service.raw_rows()["coverage"]} == {"token", "wallet"}
    assert service.query("select count(*) from raw.transactions") == [(0,)]
    proxy.clear()
    proxy.calls.clear()
    assert service.cycle().error is None
    assert not list(asked_ranges(proxy))
    assert service.raw_rows() == clean


def test_metadata_of_a_token_seen_in_a_failed_cycle_is_read_later(
    chain: Chain, proxy: FaultProxy, make_service: MakeService
) -> None:
    """Only movements reveal a wallet's tokens: if reading their metadata fails, it must be read later."""
    service = make_service(LocalNetwork("local", proxy.url), name="wallets")
    service.wallet(service.tenant(), chain.world.wallets[0], tracked_from=instant(chain.node, chain.opening))
    proxy.inject(HttpFault(status=503, methods=["eth_call"]))
    assert service.cycle(node=service.node(max_attempts=1)).error is not None
    proxy.clear()
    service.good_cycle()
    known = {row[1] for row in service.raw_rows()["token_metadata"]}
    assert known == {token.address for token in chain.tokens}


@pytest.mark.ci
def test_wrong_chain_after_a_good_cycle_removes_nothing(
    chain: Chain, proxy: FaultProxy, service: Service, clean: Rows
) -> None:
    service.good_cycle()
    before = service.raw_rows()
    proxy.inject(ResultSwap(result="0x1", methods=["eth_chainId"]))
    report = service.cycle()
    assert report.error is not None
    assert "serves chain 1, not 31337" in report.error
    assert service.raw_rows() == before
    assert service.query("select status from raw.network_states") == [("WrongChain",)]
