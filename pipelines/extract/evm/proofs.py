"""Proof of transfers by their block: reads all its receipts, and recomputes them to the stored block hash.

A false log, a false position or a missing log changes the receipts root, and a false root changes the header's hash.
The proof does not cover the hashes of transactions: they come from the block's own list, which the receipts must match.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence

import msgspec
import polars as pl

from pipelines.extract.errors import (
    CallRefused,
    ExtractError,
    MalformedAnswer,
    NotProvable,
    ProofFailure,
    StateUnavailable,
)
from pipelines.extract.evm.blocks import HEADER_CALL, RECEIPTS_CALL
from pipelines.extract.evm.commitments import (
    LARGEST_RECEIPTS,
    BlockHeader,
    Receipt,
    Receipts,
    header_hash,
    receipts_root,
)
from pipelines.extract.evm.logs import TRANSFER_TOPIC, Log, Topics, decode_transfers
from pipelines.extract.family import PROVEN_BLOCKS
from pipelines.extract.jsonrpc.client import Call, RpcClient
from pipelines.rows import Segment

_RECEIPT_CALL = "eth_getTransactionReceipt"
_RECEIPTS_PER_REQUEST = 100
_HEADER: msgspec.json.Decoder[BlockHeader | None] = msgspec.json.Decoder(BlockHeader | None)


def prove_transfers(client: RpcClient, segment: Segment, hashes: Mapping[int, str]) -> pl.DataFrame:
    """Read and recompute whole blocks, as `Node.proven`.

    Args:
        segment: of tokens or wallets, at most PROVEN_BLOCKS long.
        hashes: the block hash of each number, lower-case.

    Returns:
        Columns of raw.token_transfers without network and batch_id, by block_number and log_index.

    Raises:
        NotProvable: a block does not recompute; names the block.
    """
    first, last = segment.covered
    if last - first >= PROVEN_BLOCKS:
        raise ValueError(f"{last - first + 1} blocks in one proof: at most {PROVEN_BLOCKS}")
    logs: list[Log] = []
    for number in range(first, last + 1):
        logs += _proven_transfer_logs(client, number, hashes[number].lower())
    rows = decode_transfers(logs, client.network, first, last)
    addresses = list(segment.addresses)
    columns = ("token_address",) if segment.kind == "token" else ("from_address", "to_address")
    return rows.filter(pl.any_horizontal(pl.col(name).is_in(addresses) for name in columns))


def recomputes(answer: msgspec.Raw | ExtractError) -> bool | None:
    """Check that the header in a raw answer recomputes to its own `hash`; None without a header."""
    if isinstance(answer, ExtractError):
        return None
    try:
        header = _HEADER.decode(answer)
    except msgspec.DecodeError:
        return False
    return None if header is None else header_hash(header) == header.hash.lower()


def _proven_transfer_logs(client: RpcClient, number: int, hash_: str) -> Iterator[Log]:
    """Return the logs of a block with the first topic of Transfer events, after recomputing the block."""
    header = _read_block(client, number)
    if (computed := header_hash(header)) != hash_:
        raise _failure(client, HEADER_CALL, number, "hash", f"its header has the hash {computed}, not {hash_}")
    receipts = _read_receipts(client, number, header.transactions)
    try:
        root = receipts_root(receipts)
    except ValueError as error:
        raise _failure(client, RECEIPTS_CALL, number, "form", str(error)) from None
    if root != header.receipts_root.lower():
        detail = f"its receipts have the root {root}, not {header.receipts_root.lower()}"
        raise _failure(client, RECEIPTS_CALL, number, "root", detail)
    _check_places(client, number, header.transactions, receipts)
    return _transfer_logs(number, hash_, receipts)


def _read_block(client: RpcClient, number: int) -> BlockHeader:
    try:
        header: BlockHeader | None = client.call(HEADER_CALL, [hex(number), False], BlockHeader | None)
    except (CallRefused, StateUnavailable) as error:
        raise _failure(client, HEADER_CALL, number, "missing", error.detail) from None
    except MalformedAnswer as error:
        raise _failure(client, HEADER_CALL, number, "form", error.detail) from None
    if header is None:
        raise _failure(client, HEADER_CALL, number, "missing", "the node has no such block")
    return header


def _read_receipts(client: RpcClient, number: int, transactions: Sequence[str]) -> list[Receipt]:
    """Return all receipts of a block from one answer, or one by one where the node has no such call."""
    if not transactions:
        return []
    try:
        receipts: list[Receipt] | None = client.call(
            RECEIPTS_CALL, [hex(number)], Receipts | None, max_response_bytes=LARGEST_RECEIPTS
        )
    except (CallRefused, StateUnavailable):
        return _read_receipts_singly(client, number, transactions)
    except MalformedAnswer as error:
        raise _failure(client, RECEIPTS_CALL, number, "form", error.detail) from None
    if receipts is None:
        raise _failure(client, RECEIPTS_CALL, number, "missing", "the node has no receipts of the block")
    return receipts


def _read_receipts_singly(client: RpcClient, number: int, transactions: Sequence[str]) -> list[Receipt]:
    receipts: list[Receipt] = []
    for at in range(0, len(transactions), _RECEIPTS_PER_REQUEST):
        calls: list[Call] = [(_RECEIPT_CALL, [hash_]) for hash_ in transactions[at : at + _RECEIPTS_PER_REQUEST]]
        try:
            answers = client.batch(calls, Receipt | None)
        except (CallRefused, StateUnavailable) as error:
            raise _failure(client, _RECEIPT_CALL, number, "missing", error.detail) from None
        except MalformedAnswer as error:
            raise _failure(client, _RECEIPT_CALL, number, "form", error.detail) from None
        for (_, (hash_,)), receipt in zip(calls, answers, strict=True):
            if receipt is None:
                detail = f"the node has no receipt of transaction {hash_.lower()}"
                raise _failure(client, _RECEIPT_CALL, number, "missing", detail)
            receipts.append(receipt)
    return receipts


def _check_places(client: RpcClient, number: int, transactions: Sequence[str], receipts: Sequence[Receipt]) -> None:
    """Raise NotProvable unless the receipts are numbered and named as the block's transactions and logs are.

    If a network numbers its logs in another way, its rows have other keys than those derived from the receipts.
    """
    named = [(hash_.lower(), position) for position, hash_ in enumerate(transactions)]
    if named != [(receipt.transaction_hash.lower(), int(receipt.transaction_index, 16)) for receipt in receipts]:
        detail = "its receipts name other transactions, or another order of them, than the block"
        raise _failure(client, RECEIPTS_CALL, number, "form", detail)
    indexes = [int(log.log_index, 16) for receipt in receipts for log in receipt.logs]
    if indexes != list(range(len(indexes))):
        raise _failure(client, RECEIPTS_CALL, number, "form", "its logs are not numbered from 0 on")


def _transfer_logs(number: int, hash_: str, receipts: Iterable[Receipt]) -> Iterator[Log]:
    for receipt in receipts:
        for log in receipt.logs:
            if log.topics and log.topics[0].lower() == TRANSFER_TOPIC:
                yield Log(
                    address=log.address,
                    topics=Topics(*log.topics),
                    data=log.data,
                    block_number=hex(number),
                    block_hash=hash_,
                    transaction_hash=receipt.transaction_hash,
                    transaction_index=receipt.transaction_index,
                    log_index=log.log_index,
                )


def _failure(client: RpcClient, call: str, number: int, reason: ProofFailure, detail: str) -> NotProvable:
    return NotProvable(client.network, call, number, number, f"not provable: {detail}", reason=reason)
