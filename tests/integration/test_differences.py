"""Search for the block in which a balance changed without a movement, compared with the node."""

from typing import Any
from unittest import mock

import pytest

from pipelines.balances import observations
from tests.chain.fault_proxy import FaultProxy, RpcFault
from tests.chain.node import AnvilNode
from tests.chain.world import World, call_data
from tests.integration.conftest import MakeService
from tests.integration.dbt_runner import LATER_CYCLE, build_over_nothing, open_marts, run_dbt
from tests.integration.harness import LocalNetwork, Service
from tests.integration.killing import Killed
from tests.oracles.node import instant

_ADJUSTMENTS = """
select activity_id, coalesce(to_address, from_address), amount_raw::varchar, block_number, is_located
from marts.token_activities
where activity_type = 'Adjustment'
order by block_number, to_address
"""

_READINGS = "select count(*) from raw.balance_observations union all select count(*) from raw.supply_observations"


class _Case:
    """A token that mints and burns without events between transfers, and a service that tracks it."""

    def __init__(self, node: AnvilNode, contract: str) -> None:
        self.node = node
        self.world = World(node, wallet_count=4)
        self.token = self.world.deploy_strange_token(contract, "HUSH", 6)
        self.contract = contract
        self.first = self.world.distribute(self.token, 1_000, self.world.wallets)

    def tracked(self, make_service: MakeService, url: str | None = None) -> Service:
        self.service = make_service(LocalNetwork("local", url or self.node.url))
        self.stores = build_over_nothing(self.service.settings.data_dir)
        tenant = self.service.tenant()
        self.service.token(tenant, self.token.address, tracked_from=instant(self.node, self.first))
        self.build()
        return self.service

    def build(self) -> None:
        self.service.good_cycle()
        run_dbt(self.stores, *LATER_CYCLE)

    def quietly(self, function: str, holder: str, amount: int) -> int:
        """Change a balance without an event and return the block."""
        self.world.submit(
            self.world.deployer, self.token.address, call_data(self.contract, function, holder, amount, True)
        )
        return self.world.mine()

    def idle(self, blocks: int) -> None:
        """Mine empty blocks."""
        for _ in range(blocks):
            self.world.mine()

    def rows(self, query: str) -> list[tuple[Any, ...]]:
        with open_marts(self.stores) as connection:
            return connection.execute(query).fetchall()

    def adjustments(self) -> list[tuple[Any, ...]]:
        return [row[1:] for row in self.rows(_ADJUSTMENTS)]

    def expect_the_nodes_balances(self) -> None:
        """Every balance at every block since the first is the node's."""
        head = self.node.head()
        for holder in self.world.wallets:
            points = self.rows(
                "select block_number, balance_raw::varchar from marts.balance_changes "
                f"where holder_address = '{holder}' order by block_number"
            )
            for block in range(self.first, head + 1):
                known = [quantity for number, quantity in points if number <= block]
                assert known[-1] == str(self.world.balance_of(self.token, holder, block)), (holder, block)

    def wrong_supplies(self) -> dict[int, str]:
        """Return the blocks with a supply that differs from the node's, each with its status."""
        rows = self.rows(
            "select block_number, total_supply_raw::varchar, supply_status, supply_status_after"
            " from marts.token_supplies order by block_number"
        )
        found = {}
        for block in range(self.first, self.node.head() + 1):
            number, quantity, at, after = [row for row in rows if row[0] <= block][-1]
            if quantity != str(self.world.total_supply(self.token, block)):
                found[block] = at if block == number else after
        return found


@pytest.mark.ci
def test_a_killed_cycle_leaves_out_no_supply(node: AnvilNode, make_service: MakeService) -> None:
    case = _Case(node, "LyingToken")
    service = case.tracked(make_service)
    case.world.transfer(case.token, *case.world.wallets[:2], 5)
    head = case.world.mine()

    with (
        mock.patch.object(observations._Observer, "keep_supplies_of_checked", side_effect=Killed),
        pytest.raises(Killed),
    ):
        service.cycle()
    stored = f"select total_supply_raw::varchar from raw.supply_observations where block_number = {head}"
    assert service.query(stored) == []
    service.good_cycle()
    assert service.query(stored) == [(str(case.world.total_supply(case.token, head)),)]


