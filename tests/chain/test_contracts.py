"""The test contracts: committed artifacts equal the compiled sources, and each contract behaves as tests need it."""

import pytest
from eth_abi.abi import decode, encode

from tests.chain.artifacts import ARTIFACTS_FILE, CONTRACTS_FOLDER, artifact
from tests.chain.compile import compile_contracts
from tests.chain.node import AnvilNode, NodeError
from tests.chain.world import MAX_UINT256, MULTICALL_ADDRESS, ZERO_ADDRESS, World, call_data, holder_at

# It tests a tool of the tests.
pytestmark = pytest.mark.release

ALICE, BOB, CAROL = (holder_at(index) for index in range(3))


def movements(world: World, first: int, last: int) -> list[tuple[str, str, int]]:
    """Sender, receiver and amount of each Transfer log."""
    return [
        ("0x" + log["topics"][1][-40:], "0x" + log["topics"][2][-40:], int(log["data"], 16))
        for log in world.transfer_logs(first, last)
    ]


def test_artifacts_equal_the_compiled_sources() -> None:
    assert ARTIFACTS_FILE.read_text(encoding="utf-8") == compile_contracts()


def test_every_source_has_an_artifact() -> None:
    for source in CONTRACTS_FOLDER.glob("*.vy"):
        assert artifact(source.stem).bytecode.startswith("0x")


def test_token_returns_its_deployed_properties(world: World) -> None:
    token = world.deploy_token("GOLD", 7, name="Gold coin", supply=12_345)
    assert world.call("TestToken", token.address, "symbol") == "GOLD"
    assert world.call("TestToken", token.address, "name") == "Gold coin"
    assert world.call("TestToken", token.address, "decimals") == 7
    assert world.total_supply(token, world.node.head()) == 12_345
    assert movements(world, 0, world.node.head()) == [(ZERO_ADDRESS, world.deployer, 12_345)]


def test_fee_is_a_transfer_of_its_own(world: World) -> None:
    token = world.deploy_token("TAX", 2, supply=10_000, fee_basis_points=250, fee_collector=CAROL)
    world.transfer(token, world.deployer, ALICE, 1_000)
    block = world.mine()
    assert movements(world, block, block) == [(world.deployer, ALICE, 975), (world.deployer, CAROL, 25)]
    assert world.balances_of(token, [world.deployer, ALICE, CAROL], block) == [9_000, 975, 25]


def test_mint_and_burn_move_the_supply_and_silent_mint_only_balances(world: World) -> None:
    token = world.deploy_token("MNT", 0, supply=100)
    world.submit(world.deployer, token.address, call_data("TestToken", "mint", ALICE, 50))
    world.submit(ALICE, token.address, call_data("TestToken", "burn", 20))
    world.submit(ALICE, token.address, call_data("TestToken", "mint_silently", BOB, 7, False))
    block = world.mine()
    assert movements(world, block, block) == [(ZERO_ADDRESS, ALICE, 50), (ALICE, ZERO_ADDRESS, 20)]
    assert world.balances_of(token, [ALICE, BOB], block) == [30, 7]
    assert world.total_supply(token, block) == 130


def test_the_largest_amount_is_transferred_exactly(world: World) -> None:
    token = world.deploy_token("MAX", 77, supply=MAX_UINT256)
    world.transfer(token, world.deployer, ALICE, MAX_UINT256)
    block = world.mine()
    assert movements(world, block, block) == [(world.deployer, ALICE, MAX_UINT256)]
    assert world.balance_of(token, ALICE, block) == MAX_UINT256


def test_emit_many_moves_true_balances_to_derived_holders(world: World) -> None:
    token = world.deploy_token("BULK", 18, supply=10_000)
    made = world.emit_blocks(token, blocks=2, transactions=3, events=10, amount=5, holders=20)
    assert len(world.transfer_logs(made.first, made.last, token.address)) == 60
    assert world.call("TestToken", token.address, "holder_at", 19).lower() == holder_at(19)
    assert world.balances_of(token, world.wallets, made.last) == [15] * 20
    assert world.balance_of(token, world.deployer, made.last) == 10_000 - 300


