"""Bisection for the blocks at which a state changed: native balances, and the creation of a contract.

If a state cannot be read, its interval stays wide, but it is never wrong.
"""

from collections.abc import Sequence

import polars as pl

from pipelines.extract.evm.hexadecimal import Data, Quantity
from pipelines.extract.family import BALANCE_CHANGES, BalanceRange
from pipelines.extract.jsonrpc.client import SMALL_ANSWER, Call, RpcClient


def find_balance_changes(client: RpcClient, intervals: Sequence[BalanceRange], most_reads: int) -> pl.DataFrame:
    """Find the blocks between two readings at which native balances changed.

    Halve all intervals with different ends together, until each is one block wide. Changes that cancel each other out
    between two equal readings are not found; the balances need no explanation there.

    Args:
        intervals: lower-case wallets.
        most_reads: balances read at most; intervals that are then still open stay wide.

    Returns:
        BALANCE_CHANGES: the readings between which a balance changed, one row per wallet and block, ordered by both.
        The given ends are not repeated. Neighbouring readings that differ are one block apart, unless the reads were
        used up or the node lacks the state. Blocks are read by number: the caller must check that they are still in
        the chain.

    Raises:
        ExtractError: the node does not answer at all.
    """
    given = {(one.wallet, block) for one in intervals for block in (one.low_block, one.high_block)}
    found: list[BalanceRange] = []
    pending = [one for one in intervals if one.low_quantity != one.high_quantity]
    left = most_reads
    while wide := [one for one in pending if one.high_block - one.low_block > 1][:left]:
        chosen = set(wide)
        found += [one for one in pending if one not in chosen]
        pending = []
        left -= len(wide)
        calls: list[Call] = [("eth_getBalance", [one.wallet, hex(_middle(one))]) for one in wide]
        for one, answer in zip(
            wide, client.batch(calls, Quantity, allow_errors=True, max_response_bytes=SMALL_ANSWER), strict=True
        ):
            if isinstance(answer, str):
                pending += _halves(one, int(answer, 16))
            else:
                found.append(one)
    readings = {
        (one.wallet, block): str(quantity)
        for one in (*found, *pending)
        for block, quantity in ((one.low_block, one.low_quantity), (one.high_block, one.high_quantity))
        if (one.wallet, block) not in given
    }
    rows = [(*where, quantity) for where, quantity in sorted(readings.items())]
    return pl.DataFrame(rows, schema=BALANCE_CHANGES, orient="row")


def _middle(interval: BalanceRange) -> int:
    return (interval.low_block + interval.high_block) // 2


def _halves(interval: BalanceRange, quantity: int) -> list[BalanceRange]:
    """Return those halves of an interval with different ends, given the quantity in the middle."""
    middle = _middle(interval)
    halves = (
        interval._replace(high_block=middle, high_quantity=quantity),
        interval._replace(low_block=middle, low_quantity=quantity),
    )
    return [half for half in halves if half.low_quantity != half.high_quantity]


def find_creation_block(client: RpcClient, address: str, head: int) -> int | None:
    """Return the number of the first block at the end of which the address has code; None if none at the head.

    For a contract that destroyed itself and was created again, return the start of one of its lives.

    Args:
        address: lower-case.
        head: number of the newest block in use.

    Raises:
        StateUnavailable: the node has no states of the past.
    """
    if not _has_code(client, address, head):
        return None
    before, found = -1, head
    while found - before > 1:
        middle = (before + found) // 2
        if _has_code(client, address, middle):
            found = middle
        else:
            before = middle
    return found


def _has_code(client: RpcClient, address: str, number: int) -> bool:
    code: str = client.call("eth_getCode", [address, hex(number)], Data, max_response_bytes=SMALL_ANSWER)
    return code != "0x"
