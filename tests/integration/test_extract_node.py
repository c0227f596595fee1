"""Extraction against a real node, compared with independent requests to it."""

from collections.abc import Iterator
from typing import Any

import polars as pl
import pytest

from pipelines.extract.errors import ChainReorganised, ExtractError
from pipelines.extract.evm.balances import read_balances, read_supplies
from pipelines.extract.evm.blocks import (
    find_first_block_at_or_after,
    read_final_number,
    read_head,
    read_headers,
    read_wallet_transactions,
)
from pipelines.extract.evm.blooms import confirm_empty_blocks
from pipelines.extract.evm.dialect import EVM
from pipelines.extract.evm.logs import TransferFilter, fetch_transfers
from pipelines.extract.evm.metadata import read_contracts
from pipelines.extract.evm.narrowing import find_creation_block
from pipelines.extract.evm.probe import probe
from pipelines.extract.jsonrpc.client import RpcClient
from tests.chain.node import AnvilNode
from tests.chain.world import MULTICALL_ADDRESS, TRANSFER_TOPIC, World

# Code of a contract that burns all gas of every call: the INVALID opcode.
GAS_BURNER = "0xfe"


@pytest.fixture
def client(node: AnvilNode) -> Iterator[RpcClient]:
    opened = RpcClient("local", [node.url], EVM, max_attempts=2)
    yield opened
    opened.close()


@pytest.fixture
def world(node: AnvilNode) -> World:
    return World(node, wallet_count=12, gas_price=3)


def test_transfers_are_those_in_the_receipts(node: AnvilNode, client: RpcClient, world: World) -> None:
    tokens = [world.deploy_token("AAA", 18), world.deploy_token("FEE", 6, fee_basis_points=100)]
    nft = world.deploy("Nft721", "Art", "ART")
    for token in tokens:
        world.distribute(token, 10**30 if token.decimals == 18 else 10**12)
    world.transfer_many(120, tokens, per_block=6)
    head = node.head()
    expected = []
    for number in range(head + 1):
        for receipt in node.rpc("eth_getBlockReceipts", [hex(number)]):
            expected += [log for log in receipt["logs"] if log["topics"][0] == TRANSFER_TOPIC]
    wanted = TransferFilter(tokens=frozenset([*(token.address for token in tokens), nft]))
    pieces = list(fetch_transfers(client, wanted, 0, head))
    found = [row for piece in pieces for row in piece.rows.iter_rows(named=True)]
    assert [(piece.from_block, piece.to_block) for piece in pieces][-1][1] == head
    assert len(found) > 100
    assert [
        (row["block_number"], row["log_index"], row["transaction_hash"], row["block_hash"], row["token_address"])
        for row in found
    ] == [
        (
            int(log["blockNumber"], 16),
            int(log["logIndex"], 16),
            log["transactionHash"],
            log["blockHash"],
            log["address"],
        )
        for log in expected
    ]
    assert [("0x" + log["topics"][1][26:], "0x" + log["topics"][2][26:], int(log["data"], 16)) for log in expected] == [
        (row["from_address"], row["to_address"], int(row["amount_raw"])) for row in found
    ]


def test_blooms_reveal_transfers_that_an_answer_omitted(node: AnvilNode, client: RpcClient, world: World) -> None:
    tokens = [world.deploy_token("AAA", 18), world.deploy_token("BBB", 6)]
    for token in tokens:
        world.distribute(token, 10**12)
    first = node.head() + 1
    for _ in range(10):
        world.transfer_many(2, tokens[:1])
        world.transfer_many(3, tokens[1:])
        world.mine()
    wallets = frozenset(world.wallets[:3])
    for filters in (
        [TransferFilter(tokens=frozenset([tokens[0].address]))],
        [TransferFilter(senders=wallets), TransferFilter(recipients=wallets)],
    ):
        rows = pl.concat([piece.rows for piece in fetch_transfers(client, filters, first, node.head())])
        assert not rows.is_empty()
        assert confirm_empty_blocks(client, filters, first, node.head(), rows).is_empty()
        missing = confirm_empty_blocks(client, filters, first, node.head(), rows.clear())
        assert missing.equals(rows)


