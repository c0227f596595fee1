"""A node with each known hostile behaviour: its cycle is bounded, another network continues, and one honest cycle
makes all rows correct.
"""

import time
from collections.abc import Iterator
from typing import Any

import pytest

from pipelines.extract.budget import SECONDS_SETTING, Budget
from pipelines.history import collecting as history
from tests.chain.conftest import GENESIS_TIME
from tests.chain.fault_proxy import ActionFault, Fault, FaultProxy, HostileFault
from tests.chain.hostile_answers import BOMBS, NEVER_ENDING
from tests.chain.node import AnvilNode
from tests.chain.world import World
from tests.integration.conftest import MakeService
from tests.integration.harness import LocalNetwork, Service
from tests.oracles.node import check_truth, instant
from tests.waiting import PATIENCE_SECONDS, Naps

_SECONDS = 1.0
_CALL_SECONDS = 10.0
_MEGABYTES = 8_000_000
_LOGS = ["eth_getLogs"]

MODES: dict[str, tuple[Fault, str]] = {
    "an endless first response": (HostileFault(answer=NEVER_ENDING["drip_header"]), SECONDS_SETTING),
    "a bomb in logs": (HostileFault(answer=BOMBS["topics"](_MEGABYTES), methods=_LOGS), "array"),
}
"""The fault of the node, and a part of the error. Other faults of requests: tests/unit/extract/test_hostile_node.py."""


class Chain:
    """A node with traffic, of which only the part from `opening` on is tracked."""

    def __init__(self, node: AnvilNode) -> None:
        self.node = node
        self.world = World(node, wallet_count=6)
        self.world.place_multicall()
        self.token = self.world.deploy_token("GOLD", 18)
        self.world.distribute(self.token, 10_000)
        self.opening = node.head() + 1
        self.world.transfer_many(20, [self.token], per_block=2)

    def configure(self, service: Service) -> None:
        """Have a token and a wallet tracked on both networks."""
        tenant = service.tenant()
        service.ledger(tenant, "second")
        for ledger in ("local", "second"):
            moment = instant(self.node, self.opening)
            service.token(tenant, self.token.address, tracked_from=moment, ledger=ledger)
            service.wallet(tenant, self.world.wallets[0], tracked_from=moment, ledger=ledger)


@pytest.fixture(scope="module")
def chain() -> Iterator[Chain]:
    with AnvilNode(genesis_time=GENESIS_TIME) as node:
        yield Chain(node)


@pytest.fixture
def proxy(chain: Chain) -> Iterator[FaultProxy]:
    with FaultProxy(chain.node.url) as running:
        yield running


@pytest.fixture
def service(chain: Chain, proxy: FaultProxy, make_service: MakeService) -> Service:
    """A service with a network behind the proxy and another one at the node."""
    made = make_service(LocalNetwork("local", proxy.url, max_log_range=4), LocalNetwork("second", chain.node.url))
    chain.configure(made)
    return made


@pytest.fixture(scope="module")
def clean(chain: Chain, tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[tuple[Any, ...]]]:
    """Raw rows of a service that only read an honest node."""
    urls = chain.node.url
    made = Service(tmp_path_factory.mktemp("clean"), [LocalNetwork("local", urls), LocalNetwork("second", urls)])
    chain.configure(made)
    for network in ("local", "second"):
        made.good_cycle(network)
    check_truth(made, chain.node)
    made.close()
    return made.raw_rows()


@pytest.mark.ci
@pytest.mark.parametrize("mode", MODES)
def test_a_hostile_cycle_is_bounded_and_an_honest_one_repairs_it(
    mode: str, proxy: FaultProxy, service: Service, clean: dict[str, list[tuple[Any, ...]]]
) -> None:
    fault, said = MODES[mode]
    proxy.inject(fault)
    # The budget ends an endless answer. Other answers end at their own limits, however long a busy machine takes.
    seconds = _SECONDS if said == SECONDS_SETTING else PATIENCE_SECONDS
    node = service.node(
        max_attempts=1,
        max_seconds=PATIENCE_SECONDS,
        budget=Budget(seconds, 1_000),
        clock=time.monotonic,
        sleep=time.sleep,
    )
    report = service.cycle(node=node)
    node.close()
    assert report.defect is None
    assert report.error is not None
    assert said in report.error
    assert len(report.error) < 300
    ((status, detail),) = service.query("select status, detail from raw.network_states")
    assert (status, detail) == ("Unreachable", report.error)
    service.good_cycle("second")
    proxy.clear()
    service.good_cycle()
    assert service.raw_rows() == clean


