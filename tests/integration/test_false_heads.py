"""False heads and false final blocks that are plausible: honest cycles remove all rows that derive from them."""

import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from pipelines.chain.tail import CONFIRMING_CYCLES
from tests.chain.conftest import GENESIS_TIME
from tests.chain.fault_proxy import FaultProxy
from tests.chain.node import AnvilNode
from tests.chain.world import World
from tests.integration.conftest import MakeService
from tests.integration.harness import Service
from tests.integration.invented_chain import InventedChain
from tests.integration.test_lying_nodes import System
from tests.oracles.node import instant

INVENTED = 900


@pytest.fixture
def system(node: AnvilNode, make_service: MakeService) -> Iterator[System]:
    """A tracked token behind a proxy."""
    with FaultProxy(node.url) as proxy:
        yield System(node, proxy, make_service)


def check_recovered(system: System, folder: Path, final: int | None = None) -> None:
    """Check that no row of the lie is left, and that all rows of a run without the lie exist."""
    rows, clean = system.service.raw_rows(), system.service.clean_rows(folder)
    openings = {row for row in clean.pop("balance_observations") if row[6] != "Check"}
    assert openings <= set(rows.pop("balance_observations"))
    for table in ("token_transfers", "view_ranges", "coverage", "blocks"):
        assert rows[table] == clean[table]
    system.check()
    assert final_of(system) == (max(system.node.head() - 64, 0) if final is None else final)


def honest_cycles(system: System) -> int:
    """Run cycles, each after a new block, until one succeeds; return their number."""
    system.proxy.clear()
    for cycles in range(1, 10):
        system.move(1)
        if system.service.cycle().error is None:
            return cycles
        assert system.service.query("select status from raw.network_states") == [("Unhealthy",)]
    raise AssertionError("the network did not recover")


def told_final_by(find: Callable[[int], int]) -> Callable[[list[Any], Any], Any]:
    """Call the block final that `find` computes from the head."""

    def tell(params: list[Any], block: Any) -> Any:
        if params[0] == "latest":
            tell.head = block  # type: ignore[attr-defined]
        if params[0] != "finalized":
            return block
        head = tell.head  # type: ignore[attr-defined]
        return head | {"number": hex(find(int(head["number"], 16)))}

    return tell


@pytest.mark.proof("invented blocks of a false head are removed")
@pytest.mark.parametrize("is_final", [False, True], ids=["fake_head", "fake_head_final"])
def test_invented_blocks_are_removed_after_three_honest_cycles(
    is_final: bool,
    system: System,
    tmp_path: Path,
) -> None:
    system.move(5)
    system.service.good_cycle()
    system.move(3)
    lie = InventedChain(system.node, INVENTED, system.token, is_final=is_final)
    system.proxy.inject(*lie.faults())
    assert system.service.good_cycle().head == lie.head
    ((invented,),) = system.service.query(
        "select count(*) from raw.token_transfers where block_number >= ?", [lie.first]
    )
    assert invented == INVENTED // 10
    assert honest_cycles(system) == CONFIRMING_CYCLES
    check_recovered(system, tmp_path)


def final_of(system: System) -> int:
    """The newest final block that is stored."""
    ((final,),) = system.service.query("select final_number from raw.network_states")
    return int(final)


@pytest.mark.ci
def test_a_head_called_final_once_is_not_final(system: System, tmp_path: Path) -> None:
    """`false_final_reorg` in a single cycle: a reorganisation of three blocks is repaired in the next cycle."""
    system.move(5)
    system.service.good_cycle()
    system.move(3)
    seen = system.service.query("select max(block_number) from raw.blocks where is_tail")[0][0]
    system.lie(told_final_by(lambda head: head))
    system.service.good_cycle()
    assert final_of(system) == seen < system.node.head()
    system.proxy.clear()
    ancestor = system.node.head() - 3
    system.node.rpc("anvil_rollback", [3])
    system.move(4)
    assert system.service.good_cycle().reorganised_after == ancestor
    check_recovered(system, tmp_path, final=seen)


@pytest.mark.ci
def test_a_false_final_block_is_withdrawn_after_three_honest_cycles(
    system: System,
    tmp_path: Path,
) -> None:
    """The `false_final_reorg` of many cycles: final blocks are replaced, but were not final for an hour."""
    system.lie(told_final_by(lambda head: head))
    for _ in range(4):
        system.move(3)
        system.service.good_cycle()
    ancestor = system.node.head() - 5
    assert final_of(system) == ancestor + 2
    system.node.rpc("anvil_rollback", [5])
    system.move(6)
    before = system.service.raw_rows()
    assert system.service.cycle().error is not None
    assert system.service.raw_rows() == before
    assert honest_cycles(system) == CONFIRMING_CYCLES - 1
    assert system.service.query("select ancestor_block from raw.reorganisations") == [(ancestor,)]
    check_recovered(system, tmp_path)


@pytest.mark.ci
def test_a_node_that_denies_final_blocks_for_two_cycles_removes_nothing(system: System) -> None:
    """The opposite lie: honest rows stay, and the count of contradicting cycles begins again."""
    system.lie(told_final_by(lambda head: head))
    for _ in range(2):
        system.move(3)
        system.service.good_cycle()
    system.proxy.clear()
    before = system.service.raw_rows()
    first = system.node.head() - 5
    for _ in range(2):
        for _ in range(CONFIRMING_CYCLES - 1):
            system.move(1)
            system.lie(another_chain_from(system.node, first))
            report = system.service.cycle()
            assert report.error is not None
            assert f"blocks {first} to" in report.error
            assert system.service.raw_rows() == before
            system.proxy.clear()
        system.check()
        before = system.service.raw_rows()