def test_where_a_contract_begins(node: AnvilNode, client: RpcClient, world: World) -> None:
    created = {}
    for symbol in ("AAA", "BBB"):
        for _ in range(7):
            world.mine()
        token = world.deploy_token(symbol, 18)
        created[token.address] = node.head()
    world.mine()
    assert {address: find_creation_block(client, address, node.head()) for address in created} == created
    assert find_creation_block(client, world.wallets[0], node.head()) is None


@pytest.mark.parametrize("has_multicall", [True, False])
def test_balances_and_supplies_at_a_past_block(
    node: AnvilNode, client: RpcClient, world: World, has_multicall: bool
) -> None:
    early = node.head()
    if has_multicall:
        world.place_multicall()
    token = world.deploy_token("AAA", 18)
    world.distribute(token, 2**200)
    block = node.rpc("eth_getBlockByNumber", ["latest", False])
    number, hash_ = int(block["number"], 16), block["hash"]
    burners = [f"0x{0xBAD0 + index:040x}" for index in range(6)]
    for burner in burners:
        node.set_code(burner, GAS_BURNER)
    world.transfer_many(30, [token])
    pairs = [(burner, world.wallets[0]) for burner in burners]
    pairs += [(token.address, wallet) for wallet in world.wallets] + [("native", wallet) for wallet in world.wallets]
    frame = read_balances(client, pairs, hash_, number, MULTICALL_ADDRESS)
    expected: list[str | None] = []
    for contract, holder in pairs:
        if contract in burners:
            expected.append(None)
        elif contract == "native":
            expected.append(str(int(node.rpc("eth_getBalance", [holder, hex(number)]), 16)))
        else:
            call = {"to": contract, "data": "0x70a08231" + "0" * 24 + holder[2:]}
            expected.append(str(int(node.rpc("eth_call", [call, hex(number)]), 16)))
    assert frame["quantity_raw"].to_list() == expected
    head = read_head(client)
    now = read_balances(client, pairs, head.hash, head.number, MULTICALL_ADDRESS)
    assert now["quantity_raw"].to_list()[:6] == [None] * 6
    assert None not in now["quantity_raw"].to_list()[6:]
    supplies = read_supplies(client, [token.address, burners[0]], head.hash, head.number, MULTICALL_ADDRESS)
    supply = int(node.rpc("eth_call", [{"to": token.address, "data": "0x18160ddd"}, "latest"]), 16)
    assert supplies["total_supply_raw"].to_list() == [str(supply), None]
    before = node.rpc("eth_getBlockByNumber", [hex(early), False])
    # The contracts have no code yet, so all balances are zero.
    old = read_balances(client, pairs[4:8], before["hash"], early, MULTICALL_ADDRESS)
    assert old["quantity_raw"].to_list() == ["0", "0", "0", "0"]
    old_supplies = read_supplies(client, [token.address], before["hash"], early, MULTICALL_ADDRESS)
    assert old_supplies["total_supply_raw"].to_list() == ["0"]


def test_contracts_are_classified_by_their_kind(node: AnvilNode, client: RpcClient, world: World) -> None:
    world.place_multicall()
    deployed = {
        "plain": world.deploy_token("AAA", 6).address,
        "bytes32": world.deploy_bytes32_token("MKR", 18).address,
        "no decimals": world.deploy("NoDecimalsToken", 10**9),
        "nft": world.deploy("Nft721", "Art", "ART"),
        "multi": world.deploy("Multi1155"),
        "nothing": "0x" + "12" * 20,
        "burner": "0x" + "bd" * 20,
    }
    node.set_code(deployed["burner"], GAS_BURNER)
    head = node.rpc("eth_getBlockByNumber", [hex(world.mine()), False])
    for multicall in (MULTICALL_ADDRESS, None):
        contracts = dict(
            zip(deployed, read_contracts(client, list(deployed.values()), head["hash"], multicall), strict=True)
        )
        assert {name: (found.contract_status, found.standard) for name, found in contracts.items()} == {
            "plain": ("Fungible", "ERC-20"),
            "bytes32": ("Fungible", "ERC-20"),
            "no decimals": ("Fungible", "ERC-20"),
            "nft": ("NotFungible", "ERC-721"),
            "multi": ("NotFungible", "ERC-1155"),
            "nothing": ("NoContract", None),
            "burner": ("Unknown", None),
        }
        plain, bytes32 = contracts["plain"], contracts["bytes32"]
        assert (plain.symbol, plain.decimals, plain.total_supply) == ("AAA", 6, 10**15)
        assert (bytes32.symbol, bytes32.name) == ("MKR", "MKR token")
        assert contracts["no decimals"].decimals is None
        assert "decimals()" in (contracts["no decimals"].detail or "")


