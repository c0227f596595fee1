"""Outputs that inputs spend, read from the node where they are not stored.

A node gives them by an index of all transactions, or with a block (verbosity 3). An answer of the index is proven by
the transaction's id. Outputs that come with a block are not, because no hash of the block contains them.
"""

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Sequence
from enum import StrEnum
from typing import NamedTuple

import msgspec

from control.networks.utxo import UtxoDefinition
from pipelines.extract.errors import (
    OF_ONE_UNIT,
    PASSING,
    CallRefused,
    ExtractError,
    MalformedAnswer,
    StateUnavailable,
)
from pipelines.extract.jsonrpc.client import LARGE_ANSWER, Call, RpcClient
from pipelines.extract.units import HURRY_SECONDS
from pipelines.extract.utxo.blocks import BLOCK_CALL, Numbered
from pipelines.extract.utxo.headers import Hash, read_hashes
from pipelines.extract.utxo.scans import base_units
from pipelines.extract.utxo.serialization import RawTransaction, read_transaction, shown

TRANSACTION_CALL = "getrawtransaction"
_WITH_PREVOUTS = 3
_HEX = False
_TRANSACTIONS_PER_REQUEST = 1_000
# Where more single requests fail, the node is at fault.
_MOST_FAILED = 20


class Source(StrEnum):
    """Where a node gives the outputs that inputs spend."""

    INDEX = "index"
    BLOCK = "block"


class Prevout(NamedTuple):
    """An output that an input spends: base units, script, and the block that made it; None: the output is proven."""

    amount: int
    script: bytes
    created: int | None = None


class Claim(NamedTuple):
    """An output as a node describes it: the id of its transaction, its place there, base units, script and block."""

    transaction: str
    position: int
    amount: int
    script: bytes
    created: int


class _Script(msgspec.Struct):
    hex: str


class _Prevout(msgspec.Struct):
    value: msgspec.Raw
    script: _Script = msgspec.field(name="scriptPubKey")
    height: int = -1


class _Input(msgspec.Struct):
    txid: Hash | None = None
    vout: int = -1
    prevout: _Prevout | None = None


class _Transaction(msgspec.Struct):
    vin: list[_Input]


class _Block(msgspec.Struct):
    tx: list[_Transaction]


def outpoint(transaction: str, index: int) -> bytes:
    """Return the reference to an output, from the id that nodes show."""
    return bytes.fromhex(transaction)[::-1] + index.to_bytes(4, "little")


def index_of(one: bytes) -> int:
    """Return the output's position in its transaction."""
    return int.from_bytes(one[32:], "little")


def key_of(one: bytes) -> int:
    """Return the key of a transaction's id, in the order of its bytes, or of a reference to an output."""
    return int.from_bytes(one[:8], "little", signed=True)


def read_prevouts(
    client: RpcClient,
    source: Source,
    wanted: Collection[tuple[Numbered, Collection[bytes]]],
    own: UtxoDefinition,
    decimals: int,
) -> dict[bytes, Prevout]:
    """Read outputs by their references.

    Args:
        wanted: blocks, each with the references in its inputs.
        own: the network's forms of addresses.
        decimals: of the native asset.

    Raises:
        StateUnavailable: the node lacks a transaction of its index.
        MalformedAnswer: the answer has another transaction, or not all of the outputs.
    """
    if source is Source.INDEX:
        return _of_index(client, {one for _, references in wanted for one in references}, own)
    found: dict[bytes, Prevout] = {}
    for numbered, references in wanted:
        found |= _of_block(client, numbered, references, decimals)
    return found


def _of_block(
    client: RpcClient, numbered: Numbered, references: Collection[bytes], decimals: int
) -> dict[bytes, Prevout]:
    number, block = numbered
    params = [block.header.hash, _WITH_PREVOUTS]
    answer = client.call(BLOCK_CALL, params, _Block, max_response_bytes=LARGE_ANSWER)
    given: dict[bytes, Prevout] = {}
    for transaction in answer.tx:
        for one in transaction.vin:
            if one.txid is not None and one.prevout is not None and 0 <= one.vout < 2**32:
                amount = base_units(bytes(one.prevout.value), decimals)
                if amount is not None:
                    script = _bytes(one.prevout.script.hex)
                    given[outpoint(one.txid, one.vout)] = Prevout(amount, script, one.prevout.height)
    missing = [one for one in references if one not in given]
    if missing:
        detail = f"{len(missing)} of {len(references)} spent outputs are missing or no amounts"
        raise MalformedAnswer(client.network, BLOCK_CALL, number, number, detail)
    return {one: given[one] for one in references}


def _bytes(text: str) -> bytes:
    try:
        return bytes.fromhex(text)
    except ValueError:
        # A script that is no text of bytes belongs to no address.
        return b""


