"""Reorganisations: orphaned blocks are deleted with all dependent rows, and canonical ones are collected.

Every case ends in the same state as a new collection.
"""

from datetime import datetime
from pathlib import Path

import polars as pl
import pytest

from control.ranges import BlockRange
from pipelines.chain.rows import HashMismatchError, store_segment
from pipelines.raw.database import open_warehouse
from pipelines.rows import Origin, Segment
from tests.chain.conftest import GENESIS_TIME
from tests.chain.fault_proxy import ActionFault, FaultProxy
from tests.chain.node import AnvilNode
from tests.chain.world import Token, World
from tests.integration.conftest import MakeService
from tests.integration.harness import LocalNetwork, Service
from tests.oracles.node import check_anchors, check_truth, instant


class System:
    """A world with a token, of which the last blocks may be replaced by others."""

    def __init__(self, node: AnvilNode) -> None:
        self.node = node
        self.world = World(node, wallet_count=6, gas_price=10**9)
        self.world.place_multicall()
        self.token: Token = self.world.deploy_token("GOLD", 18)
        self.world.distribute(self.token, 1_000_000)
        self.opening = node.head() + 1
        self.amount = 0

    def configure(self, service: Service) -> None:
        """Have the token and a wallet tracked from `opening` on."""
        tenant = service.tenant()
        service.token(tenant, self.token.address, tracked_from=self.time_of_opening)
        service.wallet(tenant, self.world.wallets[0], tracked_from=self.time_of_opening)

    @property
    def time_of_opening(self) -> datetime:
        """The time of the block `opening`."""
        return instant(self.node, self.opening)

    def mine(self, blocks: int) -> None:
        """Make blocks with transfers of amounts that never come twice; some blocks stay empty."""
        wallets = self.world.wallets
        for _ in range(blocks):
            self.amount += 1
            if self.amount % 3:
                sender, receiver = wallets[self.amount % 2], wallets[2 + self.amount % 4]
                self.world.transfer(self.token, sender, receiver, self.amount)
                self.world.submit(wallets[0], wallets[5], value=self.amount)
            self.world.mine()

    def replace(self, orphaned: int, by: int) -> int:
        """Replace the newest blocks by others and return the common ancestor."""
        self.node.rpc("anvil_rollback", [orphaned])
        ancestor = self.node.head()
        self.mine(by)
        return ancestor


@pytest.fixture
def system(node: AnvilNode) -> System:
    return System(node)


@pytest.fixture
def service(system: System, make_service: MakeService) -> Service:
    """A service that has collected ten blocks."""
    service = make_service(LocalNetwork("local", system.node.url))
    system.mine(10)
    system.configure(service)
    service.good_cycle()
    return service


def check_end_state(service: Service, system: System, folder: Path) -> None:
    """Assert that the rows equal the node's, and those of a new collection.

    There may be more readings: those of earlier heads, and of holders with orphaned movements. `check_truth` compares
    them with the node, too.
    """
    check_truth(service, system.node)
    check_anchors(service, system.node)
    rows, clean = service.raw_rows(), service.clean_rows(folder)
    openings = {row for row in clean.pop("balance_observations") if row[6] != "Check"}
    assert openings <= set(rows.pop("balance_observations"))
    assert rows == clean


def all_hashes(service: Service) -> set[str]:
    """Block hashes named anywhere in the raw tables."""
    return {
        block_hash
        for table in ("blocks", "token_transfers", "transactions", "balance_observations", "supply_observations")
        for (block_hash,) in service.query(f"select distinct block_hash from raw.{table}")
    }


@pytest.mark.proof("a reorganisation replaces orphaned rows")
@pytest.mark.parametrize(
    ("orphaned", "by"),
    [
        pytest.param(1, 1, id="newest block"),
        pytest.param(4, 4, id="same height"),
        pytest.param(4, 9, id="longer"),
        pytest.param(5, 2, id="shorter"),
    ],
)
def test_orphaned_rows_are_replaced_by_canonical_ones(
    orphaned: int, by: int, system: System, service: Service, tmp_path: Path
) -> None:
    head = system.node.head()
    doomed = {system.node.rpc("eth_getBlockByNumber", [hex(head - back), False])["hash"] for back in range(orphaned)}
    assert doomed <= all_hashes(service)
    ancestor = system.replace(orphaned, by)
    report = service.good_cycle()
    assert report.reorganised_after == ancestor == head - orphaned
    assert not doomed & all_hashes(service)
    ((removed,),) = service.query("select removed_rows from raw.reorganisations where ancestor_block = ?", [ancestor])
    assert removed > orphaned
    check_end_state(service, system, tmp_path)


