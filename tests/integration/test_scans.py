"""Scans of a node of outputs: late, false, without proof, and too large; compared with the node's own words."""

from collections.abc import Callable, Iterator
from datetime import timedelta
from typing import Any

import pytest

from pipelines.extract.jsonrpc.client import ANSWER
from tests.chain.fault_proxy import ActionFault, FaultProxy, LieFault, RpcFault
from tests.chain.utxo_node import UtxoNode
from tests.chain.utxo_world import script_of
from tests.integration.conftest import MakeService
from tests.integration.test_utxo import COIN, Case, with_prevouts

PAID = 1_234_567
PRUNED = RpcFault(methods=["getrawtransaction"], code=-1, message="Block not available (pruned data)")


@pytest.fixture
def node() -> Iterator[UtxoNode]:
    with UtxoNode() as running:
        yield running


def of_scan(change: Callable[[list[dict[str, Any]]], list[dict[str, Any]]]) -> LieFault:
    """Have the node answer a scan with other outputs."""
    return LieFault(methods=["scantxoutset"], tell=lambda _, told: {**told, "unspents": change(told["unspents"])})


def readings(case: Case) -> dict[str, list[int]]:
    """Return the balances read of each wallet, in the order of their blocks."""
    found: dict[str, list[int]] = {}
    for wallet, quantity in case.service.query(
        "select holder_address, quantity_raw::varchar from raw.balance_observations order by block_number"
    ):
        found.setdefault(wallet, []).append(int(quantity))
    return found


def status(case: Case) -> str:
    ((name,),) = case.service.query("select status from raw.network_states")
    return str(name)