def test_wallet_transactions_explain_native_balances(node: AnvilNode, client: RpcClient, world: World) -> None:
    senders = world.wallets[:4]
    burner = "0x" + "bd" * 20
    node.set_code(burner, GAS_BURNER)
    begin = {wallet: int(node.rpc("eth_getBalance", [wallet, "latest"]), 16) for wallet in senders}
    first = node.head() + 1
    for index in range(60):
        sender, receiver = world.random.choice(senders), world.random.choice(world.wallets)
        world.submit(sender, receiver, value=world.random.randint(0, 10**18))
        if index % 5 == 0:
            world.mine()
    world.submit(senders[0], None, "0x6001600c60003960016000f300")
    world.submit(senders[0], burner, value=5)
    last = world.mine()
    rows = [
        row for frame in read_wallet_transactions(client, first, last, senders) for row in frame.iter_rows(named=True)
    ]
    changes = dict.fromkeys(senders, 0)
    for row in rows:
        if row["from_address"] in changes:
            changes[row["from_address"]] -= int(row["fee_raw"]) + int(row["value_raw"]) * row["is_success"]
        if row["to_address"] in changes:
            changes[row["to_address"]] += int(row["value_raw"]) * row["is_success"]
    assert {wallet: begin[wallet] + changes[wallet] for wallet in senders} == {
        wallet: int(node.rpc("eth_getBalance", [wallet, "latest"]), 16) for wallet in senders
    }
    created = [row for row in rows if row["to_address"] is None]
    assert len(created) == 1
    assert [row["is_success"] for row in rows if row["to_address"] == burner] == [False]
    assert node.rpc("eth_getCode", [created[0]["created_address"], "latest"]) == "0x00"


def test_a_block_that_left_the_chain_is_noticed(node: AnvilNode, client: RpcClient, world: World) -> None:
    world.place_multicall()
    token = world.deploy_token("AAA", 18)
    snapshot = node.snapshot()
    orphan = node.rpc("eth_getBlockByNumber", [hex(world.distribute(token, 5)), False])
    node.revert(snapshot)
    world.mine()
    world.mine()
    pairs = [(token.address, world.wallets[0]), (token.address, world.wallets[1])]
    for multicall in (MULTICALL_ADDRESS, None):
        with pytest.raises(ChainReorganised):
            read_balances(client, pairs, orphan["hash"], int(orphan["number"], 16), multicall)


def test_probe_head_final_block_and_headers_are_read(node: AnvilNode, client: RpcClient, world: World) -> None:
    assert probe(client, 31337, MULTICALL_ADDRESS).multicall is None
    world.place_multicall()
    facts = probe(client, 31337, MULTICALL_ADDRESS)
    assert (facts.has_archive, facts.trace_method, facts.multicall) == (True, "trace_block", MULTICALL_ADDRESS)
    for _ in range(80):
        world.mine()
    head = read_head(client)
    assert read_final_number(client, head, 5) == head.number - 64
    headers = read_headers(client, range(head.number + 1))
    assert headers["parent_hash"].to_list()[1:] == headers["block_hash"].to_list()[:-1]
    seconds = headers["block_time"].dt.epoch("s").to_list()
    for number in (1, 7, head.number):
        found: Any = find_first_block_at_or_after(
            client, head.time.fromtimestamp(seconds[number], head.time.tzinfo), head
        )
        assert found == seconds.index(seconds[number])
    with pytest.raises(ExtractError):
        read_headers(client, [head.number + 1])
