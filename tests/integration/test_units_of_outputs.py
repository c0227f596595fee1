"""One call about one unit of a chain of outputs fails for ever: all others equal the chain, and the unit says why."""

from collections.abc import Iterator, Sequence
from copy import copy
from dataclasses import dataclass
from typing import Any, NamedTuple

import pytest

from tests.chain.fault_proxy import FaultProxy
from tests.chain.late_answers import late_answers_time_out
from tests.chain.utxo_node import UtxoNode
from tests.chain.utxo_world import script_of
from tests.integration.conftest import MakeService
from tests.integration.harness import LocalUtxoNetwork
from tests.integration.test_utxo import COIN, Case
from tests.integration.ways import WAYS, IsAbout, faults
from tests.oracles.utxo_chain import ChainOracle

_CYCLES = 3


@pytest.fixture(autouse=True)
def late_answers() -> Iterator[None]:
    with late_answers_time_out():
        yield


@dataclass(frozen=True)
class Chain:
    """A node, and the units at fault: a wallet, the transaction of its older output, and a block."""

    node: UtxoNode
    wallet: str
    transaction: str
    block: int


class Unit(NamedTuple):
    """A unit, the calls about it, and what may be missing: all of the wallet, or the rows of the block."""

    methods: dict[str, IsAbout[Chain]]
    hides_wallet: bool


def _asks_for(chain: Chain, params: Sequence[Any]) -> bool:
    return any(script_of(chain.wallet).hex() in one["desc"] for one in params[1])


UNITS = {
    "a scan": Unit({"scantxoutset": _asks_for}, hides_wallet=True),
    "a transaction": Unit(
        {"getrawtransaction": lambda chain, params: params[0] == chain.transaction}, hides_wallet=True
    ),
    "a block": Unit(
        {"getblock": lambda chain, params: params[0] == chain.node.block_hash(chain.block)}, hides_wallet=False
    ),
}
# A scan takes as long for one wallet as for all: where it never ends, or fails without a word, the node is at fault.
_OF_THE_NODE = {("a scan", way) for way in ("a time-out", "status 500", "a closed connection")}
_PASSING = ("late once", "works the second time")
# Nothing proves the output, and two scans have it: it counts.
_COUNTED = {("a transaction", way) for way in ("a time-out", "status 500", "a closed connection")}


def _another(result: Any) -> Any:
    """Return a result about another block; of raw bytes, other bytes."""
    if isinstance(result, str):
        return result[:-2] + ("00" if result[-2:] != "00" else "01")
    return result | {"height": 1, "bestblock": "ab" * 32}


def _beside(case: Case, make_service: MakeService, url: str) -> Case:
    """Return the same wallets and chain with a service of their own, at another address of the node."""
    other = copy(case)
    other.service = make_service(LocalUtxoNetwork("local", url, proof_of_work="scrypt"), name="spoilt")
    other.tenant, other.subjects = other.service.tenant(), {}
    return other


def _rows(case: Case) -> set[tuple[Any, ...]]:
    return set(
        case.service.query(
            "select block_number, transaction_hash, address, spent_raw::varchar, received_raw::varchar"
            " from raw.utxo_transactions"
        )
    )


def _check(case: Case, clean: Case, chain: Chain, unit: Unit) -> None:
    """Compare everything but the unit with a run without the fault, and every reading with the chain."""
    got, right = _rows(case), _rows(clean)
    assert got <= right
    missing = {row[2] if unit.hides_wallet else row[0] for row in right - got}
    assert missing <= {chain.wallet if unit.hides_wallet else chain.block}
    oracle = ChainOracle(chain.node)
    case.check_readings(oracle)
    read = {wallet for (wallet,) in case.service.query("select distinct holder_address from raw.balance_observations")}
    assert set(case.subjects) - read <= ({chain.wallet} if unit.hides_wallet else set())


_QUICK = (("a scan", "unknown words"), ("a transaction", "a time-out"), ("a block", "null"))
_CASES = [
    pytest.param(unit, way, marks=() if (unit, way) in _QUICK else pytest.mark.release, id=f"{unit}, {way}")
    for unit in UNITS
    for way in WAYS
    if (unit, way) not in _OF_THE_NODE
]


@pytest.mark.proof("one unit of a chain of outputs that cannot be read hides nothing else and says why")
@pytest.mark.parametrize(("name", "way"), _CASES)
def test_everything_but_the_unit_equals_the_chain(name: str, way: str, make_service: MakeService) -> None:
    unit = UNITS[name]
    with UtxoNode() as node, FaultProxy(node.url) as proxy:
        clean = Case(node, make_service)
        wallet, *others = clean.wallets
        older = clean.world.pay({wallet: COIN})
        clean.world.mine(12)
        clean.world.pay({wallet: COIN, others[0]: COIN})
        block = clean.world.mine()
        chain = Chain(node, wallet, older, block)
        case = _beside(clean, make_service, proxy.url)
        opened = clean.time(block - 1)
        for one in (clean, case):
            one.track(opened)
        proxy.inject(*faults(chain, unit.methods, way, _another))
        for _ in range(_CYCLES):
            clean.world.pay(dict.fromkeys(clean.wallets, 1_000))
            clean.world.mine()
            clean.service.good_cycle()
            report = case.service.cycle()
        assert report.error is None
        _check(case, clean, chain, unit)
        ((detail,),) = case.service.query("select detail from raw.network_states")
        unread = case.service.query("select reason from raw.unread_units")
        assert bool(unread) == (detail is not None and "cannot be read" in detail)
        assert unread or way in _PASSING or (name, way) in _COUNTED
        proxy.clear()
        case.service.query("update raw.unread_units set next_try_at = timestamp '2000-01-01'")
        for _ in range(3):
            clean.world.mine()
            clean.service.good_cycle()
            case.service.good_cycle()
        assert _rows(case) == _rows(clean)
        _check(case, clean, chain, unit)
        assert case.service.query("select * from raw.unread_units") == []
