"""Opening balances if a node lacks the state before a range, compared with the node's balances."""

from typing import Any

import pytest

from tests.chain.fault_proxy import FaultProxy, RpcFault
from tests.chain.node import AnvilNode
from tests.chain.world import World, call_data
from tests.integration.conftest import MakeService
from tests.integration.dbt_runner import LATER_CYCLE, build_over_nothing, open_marts, run_dbt
from tests.integration.harness import LocalNetwork
from tests.oracles.node import instant

_STATE = ("eth_call", "eth_getCode", "eth_getBalance")


@pytest.mark.proof("a silent burn is an adjustment and never a negative balance")
@pytest.mark.parametrize(
    ("refused_by_number", "opened_by"),
    [
        pytest.param((), "Observed", id="by hash alone"),
        pytest.param(("eth_call",), "Creation", id="but of code"),
        pytest.param(_STATE, "Creation", id="altogether"),
    ],
)
def test_a_silent_burn_is_an_adjustment_and_never_a_debt(
    node: AnvilNode, make_service: MakeService, refused_by_number: tuple[str, ...], opened_by: str
) -> None:
    """The node answers "header not found" to all state requests by block hash, and to some by number."""
    world = World(node, wallet_count=3)
    hush = world.deploy_strange_token("LyingToken", "HUSH", 6)
    holder, sent, burnt = world.wallets[0], 100, 60
    received = world.distribute(hush, sent, [holder])
    world.mine()
    world.submit(world.deployer, hush.address, call_data("LyingToken", "burn_silently", holder, burnt, True))
    world.mine()
    head = world.mine()

    def is_past(params: Any) -> bool:
        return isinstance(params[1], str) and params[1].startswith("0x") and int(params[1], 16) < head

    with FaultProxy(node.url) as proxy:
        refusal = {"code": -32000, "message": "header not found"}
        proxy.inject(RpcFault(**refusal, methods=_STATE, when=lambda params: isinstance(params[1], dict)))
        if refused_by_number:
            proxy.inject(RpcFault(**refusal, methods=refused_by_number, when=is_past))
        service = make_service(LocalNetwork("local", proxy.url))
        stores = build_over_nothing(service.settings.data_dir)
        tenant = service.tenant()
        token = service.token(tenant, hush.address, tracked_from=instant(node, head))
        service.good_cycle()
        service.ask_history(tenant, token, "creation")
        (report,) = service.history()
        assert report.error is None
        service.good_cycle()
        run_dbt(stores, *LATER_CYCLE)
    with open_marts(stores) as connection:

        def rows(query: str) -> list[tuple[Any, ...]]:
            return connection.execute(query).fetchall()

        balances = f"select balance_raw::varchar from marts.balance_changes where holder_address = '{holder}'"
        assert rows(f"{balances} and block_number = {received}") == [(str(world.balance_of(hush, holder, received)),)]
        ((quantity, reconciliation, opened),) = rows(
            "select quantity_raw::varchar, reconciliation, opened_by from marts.cap_tables"
            f" where holder_address = '{holder}'"
        )
        assert int(quantity) == world.balance_of(hush, holder, head) == sent - burnt
        assert (reconciliation, opened) == ("Adjusted", opened_by)
        # All balances before the token's creation are zero, even without a reading.
        assert rows("select holders_status, unattributed_raw::varchar from marts.cap_table_summaries") == [
            ("Complete", "0")
        ]
        adjustments = "select from_address, to_address, amount_raw::varchar, block_number, is_located"
        assert rows(f"{adjustments} from marts.token_activities where activity_type = 'Adjustment'") == [
            (holder, None, str(burnt), head, False)
        ]
        supplies = "select total_supply_raw::varchar from marts.supply_changes"
        assert rows(f"{supplies} where block_number = {received - 1}") == [
            (str(world.total_supply(hush, received - 1)),)
        ]
        assert rows("select min(balance_raw) < 0::bignum from marts.balance_changes") == [(False,)]
