"""Native value that moves inside transactions: calls, creations and self-destructions, from a node's traces.

The value of a transaction itself is in blocks.py. Block rewards and withdrawals are in no trace.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby, pairwise
from typing import Any, Literal, NamedTuple, TypeAlias

import msgspec
import polars as pl

from pipelines.extract.errors import OF_ONE_UNIT, ChainReorganised, ExtractError, MalformedAnswer
from pipelines.extract.evm.blocks import HEADER_CALL, read_transaction_hashes
from pipelines.extract.evm.hexadecimal import Address, Hash, Quantity
from pipelines.extract.family import Header
from pipelines.extract.headers import check_links
from pipelines.extract.jsonrpc.client import LARGE_ANSWER, Call, RpcClient
from pipelines.extract.prefetch import map_in_order
from pipelines.extract.units import HURRY_SECONDS
from pipelines.tables.sources import TABLES

TraceMethod: TypeAlias = Literal["trace_block", "debug_traceBlockByNumber"]

# The traces of a full block of a busy network have some megabytes, and take a node up to a second.
_BLOCKS_PER_REQUEST = 4
# Nodes stop after 5 s where the call names no time; the client waits 30 s for an answer.
_TRACE_TIME = "25s"
_ZERO_ADDRESS = "0x" + 40 * "0"

INTERNAL_TRANSFER_SCHEMA = TABLES["internal_transfers"].schema_without("network", "batch_id")
# Kind of move by the type of a frame; None moves nothing between accounts. For a parity type `call`, the key is its
# callType.
_KINDS: dict[str, str | None] = {
    "call": "call",
    "callcode": None,
    "delegatecall": None,
    "staticcall": None,
    "create": "create",
    "create2": "create",
    "suicide": "selfdestruct",
    "selfdestruct": "selfdestruct",
}


# A path of numbers: calls are at most 1,024 deep.
_LONGEST_PATH = 16_000
_PATH = msgspec.json.Decoder(list[int])


class _Frame(NamedTuple):
    """One call, creation or self-destruction; `depth` is 0 for the transaction itself."""

    depth: int
    type: str
    has_failed: bool
    from_address: str | None
    to_address: str | None
    amount: int


class _Action(msgspec.Struct, gc=False, rename="camel"):
    from_: Address | None = msgspec.field(name="from", default=None)
    to: Address | None = None
    value: Quantity | None = None
    call_type: str | None = None
    address: Address | None = None
    refund_address: Address | None = None
    balance: Quantity | None = None


class _Result(msgspec.Struct, gc=False):
    address: Address | None = None


class _FlatTrace(msgspec.Struct, rename="camel"):
    """One frame of an answer of trace_block."""

    type: str
    action: _Action
    trace_address: msgspec.Raw
    block_hash: Hash
    result: _Result | None = None
    error: str | None = None
    transaction_hash: Hash | None = None

    def path(self) -> list[int]:
        """Return the frame's path in the tree of calls; the length is its depth."""
        if len(self.trace_address) > _LONGEST_PATH:
            raise msgspec.ValidationError("the address of a trace is too long")
        return _PATH.decode(self.trace_address)


class _NestedCall(msgspec.Struct):
    """One frame of an answer of the callTracer, with its inner frames."""

    type: str
    from_: Address = msgspec.field(name="from")
    to: Address | None = None
    value: Quantity | None = None
    error: str | None = None
    calls: list["_NestedCall"] | None = None


class _NestedTrace(msgspec.Struct, rename="camel"):
    result: _NestedCall | None = None
    error: str | None = None
    tx_hash: Hash | None = None


class _Sent(msgspec.Struct):
    from_: Address = msgspec.field(name="from")
    value: Quantity


@dataclass(frozen=True)
class _Block:
    """A block, with the header and transactions that its traces must match."""

    network: str
    method: TraceMethod
    header: Header
    transactions: Sequence[str]

    def malformed(self, problem: str) -> MalformedAnswer:
        return MalformedAnswer(self.network, self.method, self.header.number, self.header.number, problem)

    def reorganised(self) -> ChainReorganised:
        number = self.header.number
        detail = f"block {number} changed while its traces were read"
        return ChainReorganised(self.network, self.method, number, number, detail, block_number=number)


class _Moves(NamedTuple):
    """Moves of consecutive blocks.

    Attributes:
        rows: of INTERNAL_TRANSFER_SCHEMA.
        failed: errors of blocks without traces.
    """

    headers: list[Header]
    rows: list[tuple[Any, ...]]
    failed: Mapping[int, ExtractError]


def trace_call(method: TraceMethod, number: int) -> Call:
    """Return the call that reads the traces of one block."""
    if method == "trace_block":
        return method, [hex(number)]
    return method, [hex(number), {"tracer": "callTracer", "timeout": _TRACE_TIME}]


