"""The demo's comparison: it accepts the truth, and finds each kind of untruth."""

import copy
from collections.abc import Callable, Iterator
from datetime import UTC, date, datetime, timedelta
from typing import Any

import pytest
from web3 import Web3

from tests.chain.node import AnvilNode
from tests.chain.world import ZERO_ADDRESS, Token, World
from tests.e2e.checks import (
    check_attested,
    check_balances,
    check_cap_table,
    check_holders,
    check_token_activities,
    check_wallet_activities,
    decimal_text,
    decimals_of,
    first_block_at,
    percentage_text,
)

GENESIS_TIME = 1_700_000_000
Answer = dict[str, Any]


@pytest.fixture(scope="module")
def made() -> Iterator[tuple[World, Token, int]]:
    """A token of which wallets 0 to 3 hold 100.00 each; tracked from the third block on."""
    with AnvilNode(genesis_time=GENESIS_TIME) as node:
        world = World(node, wallet_count=5)
        token = world.deploy_token("GOLD", 2, supply=100_000)
        world.distribute(token, 10_000, world.wallets[:4])
        world.transfer(token, world.wallets[0], world.wallets[1], 2_500)
        world.transfer(token, world.wallets[1], world.wallets[1], 1)
        world.submit(world.wallets[0], world.wallets[1], value=7)
        first_block = world.mine()
        world.mine()
        yield world, token, first_block


def honest_cap_table(made: tuple[World, Token, int]) -> list[Answer]:
    """Two pages, as the API would answer: only the wallets that moved are known."""
    world, _, first_block = made
    rows = [
        {"rank": 1, "wallet": world.wallets[1], "quantity": "125", "quantityRaw": "12500", "percentage": "12.5"},
        {"rank": 2, "wallet": world.wallets[0], "quantity": "75", "quantityRaw": "7500", "percentage": "7.5"},
    ]
    for row in rows:
        row["wallet"] = Web3.to_checksum_address(str(row["wallet"]))
    head = {
        "totalSupply": "1000",
        "holderCount": 2,
        "unattributed": {"quantity": "800", "percentage": "80"},
        "asOf": {"blockNumber": first_block + 1, "dataVersion": 3},
    }
    return [{**copy.deepcopy(head), "data": [row]} for row in rows]


def test_true_cap_table_agrees(made: tuple[World, Token, int]) -> None:
    verdict = check_cap_table(*made, honest_cap_table(made))
    assert (verdict.problems, verdict.agreed, verdict.total) == ([], 2, 2)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda pages: pages[0]["data"][0].update(quantityRaw="12501"), "quantityRaw"),
        (lambda pages: pages[0]["data"][0].update(quantity="125.0"), "quantity"),
        (lambda pages: pages[1]["data"][0].update(percentage="7.500000000001"), "percentage"),
        (lambda pages: pages[1]["data"][0].update(rank=3), "rank"),
        (lambda pages: pages[1]["data"][0].update(wallet=pages[1]["data"][0]["wallet"].lower()), "address"),
        (lambda pages: pages[1]["data"].clear(), "is not listed"),
        (lambda pages: pages[1]["data"].append(pages[0]["data"][0]), "falling order"),
        (lambda pages: pages[0].update(totalSupply="1000.01"), "totalSupply"),
        (lambda pages: pages[0].update(holderCount=3), "holderCount"),
        (lambda pages: pages[0]["unattributed"].update(quantity="800.01"), "unattributed"),
        (lambda pages: pages[1]["asOf"].update(dataVersion=4), "different moments"),
    ],
)
def test_untrue_cap_table_is_found(
    made: tuple[World, Token, int], change: Callable[[list[Answer]], None], words: str
) -> None:
    pages = honest_cap_table(made)
    change(pages)
    assert any(words in problem for problem in check_cap_table(*made, pages).problems)


def attested_cap_table(made: tuple[World, Token, int]) -> tuple[date, list[Answer]]:
    """Return the day that ends with the newest block, and a page with a row checked at that block."""
    node = made[0].node
    row = {"wallet": made[0].wallets[0], "reconciliation": "Adjusted", "checkedBlockNumber": node.head()}
    page = {"asOf": {"blockNumber": node.head()}, "data": [row]}
    return datetime.fromtimestamp(node.block_time(node.head()), UTC).date(), [page]


def test_attested_rows_are_confirmed_at_the_last_block_of_the_day(made: tuple[World, Token, int]) -> None:
    end, pages = attested_cap_table(made)
    assert check_attested(made[0], end, pages).is_agreed
    assert not check_attested(made[0], end - timedelta(days=1), pages).is_agreed


@pytest.mark.parametrize("told", [{"reconciliation": "Unchecked"}, {"checkedBlockNumber": None}])
def test_an_unconfirmed_row_is_a_problem(made: tuple[World, Token, int], told: Answer) -> None:
    end, pages = attested_cap_table(made)
    pages[0]["data"][0].update(told)
    assert not check_attested(made[0], end, pages).is_agreed


def test_missing_and_untrue_balances_are_found(made: tuple[World, Token, int]) -> None:
    world, token, block = made
    wallet = world.wallets[0]
    native = world.native_balance(wallet, block)
    positions = [
        {"token": {"ledgerId": "native"}, "quantity": decimal_text(native, 18), "quantityRaw": str(native)},
        {"token": {"ledgerId": Web3.to_checksum_address(token.address)}, "quantity": "75", "quantityRaw": "7500"},
    ]
    answer = {"asOf": {"blockNumber": block}, "current": positions}
    assert check_balances(world, decimals_of([token]), wallet, answer).problems == []
    assert check_balances(world, decimals_of([token]), wallet, answer).total == 2
    for wrong in (positions[:1], [positions[0], {**positions[1], "quantityRaw": "7501"}]):
        assert len(check_balances(world, decimals_of([token]), wallet, {**answer, "current": wrong}).problems) == 1
    empty = world.wallets[4]
    assert check_balances(world, decimals_of([token]), empty, answer).problems != []


