"""Headers, the finality boundary, blocks by time, and the transactions of wallets.

Token transfers are in logs.py, value that moves inside transactions is in traces.py.
"""

from collections.abc import Collection, Iterator, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from typing import Any

import msgspec
import polars as pl

from pipelines.extract.errors import CallRefused, ChainReorganised, MalformedAnswer, StateUnavailable
from pipelines.extract.evm.hexadecimal import Address, Hash, Quantity
from pipelines.extract.family import Header
from pipelines.extract.headers import check_clock, check_links, find_first_at_or_after, header_frame
from pipelines.extract.jsonrpc.client import LARGE_ANSWER, SMALL_ANSWER, Call, RpcClient
from pipelines.extract.prefetch import map_in_order
from pipelines.tables.sources import TABLES

HEADER_CALL = "eth_getBlockByNumber"
RECEIPTS_CALL = "eth_getBlockReceipts"
_HEADERS_PER_REQUEST = 100
# A full block of a busy network has some hundred kilobytes.
_FULL_BLOCKS_PER_REQUEST = 10
_RECEIPTS_PER_REQUEST = 100
# Transactions whose sender pays nothing: deposits to Arbitrum, its (prepaid) redemptions of retryable tickets and its
# internal ones; deposits to OP-stack chains, regardless of the gas in their receipts; Polygon's state sync.
# Sources: https://docs.arbitrum.io/build-decentralized-apps/arbitrum-vs-ethereum/rpc-methods, arbos/tx_processor.go of
# https://github.com/OffchainLabs/nitro, https://specs.optimism.io/protocol/deposits.html
_FREE_TYPES = frozenset({0x64, 0x68, 0x6A, 0x7E, 0x7F})
# Arbitrum's submission of a retryable ticket also pays a submission fee, which no receipt contains.
_RETRYABLE_SUBMISSION = 0x69
_BLOB_TRANSACTION = 0x03
# The end of the year 9999: the last time that datetime can hold.
_LATEST_TIMESTAMP = 253_402_300_799

TRANSACTION_SCHEMA = TABLES["transactions"].schema_without("network", "batch_id")


class _HeaderAnswer(msgspec.Struct, rename="camel"):
    number: Quantity
    hash: Hash
    parent_hash: Hash
    timestamp: Quantity


class _TransactionAnswer(msgspec.Struct, gc=False, rename="camel"):
    hash: Hash
    transaction_index: Quantity
    from_: Address = msgspec.field(name="from")
    value: Quantity
    to: Address | None = None
    gas_price: Quantity | None = None
    type: Quantity | None = None


class _BlockAnswer(_HeaderAnswer, rename="camel"):
    transactions: list[_TransactionAnswer]
    extra_data: str | None = None


class _ListedBlockAnswer(_HeaderAnswer, rename="camel"):
    transactions: list[Hash]


class _ReceiptAnswer(msgspec.Struct, rename="camel"):
    transaction_hash: Hash
    block_hash: Hash
    gas_used: Quantity
    status: Quantity | None = None
    contract_address: Address | None = None
    effective_gas_price: Quantity | None = None
    l1_fee: Quantity | None = None
    blob_gas_used: Quantity | None = None
    blob_gas_price: Quantity | None = None
    operator_fee_scalar: Quantity | None = None
    operator_fee_constant: Quantity | None = None
    da_footprint_gas_scalar: Quantity | None = None


def read_head(client: RpcClient) -> Header:
    """Return the newest block that the node knows."""
    answer = client.call(HEADER_CALL, ["latest", False], _HeaderAnswer | None, max_response_bytes=SMALL_ANSWER)
    if answer is None:
        raise MalformedAnswer(client.network, HEADER_CALL, detail="the node has no newest block")
    return _header(client.network, answer)


def read_final_number(client: RpcClient, head: Header, finality_depth: int) -> int:
    """Return the number of the newest final block: the node's own, else head minus depth; -1 when none is final.

    Args:
        head: newest block in use; nothing after it is final.
        finality_depth: blocks, for nodes that know no `finalized` tag.
    """
    try:
        answer = client.call(HEADER_CALL, ["finalized", False], _HeaderAnswer | None, max_response_bytes=SMALL_ANSWER)
    except (CallRefused, StateUnavailable):
        answer = None
    if answer is None:
        return max(head.number - finality_depth, -1)
    return min(_header(client.network, answer).number, head.number)