def test_bytes32_token_answers_words_and_returns_nothing(world: World) -> None:
    token = world.deploy_bytes32_token("OLD", 18)
    assert world.call("Bytes32Token", token.address, "symbol") == b"OLD".ljust(32, b"\0")
    data = call_data("Bytes32Token", "transfer", ALICE, 3)
    request = {"from": world.deployer, "to": token.address, "data": data}
    assert world.node.rpc("eth_call", [request, "latest"]) == "0x"
    world.transfer(token, world.deployer, ALICE, 3)
    assert world.balance_of(token, ALICE, world.mine()) == 3


def test_token_without_decimals_reverts_on_missing_functions(world: World) -> None:
    address = world.deploy("NoDecimalsToken", 1_000)
    for selector in ("0x313ce567", "0x95d89b41", "0x06fdde03"):
        with pytest.raises(NodeError, match="revert"):
            world.node.rpc("eth_call", [{"to": address, "data": selector}, "latest"])
    assert world.balance_of(address, world.deployer, world.node.head()) == 1_000


def test_nft_has_the_first_topic_of_a_transfer_and_four_topics(world: World) -> None:
    address = world.deploy("Nft721", "Pictures", "PIC")
    world.submit(world.deployer, address, call_data("Nft721", "mint", ALICE, 42))
    block = world.mine()
    logs = world.node.rpc("eth_getLogs", [{"fromBlock": hex(block), "toBlock": hex(block)}])
    assert [len(log["topics"]) for log in logs] == [4]
    assert world.transfer_logs(block, block) == []
    supported = [world.call("Nft721", address, "supportsInterface", bytes.fromhex(x)) for x in ("80ac58cd", "d9b67a26")]
    assert supported == [True, False]


def test_multi_token_declares_its_standard_and_has_no_transfer_event(world: World) -> None:
    address = world.deploy("Multi1155")
    world.submit(world.deployer, address, call_data("Multi1155", "mint", ALICE, 1, 10))
    block = world.mine()
    assert world.transfer_logs(block, block) == []
    assert world.call("Multi1155", address, "supportsInterface", bytes.fromhex("d9b67a26")) is True


def test_rebase_changes_balances_without_an_event(world: World) -> None:
    address = world.deploy("RebaseToken", "Stake", "STK", 18, 10**20)
    world.submit(world.deployer, address, call_data("RebaseToken", "transfer", ALICE, 10**18))
    before = world.mine()
    world.submit(world.deployer, address, call_data("RebaseToken", "rebase", 11 * 10**17))
    after = world.mine()
    assert world.transfer_logs(after, after) == []
    assert [world.balance_of(address, ALICE, block) for block in (before, after)] == [10**18, 11 * 10**17]
    assert world.total_supply(address, after) == 11 * 10**19


def test_multicall_answers_in_the_shape_of_the_real_one(world: World) -> None:
    world.place_multicall()
    token = world.deploy_token("GOLD", 18)
    world.node.set_balance(BOB, 99)
    no_decimals = world.deploy("NoDecimalsToken", 1)
    calls = [
        (token.address, False, bytes.fromhex(call_data("TestToken", "balanceOf", world.deployer)[2:])),
        (MULTICALL_ADDRESS, False, bytes.fromhex(call_data("Multicall3", "getEthBalance", BOB)[2:])),
        (MULTICALL_ADDRESS, False, bytes.fromhex(call_data("Multicall3", "getBlockNumber")[2:])),
        (no_decimals, True, bytes.fromhex("313ce567")),
    ]
    # aggregate3((address,bool,bytes)[]), encoded by hand: the selector is the public one.
    data = "0x82ad56cb" + encode(["(address,bool,bytes)[]"], [calls]).hex()
    answer = world.node.rpc("eth_call", [{"to": MULTICALL_ADDRESS, "data": data}, "latest"])
    (results,) = decode(["(bool,bytes)[]"], bytes.fromhex(answer[2:]))
    assert [is_success for is_success, _ in results] == [True, True, True, False]
    assert [int.from_bytes(value) for _, value in results[:3]] == [10**27, 99, world.node.head()]
    calls[3] = (no_decimals, False, calls[3][2])
    data = "0x82ad56cb" + encode(["(address,bool,bytes)[]"], [calls]).hex()
    with pytest.raises(NodeError, match="call failed"):
        world.node.rpc("eth_call", [{"to": MULTICALL_ADDRESS, "data": data}, "latest"])