def token_activity(world: World, token: Token, block: int) -> list[Answer]:
    rows = []
    for log in world.transfer_logs(block, block, token.address):
        amount = int(log["data"], 16)
        rows.append(
            {
                "type": "Transfer",
                "blockNumber": block,
                "logIndex": int(log["logIndex"], 16),
                "transactionHash": log["transactionHash"],
                "fromWallet": Web3.to_checksum_address("0x" + log["topics"][1][-40:]),
                "toWallet": Web3.to_checksum_address("0x" + log["topics"][2][-40:]),
                "amountRaw": str(amount),
                "amount": decimal_text(amount, 2),
            }
        )
    return rows


def test_missing_and_untrue_token_activities_are_found(made: tuple[World, Token, int]) -> None:
    world, token, block = made
    rows = token_activity(world, token, block)
    assert len(rows) == 2

    def check(*shown: Answer) -> list[str]:
        return check_token_activities(*made, [{"asOf": {"blockNumber": block}, "data": list(shown)}]).problems

    assert check(*rows) == []
    assert "1 missing" in check(rows[0])[0]
    assert "not on the node" in check(*rows, rows[0])[0]
    assert len(check(rows[0], {**rows[1], "amountRaw": "2"})) == 2
    assert len(check(rows[0], {**rows[1], "fromWallet": ZERO_ADDRESS})) == 2


def test_missing_and_untrue_wallet_activities_are_found(made: tuple[World, Token, int]) -> None:
    world, token, block = made
    sender, receiver = world.wallets[:2]
    rows = [
        {
            "blockNumber": block,
            "transactionHash": row["transactionHash"],
            "token": {"ledgerId": Web3.to_checksum_address(token.address)},
            "type": kind,
            "status": "Confirmed",
            "direction": direction,
            "amountRaw": row["amountRaw"],
        }
        for row, kind, direction in zip(
            token_activity(world, token, block), ("TransferIn", "Self"), ("In", None), strict=True
        )
    ]
    native = {**rows[0], "token": {"ledgerId": "native"}, "transactionHash": "0x1", "amountRaw": "7"}
    failed = {**native, "status": "Failed", "direction": "Out", "type": "TransferOut", "amountRaw": "1000"}

    def check(*shown: Answer) -> list[str]:
        pages = [{"asOf": {"blockNumber": block}, "data": list(shown)}]
        return check_wallet_activities(world, [token], receiver, block, pages).problems

    assert check(*rows, native, failed) == []
    assert "missing" in check(rows[0], native)[0]
    assert "native activities together" in check(*rows)[0]
    assert check_wallet_activities(
        world, [token], sender, block, [{"asOf": {"blockNumber": block}, "data": []}]
    ).problems


def test_texts_of_numbers() -> None:
    assert [decimal_text(raw, 2) for raw in (0, 1, 10, 100, 12_345, -5)] == ["0", "0.01", "0.1", "1", "123.45", "-0.05"]
    assert decimal_text(2**256 - 1, 0) == str(2**256 - 1)
    assert decimal_text(1, 77) == "0." + "0" * 76 + "1"
    assert percentage_text(1, 3) == "33.333333333333"
    assert percentage_text(2, 3) == "66.666666666667"
    # exactly half of the last place: to the even neighbour
    assert [percentage_text(part, 2 * 10**14) for part in (1, 3)] == ["0", "0.000000000002"]


def test_first_block_of_a_window(made: tuple[World, Token, int]) -> None:
    node = made[0].node

    def first(offset: int) -> int:
        return first_block_at(node, datetime.fromtimestamp(GENESIS_TIME + offset, UTC).isoformat())

    assert [first(offset) for offset in (-5, 0, 1, 12, 13, 10_000)] == [0, 0, 1, 1, 2, node.head() + 1]


def test_head_of_a_report(made: tuple[World, Token, int]) -> None:
    world, token, first_block = made
    largest = [
        (world.wallets[1], "125"),
        (world.wallets[2], "100"),
        (world.wallets[3], "100"),
        (world.wallets[0], "75"),
    ]
    # The deployer holds the rest of the supply.
    ranked = [(world.deployer, "600"), largest[0], *sorted(largest[1:3]), largest[3]]
    honest: Answer = {
        "asOf": {"blockNumber": first_block + 1},
        "holderCount": 5,
        "totalSupply": "1000",
        "unattributed": {"quantity": "0"},
        "largest": [{"wallet": Web3.to_checksum_address(who), "quantity": quantity} for who, quantity in ranked],
    }
    verdict = check_holders(world, token, honest)
    assert (verdict.total, verdict.agreed, verdict.problems) == (4, 4, [])
    for untrue in (
        {"holderCount": 4},
        {"totalSupply": "1000.00"},
        {"unattributed": {"quantity": "1"}},
        {"largest": honest["largest"][::-1]},
        {"largest": honest["largest"][1:]},
    ):
        verdict = check_holders(world, token, honest | untrue)
        assert verdict.agreed == 3
        assert len(verdict.problems) == 1
