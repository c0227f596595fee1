"""Many reads of contract state at one block: through Multicall3, or in JSON-RPC batches.

A read is a contract and calldata; balances.py and metadata.py interpret the returned words.
"""

import functools
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import msgspec

from pipelines.extract.errors import (
    OF_ONE_UNIT,
    PASSING,
    CallRefused,
    ChainReorganised,
    ExtractError,
    MalformedAnswer,
    StateUnavailable,
)
from pipelines.extract.evm.faults import is_revert
from pipelines.extract.evm.hexadecimal import WORD_CHARACTERS, Data, Hash, Quantity
from pipelines.extract.family import NATIVE
from pipelines.extract.jsonrpc.client import SMALL_ANSWER, Call, RpcClient
from pipelines.extract.prefetch import map_in_order
from pipelines.extract.units import HURRY_SECONDS, Unit, UnreadUnits

CODE = "code"
# Measured on a local node: 500 balances per call 271k a second, JSON-RPC batches of 100 51k.
_READS_PER_CALL = 500
_AGGREGATE3 = "0x82ad56cb"
_GET_ETH_BALANCE = "4d2301cc"
_INVALID_PARAMS = (-32602, -32600)
_TRUE_WORD = f"{1:064x}"
CONTROL_ADDRESS = "0x" + f"{int.from_bytes(b'control'):040x}"
"""An address without code, which no key and no contract is known to lead to."""
_TOTAL_SUPPLY = "0x18160ddd"
_BALANCE_OF = "0x70a08231"
_BALANCE_OF_CONTROL = _BALANCE_OF + f"{int.from_bytes(b'control'):064x}"
# Functions that return balances and supplies.
_AMOUNTS = (_TOTAL_SUPPLY, _BALANCE_OF)

Output: TypeAlias = str | ExtractError | None
"""Result of a read: 0x text; None where the contract reverts; an error where it cannot be read."""


@dataclass(frozen=True)
class Read:
    """One view call: `contract` and `calldata` (0x text).

    With contract `native`, calldata is an address and the read returns its balance. With `code`, it returns the code
    of that address, which Multicall3 cannot read.
    """

    contract: str
    calldata: str


@dataclass(frozen=True)
class BlockPoint:
    """The block after which state is read, by hash where it is known; at least one of number and hash is given."""

    number: int | None
    hash: str | None


class _NumberAndHash(msgspec.Struct):
    number: Quantity
    hash: Hash


class _HashFormRefused(Exception):
    """The node does not accept a block hash instead of a block number (EIP-1898)."""


def read_state(
    client: RpcClient,
    reads: Sequence[Read],
    block: BlockPoint,
    multicall: str | None,
    unread: UnreadUnits | None = None,
) -> list[Output]:
    """Make view calls at a block: by its hash, or by its number with a check of the hash before and after.

    Args:
        multicall: address of a Multicall3, or None; ignored if it does not exist at that block.
        unread: units that are left out, where those that fail are noted; None: nothing is left out or noted.

    Returns:
        For each read the returned bytes as 0x text; None where the contract reverts; an error where the read fails or
        is left out, while the node answers others. A native balance is one word.

    Raises:
        StateUnavailable: the node has no state of that block.
        ChainReorganised: the block is not in the chain any more.
        ExtractError: the node answers nothing at that block.
    """
    outputs: list[Output] = [None if unread is None else unread.left_out(*_units(read)) for read in reads]
    wanted = [at for at, output in enumerate(outputs) if output is None]
    if wanted:
        found = _read_at(client, [reads[at] for at in wanted], block, multicall, unread)
        for at, output in zip(wanted, found, strict=True):
            outputs[at] = output
    return outputs


def _units(read: Read) -> tuple[Unit, ...]:
    """Return the units whose fault a failed read may be, the largest first."""
    if read.contract == NATIVE:
        return (Unit("wallet", read.calldata),)
    if read.contract == CODE:
        return (Unit("contract", read.calldata),)
    return Unit("contract", read.contract), Unit("call", read.contract, read.calldata)


