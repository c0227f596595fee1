"""One call about one unit fails for ever: everything else equals a run without the fault, and the unit says why."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import pytest

from tests.chain.conftest import GENESIS_TIME
from tests.chain.fault_proxy import FaultProxy
from tests.chain.late_answers import late_answers_time_out
from tests.chain.node import AnvilNode
from tests.chain.world import Token, World
from tests.integration.conftest import MakeService
from tests.integration.harness import LocalNetwork, Service
from tests.integration.ways import WAYS, IsAbout, faults
from tests.oracles.node import instant

PAYER = "0x" + "ba" * 20
_CYCLES = 3


@dataclass(frozen=True)
class Chain:
    """A node on which two tenants track a token and a wallet each; `block` moves something of all of them."""

    node: AnvilNode
    world: World
    gold: Token
    silver: Token
    opening: int
    block: int

    @property
    def mine(self) -> str:
        return self.world.wallets[0]

    @property
    def other(self) -> str:
        return self.world.wallets[1]

    @property
    def friend(self) -> str:
        return self.world.wallets[2]

    def move(self) -> int:
        """Mine a block with a movement of each subject."""
        self.world.transfer(self.gold, self.mine, self.friend, 3)
        self.world.transfer(self.silver, self.friend, self.other, 2)
        self.world.submit(self.mine, self.friend, value=5)
        self.world.submit(self.friend, PAYER, value=7)
        return self.world.mine()


@pytest.fixture(scope="module")
def chain() -> Iterator[Chain]:
    with AnvilNode(genesis_time=GENESIS_TIME) as node:
        world = World(node, wallet_count=4, gas_price=10**9)
        world.place_multicall()
        gold, silver = world.deploy_token("GOLD", 18), world.deploy_token("SILV", 2)
        for token in (gold, silver):
            world.distribute(token, 10_000)
        # Passes what it receives on to a wallet, inside the transaction.
        node.set_code(PAYER, "0x" + "60006000600060003473" + world.wallets[1][2:] + "5af100")
        opening = node.head() + 1
        made = Chain(node, world, gold, silver, opening, opening + 4)
        for _ in range(9):
            made.move()
        yield made


@pytest.fixture(autouse=True)
def late_answers() -> Iterator[None]:
    with late_answers_time_out():
        yield


class Unit(NamedTuple):
    """A unit and the calls about it.

    Attributes:
        methods: by name, what decides by the parameters whether a call is about the unit.
        hidden: token and holder (None: any) of the readings that are missing; None: of no reading.
        rows: tables whose rows of `Chain.block` may be missing.
    """

    methods: dict[str, IsAbout[Chain]]
    hidden: Callable[[Chain], tuple[str, str | None]] | None = None
    rows: tuple[str, ...] = ()


def _is_block(chain: Chain, params: Sequence[Any]) -> bool:
    return bool(params[0] == hex(chain.block))


def _sent(chain: Chain, params: Sequence[Any]) -> bool:
    block = chain.node.rpc("eth_getBlockByNumber", [hex(chain.block), True])
    return params[0] in [one["hash"] for one in block["transactions"] if one["from"] == chain.mine]


UNITS: dict[str, Unit] = {
    "a contract": Unit(
        {"eth_call": lambda chain, params: chain.gold.address[2:] in str(params)},
        lambda chain: (chain.gold.address, None),
    ),
    "a holder": Unit(
        {
            "eth_call": lambda chain, params: (
                chain.gold.address[2:] in str(params) and "70a08231" + "0" * 24 + chain.friend[2:] in str(params)
            )
        },
        lambda chain: (chain.gold.address, chain.friend),
    ),
    "a wallet": Unit(
        {
            "eth_getBalance": lambda chain, params: params[0] == chain.mine,
            "eth_call": lambda chain, params: "4d2301cc" + "0" * 24 + chain.mine[2:] in str(params),
        },
        lambda chain: ("native", chain.mine),
    ),
    "logs of a block": Unit(
        {
            "eth_getLogs": lambda chain, params: (
                "fromBlock" in params[0]
                and int(params[0]["fromBlock"], 16) <= chain.block <= int(params[0]["toBlock"], 16)
            )
        },
        rows=("token_transfers",),
    ),
    "transactions of a block": Unit(
        {"eth_getBlockByNumber": lambda chain, params: params == [hex(chain.block), True]},
        rows=("transactions", "internal_transfers"),
    ),
    "receipts of a wallet": Unit(
        {"eth_getTransactionReceipt": _sent, "eth_getBlockReceipts": _is_block},
        rows=("transactions", "internal_transfers"),
    ),
    "traces of a block": Unit(
        {"trace_block": _is_block, "debug_traceBlockByNumber": _is_block}, rows=("internal_transfers",)
    ),
}
# Of a single call, a missing log or another balance cannot be told from the truth: a second reading finds it.
_UNSEEN = {
    *((unit, "another block") for unit in ("a contract", "a holder", "a wallet")),
    ("logs of a block", "empty"),
}
# The node's answer is complete, or what a contract without a number gives.
_PASSING = ("late once", "works the second time", "a halt", "empty")


def _another(result: Any) -> Any:
    """Return a result with the number and the hash of another block."""
    other = {"blockNumber": "0x1", "number": "0x1", "blockHash": "0x" + "ab" * 32, "hash": "0x" + "ab" * 32}

    def changed(one: Any) -> Any:
        # The names of transactions stay: only the block is another one.
        return (
            one
            | {name: told for name, told in other.items() if name in one and "transactionIndex" in one}
            | {name: told for name, told in other.items() if name in one and name != "hash"}
        )

    return changed(result) if isinstance(result, dict) else [changed(one) for one in result]


def configure(service: Service, chain: Chain) -> Service:
    began = instant(chain.node, chain.opening)
    for name, token, wallet in (("acme", chain.gold, chain.mine), ("bell", chain.silver, chain.other)):
        tenant = service.tenant(name)
        service.token(tenant, token.address, tracked_from=began)
        service.wallet(tenant, wallet, tracked_from=began)
    return service


_ROWS = {
    "token_transfers": "select block_number, token_address, from_address, to_address, amount_raw",
    "transactions": "select block_number, transaction_hash, from_address, to_address, value_raw, fee_raw",
    "internal_transfers": "select block_number, transaction_hash, from_address, to_address, amount_raw",
}


def rows(service: Service, table: str) -> set[tuple[Any, ...]]:
    return set(service.query(f"{_ROWS[table]} from raw.{table}"))


def readings(service: Service) -> dict[tuple[str, str], tuple[int, int | None]]:
    """Return block and quantity of the latest reading of each balance."""
    found = service.query(
        """
        select token_address, holder_address, max(block_number), arg_max(quantity_raw::varchar, block_number)
        from raw.balance_observations
        group by token_address, holder_address
        """
    )
    return {(token, holder): (block, None if text is None else int(text)) for token, holder, block, text in found}


def check(chain: Chain, unit: Unit, service: Service, clean: Service) -> None:
    """Compare everything but the unit with a run without the fault."""
    for table in _ROWS:
        got, right = rows(service, table), rows(clean, table)
        assert got <= right
        assert table in unit.rows or got == right
        assert {row[0] for row in right - got} <= {chain.block}
    token, holder = (None, None) if unit.hidden is None else unit.hidden(chain)
    got_readings = readings(service)
    for pair, (block, quantity) in readings(clean).items():
        if unit.hidden is not None and pair[0] == token and holder in (None, pair[1]):
            continue
        read_at, read = got_readings[pair]
        assert read_at >= block
        assert read == chain.world.held(*pair, read_at) == (quantity if read_at == block else read)


_QUICK = (
    ("a contract", "unknown words"),
    ("logs of a block", "a closed connection"),
    ("traces of a block", "null"),
)
_CASES = [
    pytest.param(unit, way, marks=() if (unit, way) in _QUICK else pytest.mark.release, id=f"{unit}, {way}")
    for unit in UNITS
    for way in WAYS
    if (unit, way) not in _UNSEEN
]


@pytest.mark.proof("one unit that cannot be read hides nothing else and says why")
@pytest.mark.parametrize(("name", "way"), _CASES)
def test_everything_but_the_unit_equals_a_run_without_the_fault(
    name: str, way: str, chain: Chain, make_service: MakeService
) -> None:
    unit = UNITS[name]
    with FaultProxy(chain.node.url) as proxy:
        clean = configure(make_service(LocalNetwork("local", chain.node.url, finality_depth=2), name="clean"), chain)
        service = configure(make_service(LocalNetwork("local", proxy.url, finality_depth=2), name="spoilt"), chain)
        proxy.inject(*faults(chain, unit.methods, way, _another))
        for _ in range(_CYCLES):
            clean.good_cycle()
            report = service.cycle()
            chain.move()
        clean.good_cycle()
        report = service.cycle()
        assert report.error is None
        check(chain, unit, service, clean)
        ((detail,),) = service.query("select detail from raw.network_states")
        unread = service.query("select reason from raw.unread_units")
        assert bool(unread) == (detail is not None and "cannot be read" in detail)
        assert unread or way in _PASSING
        proxy.clear()
        service.query("update raw.unread_units set next_try_at = timestamp '2000-01-01'")
        for _ in range(2):
            chain.move()
            clean.good_cycle()
            service.good_cycle()
        check(chain, Unit({}), service, clean)
        assert service.query("select * from raw.unread_units") == []
        assert service.raw_rows()["coverage"] == clean.raw_rows()["coverage"]