def read_headers(client: RpcClient, numbers: Sequence[int]) -> pl.DataFrame:
    """Read headers by number.

    Returns:
        HEADERS; one row per distinct number, ascending.

    Raises:
        MalformedAnswer: a block is missing, or the node returned another one; names it.
        ChainReorganised: of two neighbours, the second does not name the first as its parent.
    """
    ordered = sorted(set(numbers))
    pieces = [ordered[at : at + _HEADERS_PER_REQUEST] for at in range(0, len(ordered), _HEADERS_PER_REQUEST)]

    def read(piece: list[int]) -> list[Header]:
        calls: list[Call] = [(HEADER_CALL, [hex(number), False]) for number in piece]
        answers = client.batch(calls, _HeaderAnswer | None)
        return [_asked_header(client.network, answer, number) for answer, number in zip(answers, piece, strict=True)]

    headers = [header for read_piece in map_in_order(read, pieces, client.max_in_flight) for header in read_piece]
    check_links(client.network, HEADER_CALL, headers)
    return header_frame(headers)


def read_transaction_hashes(client: RpcClient, numbers: Sequence[int]) -> list[tuple[Header, list[str]]]:
    """Read each block's header and the hashes of its transactions, in their order, in one batch.

    Raises:
        MalformedAnswer, ChainReorganised: as `read_headers`.
    """
    calls: list[Call] = [(HEADER_CALL, [hex(number), False]) for number in numbers]
    answers = client.batch(calls, _ListedBlockAnswer | None)
    blocks = [
        (_asked_header(client.network, answer, number), [hash_.lower() for hash_ in answer.transactions])
        for number, answer in zip(numbers, answers, strict=True)
    ]
    check_links(client.network, HEADER_CALL, [header for header, _ in blocks])
    return blocks


def find_first_block_at_or_after(client: RpcClient, instant: datetime, head: Header, low: int = 0) -> int | None:
    """Return the number of the first block at or after an instant; see `find_first_at_or_after`."""
    return find_first_at_or_after(
        client.network, HEADER_CALL, instant, head, low, lambda number: _read_header(client, number)
    )


def read_wallet_transactions(
    client: RpcClient, from_block: int, to_block: int, wallets: Collection[str]
) -> Iterator[pl.DataFrame]:
    """Read the transactions that the wallets sent or received.

    Args:
        from_block, to_block: both included.
        wallets: lower-case addresses.

    Yields:
        Columns of raw.transactions without network and batch_id, in block order, never empty; amounts as decimal
        text in base units. `fee_raw` is null where the receipt does not contain the whole fee, `is_success` where it
        has no status (before Byzantium). Memory is bounded by the blocks in flight.

    Raises:
        ChainReorganised: receipt and block, or neighbouring blocks, disagree.
        MalformedAnswer: a block or receipt is missing, or is another one than requested.
    """
    if not wallets:
        return
    tracked = frozenset(wallets)
    starts = range(from_block, to_block + 1, _FULL_BLOCKS_PER_REQUEST)

    def read(start: int) -> tuple[list[Header], list[tuple[Any, ...]]]:
        numbers = range(start, min(start + _FULL_BLOCKS_PER_REQUEST, to_block + 1))
        return _read_transactions(client, numbers, tracked)

    last_header: list[Header] = []
    for headers, rows in map_in_order(read, starts, client.max_in_flight):
        check_links(client.network, HEADER_CALL, last_header + headers)
        last_header = headers[-1:]
        if rows:
            yield pl.DataFrame(rows, schema=TRANSACTION_SCHEMA, orient="row")


def read_senders_of(client: RpcClient, number: int) -> list[str]:
    """Return the sender of each transaction of a block."""
    answer = client.call(HEADER_CALL, [hex(number), True], _BlockAnswer | None)
    _asked_header(client.network, answer, number)
    return [transaction.from_.lower() for transaction in answer.transactions]


