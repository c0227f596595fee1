"""Native value inside transactions on a real node: by either tracing method, and against the balances themselves."""

from collections.abc import Iterator, Sequence
from typing import Any

import pytest

from pipelines.extract.errors import ExtractError
from pipelines.extract.evm.blocks import read_wallet_transactions
from pipelines.extract.evm.dialect import EVM
from pipelines.extract.evm.traces import INTERNAL_TRANSFER_SCHEMA, TraceMethod, read_internal_transfers
from pipelines.extract.jsonrpc.client import RpcClient
from tests.chain.node import AnvilNode
from tests.chain.world import World

METHODS: tuple[TraceMethod, ...] = ("trace_block", "debug_traceBlockByNumber")
OUTER, PAYER, FAILER, BOMB, SELF, MIDDLE, FAILED, ABYSS = (f"0x{0xC0DE00 + number:040x}" for number in range(8))
# Some steps burn all but a 64th of it.
GAS = 4_000_000_000
STOP, REVERT, INVALID = "00", "5f5ffd", "fe"


@pytest.fixture
def client(node: AnvilNode) -> Iterator[RpcClient]:
    opened = RpcClient("local", [node.url], EVM, max_attempts=2)
    yield opened
    opened.close()


@pytest.fixture
def world(node: AnvilNode) -> World:
    return World(node, wallet_count=6, gas_price=3)


# Bytecode of a contract's steps. A step's failure is ignored.


def push(number: int) -> str:
    return f"7f{number:064x}"


def call(to: str, value: int) -> str:
    return f"5f5f5f5f{push(value)}73{to[2:]}5af150"


def call_code(to: str, value: int) -> str:
    return f"5f5f5f5f{push(value)}73{to[2:]}5af250"


def delegate_call(to: str) -> str:
    return f"5f5f5f5f73{to[2:]}5af450"


def static_call(to: str) -> str:
    return f"5f5f5f5f73{to[2:]}5afa50"


def self_destruct(heir: str) -> str:
    return f"73{heir[2:]}ff"


def create(value: int, code: str, *, with_salt: bool = False) -> str:
    size = len(code) // 2
    stored = f"{push(int(code, 16))}5f52"
    return (
        f"{stored}{'5f' if with_salt else ''}{push(size)}{push(32 - size)}{push(value)}{'f5' if with_salt else 'f0'}50"
    )


def unless_value(value: int, steps: str) -> str:
    """Return bytecode that skips the steps if it is called with exactly this value."""
    head = f"34{push(value)}14"
    return f"{head}61{len(head) // 2 + 4 + len(steps) // 2:04x}57{steps}5b{STOP}"


def place_contracts(node: AnvilNode, world: World) -> None:
    first, second, third, *_ = world.wallets
    for address, steps in {
        PAYER: call(first, 1),
        FAILER: call(first, 10) + call(PAYER, 5) + REVERT,
        BOMB: self_destruct(third),
        SELF: unless_value(6, call(SELF, 6) + call(second, 2)),
        MIDDLE: call(PAYER, 20) + call(first, 3),
        FAILED: call(first, 11) + call(PAYER, 30) + REVERT,
        ABYSS: unless_value(1, call(ABYSS, 0) + call(second, 1)),
        OUTER: call(FAILER, 100)
        + call(second, 7)
        + delegate_call(PAYER)
        + static_call(PAYER)
        + call_code(PAYER, 3)
        + call(second, 0)
        + create(9, self_destruct(third))
        + create(4, INVALID, with_salt=True)
        + create(5, STOP, with_salt=True)
        + call(BOMB, 50)
        + call(MIDDLE, 25),
    }.items():
        node.set_code(address, "0x" + steps)
        node.set_balance(address, 10**6)


def read(client: RpcClient, first: int, last: int, wallets: Sequence[str], method: TraceMethod) -> list[dict[str, Any]]:
    frames = [frame for frame, _ in read_internal_transfers(client, first, last, wallets, method)]
    assert all(frame.schema == INTERNAL_TRANSFER_SCHEMA and not frame.is_empty() for frame in frames)
    return [row for frame in frames for row in frame.iter_rows(named=True)]


