"""The contracts: what is committed is what the sources compile to, and each behaves as its tests' subjects need."""

import pytest
from eth_abi.abi import decode, encode

from tests.chain.artifacts import ARTIFACTS_FILE, CONTRACTS_FOLDER, artifact
from tests.chain.compile import compile_contracts
from tests.chain.node import NodeError
from tests.chain.world import MAX_UINT256, MULTICALL_ADDRESS, ZERO_ADDRESS, World, call_data, holder_at

ALICE, BOB, CAROL = (holder_at(index) for index in range(3))


def movements(world: World, first: int, last: int) -> list[tuple[str, str, int]]:
    """Sender, receiver and amount of each Transfer log."""
    return [
        ("0x" + log["topics"][1][-40:], "0x" + log["topics"][2][-40:], int(log["data"], 16))
        for log in world.transfer_logs(first, last)
    ]


def test_artifacts_are_what_the_sources_compile_to() -> None:
    assert ARTIFACTS_FILE.read_text(encoding="utf-8") == compile_contracts()


def test_every_source_has_an_artifact() -> None:
    for source in CONTRACTS_FOLDER.glob("*.vy"):
        assert artifact(source.stem).bytecode.startswith("0x")


def test_token_says_what_it_was_deployed_with(world: World) -> None:
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


def test_the_largest_amount_moves_whole(world: World) -> None:
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


def test_token_without_decimals_reverts_where_it_says_nothing(world: World) -> None:
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


def test_multi_token_says_its_standard_and_has_no_transfer_event(world: World) -> None:
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