def end_of_day(case: Case) -> None:
    """Let more than a day pass on the chain."""
    case.world.mine(25 * 3600 // case.node.step_seconds)


@pytest.mark.ci
@pytest.mark.proof("a scan that comes late holds back nothing else")
def test_balances_of_new_wallets_come_while_blocks_do(node: UtxoNode, make_service: MakeService) -> None:
    case = Case(node, make_service)
    old, *new = case.wallets
    with FaultProxy(node.url) as proxy:
        case.service.point_at("local", proxy.url)
        case.track(case.time(node.head() - 1), old)
        case.service.good_cycle()
        proxy.inject(ActionFault(methods=["scantxoutset"], action=lambda: case.world.mine(2)))
        case.track(case.time(node.head()), *new)
        for _ in range(3):
            case.world.pay(dict.fromkeys(case.wallets, PAID))
            case.world.mine()
            case.service.good_cycle()
            case.check_collected()
    assert readings(case).keys() == set(case.wallets)


@pytest.mark.ci
@pytest.mark.proof("a scan that fails holds back nothing else")
def test_new_wallets_wait_for_a_scan_alone(node: UtxoNode, make_service: MakeService) -> None:
    case = Case(node, make_service)
    old, *new = case.wallets
    with FaultProxy(node.url) as proxy:
        case.service.point_at("local", proxy.url)
        case.track(case.time(node.head() - 1), old)
        for _ in range(2):
            case.service.good_cycle()
        proxy.inject(RpcFault(methods=["scantxoutset"], code=-32603, message="no such luck"))
        first = case.time(node.head())
        case.track(first, *new)
        for _ in range(2):
            case.world.pay(dict.fromkeys(case.wallets, PAID))
            case.world.mine()
            case.service.good_cycle()
        assert case.ranges().keys() == {old}
        case.check_collected()
        proxy.clear()
        case.build()
    # The window begins where tracking began.
    assert {ranges[0][0] for wallet, ranges in case.ranges().items() if wallet != old} == {node.head() - 2}
    case.check()


@pytest.mark.ci
@pytest.mark.proof("an output that a scan left out is found by the next one")
def test_a_wallet_opens_again_where_a_scan_left_an_output_out(node: UtxoNode, make_service: MakeService) -> None:
    case = Case(node, make_service)
    spender, *others = case.wallets
    with FaultProxy(node.url) as proxy:
        case.service.point_at("local", proxy.url)
        case.track(case.time(node.head()))
        proxy.inject(of_scan(lambda _: []))
        case.build()
        proxy.clear()
        case.world.mine()
        case.build()
        assert status(case) == "Inconsistent"
        assert set().union(*readings(case).values()) == {0}
        case.world.pay({others[0]: 4 * COIN}, senders=[spender], fee=6)
        case.world.mine()
        for _ in range(2):
            case.build()
    assert status(case) == "Healthy"
    case.check()


@pytest.mark.ci
@pytest.mark.proof("an output that nothing proves counts for nothing")
def test_an_invented_output_of_a_pruned_node_never_counts(node: UtxoNode, make_service: MakeService) -> None:
    case = Case(node, make_service)
    lucky, *others = case.wallets

    def invented(told: list[dict[str, Any]]) -> list[dict[str, Any]]:
        mine = [one for one in told if one["scriptPubKey"] == script_of(lucky).hex()]
        return [*told, {**mine[0], "txid": "ab" * 32, "amount": 1_000_000, "height": 20}] if mine else told

    with FaultProxy(node.url) as proxy:
        case.service.point_at("local", proxy.url)
        case.track(case.time(node.head()))
        lie = of_scan(invented)
        proxy.inject(lie, PRUNED)
        case.service.good_cycle()
        assert readings(case) == {}
        proxy.withdraw(lie)
        for _ in range(2):
            case.world.mine()
            case.service.good_cycle()
        # Two scans in a row agree about every output of the others, and of this one since the lie.
        assert readings(case).keys() >= set(others)
        case.check_collected()
        end_of_day(case)
        for _ in range(2):
            case.world.mine()
            case.service.good_cycle()
    assert readings(case).keys() == set(case.wallets)
    assert case.service.query("select count(*) from raw.utxo_openings where amount_raw > 100000000000::bignum") == [
        (0,)
    ]
    case.check_collected()


@pytest.mark.ci
@pytest.mark.proof("an output of an input that nothing proves is no movement")
@pytest.mark.parametrize("proof", ["false", pytest.param("none", marks=pytest.mark.release)])
def test_an_invented_spend_is_no_movement(proof: str, node: UtxoNode, make_service: MakeService) -> None:
    case = Case(node, make_service)
    victim, payer, *_ = case.wallets
    first = node.head() + 1
    case.world.pay({case.wallets[2]: PAID}, senders=[payer])
    case.world.mine()
    script = script_of(victim).hex()

    def invented(params: list[Any], result: Any) -> Any:
        if params[1] == 3:
            for transaction in result["tx"]:
                for one in transaction["vin"]:
                    if "prevout" in one:
                        one["prevout"] |= {"value": 60.0, "scriptPubKey": {"hex": script}}
        return result

    with FaultProxy(node.url) as proxy:
        honest, *rest = with_prevouts(node)
        case.service.point_at("local", proxy.url)
        proxy.inject(LieFault(methods=["getblock"], tell=lambda p, r: invented(p, honest.tell(p, r))), *rest)
        if proof == "none":
            proxy.inject(PRUNED)
        case.track(case.time(first))
        for _ in range(2):
            case.world.mine()
            case.service.cycle()
        assert case.service.query("select count(*) from raw.utxo_transactions where spent_raw > 0::bignum") == [(0,)]
        proxy.clear()
        proxy.inject(*with_prevouts(node))
        end_of_day(case)
        case.service.query("update raw.unread_units set next_try_at = timestamp '2000-01-01'")
        for _ in range(3):
            case.world.mine()
            case.service.good_cycle()
    case.check_collected()


@pytest.mark.release
def test_a_wallet_with_too_many_outputs_stops_no_other(node: UtxoNode, make_service: MakeService) -> None:
    case = Case(node, make_service)
    large, *others = case.wallets
    script = script_of(large).hex()

    def too_large(params: list[Any], told: Any) -> Any:
        return "0" * (ANSWER + 1) if any(script in one["desc"] for one in params[1]) else told

    with FaultProxy(node.url) as proxy:
        case.service.point_at("local", proxy.url)
        proxy.inject(LieFault(methods=["scantxoutset"], tell=too_large))
        case.track(case.time(node.head()))
        case.world.mine()
        case.service.good_cycle()
        assert readings(case).keys() == set(others)
        ((detail,),) = case.service.query("select detail from raw.network_states")
        assert "the answer is larger than" in detail
        assert large not in detail
    case.subjects.pop(large)
    case.check_collected()


@pytest.mark.ci
def test_a_false_sum_is_not_stored(node: UtxoNode, make_service: MakeService) -> None:
    case = Case(node, make_service)
    with FaultProxy(node.url) as proxy:
        case.service.point_at("local", proxy.url)
        case.track(case.time(node.head()) - timedelta(seconds=1))
        for _ in range(2):
            case.world.mine()
            case.service.good_cycle()
        end_of_day(case)
        lie = of_scan(lambda told: told[1:])
        proxy.inject(lie)
        case.service.good_cycle()
        assert status(case) == "Inconsistent"
        proxy.withdraw(lie)
        case.world.mine()
        case.service.good_cycle()
        assert status(case) == "Healthy"
        end_of_day(case)
        proxy.inject(lie)
        case.service.good_cycle()
        assert status(case) == "Inconsistent"
        for subject in case.subjects.values():
            case.service.track(case.tenant, subject, False, case.time(node.head()))
        case.world.mine(12)
        case.service.good_cycle()
    # No tenant tracks the wallets any more.
    assert status(case) == "Healthy"
    case.check_collected()