def test_one_transaction_with_every_kind_of_move(node: AnvilNode, client: RpcClient, world: World) -> None:
    place_contracts(node, world)
    sender, (first, second, third) = world.deployer, world.wallets[:3]
    world.submit(sender, first, value=77)
    world.submit(sender, OUTER, value=1_000, gas=GAS)
    number = world.mine()
    block = node.rpc("eth_getBlockByNumber", [hex(number), False])
    by_method = [read(client, number, number, [OUTER, *world.wallets], method) for method in METHODS]
    assert by_method[0] == by_method[1]
    rows = by_method[0]
    moves = [(row["from_address"], row["to_address"], int(row["amount_raw"]), row["kind"]) for row in rows]
    created = [to for _, to, _, kind in moves if kind == "create"]
    assert moves == [
        (OUTER, second, 7, "call"),
        (OUTER, first, 1, "call"),
        (OUTER, first, 1, "call"),
        (OUTER, created[0], 9, "create"),
        (created[0], third, 9, "selfdestruct"),
        (OUTER, created[1], 5, "create"),
        (OUTER, BOMB, 50, "call"),
        (BOMB, third, 10**6 + 50, "selfdestruct"),
        (OUTER, MIDDLE, 25, "call"),
        (PAYER, first, 1, "call"),
        (MIDDLE, first, 3, "call"),
    ]
    # Trace 9 is from MIDDLE to PAYER, which are not among the requested addresses.
    assert [row["trace_index"] for row in rows] == [0, 1, 2, 3, 4, 5, 6, 7, 8, 10, 11]
    assert {(row["block_number"], row["block_hash"], row["transaction_index"]) for row in rows} == {
        (number, block["hash"], 1)
    }
    assert {row["transaction_hash"] for row in rows} == {block["transactions"][1]}
    assert read(client, number, number, [third], METHODS[1]) == [row for row in rows if row["to_address"] == third]
    for method in METHODS:
        with pytest.raises(ExtractError):
            read(client, number, number + 1, world.wallets, method)


def test_moves_and_transactions_explain_every_balance(node: AnvilNode, client: RpcClient, world: World) -> None:
    place_contracts(node, world)
    watched = [*world.wallets, OUTER, SELF, ABYSS, BOMB, FAILED]
    begin = {address: world.native_balance(address, node.head()) for address in watched}
    first = node.head() + 1
    for contract in (OUTER, FAILED, SELF, BOMB, MIDDLE):
        for value in (0, 500):
            world.submit(world.random.choice(world.wallets), contract, value=value, gas=GAS)
        world.mine()
        world.mine()
    world.submit(world.wallets[0], world.wallets[1], value=5)
    world.submit(world.wallets[0], None, "0x" + self_destruct(world.wallets[2]), value=31)
    # More nested calls than Python's recursion limit.
    world.submit(world.wallets[3], ABYSS, gas=GAS)
    last = world.mine()
    rows, same = (read(client, first, last, watched, method) for method in METHODS)
    assert rows == same
    assert [(row["block_number"], row["transaction_index"], row["trace_index"]) for row in rows] == sorted(
        {(row["block_number"], row["transaction_index"], row["trace_index"]) for row in rows}
    )
    changes = dict.fromkeys(watched, 0)
    for row in rows:
        for address, sign in ((row["from_address"], -1), (row["to_address"], 1)):
            if address in changes:
                changes[address] += sign * int(row["amount_raw"])
    for frame in read_wallet_transactions(client, first, last, watched):
        for row in frame.iter_rows(named=True):
            if row["from_address"] in changes:
                changes[row["from_address"]] -= int(row["fee_raw"]) + int(row["value_raw"]) * row["is_success"]
            if row["to_address"] in changes:
                changes[row["to_address"]] += int(row["value_raw"]) * row["is_success"]
    assert {address: begin[address] + changes[address] for address in watched} == {
        address: world.native_balance(address, last) for address in watched
    }
    # The failed transactions moved nothing, and not all of the nested calls succeeded.
    assert FAILED not in {row["from_address"] for row in rows}
    assert 500 < len([row for row in rows if row["from_address"] == ABYSS]) < 1_024