def _of_index(client: RpcClient, references: Collection[bytes], own: UtxoDefinition) -> dict[bytes, Prevout]:
    by_transaction: dict[bytes, list[bytes]] = defaultdict(list)
    for one in references:
        by_transaction[one[:32]].append(one)
    found: dict[bytes, Prevout] = {}
    ids = sorted(by_transaction)
    answers = _answers(client, [[shown(id_), _HEX] for id_ in ids])
    for id_, answer in zip(ids, answers, strict=True):
        if isinstance(answer, PASSING):
            raise answer
        if not isinstance(answer, str):
            detail = f"the node's index lacks transaction {shown(id_)}"
            raise StateUnavailable(client.network, TRANSACTION_CALL, detail=detail) from answer
        outputs = _checked(client, id_, answer, own).outputs
        for one in by_transaction[id_]:
            if index_of(one) >= len(outputs):
                detail = f"transaction {shown(id_)} has no output {index_of(one)}"
                raise MalformedAnswer(client.network, TRANSACTION_CALL, detail=detail)
            found[one] = Prevout(*outputs[index_of(one)])
    return found


def find_unproven(
    client: RpcClient, own: UtxoDefinition, claims: Iterable[Claim], last: int
) -> dict[Claim, ExtractError]:
    """Compare outputs with their transactions, which are proven by their ids; return those that are not proven.

    No index is needed, because the block of each one is named.

    Args:
        own: the network's forms of addresses.
        last: highest possible block of the outputs.

    Returns:
        MalformedAnswer where the transaction has another output at that place, or the block lacks it. Another error
        where the node does not give it, for example because it has deleted the block.
    """
    failed: dict[Claim, ExtractError] = {}
    by_transaction: dict[tuple[str, int], list[Claim]] = defaultdict(list)
    for one in claims:
        if 0 <= one.created <= last:
            by_transaction[one.transaction, one.created].append(one)
        else:
            failed[one] = StateUnavailable(client.network, TRANSACTION_CALL, detail="an output without its block")
    numbers = sorted({created for _, created in by_transaction})
    hashes = dict(zip(numbers, read_hashes(client, numbers), strict=True))
    answers = _answers(client, [[id_, _HEX, hashes[created]] for id_, created in by_transaction])
    for ((id_, created), of_transaction), answer in zip(by_transaction.items(), answers, strict=True):
        names = (client.network, TRANSACTION_CALL, created, created)
        if isinstance(answer, ExtractError):
            if isinstance(answer, CallRefused):
                detail = f"block {created} lacks the transaction {id_} of an output"
                answer = MalformedAnswer(*names, detail)
            failed |= dict.fromkeys(of_transaction, answer)
            continue
        try:
            made = _checked(client, bytes.fromhex(id_)[::-1], answer, own).outputs
        except MalformedAnswer as error:
            failed |= dict.fromkeys(of_transaction, error)
            continue
        for one in of_transaction:
            if one.position >= len(made) or made[one.position] != (one.amount, one.script):
                detail = f"output {one.position} of transaction {id_} is another one than the node says"
                failed[one] = MalformedAnswer(*names, detail)
    return failed


def _answers(client: RpcClient, params: Sequence[Sequence[object]]) -> Iterator[str | ExtractError]:
    """Yield the answer to each request of a transaction, or its error, a bounded number at a time.

    Raises:
        ExtractError: more than `_MOST_FAILED` of requests that fail together also fail one by one.
    """
    for at in range(0, len(params), _TRANSACTIONS_PER_REQUEST):
        calls: list[Call] = [(TRANSACTION_CALL, one) for one in params[at : at + _TRANSACTIONS_PER_REQUEST]]
        answers: Sequence[str | ExtractError]
        try:
            answers = client.batch(calls, str, allow_errors=True)
        except OF_ONE_UNIT:
            answers = _one_by_one(client, calls)
        yield from answers


def _one_by_one(client: RpcClient, calls: Sequence[Call]) -> list[str | ExtractError]:
    answers: list[str | ExtractError] = []
    failed = 0
    for method, params in calls:
        try:
            answers.append(client.call(method, params, str, patience=HURRY_SECONDS))
        except OF_ONE_UNIT as error:
            failed += 1
            if failed > _MOST_FAILED:
                raise
            answers.append(error)
    return answers


def _checked(client: RpcClient, id_: bytes, answer: str, own: UtxoDefinition) -> RawTransaction:
    try:
        transaction = read_transaction(bytes.fromhex(answer), has_extension=own.mweb_prefix is not None)
    except ValueError as error:
        raise MalformedAnswer(client.network, TRANSACTION_CALL, detail=f"{shown(id_)}: {error}") from None
    if transaction.id != id_:
        raise MalformedAnswer(client.network, TRANSACTION_CALL, detail=f"another transaction than {shown(id_)}")
    return transaction