def read_internal_transfers(
    client: RpcClient, from_block: int, to_block: int, wallets: Collection[str], method: TraceMethod
) -> Iterator[tuple[pl.DataFrame, Mapping[int, ExtractError]]]:
    """Read the native value that moved inside transactions from or to the wallets.

    Every block is traced: such a move needs no transaction of the wallet's own. Omitted are moves undone because their
    call or an outer one failed, moves of 0, moves from an account to itself, and the transactions themselves.

    Args:
        from_block, to_block: both included, from 1: the genesis block has no traces.
        wallets: lower-case addresses.
        method: one that the node serves; both give the same rows.

    Yields:
        INTERNAL_TRANSFER_SCHEMA, in block and trace order, and the errors of blocks that cannot be traced.
        `amount_raw` is decimal text in base units, `kind` one of call, create, selfdestruct. `trace_index` counts the
        moves of a transaction depth-first from 0, those of other accounts too, so that it depends neither on the
        wallets nor on the method. Memory is bounded by the blocks in flight.

    Raises:
        ChainReorganised: the chain changed meanwhile.
        ExtractError: the headers of the blocks cannot be read.

    Source: https://openethereum.github.io/JSONRPC-trace-module,
        https://geth.ethereum.org/docs/developers/evm-tracing/built-in-tracers
    """
    tracked = frozenset(wallets)
    starts = range(from_block, to_block + 1, _BLOCKS_PER_REQUEST) if tracked else ()

    def read(start: int) -> _Moves:
        return _read_moves(client, range(start, min(start + _BLOCKS_PER_REQUEST, to_block + 1)), tracked, method)

    last_header: list[Header] = []
    for moves in map_in_order(read, starts, client.max_in_flight):
        check_links(client.network, HEADER_CALL, last_header + moves.headers)
        last_header = moves.headers[-1:]
        if moves.rows or moves.failed:
            yield pl.DataFrame(moves.rows, schema=INTERNAL_TRANSFER_SCHEMA, orient="row"), moves.failed


def _read_moves(
    client: RpcClient,
    numbers: Sequence[int],
    wallets: frozenset[str],
    method: TraceMethod,
    patience: float | None = None,
) -> _Moves:
    """Read the moves of some blocks; where they cannot be traced together, in halves down to the block at fault."""
    blocks = [
        _Block(client.network, method, header, transactions)
        for header, transactions in read_transaction_hashes(client, numbers)
    ]
    try:
        rows = _trace(client, blocks, wallets, method, patience)
    except OF_ONE_UNIT as error:
        if len(numbers) == 1:
            return _Moves([blocks[0].header], [], {numbers[0]: error})
        middle = len(numbers) // 2
        one, other = (
            _read_moves(client, half, wallets, method, HURRY_SECONDS) for half in (numbers[:middle], numbers[middle:])
        )
        return _Moves(one.headers + other.headers, one.rows + other.rows, {**one.failed, **other.failed})
    return _Moves([block.header for block in blocks], rows, {})


def _trace(
    client: RpcClient,
    blocks: Sequence[_Block],
    wallets: frozenset[str],
    method: TraceMethod,
    patience: float | None,
) -> list[tuple[Any, ...]]:
    calls = [trace_call(method, block.header.number) for block in blocks]
    type_: Any = list[_FlatTrace] | None if method == "trace_block" else list[_NestedTrace] | None
    answers = client.batch(calls, type_, max_response_bytes=LARGE_ANSWER, retry_timeouts=False, patience=patience)
    frames_of: Any = _flat_frames if method == "trace_block" else _nested_frames
    traced = [frames_of(block, answer) for block, answer in zip(blocks, answers, strict=True)]
    _check_unmoved(client, blocks, answers, traced)
    return [
        (block.header.number, block.header.hash, index, transaction, trace_index, *move)
        for block, frames in zip(blocks, traced, strict=True)
        for index, transaction in enumerate(block.transactions)
        for trace_index, move in enumerate(_moves(block, frames.get(transaction, ())))
        if move[0] in wallets or move[1] in wallets
    ]


def _is_foreign(block: _Block, traces: Sequence[Any]) -> bool:
    """Return whether traces name another block; the callTracer names none."""
    return block.method == "trace_block" and any(trace.block_hash.lower() != block.header.hash for trace in traces)


def _flat_frames(block: _Block, traces: Sequence[_FlatTrace] | None) -> dict[str, list[_Frame]]:
    """Return the frames of each traced transaction, depth-first."""
    if traces is None:
        raise block.malformed("there are no traces of the block")
    # A reward belongs to no transaction.
    try:
        inside = [
            (str(trace.transaction_hash).lower(), trace.path(), trace)
            for trace in traces
            if trace.transaction_hash is not None
        ]
    except msgspec.DecodeError as error:
        raise block.malformed(str(error)) from None
    inside.sort(key=lambda placed: placed[:2])
    frames: dict[str, list[_Frame]] = {}
    for transaction, group in groupby(inside, lambda placed: placed[0]):
        ordered = list(group)
        paths = [path for _, path, _ in ordered]
        if paths[0] or any(earlier == later for earlier, later in pairwise(paths)):
            raise block.malformed(f"traces of transaction {transaction} are missing or duplicated")
        frames[transaction] = [_flat_frame(trace, len(path)) for _, path, trace in ordered]
    return frames