def test_splitter_pays_inside_a_transaction_and_undoes_a_failed_attempt(world: World) -> None:
    address = world.deploy("Splitter")
    for receiver in (BOB, CAROL):
        world.node.set_balance(receiver, 0)
    world.submit(ALICE, address, call_data("Splitter", "split", [BOB, CAROL]), value=1_000)
    block = world.mine()
    assert [world.native_balance(receiver, block) for receiver in (BOB, CAROL)] == [500, 500]
    world.submit(ALICE, address, call_data("Splitter", "attempt_split", [BOB, CAROL]), value=600)
    block = world.mine()
    assert [world.native_balance(receiver, block) for receiver in (BOB, CAROL, address)] == [500, 500, 600]
    (transaction,) = world.node.rpc("eth_getBlockByNumber", [hex(block), False])["transactions"]
    assert world.node.rpc("eth_getTransactionReceipt", [transaction])["status"] == "0x1"


def test_fee_without_an_event_goes_to_the_sink_or_out_of_the_supply(world: World) -> None:
    for sink, supply in ((CAROL, 10**11), (ZERO_ADDRESS, 10**11 - 30)):
        token = world.deploy_strange_token("FeeToken", "FEE", 2, 300, sink)
        world.transfer(token, world.deployer, ALICE, 1_000)
        block = world.mine()
        assert movements(world, block, block) == [(world.deployer, ALICE, 1_000)]
        assert world.balances_of(token, [world.deployer, ALICE], block) == [10**11 - 1_000, 970]
        assert world.balance_of(token, CAROL, block) == (30 if sink == CAROL else 0)
        assert world.total_supply(token, block) == supply


def test_lying_token_moves_without_events_and_has_events_without_moves(world: World) -> None:
    token = world.deploy_strange_token("LyingToken", "LIE", 0)
    world.submit(ALICE, token.address, call_data("LyingToken", "mint_silently", BOB, 50, True))
    world.submit(ALICE, token.address, call_data("LyingToken", "mint_silently", CAROL, 7, False))
    world.submit(ALICE, token.address, call_data("LyingToken", "burn_silently", BOB, 20, True))
    silent = world.mine()
    assert world.transfer_logs(silent, silent) == []
    assert world.balances_of(token, [BOB, CAROL], silent) == [30, 7]
    assert world.total_supply(token, silent) == 10**9 + 30
    world.submit(ALICE, token.address, call_data("LyingToken", "emit_falsely", BOB, CAROL, 1_000))
    world.transfer(token, BOB, CAROL, 3)
    block = world.mine()
    assert movements(world, block, block) == [(BOB, CAROL, 1_000), (BOB, CAROL, 3)]
    assert world.balances_of(token, [BOB, CAROL], block) == [27, 10]


def native_of(world: World, block: int, *holders: str) -> list[int]:
    """Native balances at the end of a block, wei."""
    return [world.native_balance(holder, block) for holder in holders]


def traced_values(world: World, block: int) -> list[tuple[str, str, int, bool]]:
    """Return kind, receiver, value and own failure of every trace with value below a transaction."""
    return [
        (
            trace["action"].get("callType", trace["type"]),
            trace["action"].get("to") or trace["action"].get("refundAddress") or trace["result"]["address"],
            int(trace["action"].get("value") or trace["action"]["balance"], 16),
            "error" in trace,
        )
        for trace in world.node.rpc("trace_block", [hex(block)])
        if trace["traceAddress"] and int(trace["action"].get("value") or trace["action"].get("balance") or "0x0", 16)
    ]