@pytest.mark.ci
def test_reorganisation_in_anvils_own_way(system: System, service: Service, tmp_path: Path) -> None:
    """The head's number stays; a new transaction replaces those of the orphaned blocks."""
    head = system.node.head()
    replacement = {
        "from": system.world.wallets[1],
        "to": system.world.wallets[0],
        "value": hex(12345),
        "gas": hex(50_000),
        "gasPrice": hex(10**9),
    }
    system.node.rpc("anvil_reorg", [4, [[replacement, 1]]])
    assert system.node.head() == head
    assert service.good_cycle().reorganised_after == head - 4
    assert service.query("select value_raw::varchar from raw.transactions where block_number > ?", [head - 4]) == [
        ("12345",)
    ]
    check_end_state(service, system, tmp_path)


@pytest.mark.ci
def test_subjects_are_marked_from_the_first_orphaned_block(system: System, service: Service) -> None:
    ((batch,),) = service.query("select max(batch_id) from raw.batches")
    ancestor = system.replace(3, 3)
    service.good_cycle()
    marks = service.query(
        "select subject_key, from_block, to_block from raw.changes where batch_id > ? and reason = 'Reorganisation'",
        [batch],
    )
    assert sorted(marks) == [(1, ancestor + 1, None), (2, ancestor + 1, None)]


@pytest.mark.ci
def test_several_reorganisations_between_and_after_cycles(system: System, service: Service, tmp_path: Path) -> None:
    system.replace(2, 3)
    system.replace(5, 4)
    service.good_cycle()
    system.mine(2)
    service.good_cycle()
    system.replace(6, 8)
    service.good_cycle()
    check_end_state(service, system, tmp_path)


@pytest.mark.ci
def test_a_header_stored_by_history_does_not_confirm_an_orphaned_tail(
    system: System, service: Service, tmp_path: Path
) -> None:
    """The header is canonical and the newest; earlier blocks of the tail are orphaned, and not linked to it."""
    newest = system.node.head()
    ancestor = system.replace(orphaned=4, by=6)
    ahead = system.node.rpc("eth_getBlockByNumber", [hex(newest + 1), False])
    with open_warehouse(service.settings.warehouse_path) as connection:
        connection.execute(
            """
            insert into raw.blocks by name
            select * replace (? as block_number, ? as block_hash, ? as parent_hash, false as is_tail)
            from raw.blocks where network = 'local' and block_number = ?
            """,
            [newest + 1, ahead["hash"], ahead["parentHash"], newest],
        )
    assert service.good_cycle().reorganised_after == ancestor
    check_end_state(service, system, tmp_path)


@pytest.mark.ci
def test_windows_are_resolved_again_after_their_blocks_changed(
    system: System, make_service: MakeService, tmp_path: Path
) -> None:
    """The new blocks have different times, so the window opens and closes at different block numbers."""
    service = make_service(LocalNetwork("local", system.node.url))
    tenant = service.tenant()
    system.mine(6)
    first = system.opening
    opened, closed = instant(system.node, first + 2), instant(system.node, first + 4)
    subject = service.token(tenant, system.token.address, tracked_from=opened)
    wallet = service.wallet(tenant, system.world.wallets[0], tracked_from=opened)
    service.track(tenant, subject, False, closed)
    service.good_cycle()
    assert service.query("select from_block, to_block from raw.view_ranges order by 1, 2") == [
        (first + 2, first + 3),
        (first + 2, None),
    ]
    system.node.rpc("anvil_rollback", [5])
    start = system.node.block_time(system.node.head())
    # The same times with twice as many blocks.
    for step in range(1, 11):
        system.world.transfer(system.token, system.world.wallets[0], system.world.wallets[3], 100 + step)
        system.world.submit(system.world.wallets[0], system.world.wallets[4], value=step)
        for method, params in system.world._waiting:
            system.node.rpc(method, params)
        system.world._waiting.clear()
        system.node.mine(start + 6 * step)
    assert service.good_cycle().reorganised_after == first
    assert service.query("select from_block, to_block from raw.view_ranges order by 1, 2") == [
        (first + 4, first + 7),
        (first + 4, None),
    ]
    assert wallet.is_tracked
    check_end_state(service, system, tmp_path)


@pytest.mark.ci
def test_window_with_an_orphaned_opening_waits_for_a_new_block(system: System, make_service: MakeService) -> None:
    service = make_service(LocalNetwork("local", system.node.url))
    system.mine(5)
    service.token(service.tenant(), system.token.address, tracked_from=instant(system.node, system.node.head()))
    service.good_cycle()
    assert len(service.raw_rows()["coverage"]) == 1
    system.node.rpc("anvil_rollback", [3])
    # The new block is before the window's opening.
    system.node.mine(system.node.block_time(system.node.head()) + 1)
    service.good_cycle()
    rows = service.raw_rows()
    assert not any(rows[table] for table in ("view_ranges", "coverage", "token_transfers", "balance_observations"))
    system.mine(4)
    service.good_cycle()
    assert len(service.raw_rows()["coverage"]) == 1
    check_truth(service, system.node)
    check_anchors(service, system.node)


@pytest.mark.ci
@pytest.mark.parametrize("missing", [1, 4])
def test_head_behind_on_the_same_chain_is_no_reorganisation(missing: int, system: System, service: Service) -> None:
    before = service.raw_rows()
    system.node.rpc("anvil_rollback", [missing])
    report = service.cycle()
    assert report.error is not None
    assert "behind" in report.error
    assert service.raw_rows() == before
    assert service.query("select status from raw.network_states") == [("Unhealthy",)]