def _read_at(
    client: RpcClient, reads: Sequence[Read], block: BlockPoint, multicall: str | None, unread: UnreadUnits | None
) -> list[Output]:
    try:
        if block.hash is not None:
            try:
                return _read_all(client, reads, {"blockHash": block.hash}, multicall, unread)
            except (_HashFormRefused, StateUnavailable):
                # Some nodes serve a block's header and state by number only, and answer "header not found" by hash.
                block = check_canonical(client, block)
        assert block.number is not None
        outputs = _read_all(client, reads, hex(block.number), multicall, unread)
        if block.hash is not None:
            check_canonical(client, block)
        return outputs
    except StateUnavailable:
        if block.hash is not None and block.number is not None:
            check_canonical(client, block)
        raise


def _read_all(
    client: RpcClient, reads: Sequence[Read], block: Any, multicall: str | None, unread: UnreadUnits | None
) -> list[Output]:
    pieces = [reads[at : at + _READS_PER_CALL] for at in range(0, len(reads), _READS_PER_CALL)]

    def read(piece: Sequence[Read]) -> list[Output]:
        if multicall is None or len(piece) == 1:
            return _read_directly(client, piece, block)
        return _read_together(client, piece, block, multicall)

    outputs = [output for found in map_in_order(read, pieces, client.max_in_flight) for output in found]
    failed = {at: output for at, output in enumerate(outputs) if isinstance(output, ExtractError)}
    again = _read_again(client, reads, failed, block, unread) if failed else {}
    return [again.get(at, output) for at, output in enumerate(outputs)]


def _read_together(client: RpcClient, reads: Sequence[Read], block: Any, multicall: str) -> list[Output]:
    """Read through Multicall3; repeat failed reads singly, since one call may use up the gas of the others."""
    returned = None
    try:
        data = encode_aggregate3(reads, multicall)
        returned = client.call("eth_call", [{"to": multicall, "data": data}, block], Data, retry_timeouts=False)
    except OF_ONE_UNIT as error:
        _raise_if_hash_form(error, block)
        if not _is_revert(error) or len(reads) == 1:
            _check_control(client, reads[0], block)
            return _read_directly(client, reads, block)
    if returned is None:
        half = len(reads) // 2
        return [
            *_read_together(client, reads[:half], block, multicall),
            *_read_together(client, reads[half:], block, multicall),
        ]
    decoded = decode_aggregate3(returned, len(reads))
    if decoded is None:
        # No such contract at that block.
        return _read_directly(client, reads, block)
    outputs: list[Output] = [*decoded]
    failed = [position for position, output in enumerate(outputs) if output is None]
    again = _read_directly(client, [reads[position] for position in failed], block)
    for position, output in zip(failed, again, strict=True):
        outputs[position] = output
    return outputs


def _read_directly(client: RpcClient, reads: Sequence[Read], block: Any, patience: float | None = None) -> list[Output]:
    """Read in batches; where a whole batch fails and the node answers, in halves down to the read at fault."""
    try:
        calls = [_call(read, block) for read in reads]
        answers = client.batch(calls, str, allow_errors=True, retry_timeouts=False, patience=patience)
    except OF_ONE_UNIT as error:
        if len(reads) == 1:
            return [error]
        _check_control(client, reads[0], block)
        half = len(reads) // 2
        return [
            *_read_directly(client, reads[:half], block, HURRY_SECONDS),
            *_read_directly(client, reads[half:], block, HURRY_SECONDS),
        ]
    return [_output(client, read, answer, block) for read, answer in zip(reads, answers, strict=True)]


def _output(client: RpcClient, read: Read, answer: str | ExtractError, block: Any) -> Output:
    if isinstance(answer, ExtractError):
        _raise_if_hash_form(answer, block)
        return None if _is_revert(answer) else answer
    try:
        return _checked_output(client, read, answer)
    except MalformedAnswer as error:
        return error