def _read_transactions(
    client: RpcClient, numbers: Sequence[int], wallets: frozenset[str]
) -> tuple[list[Header], list[tuple[Any, ...]]]:
    calls: list[Call] = [(HEADER_CALL, [hex(number), True]) for number in numbers]
    answers = client.batch(calls, _BlockAnswer | None)
    headers: list[Header] = []
    matching: list[tuple[Header, str, _TransactionAnswer]] = []
    for number, answer in zip(numbers, answers, strict=True):
        header = _asked_header(client.network, answer, number)
        headers.append(header)
        extra_data = answer.extra_data or "0x"
        matching += [
            (header, extra_data, transaction)
            for transaction in answer.transactions
            if transaction.from_.lower() in wallets
            or (transaction.to is not None and transaction.to.lower() in wallets)
        ]
    rows: list[tuple[Any, ...]] = []
    for at in range(0, len(matching), _RECEIPTS_PER_REQUEST):
        piece = matching[at : at + _RECEIPTS_PER_REQUEST]
        receipts = _receipts(client, [(header.number, transaction.hash) for header, _, transaction in piece])
        for (header, extra_data, transaction), receipt in zip(piece, receipts, strict=True):
            rows.append(_row(client, header, extra_data, transaction, receipt))
    return headers, rows


def _receipts(client: RpcClient, wanted: Sequence[tuple[int, str]]) -> list[_ReceiptAnswer | None]:
    """Return the receipts of transactions, given by block and hash; None where the node has none.

    A node without an index of old transactions has their receipts by block.
    """
    calls: list[Call] = [("eth_getTransactionReceipt", [hash_]) for _, hash_ in wanted]
    receipts = client.batch(calls, _ReceiptAnswer | None)
    by_hash: dict[str, _ReceiptAnswer] = {}
    for number in {number for (number, _), receipt in zip(wanted, receipts, strict=True) if receipt is None}:
        with suppress(CallRefused, StateUnavailable):
            of_block = client.call(
                RECEIPTS_CALL, [hex(number)], list[_ReceiptAnswer] | None, max_response_bytes=LARGE_ANSWER
            )
            by_hash |= {receipt.transaction_hash.lower(): receipt for receipt in of_block or ()}
    return [receipt or by_hash.get(hash_.lower()) for (_, hash_), receipt in zip(wanted, receipts, strict=True)]


def _row(
    client: RpcClient,
    header: Header,
    extra_data: str,
    transaction: _TransactionAnswer,
    receipt: _ReceiptAnswer | None,
) -> tuple[Any, ...]:
    names = (client.network, "eth_getTransactionReceipt", header.number, header.number)
    transaction_hash = transaction.hash.lower()
    if receipt is None:
        # Either the transaction left the chain, or this node is behind the one that gave the block.
        if _read_header(client, header.number).hash != header.hash:
            detail = f"block {header.number} changed while its receipts were read"
            raise ChainReorganised(*names, detail, block_number=header.number)
        detail = (
            f"no receipt of transaction {transaction_hash}, neither by its hash nor by its block; geth keeps the index "
            "of old transactions with --history.transactions 0"
        )
        raise MalformedAnswer(*names, detail)
    if receipt.transaction_hash.lower() != transaction_hash:
        raise MalformedAnswer(*names, f"the receipt of another transaction than {transaction_hash}")
    if receipt.block_hash.lower() != header.hash:
        detail = f"transaction {transaction_hash} moved to another block while block {header.number} was read"
        raise ChainReorganised(*names, detail, block_number=header.number)
    index, gas_used = int(transaction.transaction_index, 16), int(receipt.gas_used, 16)
    if index >= 2**31 or gas_used >= 2**63:
        raise MalformedAnswer(*names, f"numbers of transaction {transaction_hash} are out of bounds")
    fee = _fee(extra_data, transaction, receipt)
    created = receipt.contract_address if transaction.to is None else None
    return (
        header.number,
        header.hash,
        index,
        transaction_hash,
        transaction.from_.lower(),
        None if transaction.to is None else transaction.to.lower(),
        None if created is None else created.lower(),
        str(int(transaction.value, 16)),
        None if fee is None else str(fee),
        gas_used,
        None if receipt.status is None else int(receipt.status, 16) == 1,
    )