def another_chain_from(node: AnvilNode, first: int) -> Callable[[list[Any], Any], Any]:
    """The node's blocks from a number on under other hashes, linked."""

    def tell(params: list[Any], block: Any) -> Any:
        if block is None or int(block["number"], 16) < first:
            return block
        number = int(block["number"], 16)
        parent = node.rpc("eth_getBlockByNumber", [hex(first - 1), False])["hash"]
        return block | {
            "hash": f"0x{number:064x}",
            "parentHash": parent if number == first else f"0x{number - 1:064x}",
        }

    return tell


@pytest.mark.proof("settled blocks are never removed by a cycle")
@pytest.mark.usefixtures("settled_at_once")
def test_settled_blocks_are_never_removed_and_the_reset_is_named(system: System) -> None:
    system.lie(told_final_by(lambda head: head))
    for _ in range(3):
        system.move(3)
        system.service.good_cycle()
    ((settled,),) = system.service.query("select settled_number from raw.known_chains")
    ((stored,),) = system.service.query("select block_hash from raw.blocks where block_number = ?", [settled])
    system.node.rpc("anvil_rollback", [system.node.head() - settled + 1])
    system.move(20)
    told = system.node.rpc("eth_getBlockByNumber", [hex(settled), False])["hash"]
    before = system.service.raw_rows()
    for _ in range(CONFIRMING_CYCLES + 1):
        system.move(1)
        report = system.service.cycle()
        assert report.error is not None
        assert f"block {settled} was final with the hash {stored}, and the node now says {told}" in report.error
        assert "ledgermart network reset local" in report.error
        assert system.service.query("select status from raw.network_states") == [("ChainReset",)]
    assert system.service.raw_rows() == before


@pytest.mark.ci
@pytest.mark.usefixtures("settled_at_once")
def test_a_node_behind_settled_blocks_is_stale_until_its_head_is_younger(system: System) -> None:
    system.lie(told_final_by(lambda head: head))
    for _ in range(3):
        system.move(30)
        system.service.good_cycle()
    system.node.rpc("anvil_rollback", [80])
    report = system.service.cycle()
    assert report.error is not None
    assert "far behind" in report.error
    assert system.service.query("select status from raw.network_states") == [("Unhealthy",)]
    # A younger block cannot be on the chain of the settled one.
    system.node.mine(int(time.time()))
    report = system.service.cycle()
    assert report.error is not None
    head = system.node.rpc("eth_getBlockByNumber", ["latest", False])
    ((stored,),) = system.service.query(
        "select block_hash from raw.blocks where block_number = ?", [int(head["number"], 16)]
    )
    assert f"with the hash {stored}, and the node now says {head['hash']}" in report.error
    assert system.service.query("select status from raw.network_states") == [("ChainReset",)]


@pytest.mark.ci
def test_a_restarted_chain_is_named_by_its_genesis(system: System) -> None:
    system.move(5)
    system.service.good_cycle()
    genesis = system.node.rpc("eth_getBlockByNumber", ["0x0", False])["hash"]
    before = system.service.raw_rows()
    with AnvilNode(genesis_time=GENESIS_TIME + 1) as other:
        other.mine_empty(system.node.head() + 5, 12)
        system.service.point_at("local", other.url)
        for _ in range(CONFIRMING_CYCLES + 1):
            other.mine_empty(1, 12)
            report = system.service.cycle()
            told = other.rpc("eth_getBlockByNumber", ["0x0", False])["hash"]
            assert report.error is not None
            assert f"block 0 was final with the hash {genesis}, and the node now says {told}" in report.error
            assert system.service.query("select status from raw.network_states") == [("ChainReset",)]
    assert system.service.raw_rows() == before
    system.service.point_at("local", system.proxy.url)
    system.check()


@pytest.mark.release
def test_marts_recover_and_the_other_network_continues(node: AnvilNode, ready_service: Service) -> None:
    """In the marts: invented and final activities are removed, the other network continues, statuses change."""
    service = ready_service
    world = World(node, wallet_count=4)
    world.place_multicall()
    gold = world.deploy_token("GOLD", 18)
    world.distribute(gold, 1_000)
    tenant = service.tenant()
    service.ledger(tenant, "second")
    service.point_at("second", node.url)
    for ledger in ("local", "second"):
        service.token(tenant, gold.address, tracked_from=instant(node, 0), ledger=ledger)
    activities = """
        select tokens.network, activities.block_hash, activities.amount_raw::varchar, activities.status
        from marts.token_activities as activities
        inner join marts.tokens as tokens on activities.token_id = tokens.token_id
        order by all
    """

    def shown(network: str) -> list[tuple[Any, ...]]:
        return [row[1:] for row in service.published(activities) if row[0] == network]

    with FaultProxy(node.url) as proxy:
        service.point_at("local", proxy.url)
        assert service.ledgermart("cycle").returncode == 0
        before = len(shown("second"))
        lie = InventedChain(node, INVENTED, gold, is_final=True)
        proxy.inject(*lie.faults())
        assert service.ledgermart("cycle").returncode == 0
        assert len(shown("local")) >= len(shown("second")) + INVENTED // 10
        assert {"Finalized"} <= {row[2] for row in shown("local")}
        proxy.clear()
        for cycle in range(1, CONFIRMING_CYCLES + 1):
            world.transfer(gold, world.wallets[0], world.wallets[1], cycle)
            world.mine()
            done = service.ledgermart("cycle")
            assert done.returncode == (0 if cycle == CONFIRMING_CYCLES else 3), done.stdout + done.stderr
            assert len(shown("second")) == before + cycle
        assert shown("local") == shown("second")
