"""The blocks at which a state changed, by halving: of native balances, and of a contract's coming into being.

Needs a node that has the states of the past. What cannot be read leaves a wider interval, never a wrong one.
"""

from collections.abc import Sequence

import polars as pl

from pipelines.extract.errors import StateUnavailable
from pipelines.extract.evm.hexadecimal import Data, Quantity
from pipelines.extract.evm.rpc import SMALL_ANSWER, Call, RpcClient
from pipelines.extract.family import BALANCE_CHANGES, BalanceRange


def find_balance_changes(client: RpcClient, intervals: Sequence[BalanceRange], most_reads: int) -> pl.DataFrame:
    """Find the blocks between two readings at which native balances changed.

    Intervals whose ends differ are halved, all of them at once, until one block is left. Changes that cancel each
    other between two readings of the same quantity are not seen: between them nothing is unexplained either.

    Args:
        intervals: lower-case wallets.
        most_reads: balances read at most; the intervals that are open by then stay wide.

    Returns:
        BALANCE_CHANGES: the readings between which a balance changed, one row per wallet and block, by both. Together
        with the ends given, which are not repeated,
        each interval between neighbouring readings that differ is one block wide, unless the reads were used up or
        the node has no state there. They were read by number: whether a block is still in the chain is for the caller
        to check.

    Raises:
        ExtractError: what the client raises, but StateUnavailable.
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
            if isinstance(answer, StateUnavailable):
                # So the states before are gone too.
                left = 0
                found.append(one)
            elif isinstance(answer, str):
                pending += _halves(one, int(answer, 16))
            else:
                raise answer
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
    """Those halves whose ends differ, given the quantity in the middle."""
    middle = _middle(interval)
    halves = (
        interval._replace(high_block=middle, high_quantity=quantity),
        interval._replace(low_block=middle, low_quantity=quantity),
    )
    return [half for half in halves if half.low_quantity != half.high_quantity]


def find_creation_block(client: RpcClient, address: str, head: int) -> int | None:
    """Number of the first block at whose end the address has code; None where it has none at the head.

    Of a contract that destroyed itself and came back, it is the beginning of one of its lives.

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
