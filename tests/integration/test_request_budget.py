"""Requests to a node: counts equal the received requests, and a daily limit favours live tracking."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from unittest import mock

import pytest

from cli.status import read_status
from control import operations
from control.access import Principal
from control.operations import OperationRow, Status
from control.subjects import SubjectRow
from tests.chain.conftest import GENESIS_TIME
from tests.chain.fault_proxy import FaultProxy, HttpFault, RpcFault
from tests.chain.node import AnvilNode
from tests.chain.world import Token, World
from tests.integration.clean_collection import small_parts
from tests.integration.conftest import MakeService
from tests.integration.harness import LocalNetwork, Service
from tests.integration.killing import Killed
from tests.oracles.node import instant

MIDNIGHT = datetime(2026, 5, 2, tzinfo=UTC)


@dataclass
class Clock:
    """The warehouse's clock, moved only by the test."""

    now: datetime = datetime(2026, 5, 1, 12, tzinfo=UTC)

    def next_day(self) -> None:
        """Move to the same time of the next day."""
        self.now += timedelta(days=1)


@dataclass(frozen=True)
class Chain:
    """A chain with a token that is transferred in every fourth block."""

    node: AnvilNode
    world: World
    gold: Token
    created: int


@pytest.fixture(scope="module")
def chain() -> Iterator[Chain]:
    with AnvilNode(genesis_time=GENESIS_TIME) as node:
        world = World(node, wallet_count=4, gas_price=10**9)
        world.place_multicall()
        gold = world.deploy_token("GOLD", 18)
        created = node.head()
        world.distribute(gold, 100_000)
        for _ in range(25):
            world.transfer_many(3, [gold], per_block=3)
            for _ in range(3):
                world.mine()
        yield Chain(node, world, gold, created)


@pytest.fixture
def proxy(chain: Chain) -> Iterator[FaultProxy]:
    with FaultProxy(chain.node.url) as running:
        yield running


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    found = Clock()
    monkeypatch.setattr("pipelines.raw.usage.stored_now", lambda: found.now.replace(tzinfo=None))
    return found


@pytest.fixture
def service(proxy: FaultProxy, clock: Clock, make_service: MakeService) -> Service:
    return make_service(LocalNetwork("local", proxy.url, max_log_range=5))


@pytest.fixture
def tenant(service: Service) -> Principal:
    return service.tenant()


@pytest.fixture
def token(chain: Chain, service: Service, tenant: Principal) -> SubjectRow:
    """Tracked from the newest block on."""
    opened_at = instant(chain.node, chain.node.head())
    return service.token(tenant, chain.gold.address, tracked_from=opened_at)


def allow(service: Service, most: int | None) -> None:
    """Set the network's limit of requests per day."""
    service.networks = {"local": replace(service.networks["local"], max_requests_per_day=most)}


def spent(service: Service, day: datetime | None = None) -> dict[str, int]:
    """Return the number of requests by purpose, of one day or of all days."""
    return dict(
        service.query(
            """
            select purpose, sum(request_count)::bigint from raw.requests_spent where coalesce(day = ?, true) group by 1
            """,
            [None if day is None else day.date()],
        )
    )


def largest(service: Service) -> int:
    """Return the requests of the largest part: a running part is read to its end."""
    ((found,),) = service.query("select max(most_requests) from raw.requests_spent where purpose = 'History'")
    return int(found)


def done(service: Service, operation: OperationRow) -> int:
    return service.operation(operation).progress_done


@pytest.mark.ci
def test_request_count_equals_the_nodes_received_requests(
    chain: Chain, service: Service, proxy: FaultProxy, tenant: Principal, token: SubjectRow
) -> None:
    service.wallet(tenant, chain.world.wallets[0], tracked_from=instant(chain.node, chain.node.head() - 10))
    service.good_cycle()
    live = len(proxy.calls)
    assert sum(spent(service).values()) == live
    assert spent(service)["Live"] > 20
    service.ask_history(tenant, token, "creation")
    proxy.inject(HttpFault(status=503, methods=["eth_getLogs"], times=2))
    service.history()
    assert spent(service)["History"] == len(proxy.calls) - live
    blocks = service.query("select unit_count from raw.requests_spent where purpose = 'History' and work = 'token'")
    assert blocks == [(chain.node.head() - chain.created,)]


@pytest.mark.ci
def test_failed_requests_are_counted(
    chain: Chain, service: Service, proxy: FaultProxy, tenant: Principal, token: SubjectRow
) -> None:
    service.ask_history(tenant, token, "creation")
    service.good_cycle()
    live = len(proxy.calls)
    proxy.inject(RpcFault(code=-32601, message="the method eth_getLogs is not available", methods=["eth_getLogs"]))
    service.history()
    assert spent(service)["History"] == len(proxy.calls) - live
    chain.world.mine()
    assert service.cycle().error is not None
    assert sum(spent(service).values()) == len(proxy.calls)