@pytest.mark.proof("a silent change of a balance is booked in the block of its cause")
def test_a_difference_is_booked_in_the_block_of_its_cause(node: AnvilNode, make_service: MakeService) -> None:
    case = _Case(node, "LyingToken")
    case.tracked(make_service)
    one, other, third, _ = case.world.wallets
    case.idle(5)
    minted = case.quietly("mint_silently", one, 77)
    case.idle(9)
    case.world.transfer(case.token, one, third, 5)
    case.world.mine()
    burnt = case.quietly("burn_silently", other, 40)
    case.idle(3)
    head = case.world.mine()
    case.build()
    # Both differences are first booked at the head.
    seen = sorted([(one, "77", head, False), (other, "40", head, False)])
    assert sorted(case.adjustments()) == seen
    assert case.wrong_supplies() == dict.fromkeys(range(minted, head), "Unconfirmed")
    first_ids = {row[0] for row in case.rows(_ADJUSTMENTS)}
    case.build()
    assert case.adjustments() == [(one, "77", minted, True), (other, "40", burnt, True)]
    # The activities at the head are gone; the located ones have other ids.
    assert first_ids.isdisjoint(row[0] for row in case.rows(_ADJUSTMENTS))
    case.expect_the_nodes_balances()
    # Both changes are one difference of the supply: a cycle finds one of them.
    case.build()
    assert case.wrong_supplies() == {}
    readings = case.service.query(_READINGS)
    case.build()
    assert case.service.query(_READINGS) == readings


@pytest.mark.release
def test_differences_beyond_a_cycles_limit_are_left_to_the_next(
    node: AnvilNode, make_service: MakeService, monkeypatch: pytest.MonkeyPatch
) -> None:
    case = _Case(node, "LyingToken")
    case.tracked(make_service)
    case.idle(11)
    minted = {
        case.quietly("mint_silently", holder, 10 + number): holder
        for number, holder in enumerate(case.world.wallets[:2])
    }
    case.idle(20)
    case.build()
    monkeypatch.setattr(observations, "MOST_LOCATING_READS", 3)
    cycles = 0
    while not all(is_located for *_, is_located in case.adjustments()):
        before = case.service.query("select count(*) from raw.balance_observations where purpose = 'Difference'")
        case.build()
        after = case.service.query("select count(*) from raw.balance_observations where purpose = 'Difference'")
        assert before[0][0] < after[0][0] <= before[0][0] + 3
        cycles += 1
    assert cycles > 2
    assert {block: holder for holder, _, block, _ in case.adjustments()} == minted
    case.expect_the_nodes_balances()


@pytest.mark.release
def test_a_rebase_is_not_looked_for(node: AnvilNode, make_service: MakeService) -> None:
    case = _Case(node, "RebaseToken")
    case.tracked(make_service)
    case.idle(5)
    case.world.submit(case.world.deployer, case.token.address, call_data("RebaseToken", "rebase", 11 * 10**17))
    case.world.mine()
    case.idle(5)
    case.build()
    assert case.adjustments()
    case.build()
    assert case.service.query("select count(*) from raw.balance_observations where purpose = 'Difference'") == [(0,)]
    assert set(case.wrong_supplies().values()) == {"Unconfirmed"}


@pytest.mark.release
def test_without_past_states_a_difference_stays_at_its_reading(node: AnvilNode, make_service: MakeService) -> None:
    case = _Case(node, "LyingToken")
    with FaultProxy(node.url) as proxy:

        def is_past(params: Any) -> bool:
            block = params[1]
            if isinstance(block, dict):
                block = node.rpc("eth_getBlockByHash", [block["blockHash"], False])["number"]
            return str(block).startswith("0x") and int(block, 16) < node.head()

        case.tracked(make_service, proxy.url)
        case.idle(5)
        case.quietly("mint_silently", case.world.wallets[0], 77)
        case.idle(5)
        head = node.head()
        case.build()
        refusal = {"code": -32000, "message": "missing trie node"}
        proxy.inject(RpcFault(**refusal, methods=("eth_call", "eth_getCode", "eth_getBalance"), when=is_past))
        case.build()
    assert case.adjustments() == [(case.world.wallets[0], "77", head, False)]