@pytest.fixture
def payer(world: World) -> str:
    """A NestedPayer in a world in which Bob and Carol have no balance."""
    for receiver in (BOB, CAROL):
        world.node.set_balance(receiver, 0)
    return world.deploy("NestedPayer")


def test_payment_passes_through_nested_calls(world: World, payer: str) -> None:
    world.submit(ALICE, payer, call_data("NestedPayer", "pay_deep", BOB, 3), value=500)
    block = world.mine()
    assert native_of(world, block, BOB, payer) == [500, 0]
    assert traced_values(world, block) == [("call", payer, 500, False)] * 3 + [("call", BOB, 500, False)]


def test_caught_revert_undoes_its_successful_inner_payments(world: World, payer: str) -> None:
    world.submit(ALICE, payer, call_data("NestedPayer", "pay_one_of_two", BOB, CAROL, 1), value=901)
    block = world.mine()
    assert native_of(world, block, BOB, CAROL, payer) == [0, 451, 450]
    # The trace marks the failed call, but not the undone calls inside it.
    assert ("call", BOB, 450, False) in traced_values(world, block)
    assert ("call", payer, 450, True) in traced_values(world, block)


def test_failed_transaction_pays_nothing_but_its_fee(node: AnvilNode) -> None:
    world = World(node, wallet_count=3, gas_price=10**9)
    payer = world.deploy("NestedPayer")
    before = native_of(world, node.head(), ALICE, BOB)
    world.submit(ALICE, payer, call_data("NestedPayer", "pay_and_fail", BOB, 1), value=700)
    block = world.mine()
    (transaction,) = node.rpc("eth_getBlockByNumber", [hex(block), False])["transactions"]
    receipt = node.rpc("eth_getTransactionReceipt", [transaction])
    assert receipt["status"] == "0x0"
    fee = int(receipt["gasUsed"], 16) * int(receipt["effectiveGasPrice"], 16)
    assert fee > 0
    assert native_of(world, block, ALICE, BOB, payer) == [before[0] - fee, before[1], 0]


def test_delegated_call_shows_value_that_it_does_not_move(world: World, payer: str) -> None:
    library = world.deploy("NestedPayer")
    world.submit(ALICE, payer, call_data("NestedPayer", "pay_by_delegate", library, CAROL), value=300)
    block = world.mine()
    assert native_of(world, block, CAROL, payer, library) == [300, 0, 0]
    assert traced_values(world, block) == [("delegatecall", library, 300, False), ("call", CAROL, 300, False)]


def test_contract_is_created_with_value_at_the_address_of_its_salt(world: World, payer: str) -> None:
    template = world.deploy("Destructible")
    salt = (7).to_bytes(32)
    address = world.call("NestedPayer", payer, "create_with_value", template, salt).lower()
    world.submit(ALICE, payer, call_data("NestedPayer", "create_with_value", template, salt), value=40, gas=10**6)
    block = world.mine()
    assert native_of(world, block, address) == [40]
    assert traced_values(world, block) == [("create", address, 40, False)]


def test_destroyed_contract_pays_its_balance_to_the_beneficiary(world: World) -> None:
    world.node.set_balance(BOB, 5)
    address = world.deploy("Destructible")
    world.submit(ALICE, address, value=60)
    world.mine()
    world.submit(ALICE, address, call_data("Destructible", "destroy", BOB))
    block = world.mine()
    assert native_of(world, block, BOB, address) == [65, 0]
    assert traced_values(world, block) == [("suicide", BOB, 60, False)]


def test_ten_thousand_transfers_fit_into_one_transaction(world: World) -> None:
    token = world.deploy_token("BULK", 18)
    made = world.emit_blocks(token, blocks=1, transactions=1, events=10_000, amount=3)
    logs = world.transfer_logs(made.first, made.last, token.address)
    assert len({log["transactionHash"] for log in logs}) == 1
    receivers = {"0x" + log["topics"][2][-40:] for log in logs}
    assert len(receivers) == 10_000
    assert world.balances_of(token, sorted(receivers), made.last) == [3] * 10_000