@pytest.mark.ci
def test_a_killed_process_loses_only_the_counts_of_its_current_part(
    service: Service, proxy: FaultProxy, tenant: Principal, token: SubjectRow
) -> None:
    service.ask_history(tenant, token, "creation")
    service.good_cycle()
    live = len(proxy.calls)
    with (
        small_parts(),
        mock.patch("pipelines.history.collecting.note_work", side_effect=[None, None, Killed]),
        pytest.raises(Killed),
    ):
        service.history()
    rows = dict(service.query("select work, unit_count from raw.requests_spent where purpose = 'History'"))
    first, *_ = service.query("select to_block - from_block + 1 from raw.covered_ranges order by from_block")
    assert rows["token"] == first[0] > 14
    assert rows["token"] // 5 <= spent(service)["History"] <= len(proxy.calls) - live


@pytest.mark.proof("history waits for a used-up budget of requests and tracking does not")
def test_history_waits_for_the_next_day_and_live_tracking_does_not(
    chain: Chain, service: Service, proxy: FaultProxy, clock: Clock, tenant: Principal, token: SubjectRow
) -> None:
    asked = service.ask_history(tenant, token, "creation")
    service.good_cycle()
    total = chain.node.head() - chain.created + 1
    most = spent(service)["Live"] + 70
    allow(service, most)
    with small_parts():
        service.history()
    waiting = service.operation(asked)
    assert 0 < waiting.progress_done < total
    assert (waiting.status, waiting.presented_status) == (Status.RUNNING, "WaitingForBudget")
    assert waiting.waits_until == MIDNIGHT
    assert sum(spent(service).values()) <= most + largest(service)

    # The history sends no requests; live tracking still sends all of its own.
    received = len(proxy.calls)
    service.history()
    assert len(proxy.calls) == received
    for _ in range(8):
        first, second, *_ = chain.world.wallets
        chain.world.transfer(chain.gold, first, second, 1)
        head = chain.world.mine()
        service.good_cycle()
    assert service.query("select max(to_block) from raw.covered_ranges where not is_native") == [(head,)]
    assert sum(spent(service).values()) > most
    assert done(service, asked) == waiting.progress_done
    (detail,) = service.query("select status, detail from raw.network_states")
    assert detail[0] == "Healthy"
    assert "WaitingForBudget: history resumes at 2026-05-02T00:00:00Z" in detail[1]
    status = read_status(service.settings)
    (network,) = status["networks"]
    assert network["requests"] == {
        "day": "2026-05-01",
        "spent": spent(service),
        "most": most,
        "history": "WaitingForBudget",
        "resumesAt": "2026-05-02T00:00:00Z",
    }
    (operation,) = status["operations"]
    assert (operation["status"], operation["resumesAt"]) == ("WaitingForBudget", "2026-05-02T00:00:00Z")

    # The next day reserves yesterday's amount for live tracking, which uses nothing; the day after has no such reserve.
    allow(service, spent(service)["Live"])
    clock.next_day()
    service.history()
    assert spent(service, clock.now) == {}
    allow(service, most)
    days = 0
    while done(service, asked) < total:
        clock.next_day()
        with small_parts():
            service.history()
        assert 0 < sum(spent(service, clock.now).values()) <= most + largest(service)
        days += 1
        assert days < 10
    assert service.operation(asked).presented_status == "Running"
    found = service.query("select count(*) from raw.token_transfers where block_number >= ?", [chain.created])
    logs = chain.world.transfer_logs(chain.created, chain.node.head(), chain.gold.address)
    assert found == [(len(logs),)]


def test_a_request_that_waits_for_budget_can_be_cancelled(
    service: Service, proxy: FaultProxy, tenant: Principal, token: SubjectRow
) -> None:
    asked = service.ask_history(tenant, token, "creation")
    service.good_cycle()
    allow(service, 1)
    service.history()
    assert service.operation(asked).presented_status == "WaitingForBudget"
    with service.store.write() as session:
        operations.cancel(session, tenant, asked)
    received = len(proxy.calls)
    service.history()
    assert service.operation(asked).presented_status == "Cancelled"
    assert len(proxy.calls) == received


@pytest.mark.ci
def test_second_readings_wait_as_well(chain: Chain, proxy: FaultProxy, clock: Clock, make_service: MakeService) -> None:
    with FaultProxy(chain.node.url) as second:
        service = make_service(LocalNetwork("local", proxy.url, second_url=second.url))
        allow(service, 1)
        service.token(service.tenant(), chain.gold.address, tracked_from=instant(chain.node, chain.created))
        service.good_cycle()
        assert second.calls == []
        allow(service, 10**6)
        service.good_cycle()
        assert spent(service)["SecondReading"] == len(second.calls) > 0
        assert sum(spent(service).values()) == len(second.calls) + len(proxy.calls)