def _check_control(client: RpcClient, read: Read, block: Any) -> None:
    """Make the same call at the same block for an address that nobody controls: the node must answer it.

    Raises:
        ExtractError: the node is at fault, and not the contract or the wallet.
    """
    contract = read.contract if read.contract in (NATIVE, CODE) else CONTROL_ADDRESS
    control = Read(contract, CONTROL_ADDRESS if contract in (NATIVE, CODE) else _TOTAL_SUPPLY)
    answer: str = client.call(*_call(control, block), str, retry_timeouts=False, patience=HURRY_SECONDS)
    _checked_output(client, control, answer)


def _read_again(
    client: RpcClient, reads: Sequence[Read], failed: Mapping[int, ExtractError], block: Any, unread: UnreadUnits | None
) -> dict[int, Output]:
    """Read once more what failed while the node answers others; note what fails again, and return the outputs."""
    for one in {_call(reads[at], block)[0]: reads[at] for at in failed}.values():
        _check_control(client, one, block)
    # Where waiting may help, the second try is in a later cycle.
    refused = [at for at, error in failed.items() if not isinstance(error, PASSING)]
    again = _read_directly(client, [reads[at] for at in refused], block, HURRY_SECONDS) if refused else []
    outputs: dict[int, Output] = {**failed, **dict(zip(refused, again, strict=True))}
    errors = {at: output for at, output in outputs.items() if isinstance(output, ExtractError)}
    if unread is None:
        return outputs
    readable = {read.contract for at, read in enumerate(reads) if at not in errors}
    units: dict[Unit, ExtractError] = {}
    for contract, positions in _by_contract(reads, errors).items():
        is_contract = contract not in (NATIVE, CODE)
        is_call = is_contract and (contract in readable or _answers(client, contract, reads, positions, block))
        for at in positions:
            error = errors[at]
            if is_call and isinstance(error, CallRefused) and not reads[at].calldata.startswith(_AMOUNTS):
                # Some nodes say no more of a function that a contract does not have.
                outputs[at] = None
                continue
            units[_units(reads[at])[-1 if is_call else 0]] = error
    for unit, error in units.items():
        unread.failed(unit, error, is_proven=not isinstance(error, PASSING))
    return outputs


def read_units(
    client: RpcClient, units: Sequence[Unit], block: BlockPoint
) -> Iterator[tuple[Unit, ExtractError | None]]:
    """Read each unit once, as `Node.read_units`, with one control for each method."""
    form: Any = {"blockHash": block.hash}
    checked: set[str] = set()
    for unit in units:
        read = _read_of(unit)
        method = _call(read, form)[0]
        try:
            if method not in checked:
                _check_control(client, read, form)
        except (CallRefused, StateUnavailable):
            assert block.number is not None
            form = hex(block.number)
            _check_control(client, read, form)
        checked.add(method)
        (output,) = _read_directly(client, [read], form, HURRY_SECONDS)
        yield unit, output if isinstance(output, ExtractError) else None


def _read_of(unit: Unit) -> Read:
    match unit.kind:
        case "wallet":
            return Read(NATIVE, unit.address)
        case "call":
            return Read(unit.address, unit.part)
    return Read(unit.address, _BALANCE_OF_CONTROL)


def _by_contract(reads: Sequence[Read], positions: Iterable[int]) -> dict[str, list[int]]:
    by_contract: dict[str, list[int]] = defaultdict(list)
    for at in positions:
        by_contract[reads[at].contract].append(at)
    return by_contract


def _answers(client: RpcClient, contract: str, reads: Sequence[Read], positions: Sequence[int], block: Any) -> bool:
    """Return whether a contract answers another call than those that failed."""
    tried = {reads[at].calldata for at in positions}
    other = next(calldata for calldata in (_TOTAL_SUPPLY, _BALANCE_OF_CONTROL) if {calldata} != tried)
    (output,) = _read_directly(client, [Read(contract, other)], block, HURRY_SECONDS)
    return not isinstance(output, ExtractError)


def _call(read: Read, block: Any) -> Call:
    match read.contract:
        case "native":
            return "eth_getBalance", [read.calldata, block]
        case "code":
            return "eth_getCode", [read.calldata, block]
        case contract:
            return "eth_call", [{"to": contract, "data": read.calldata}, block]


