"""A node with a false head: requests stay bounded, no data depends on the lie, and true answers repair the state."""

import time
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from pipelines.raw.database import open_warehouse
from tests.chain.fault_proxy import FaultProxy, LieFault
from tests.chain.node import AnvilNode
from tests.chain.world import Token, World
from tests.integration.conftest import MakeService
from tests.integration.harness import LocalNetwork, Service
from tests.oracles.node import check_anchors, check_truth, instant

FALSE_HEAD = 2**59
# Limit for a cycle without anything to collect, which takes some thirty calls.
_FEW_CALLS = 200


class System:
    """A token on a node of this test, behind a proxy; tracked by a service from its distribution on."""

    def __init__(self, node: AnvilNode, proxy: FaultProxy, make_service: MakeService) -> None:
        self.node, self.proxy = node, proxy
        self.world = World(node, wallet_count=4)
        self.world.place_multicall()
        self.token: Token = self.world.deploy_token("GOLD", 18)
        self.world.distribute(self.token, 1_000)
        self.service: Service = make_service(LocalNetwork("local", proxy.url))
        self.service.token(self.service.tenant(), self.token.address, tracked_from=instant(node, node.head()))

    def move(self, blocks: int) -> None:
        """Make blocks with a transfer each."""
        for amount in range(1, blocks + 1):
            self.world.transfer(self.token, self.world.wallets[amount % 2], self.world.wallets[2], amount)
            self.world.mine()

    def lie(self, tell: Callable[[list[Any], Any], Any]) -> None:
        """Have the proxy lie about headers from now on."""
        self.proxy.inject(LieFault(methods=["eth_getBlockByNumber"], tell=tell))

    def check(self) -> None:
        """Assert that the service's data equals the node's up to its head."""
        self.service.good_cycle()
        check_truth(self.service, self.node)
        check_anchors(self.service, self.node)
        ((newest,),) = self.service.query("select max(to_block) from raw.coverage")
        assert newest == self.node.head()


@pytest.fixture
def system(node: AnvilNode, make_service: MakeService) -> Any:
    with FaultProxy(node.url) as proxy:
        yield System(node, proxy, make_service)


def latest_is(number: int) -> Callable[[list[Any], Any], Any]:
    """The newest block under another number."""
    return lambda params, block: block | {"number": hex(number)} if params[0] == "latest" else block


def everything_up_to(number: int) -> Callable[[list[Any], Any], Any]:
    """A chain of the false length: missing blocks are invented, each with the one before as its parent."""

    def tell(params: list[Any], block: Any) -> Any:
        asked = number if params[0] == "latest" else None if params[0] == "finalized" else int(params[0], 16)
        if params[0] == "latest":
            tell.newest = block  # type: ignore[attr-defined]
        if asked is None or asked > number or (block is not None and params[0] != "latest"):
            return block
        return tell.newest | {  # type: ignore[attr-defined]
            "number": hex(asked),
            "hash": f"0x{asked:064x}",
            "parentHash": f"0x{asked - 1:064x}",
        }

    return tell


def finalized_is_genesis(node: AnvilNode) -> Callable[[list[Any], Any], Any]:
    """Final block 0: no other block is final."""
    genesis = node.rpc("eth_getBlockByNumber", ["0x0", False])
    return lambda params, block: genesis if params[0] == "finalized" else block


@pytest.mark.ci
@pytest.mark.parametrize("is_first_cycle", [True, False])
def test_a_head_beyond_reason_is_refused_and_nothing_is_read_for_it(is_first_cycle: bool, system: System) -> None:
    system.move(5)
    if not is_first_cycle:
        system.service.good_cycle()
        system.move(3)
    before = system.service.raw_rows()
    system.lie(everything_up_to(FALSE_HEAD))
    system.proxy.calls.clear()
    report = system.service.cycle()
    assert report.error is not None
    assert "the node's head is implausible" in report.error
    assert str(FALSE_HEAD) in report.error
    assert len(system.proxy.calls) < _FEW_CALLS
    assert system.service.raw_rows() == before
    assert system.service.query("select status, detail from raw.network_states") == [("Unhealthy", report.error)]
    system.proxy.clear()
    system.check()


@pytest.mark.ci
def test_a_head_beyond_the_defined_block_time_is_refused(system: System, make_service: MakeService) -> None:
    """The limit allows four times the defined number of blocks, and a burst; the error names the field."""
    system.move(5)
    service = make_service(LocalNetwork("local", system.proxy.url, block_milliseconds=12_000), name="timed")
    service.token(service.tenant(), system.token.address, tracked_from=instant(system.node, 0))
    service.good_cycle()
    head = system.node.head()
    system.lie(latest_is(head + 1_001))
    report = service.cycle()
    assert report.error is not None
    assert f"the newest possible block is {head + 1_000};" in report.error
    assert "block_milliseconds" in report.error
    system.proxy.clear()
    system.lie(latest_is(head + 1_000))
    report = service.cycle()
    assert report.error is not None
    assert "implausible" not in report.error
    system.proxy.clear()
    service.good_cycle()