@pytest.fixture
def naps() -> Naps:
    return Naps()


def slow(proxy: FaultProxy, naps: Naps, methods: list[str] | None = None) -> ActionFault:
    """Delay each later request, on the client's clock."""
    fault = ActionFault(action=lambda: naps.sleep(_CALL_SECONDS), methods=methods or [])
    proxy.inject(fault)
    return fault


@pytest.mark.ci
def test_a_node_that_answers_each_call_late_ends_with_the_budget(
    proxy: FaultProxy, service: Service, naps: Naps, clean: dict[str, list[tuple[Any, ...]]]
) -> None:
    """Each answer is true and in time; together they would take minutes."""
    slow(proxy, naps)
    for failures in (1, 2):
        began = naps.now
        node = service.node(budget=Budget(60, 1_000, naps.clock), clock=naps.clock, sleep=naps.sleep)
        report = service.cycle(node=node)
        node.close()
        assert report.error is not None
        assert "the network used up its 60 s of this cycle" in report.error
        assert "raise LEDGERMART_NETWORK_SECONDS" in report.error
        assert naps.now - began <= 60 + 4 * _CALL_SECONDS
        ((status, in_a_row),) = service.query("select status, failures_in_a_row from raw.network_states")
        assert (status, in_a_row) == ("Unreachable", failures)
    service.good_cycle("second")
    proxy.clear()
    service.good_cycle()
    assert service.raw_rows() == clean


@pytest.mark.ci
def test_a_network_that_catches_up_keeps_its_rows_and_is_retried_soon(
    proxy: FaultProxy, service: Service, naps: Naps, clean: dict[str, list[tuple[Any, ...]]]
) -> None:
    slow(proxy, naps, _LOGS)
    covered = []
    for _ in range(2):
        node = service.node(budget=Budget(35, 1_000, naps.clock), clock=naps.clock, sleep=naps.sleep, max_in_flight=1)
        report = service.cycle(node=node)
        node.close()
        assert report.error is not None
        assert "used up its 35 s" in report.error
        assert service.query("select failures_in_a_row from raw.network_states") == [(1,)]
        covered += service.query("select coalesce(sum(to_block - from_block + 1), 0)::int from raw.coverage")
    (first,), (second,) = covered
    assert 0 < first < second
    proxy.clear()
    service.good_cycle()
    service.good_cycle("second")
    assert service.raw_rows() == clean


@pytest.mark.ci
def test_history_of_a_slow_node_ends_with_the_budget_of_its_part(
    chain: Chain,
    proxy: FaultProxy,
    make_service: MakeService,
    naps: Naps,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Once the node is honest, its request continues at the same block; the other network's request ends meanwhile."""
    service = make_service(LocalNetwork("local", proxy.url, max_log_range=1), LocalNetwork("second", chain.node.url))
    tenant = service.tenant()
    service.ledger(tenant, "second")
    operations = {}
    for ledger in ("local", "second"):
        token = service.token(tenant, chain.token.address, ledger=ledger)
        service.good_cycle(ledger)
        operations[ledger] = service.ask_history(tenant, token, "block:1")

    def opened(network: Any, *, budget: Budget | None) -> Any:
        return service.node(network.name, budget=budget, clock=naps.clock, sleep=naps.sleep)

    monkeypatch.setattr(history, "open_node", opened)
    slow(proxy, naps, _LOGS)
    service.history(make_budget=lambda: Budget(5, 1_000, naps.clock))
    states = dict(service.query("select network, status from raw.network_states"))
    assert states == {"local": "Unreachable", "second": "Healthy"}
    failed = service.operation(operations["local"])
    assert failed.status == "Running"
    assert failed.error is not None
    assert "used up its 5 s of this cycle" in failed.error
    ((first,), (other,)) = (
        service.query("select count(*) from raw.token_transfers where network = ?", [name])[0]
        for name in ("local", "second")
    )
    assert first < other
    proxy.clear()
    service.good_cycle()
    service.history()
    rows = "select * exclude (network, batch_id) replace (amount_raw::varchar as amount_raw) from raw.token_transfers"
    assert service.query(f"{rows} where network = 'local' order by all") == service.query(
        f"{rows} where network = 'second' order by all"
    )