def _checked_output(client: RpcClient, read: Read, answer: str) -> str:
    if read.contract == NATIVE:
        try:
            return f"0x{msgspec.convert(answer, Quantity)[2:]:0>{WORD_CHARACTERS}}"
        except msgspec.ValidationError:
            detail = f"the balance of {read.calldata} is not a number"
            raise MalformedAnswer(client.network, "eth_getBalance", detail=detail) from None
    try:
        return msgspec.convert(answer, Data)
    except msgspec.ValidationError:
        detail = f"the result of {read.contract} is not hex"
        raise MalformedAnswer(client.network, "eth_call", detail=detail) from None


def _is_revert(error: ExtractError) -> bool:
    return isinstance(error, CallRefused) and is_revert(error)


def _raise_if_hash_form(error: ExtractError, block: Any) -> None:
    if not isinstance(block, dict) or not isinstance(error, CallRefused) or is_revert(error):
        return
    if error.code in _INVALID_PARAMS or "unmarshal" in error.message:
        raise _HashFormRefused from None


def check_canonical(client: RpcClient, block: BlockPoint) -> BlockPoint:
    """Return the block with its number, after checking that its hash is still in the chain.

    Raises:
        StateUnavailable: no number is given, and the node does not know the hash.
        ChainReorganised: another block has its number.
    """
    number = block.number
    if number is None:
        answer = client.call(
            "eth_getBlockByHash", [block.hash, False], _NumberAndHash | None, max_response_bytes=SMALL_ANSWER
        )
        if answer is None:
            raise StateUnavailable(client.network, "eth_getBlockByHash", detail=f"block {block.hash} is not known")
        number = int(answer.number, 16)
    answer = client.call(
        "eth_getBlockByNumber", [hex(number), False], _NumberAndHash | None, max_response_bytes=SMALL_ANSWER
    )
    if answer is None or answer.hash.lower() != block.hash:
        detail = f"block {number} is not {block.hash} any more"
        raise ChainReorganised(client.network, "eth_getBlockByNumber", number, number, detail, block_number=number)
    return BlockPoint(number, block.hash)


def encode_aggregate3(reads: Sequence[Read], multicall: str) -> str:
    """Return calldata of Multicall3's aggregate3 in which each call may fail.

    Hand-written, since a general ABI encoder takes longer than the node: 20 microseconds a read.

    Source: https://github.com/mds1/multicall3
    """
    elements: list[str] = []
    offsets: list[str] = []
    offset = 32 * len(reads)
    for read in reads:
        if read.contract == NATIVE:
            target, data = multicall[2:], _GET_ETH_BALANCE + _padding(24) + read.calldata[2:]
        else:
            target, data = read.contract[2:], read.calldata[2:]
        offsets.append(f"{offset:064x}")
        length = len(data) // 2
        padded = -length % 32
        elements.append(f"{target:0>64}{_TRUE_WORD}{0x60:064x}{length:064x}{data}{_padding(2 * padded)}")
        offset += 4 * 32 + length + padded
    return f"{_AGGREGATE3}{0x20:064x}{len(reads):064x}{''.join(offsets)}{''.join(elements)}"


@functools.cache
def _padding(characters: int) -> str:
    return "0" * characters


def decode_aggregate3(returned: str, count: int) -> list[str | None] | None:
    """Return the outputs of aggregate3, None for calls that failed; None where the answer is malformed."""
    words = returned[2:]

    def number(at: int) -> int:
        if at < 0 or at + WORD_CHARACTERS > len(words):
            raise IndexError
        return int(words[at : at + WORD_CHARACTERS], 16)

    outputs: list[str | None] = []
    try:
        start = 2 * number(0)
        if number(start) != count:
            return None
        start += WORD_CHARACTERS
        for position in range(count):
            at = start + 2 * number(start + position * WORD_CHARACTERS)
            is_success = number(at) == 1
            data_at = at + 2 * number(at + WORD_CHARACTERS)
            length = 2 * number(data_at)
            data_at += WORD_CHARACTERS
            if data_at + length > len(words):
                return None
            outputs.append("0x" + words[data_at : data_at + length] if is_success else None)
    except IndexError:
        return None
    return outputs