@pytest.mark.ci
def test_a_long_chain_without_final_blocks_costs_only_its_newest_part(
    system: System, monkeypatch: pytest.MonkeyPatch
) -> None:
    most = 200
    for module in ("chain.tail", "chain.checks"):
        monkeypatch.setattr(f"pipelines.{module}.MOST_TAIL_BLOCKS", most)
    system.node.mine_empty(2 * most, 1)
    system.world = World(system.node, wallet_count=4)
    system.move(5)
    system.lie(finalized_is_genesis(system.node))
    service = system.service
    service.good_cycle()
    ((headers,),) = service.query("select count(*) from raw.blocks")
    assert most <= headers < most + 20
    system.move(3)
    service.good_cycle()
    # An outage longer than the stored tail, then a reorganisation.
    system.node.mine_empty(most + 100, 1)
    system.world = World(system.node, wallet_count=4)
    system.move(4)
    service.good_cycle()
    system.node.rpc("anvil_rollback", [3])
    system.move(5)
    ancestor = system.node.head() - 5
    assert service.good_cycle().reorganised_after == ancestor
    system.check()
    system.proxy.clear()
    system.check()


TEN_YEARS = 3_652 * 86_400


def later_by(seconds: int, first: int = 0) -> Callable[[list[Any], Any], Any]:
    """Times that are false by `seconds` from a block on."""

    def tell(params: list[Any], block: Any) -> Any:
        if block is None or int(block["number"], 16) < first:
            return block
        return block | {"timestamp": hex(int(block["timestamp"], 16) + seconds)}

    return tell


@pytest.mark.ci
def test_times_ahead_of_the_clock_are_refused_with_a_status_of_their_own(system: System) -> None:
    system.move(5)
    system.service.good_cycle()
    system.move(3)
    before = system.service.raw_rows()
    system.lie(later_by(TEN_YEARS))
    report = system.service.cycle()
    assert report.error is not None
    assert f"block {system.node.head()} is dated 203" in report.error
    assert "this machine's clock is behind" in report.error
    assert system.service.raw_rows() == before
    assert system.service.query("select status, detail from raw.network_states") == [("ClockSkew", report.error)]
    system.proxy.clear()
    system.check()


def test_a_time_one_minute_ahead_is_accepted(system: System) -> None:
    system.move(2)
    system.node.mine(int(time.time()) + 40)
    system.service.good_cycle()
    system.node.mine(int(time.time()) + 600)
    assert system.service.cycle().error is not None
    assert system.service.query("select status from raw.network_states") == [("ClockSkew",)]


@pytest.mark.ci
def test_a_block_dated_before_a_stored_one_is_refused(system: System) -> None:
    system.move(5)
    system.service.good_cycle()
    before, first = system.service.raw_rows(), system.node.head() + 1
    system.move(3)
    system.lie(later_by(-86_400, first))
    report = system.service.cycle()
    assert report.error is not None
    assert f"block {first} is dated" in report.error
    assert f"before block {first - 1}" in report.error
    assert system.service.raw_rows() == before
    assert system.service.query("select status from raw.network_states") == [("ClockSkew",)]
    system.proxy.clear()
    system.check()


@pytest.mark.ci
@pytest.mark.parametrize("seconds", [TEN_YEARS, -86_400])
def test_stored_false_times_are_found_and_read_again(seconds: int, system: System, tmp_path: Path) -> None:
    """An earlier version without these checks stored times that are out of order with the other stored ones."""
    service = system.service
    system.move(5)
    service.good_cycle()
    first = system.node.head() + 1
    system.move(4)
    service.good_cycle()
    with open_warehouse(service.settings.warehouse_path) as connection:
        connection.execute(
            "update raw.blocks set block_time = block_time + ? where block_number >= ?",
            [timedelta(seconds=seconds), first],
        )
        connection.execute("delete from raw.checked_times")
        connection.execute("update raw.view_ranges set from_block = 1")
    # While the node repeats the false times, the network's status reports them.
    system.lie(later_by(seconds, first))
    assert service.cycle().error is not None
    assert service.query("select status from raw.network_states") == [("ClockSkew",)]
    system.proxy.clear()
    system.move(2)
    assert service.good_cycle().reorganised_after == first - 1
    rows, clean = service.raw_rows(), service.clean_rows(tmp_path)
    for table in ("blocks", "view_ranges", "token_transfers"):
        assert rows[table]
        assert rows[table] == clean[table]
    system.check()
    assert service.good_cycle().reorganised_after is None


@pytest.mark.ci
def test_a_false_time_is_read_again_when_later_blocks_contradict_it(system: System) -> None:
    """For one cycle the newest block is an hour late; only the next block contradicts its time."""
    system.move(5)
    newest = system.node.head()
    system.lie(later_by(3_600, newest))
    system.service.good_cycle()
    system.proxy.clear()
    system.move(3)
    assert system.service.cycle().error is not None
    assert system.service.query("select status from raw.network_states") == [("ClockSkew",)]
    assert system.service.good_cycle().reorganised_after == newest - 1
    system.check()
    assert system.service.good_cycle().reorganised_after is None


@pytest.mark.ci
def test_earlier_times_of_the_whole_chain_replace_no_stored_ones(system: System) -> None:
    system.move(5)
    system.service.good_cycle()
    system.node.mine_empty(80, 1)
    system.service.good_cycle()
    before = system.service.raw_rows()
    system.world = World(system.node, wallet_count=4)
    system.move(3)
    system.lie(later_by(-86_400))
    for _ in range(2):
        assert system.service.cycle().error is not None
        assert system.service.query("select status from raw.network_states") == [("ClockSkew",)]
        assert system.service.raw_rows() == before
    system.proxy.clear()
    system.check()
