"""Header hashes and receipts roots, recomputed from JSON-RPC answers. Pure.

A known block hash proves a header that recomputes to it. The header's receipts root and bloom are then proven too.
Receipts that recompute to this root are exactly those of the block, with each status and each log in their order. They
do not prove the hashes of the transactions, which only the transactions root commits to.

Hashes and roots are lower-case 0x text of 32 bytes. The encodings are those of
https://ethereum.github.io/yellowpaper/paper.pdf (sections 4.3 and 4.4, appendices B and D) and these EIPs:

| EIP | adds |
| --- | --- |
| 658 | receipts: `status` in place of the state root `root` |
| 1559 | header: `baseFeePerGas` |
| 2718 | receipts: a type byte before the encoded fields |
| 4788 | header: `parentBeaconBlockRoot` |
| 4844 | header: `blobGasUsed`, `excessBlobGas` |
| 4895 | header: `withdrawalsRoot` |
| 7685 | header: `requestsHash` |

Headers with other fields (Avalanche, zkSync, forks to come) recompute to another hash, so they prove nothing. Receipts
of OP-stack deposits are supported: https://specs.optimism.io/protocol/deposits.html#deposit-receipt
"""

from collections.abc import Sequence
from typing import Annotated

import msgspec
import rlp
from eth_hash.auto import keccak
from trie.hexary import HexaryTrie

from pipelines.extract.evm.hexadecimal import Address, Bloom, Data, Hash, Quantity

LARGEST_RECEIPTS = 32 * 1024 * 1024
"""Bytes of JSON that the receipts of one block have at most; a full block of a busy network has some 5 MB."""

_MOST_RECEIPTS = 50_000
_MOST_TOPICS = 4
_LONGEST_EXTRA_DATA = 65_536
_LEGACY = 0
_LARGEST_TYPE = 0x7F
_OP_DEPOSIT = 0x7E

_Nonce = Annotated[str, msgspec.Meta(pattern=r"^0x[0-9a-fA-F]{16}\Z")]
_ExtraData = Annotated[str, msgspec.Meta(pattern=r"^0x([0-9a-fA-F]{2})*\Z", max_length=_LONGEST_EXTRA_DATA)]


class BlockHeader(msgspec.Struct, rename="camel"):
    """A header, and the hashes of the block's transactions, as `eth_getBlockByNumber` answers them."""

    hash: Hash
    parent_hash: Hash
    uncles_hash: Hash = msgspec.field(name="sha3Uncles")
    miner: Address
    state_root: Hash
    transactions_root: Hash
    receipts_root: Hash
    logs_bloom: Bloom
    difficulty: Quantity
    number: Quantity
    gas_limit: Quantity
    gas_used: Quantity
    timestamp: Quantity
    extra_data: _ExtraData
    mix_hash: Hash
    nonce: _Nonce
    transactions: list[Hash]
    base_fee_per_gas: Quantity | None = None
    withdrawals_root: Hash | None = None
    blob_gas_used: Quantity | None = None
    excess_blob_gas: Quantity | None = None
    parent_beacon_block_root: Hash | None = None
    requests_hash: Hash | None = None


class ReceiptLog(msgspec.Struct, gc=False, rename="camel"):
    """A log in a receipt; the index is that in the block."""

    address: Address
    topics: Annotated[tuple[Hash, ...], msgspec.Meta(max_length=_MOST_TOPICS)]
    data: Data
    log_index: Quantity


class Receipt(msgspec.Struct, rename="camel"):
    """A receipt as `eth_getBlockReceipts` and `eth_getTransactionReceipt` answer it."""

    transaction_hash: Hash
    transaction_index: Quantity
    cumulative_gas_used: Quantity
    logs_bloom: Bloom
    logs: list[ReceiptLog]
    type: Quantity | None = None
    status: Quantity | None = None
    root: Hash | None = None
    deposit_nonce: Quantity | None = None
    deposit_receipt_version: Quantity | None = None


Receipts = Annotated[list[Receipt], msgspec.Meta(max_length=_MOST_RECEIPTS)]
"""All receipts of a block, in the order of its transactions."""


def header_hash(header: BlockHeader) -> str:
    """Recompute a block's hash from its header; the answer's own `hash` is not read."""
    return _hex(keccak(encode_header(header)))


def encode_header(header: BlockHeader) -> bytes:
    """Encode a header as RLP: 15 fields, then those of later forks up to the last one that is there."""
    fields = [
        _bytes(header.parent_hash),
        _bytes(header.uncles_hash),
        _bytes(header.miner),
        _bytes(header.state_root),
        _bytes(header.transactions_root),
        _bytes(header.receipts_root),
        _bytes(header.logs_bloom),
        _number(header.difficulty),
        _number(header.number),
        _number(header.gas_limit),
        _number(header.gas_used),
        _number(header.timestamp),
        _bytes(header.extra_data),
        _bytes(header.mix_hash),
        _bytes(header.nonce),
    ]
    later = [
        _number(header.base_fee_per_gas),
        _bytes(header.withdrawals_root),
        _number(header.blob_gas_used),
        _number(header.excess_blob_gas),
        _bytes(header.parent_beacon_block_root),
        _bytes(header.requests_hash),
    ]
    while later and later[-1] is None:
        later.pop()
    return bytes(rlp.encode([*fields, *(b"" if field is None else field for field in later)]))


def receipts_root(receipts: Sequence[Receipt]) -> str:
    """Recompute the receipts root of a block.

    Args:
        receipts: all of the block, in the order of its transactions.

    Raises:
        ValueError: as `encode_receipt`; names the receipt's position.
    """
    trie = HexaryTrie({})
    for position, receipt in enumerate(receipts):
        try:
            encoded = encode_receipt(receipt)
        except ValueError as error:
            raise ValueError(f"receipt {position} {error}") from None
        trie[rlp.encode(position)] = encoded
    return _hex(trie.root_hash)


def encode_receipt(receipt: Receipt) -> bytes:
    """Encode a receipt as the receipts trie contains it.

    Raises:
        ValueError: it has neither a status nor a state root, or its type is above 0x7f.
    """
    outcome = _bytes(receipt.root) if receipt.status is None else _number(receipt.status)
    if outcome is None:
        raise ValueError("has neither a status nor a state root")
    kind = _LEGACY if receipt.type is None else int(receipt.type, 16)
    if kind > _LARGEST_TYPE:
        raise ValueError(f"has the unknown type {receipt.type}")
    logs = [[_bytes(log.address), [_bytes(topic) for topic in log.topics], _bytes(log.data)] for log in receipt.logs]
    fields = [outcome, _number(receipt.cumulative_gas_used), _bytes(receipt.logs_bloom), logs]
    # Before Canyon, the trie has deposits without their nonce, although the answer names it.
    if kind == _OP_DEPOSIT and receipt.deposit_receipt_version is not None:
        fields += [_number(receipt.deposit_nonce) or b"", _number(receipt.deposit_receipt_version)]
    prefix = b"" if kind == _LEGACY else bytes([kind])
    return prefix + bytes(rlp.encode(fields))


def _number(quantity: str | None) -> bytes | None:
    """RLP's form of a number: big-endian without leading zeros."""
    if quantity is None:
        return None
    number = int(quantity, 16)
    return number.to_bytes((number.bit_length() + 7) // 8)


def _bytes(data: str | None) -> bytes | None:
    return None if data is None else bytes.fromhex(data[2:])


def _hex(digest: bytes) -> str:
    return "0x" + digest.hex()