def _fee(extra_data: str, transaction: _TransactionAnswer, receipt: _ReceiptAnswer) -> int | None:
    """Return the fee that the sender paid, in base units; None if block and receipt do not contain all of it.

    Arbitrum includes its charge for data in the used gas; OP-stack chains report it separately as `l1Fee`.
    """
    kind = _number(transaction.type)
    if kind in _FREE_TYPES:
        return 0
    price = receipt.effective_gas_price
    if price is None and kind <= 1:
        price = transaction.gas_price  # these types pay all of it
    operator_fee = _operator_fee(extra_data, receipt)
    blob_fee = _blob_fee(receipt) if kind == _BLOB_TRANSACTION else 0
    if price is None or operator_fee is None or blob_fee is None or kind == _RETRYABLE_SUBMISSION:
        return None
    return int(receipt.gas_used, 16) * int(price, 16) + blob_fee + _number(receipt.l1_fee) + operator_fee


def _blob_fee(receipt: _ReceiptAnswer) -> int | None:
    if receipt.blob_gas_used is None or receipt.blob_gas_price is None:
        return None
    return int(receipt.blob_gas_used, 16) * int(receipt.blob_gas_price, 16)


def _operator_fee(extra_data: str, receipt: _ReceiptAnswer) -> int | None:
    """Return the operator fee of an OP-stack chain, by the formula of the block's fork.

    Sources: https://specs.optimism.io/protocol/isthmus/exec-engine.html#operator-fee and
    https://specs.optimism.io/protocol/jovian/exec-engine.html#operator-fee
    """
    if receipt.operator_fee_scalar is None and receipt.operator_fee_constant is None:
        return 0
    if receipt.operator_fee_scalar is None or receipt.operator_fee_constant is None:
        return None
    gas_used = int(receipt.gas_used, 16)
    scalar, constant = int(receipt.operator_fee_scalar, 16), int(receipt.operator_fee_constant, 16)
    if not scalar and not constant:
        return 0
    is_jovian = _is_jovian(extra_data, receipt)
    if is_jovian is None:
        return None
    return (gas_used * scalar * 100 if is_jovian else gas_used * scalar // 10**6) + constant


def _is_jovian(extra_data: str, receipt: _ReceiptAnswer) -> bool | None:
    """Return True for an OP-stack block of Jovian, False for one of Isthmus, None for neither.

    The first byte of the extra data is a version. Receipts of Jovian also have a field of their own.
    """
    version, has_footprint = extra_data[:4].lower(), receipt.da_footprint_gas_scalar is not None
    if version == "0x01" or (version == "0x" and has_footprint):
        return True
    return False if version == "0x00" and not has_footprint else None


def _number(quantity: str | None) -> int:
    return 0 if quantity is None else int(quantity, 16)


def _read_header(client: RpcClient, number: int) -> Header:
    answer = client.call(HEADER_CALL, [hex(number), False], _HeaderAnswer | None, max_response_bytes=SMALL_ANSWER)
    return _asked_header(client.network, answer, number)


def _asked_header(network: str, answer: _HeaderAnswer | None, number: int) -> Header:
    names = (network, HEADER_CALL, number, number)
    if answer is None:
        raise MalformedAnswer(*names, f"block {number} is missing")
    header = _header(network, answer)
    if header.number != number:
        raise MalformedAnswer(*names, f"block {header.number} instead of block {number}")
    return header


def _header(network: str, answer: _HeaderAnswer) -> Header:
    number, timestamp = int(answer.number, 16), int(answer.timestamp, 16)
    if number >= 2**60 or timestamp > _LATEST_TIMESTAMP:
        detail = f"block number {answer.number} or time {answer.timestamp} is out of bounds"
        raise MalformedAnswer(network, HEADER_CALL, detail=detail)
    header = Header(number, answer.hash.lower(), answer.parent_hash.lower(), datetime.fromtimestamp(timestamp, UTC))
    check_clock(network, HEADER_CALL, header)
    return header