@pytest.mark.ci
def test_a_younger_head_further_back_than_finality_needs_three_cycles(
    system: System, make_service: MakeService, tmp_path: Path
) -> None:
    """The node's blocks differ: the node either lies now, or lied before."""
    service = make_service(LocalNetwork("local", system.node.url, finality_depth=3))
    system.mine(8)
    system.configure(service)
    service.good_cycle()
    before = service.raw_rows()
    ancestor = system.replace(7, 2)
    for _ in range(2):
        report = service.cycle()
        assert report.error is not None
        assert f"blocks {ancestor + 1} to {ancestor + 7}: the node's chain lacks these stored blocks" in report.error
        assert service.raw_rows() == before
        assert service.query("select status from raw.network_states") == [("Unhealthy",)]
        # Without a new head there is no confirmation.
        assert service.cycle().error == report.error
        system.mine(1)
    assert service.good_cycle().reorganised_after == ancestor
    check_end_state(service, system, tmp_path)


@pytest.mark.proof("another chain with the same id is refused")
def test_another_chain_with_the_same_id_is_refused(system: System, service: Service) -> None:
    before = service.raw_rows()
    with AnvilNode(genesis_time=GENESIS_TIME + 1) as stranger:
        stranger.mine_empty(system.node.head() + 5, 12)
        service.point_at("local", stranger.url)
        report = service.cycle()
    assert report.error is not None
    assert "block 0 was final with the hash" in report.error
    assert service.query("select status from raw.network_states") == [("ChainReset",)]
    assert service.raw_rows() == before


@pytest.mark.ci
@pytest.mark.parametrize(
    ("method", "is_first_cycle"),
    [
        ("eth_getLogs", True),
        ("eth_getBlockByNumber", False),
        pytest.param("eth_getLogs", False, marks=pytest.mark.release),
        pytest.param("eth_getTransactionReceipt", True, marks=pytest.mark.release),
        pytest.param("eth_call", False, marks=pytest.mark.release),
        pytest.param("eth_getCode", True, marks=pytest.mark.release),
        pytest.param("eth_getTransactionReceipt", False, marks=pytest.mark.release),
        pytest.param("eth_getBlockByNumber", True, marks=pytest.mark.release),
        pytest.param("eth_call", True, marks=pytest.mark.release),
        pytest.param("eth_getCode", False, marks=pytest.mark.release),
    ],
)
def test_chain_that_moves_while_it_is_read_is_read_again(
    method: str, is_first_cycle: bool, system: System, make_service: MakeService, tmp_path: Path
) -> None:
    system.mine(10)
    with FaultProxy(system.node.url) as proxy:
        service = make_service(LocalNetwork("local", proxy.url))
        system.configure(service)
        if not is_first_cycle:
            service.good_cycle()
            system.mine(4)
        proxy.inject(ActionFault(action=lambda: system.replace(6, 7), times=1, methods=[method]))
        report = service.cycle()
        assert proxy.pending() == 0
        assert report.error is None
        service.good_cycle()
        check_end_state(service, system, tmp_path)


def test_rows_of_another_hash_than_the_stored_header_are_refused(system: System, service: Service) -> None:
    """A last check in case the following readings do not notice the reorganisation."""
    before = service.raw_rows()
    with open_warehouse(service.settings.warehouse_path) as connection:
        rows = connection.execute(
            """
            select * exclude (network, batch_id) replace (amount_raw::varchar as amount_raw)
            from raw.token_transfers
            """
        ).pl()
        moved = rows.with_columns(pl.lit("0x" + "ee" * 32).alias("block_hash"))
        covered = BlockRange(system.opening, system.node.head())
        segment = Segment("token", covered, (system.token.address,))
        with pytest.raises(HashMismatchError):
            store_segment(connection, "local", segment, {"token_transfers": moved}, Origin("127.0.0.1"), 99)
    assert service.raw_rows() == before


@pytest.mark.ci
def test_chain_that_moves_on_every_attempt_is_reported(
    system: System, make_service: MakeService, tmp_path: Path
) -> None:
    system.mine(10)
    with FaultProxy(system.node.url) as proxy:
        service = make_service(LocalNetwork("local", proxy.url))
        system.configure(service)
        proxy.inject(ActionFault(action=lambda: system.replace(6, 7), methods=["eth_getLogs"]))
        report = service.cycle()
        assert report.error is not None
        assert "changed while" in report.error or "moved" in report.error or "left the chain" in report.error
        assert service.query("select status from raw.network_states") == [("Unhealthy",)]
        ((call, first),) = service.query("select call, from_block from raw.collection_failures")
        assert call.startswith("eth_getBlockBy")
        assert first >= system.opening
        proxy.clear()
        service.good_cycle()
        check_truth(service, system.node)
        check_anchors(service, system.node)
