"""Many reads of contract state at one block: through Multicall3, or in JSON-RPC batches.

A read is a contract and calldata; balances.py and metadata.py interpret the returned words.
"""

import functools
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import msgspec

from pipelines.extract.errors import (
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

CODE = "code"
# Measured on a local node: 500 balances per call 271k a second, JSON-RPC batches of 100 51k.
_READS_PER_CALL = 500
_AGGREGATE3 = "0x82ad56cb"
_GET_ETH_BALANCE = "4d2301cc"
_INVALID_PARAMS = (-32602, -32600)
_TRUE_WORD = f"{1:064x}"


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


def read_state(client: RpcClient, reads: Sequence[Read], block: BlockPoint, multicall: str | None) -> list[str | None]:
    """Make view calls at a block: by its hash, or by its number with a check of the hash before and after.

    Args:
        multicall: address of a Multicall3, or None; ignored if it does not exist at that block.

    Returns:
        For each read the returned bytes as 0x text; None where the contract reverts. A native balance is one word.

    Raises:
        StateUnavailable: the node has no state of that block.
        ChainReorganised: the block is not in the chain any more.
    """
    if not reads:
        return []
    try:
        if block.hash is not None:
            try:
                return _read_all(client, reads, {"blockHash": block.hash}, multicall)
            except (_HashFormRefused, StateUnavailable):
                # Some nodes serve a block's header and state by number only, and answer "header not found" by hash.
                block = check_canonical(client, block)
        assert block.number is not None
        outputs = _read_all(client, reads, hex(block.number), multicall)
        if block.hash is not None:
            check_canonical(client, block)
        return outputs
    except StateUnavailable:
        if block.hash is not None and block.number is not None:
            check_canonical(client, block)
        raise


def _read_all(client: RpcClient, reads: Sequence[Read], block: Any, multicall: str | None) -> list[str | None]:
    pieces = [reads[at : at + _READS_PER_CALL] for at in range(0, len(reads), _READS_PER_CALL)]

    def read(piece: Sequence[Read]) -> list[str | None]:
        if multicall is None or len(piece) == 1:
            return _read_directly(client, piece, block)
        return _read_together(client, piece, block, multicall)

    return [output for outputs in map_in_order(read, pieces, client.max_in_flight) for output in outputs]


def _read_together(client: RpcClient, reads: Sequence[Read], block: Any, multicall: str) -> list[str | None]:
    """Read through Multicall3; repeat failed reads singly, since one call may use up the gas of the others."""
    try:
        returned = client.call(
            "eth_call", [{"to": multicall, "data": encode_aggregate3(reads, multicall)}, block], Data
        )
    except CallRefused as error:
        _raise_if_hash_form(error, block)
        if not is_revert(error):
            raise
        returned = None
    outputs = None if returned is None else decode_aggregate3(returned, len(reads))
    if returned is not None and outputs is None:
        # No such contract at that block.
        return _read_directly(client, reads, block)
    if outputs is None:
        if len(reads) == 1:
            return _read_directly(client, reads, block)
        half = len(reads) // 2
        return [
            *_read_together(client, reads[:half], block, multicall),
            *_read_together(client, reads[half:], block, multicall),
        ]
    failed = [position for position, output in enumerate(outputs) if output is None]
    again = _read_directly(client, [reads[position] for position in failed], block)
    for position, output in zip(failed, again, strict=True):
        outputs[position] = output
    return outputs


def _read_directly(client: RpcClient, reads: Sequence[Read], block: Any) -> list[str | None]:
    calls = [_call(read, block) for read in reads]
    outputs: list[str | None] = []
    for read, answer in zip(reads, client.batch(calls, str, allow_errors=True), strict=True):
        if isinstance(answer, CallRefused):
            _raise_if_hash_form(answer, block)
            if not is_revert(answer):
                raise answer
            outputs.append(None)
        elif isinstance(answer, ExtractError):
            raise answer
        else:
            outputs.append(_checked_output(client, read, answer))
    return outputs


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


def _raise_if_hash_form(error: CallRefused, block: Any) -> None:
    is_by_hash = isinstance(block, dict)
    if is_by_hash and not is_revert(error) and (error.code in _INVALID_PARAMS or "unmarshal" in error.message):
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