def _flat_frame(trace: _FlatTrace, depth: int) -> _Frame:
    action = trace.action
    type_ = (action.call_type or trace.type) if trace.type == "call" else trace.type
    sender, receiver, value = action.from_, action.to, action.value
    if _KINDS.get(type_) == "create":
        receiver = trace.result.address if trace.result is not None else None
    elif _KINDS.get(type_) == "selfdestruct":
        sender, receiver, value = action.address, action.refund_address, action.balance
    return _Frame(depth, type_, trace.error is not None, sender, receiver, int(value or "0x0", 16))


def _nested_frames(block: _Block, traces: Sequence[_NestedTrace] | None) -> dict[str, list[_Frame]]:
    """Return the frames of each traced transaction, depth-first."""
    if traces is None:
        raise block.malformed("there are no traces of the block")
    if any(trace.tx_hash is None for trace in traces) and len(traces) != len(block.transactions):
        raise block.malformed(f"{len(traces)} traces for {len(block.transactions)} transactions")
    frames: dict[str, list[_Frame]] = {}
    for position, trace in enumerate(traces):
        transaction = block.transactions[position] if trace.tx_hash is None else trace.tx_hash.lower()
        if trace.result is None:
            raise block.malformed(f"transaction {transaction} is not traced")
        frames[transaction] = list(_walk(trace.result))
    return frames


def _walk(root: _NestedCall) -> Iterator[_Frame]:
    # Calls nest up to 1,024 deep.
    waiting = [(0, root)]
    while waiting:
        depth, call = waiting.pop()
        amount = int(call.value or "0x0", 16)
        yield _Frame(depth, call.type.lower(), call.error is not None, call.from_, call.to, amount)
        waiting += [(depth + 1, inner) for inner in reversed(call.calls or [])]


def _check_unmoved(
    client: RpcClient,
    blocks: Sequence[_Block],
    answers: Sequence[Sequence[Any]],
    traced: Sequence[dict[str, list[_Frame]]],
) -> None:
    """Raise if a block was replaced meanwhile, or if the traces are not those of its transactions."""
    doubtful = [
        (block, frames, is_foreign)
        for block, answer, frames in zip(blocks, answers, traced, strict=True)
        # The callTracer names no block.
        if (is_foreign := _is_foreign(block, answer))
        or block.method != "trace_block"
        or frames.keys() != set(block.transactions)
    ]
    again = read_transaction_hashes(client, [block.header.number for block, *_ in doubtful])
    for (block, frames, is_foreign), (header, _) in zip(doubtful, again, strict=True):
        if header.hash != block.header.hash:
            raise block.reorganised()
        if is_foreign:
            raise block.malformed("the traces are of another block")
        if foreign := frames.keys() - set(block.transactions):
            raise block.malformed(f"transaction {min(foreign)} is not in the block")
        _check_system_transactions(client, block, [hash_ for hash_ in block.transactions if hash_ not in frames])


def _check_system_transactions(client: RpcClient, block: _Block, transactions: Sequence[str]) -> None:
    """Accept untraced transactions without a signature and without value: state synchronisation on Polygon."""
    calls: list[Call] = [("eth_getTransactionByHash", [transaction]) for transaction in transactions]
    for transaction, sent in zip(transactions, client.batch(calls, _Sent | None), strict=True):
        if sent is None or sent.from_ != _ZERO_ADDRESS or int(sent.value, 16):
            raise block.malformed(f"transaction {transaction} is not traced")


def _moves(block: _Block, frames: Iterable[_Frame]) -> Iterator[tuple[str, str, str, str]]:
    """Yield from, to, amount and kind of each effective move; frames come depth-first, the transaction first.

    A failed call undoes its inner frames, although these have no error of their own.
    """
    failed_depth: int | None = None
    for frame in frames:
        if failed_depth is not None and frame.depth > failed_depth:
            continue
        failed_depth = frame.depth if frame.has_failed else None
        if frame.has_failed or frame.depth == 0:
            continue
        if frame.type not in _KINDS:
            raise block.malformed("a trace has an unknown type")
        kind = _KINDS[frame.type]
        if kind is None or not frame.amount:
            continue
        if frame.from_address is None or frame.to_address is None:
            raise block.malformed(f"a trace of type {frame.type} names no sender or no receiver")
        sender, receiver = frame.from_address.lower(), frame.to_address.lower()
        if sender != receiver:
            yield sender, receiver, str(frame.amount), kind
