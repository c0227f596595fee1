"""Rows of a segment, part by part: transfer events of tokens and wallets, transactions and traces of native value.

Empty answers for blocks that are not final are checked against the blocks' bloom filters. A node that lags behind the
one that returned the head answers nothing for them, without an error.
"""

from collections.abc import Callable, Collection, Iterable, Iterator

import polars as pl

from control.ranges import BlockRange
from pipelines.extract.errors import PASSING, ExtractError
from pipelines.extract.evm.blocks import read_senders_of, read_wallet_transactions
from pipelines.extract.evm.blooms import confirm_empty_blocks
from pipelines.extract.evm.logs import TransferFilter, Transfers, fetch_transfers
from pipelines.extract.evm.state import CONTROL_ADDRESS
from pipelines.extract.evm.traces import TraceMethod, read_internal_transfers
from pipelines.extract.family import Part
from pipelines.extract.jsonrpc.client import RpcClient
from pipelines.rows import Kind, Segment
from pipelines.tables.evm import INTERNAL_TRANSFERS, TOKEN_TRANSFERS, TRANSACTIONS

# One part holds at most about this many transfers: 40,000 rows are some 24 MB decoded. Each write costs some 15 ms of
# processor time, regardless of its size. 25,000 rows would cost a tenth to a quarter more in all, and save 15 MiB at
# the peak.
ROWS_PER_PART = 40_000
# ... and about this many blocks, so that a failure at the end of a long range with few rows does not waste all of it.
BLOCKS_PER_PART = 10_000
# ... and about this much time, so that answers of a slow node are stored before its budget of the cycle is used up.
_SECONDS_PER_PART = 15.0
# Bloom filters checked together: a tail may be long.
_BLOOMS_PER_CHECK = 1_000
# For whole blocks with their transactions: some 100 kB each on a busy network. Even a slow node answers such a part
# within the cycle's budget, so that it is stored.
FULL_BLOCKS_PER_PART = 100


def collect_transfers(
    client: RpcClient, segment: Segment, final_number: int, max_log_range: int | None
) -> Iterator[Part]:
    """Read the token transfers of a segment of tokens or wallets, as `Node.collect`."""
    filters = _transfer_filters(segment)
    parts = fetch_transfers(client, filters, *segment.covered, max_range=max_log_range)
    for covered, rows in _gathered(parts, client.clock):
        frames = [rows]
        for first in range(max(covered.first, final_number + 1), covered.last + 1, _BLOOMS_PER_CHECK):
            last = min(first + _BLOOMS_PER_CHECK - 1, covered.last)
            frames.append(confirm_empty_blocks(client, filters, first, last, rows))
        if any(frame.height for frame in frames[1:]):
            rows = pl.concat(frames).sort(TOKEN_TRANSFERS.key)
        yield Part(covered, {TOKEN_TRANSFERS.name: rows})


def check_block(client: RpcClient, kind: Kind, number: int, addresses: Collection[str]) -> None:
    """Read the rows of a block by the calls that collect them, as `Node.check`; of an address that nobody uses if none.

    A block without a transaction of the addresses would show nothing about receipts: one of another sender is read.
    """
    found: Iterator[object]
    if kind == "native":
        senders = read_senders_of(client, number)[:1] if addresses else []
        found = read_wallet_transactions(client, number, number, {*addresses, *senders, CONTROL_ADDRESS})
    else:
        segment = Segment(kind, BlockRange(number, number), tuple(addresses) or (CONTROL_ADDRESS,))
        found = fetch_transfers(client, _transfer_filters(segment), number, number)
    for _ in found:
        pass


def _transfer_filters(segment: Segment) -> list[TransferFilter]:
    """Return the filters of a segment of tokens or wallets: its transfers match at least one of them."""
    addresses = frozenset(segment.addresses)
    if segment.kind == "wallet":
        return [TransferFilter(senders=addresses), TransferFilter(recipients=addresses)]
    return [TransferFilter(tokens=addresses)]


def _gathered(answers: Iterable[Transfers], clock: Callable[[], float]) -> Iterator[tuple[BlockRange, pl.DataFrame]]:
    """Join consecutive answers into parts of a bounded size; yield the answers before a failure, then raise it."""
    frames: list[pl.DataFrame] = []
    first, last, rows, began = 0, 0, 0, clock()
    try:
        for answer in answers:
            first = answer.from_block if not frames else first
            last = answer.to_block
            frames.append(answer.rows)
            rows += answer.rows.height
            is_late = clock() - began >= _SECONDS_PER_PART
            if rows >= ROWS_PER_PART or last - first + 1 >= BLOCKS_PER_PART or is_late:
                yield BlockRange(first, last), pl.concat(frames)
                frames, rows, began = [], 0, clock()
    except ExtractError:
        if frames:
            yield BlockRange(first, last), pl.concat(frames)
        raise
    if frames:
        yield BlockRange(first, last), pl.concat(frames)


def collect_native(client: RpcClient, segment: Segment, trace_method: TraceMethod | None) -> Iterator[Part]:
    """Read the transactions of wallets and, where the node traces, value moved by calls, as `Node.collect`."""
    wallets = frozenset(segment.addresses)
    for first in range(segment.covered.first, segment.covered.last + 1, FULL_BLOCKS_PER_PART):
        covered = BlockRange(first, min(first + FULL_BLOCKS_PER_PART - 1, segment.covered.last))
        transactions = [
            pl.DataFrame(schema=TRANSACTIONS.row_schema),
            *read_wallet_transactions(client, *covered, wallets),
        ]
        internal = [pl.DataFrame(schema=INTERNAL_TRANSFERS.row_schema)]
        unread: list[ExtractError] = []
        untraced: dict[int, ExtractError] = {}
        if trace_method is not None:
            for found, failed in read_internal_transfers(client, *covered, wallets, trace_method):
                internal.append(found)
                untraced |= failed
            if len(untraced) == covered.last - covered.first + 1:
                # No block of the part was traced: either the node is at fault, or all of them are.
                unread, untraced = _without_control(client, untraced, wallets, trace_method)
        rows = {TRANSACTIONS.name: pl.concat(transactions), INTERNAL_TRANSFERS.name: pl.concat(internal)}
        yield Part(covered, rows, unread, untraced)


def _without_control(
    client: RpcClient, untraced: dict[int, ExtractError], wallets: Collection[str], trace_method: TraceMethod
) -> tuple[list[ExtractError], dict[int, ExtractError]]:
    """Return the errors of blocks as those of all of them, or of single blocks where the node traces another one."""
    neighbour = min(untraced) - 1
    if neighbour < 1:
        return list(untraced.values())[:1], {}
    for _, failed in read_internal_transfers(client, neighbour, neighbour, wallets, trace_method):
        for error in failed.values():
            if isinstance(error, PASSING):
                raise error
            return list(untraced.values())[:1], {}
    return [], untraced
