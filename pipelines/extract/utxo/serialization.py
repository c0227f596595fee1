"""Blocks and headers from their serialized bytes, with recomputed hashes. Pure.

A block's hash commits to all of its bytes. It is the hash of the header, which has the Merkle root of the transactions'
ids. An id is the hash of the transaction's bytes. So a node can neither change nor omit anything. A header also proves
its work: a hash of it is at most its target. So a node cannot invent a block for free.

Source: https://developer.bitcoin.org/reference/block_chain.html, BIP 144 (witnesses).
"""

import hashlib
from typing import NamedTuple

from control.networks.utxo import ProofOfWork

HEADER_BYTES = 80
OUTPOINT_BYTES = 36
"""A reference to an output: the id of its transaction, 32 bytes, and its position, 4 bytes, little-endian."""

_NO_OUTPOINT = bytes(32) + b"\xff" * 4
# The least bytes of an input, an output and a transaction: counts beyond the remaining bytes are refused at once.
_LEAST_INPUT = OUTPOINT_BYTES + 5
_LEAST_OUTPUT = 9
_LEAST_TRANSACTION = 8 + 2 + _LEAST_INPUT + _LEAST_OUTPUT
_WITNESS = 1
_EXTENSION = 8
# Bits of a target in compact form.
_SIGN, _MANTISSA = 0x0080_0000, 0x007F_FFFF
_sha256 = hashlib.sha256


class InvalidBlock(ValueError):
    """Bytes that are no block, or not the one that its header commits to."""


class RawHeader(NamedTuple):
    """A block's header; `time` in Unix seconds, hashes in the order of nodes' texts.

    `target` is the most that the hash of its work may be; 0 on networks without work.
    """

    hash: str
    parent_hash: str
    merkle_root: bytes
    time: int
    target: int


class RawTransaction(NamedTuple):
    """A transaction: `id` in the order of its bytes, outpoints of its inputs, and (base units, script) of outputs."""

    id: bytes
    inputs: list[bytes]
    outputs: list[tuple[int, bytes]]

    @property
    def is_coinbase(self) -> bool:
        """True if the transaction pays the miner; its one input refers to no output."""
        return self.inputs == [_NO_OUTPOINT]


class RawBlock(NamedTuple):
    """A block; its header commits to these transactions."""

    header: RawHeader
    transactions: list[RawTransaction]


def shown(hash_: bytes) -> str:
    """Return a hash as nodes show it: hexadecimal, in reverse order."""
    return hash_[::-1].hex()


def double_hash(data: bytes) -> bytes:
    """Return SHA-256 of SHA-256."""
    return _sha256(_sha256(data).digest()).digest()


def read_header(raw: bytes, proof_of_work: ProofOfWork) -> RawHeader:
    """Return the header in 80 bytes.

    Raises:
        InvalidBlock: another length, no target, or a hash above the target.
    """
    if len(raw) != HEADER_BYTES:
        raise InvalidBlock(f"a header of {len(raw)} bytes in place of {HEADER_BYTES}")
    hash_ = double_hash(raw)
    target = 0
    if proof_of_work is not ProofOfWork.NONE:
        target = target_of(int.from_bytes(raw[72:76], "little"))
        work = hash_ if proof_of_work is ProofOfWork.SHA256D else _scrypt(raw)
        if int.from_bytes(work, "little") > target:
            raise InvalidBlock(f"a header without proof of work ({proof_of_work}): its hash is above its target")
    return RawHeader(shown(hash_), shown(raw[4:36]), raw[36:68], int.from_bytes(raw[68:72], "little"), target)


def target_of(bits: int) -> int:
    """Return the target in compact form: the first byte is its length, the others are its first three bytes.

    Source: https://developer.bitcoin.org/reference/block_chain.html#target-nbits

    Raises:
        InvalidBlock: it is zero, negative, or has more than 256 bits.
    """
    target = (bits & _MANTISSA) << 8 * (bits >> 24) >> 24
    if bits & _SIGN or not 0 < target < 2**256:
        raise InvalidBlock(f"a header with the bits {bits:08x}, which are no target")
    return target


def _scrypt(header: bytes) -> bytes:
    """Return the hash of Litecoin's proof of work."""
    return hashlib.scrypt(header, salt=header, n=1024, r=1, p=1, dklen=32)


def read_block(raw: bytes, proof_of_work: ProofOfWork, *, has_extension: bool = False) -> RawBlock:
    """Return the block in these bytes.

    Args:
        has_extension: the network may append an extension block, whose content is hidden and is not read.

    Raises:
        InvalidBlock: the bytes are no block, its header has no work, or its transactions are not those of the header's
            Merkle root.
    """
    header = read_header(raw[:HEADER_BYTES], proof_of_work)
    count, at = _count(raw, HEADER_BYTES, _LEAST_TRANSACTION)
    transactions = []
    is_extended = False
    for _ in range(count):
        transaction, at, is_extended = _transaction(raw, at, has_extension=has_extension)
        transactions.append(transaction)
    if at != len(raw) and not is_extended:
        raise InvalidBlock(f"{len(raw) - at} bytes after the last transaction")
    if merkle_root([transaction.id for transaction in transactions]) != header.merkle_root:
        raise InvalidBlock("its transactions do not give the Merkle root of its header")
    return RawBlock(header, transactions)


def read_transaction(raw: bytes, *, has_extension: bool = False) -> RawTransaction:
    """Return the transaction in these bytes.

    Raises:
        InvalidBlock: the bytes are no transaction.
    """
    transaction, at, _ = _transaction(raw, 0, has_extension=has_extension)
    if at != len(raw):
        raise InvalidBlock(f"{len(raw) - at} bytes after the transaction")
    return transaction


def merkle_root(ids: list[bytes]) -> bytes:
    """Return the Merkle root of transactions' ids.

    Raises:
        InvalidBlock: no id, or a list with the same root as a shorter one (CVE-2012-2459).
    """
    if not ids:
        raise InvalidBlock("no transactions")
    level = ids
    while len(level) > 1:
        if any(level[at] == level[at + 1] for at in range(0, len(level) - 1, 2)):
            raise InvalidBlock("a transaction appears twice")
        if len(level) % 2:
            level = [*level, level[-1]]
        level = [double_hash(level[at] + level[at + 1]) for at in range(0, len(level), 2)]
    return level[0]


def _count(raw: bytes, at: int, least_bytes: int) -> tuple[int, int]:
    """Return a variable-length number and the position after it; refuse one that the remaining bytes cannot hold.

    Args:
        least_bytes: of one of the things that the number counts.
    """
    count, at = _number(raw, at)
    if count * least_bytes > len(raw) - at:
        raise InvalidBlock("it ends early")
    return count, at


def _number(raw: bytes, at: int) -> tuple[int, int]:
    if at >= len(raw):
        raise InvalidBlock("it ends early")
    first = raw[at]
    if first < 0xFD:
        return first, at + 1
    width = 2 << (first - 0xFD)
    return int.from_bytes(raw[at + 1 : at + 1 + width], "little"), at + 1 + width


def _transaction(raw: bytes, at: int, *, has_extension: bool) -> tuple[RawTransaction, int, bool]:
    """Return a transaction, the position after it, and whether it announces the block's extension."""
    began = at
    at += 4
    flags = 0
    if raw[at : at + 1] == b"\0":
        flags = raw[at + 1] if at + 1 < len(raw) else 0
        at += 2
        if not flags or flags & ~(_WITNESS | (_EXTENSION if has_extension else 0)):
            raise InvalidBlock(f"a transaction with unknown flags {flags}")
    body = at
    inputs: list[bytes] = []
    count, at = _count(raw, at, _LEAST_INPUT)
    for _ in range(count):
        inputs.append(raw[at : at + OUTPOINT_BYTES])
        length, at = _count(raw, at + OUTPOINT_BYTES, 1)
        at += length + 4
    outputs: list[tuple[int, bytes]] = []
    count, at = _count(raw, at, _LEAST_OUTPUT)
    for _ in range(count):
        amount = int.from_bytes(raw[at : at + 8], "little", signed=True)
        if amount < 0:
            raise InvalidBlock("an output below zero")
        length, at = _count(raw, at + 8, 1)
        outputs.append((amount, raw[at : at + length]))
        at += length
    end = at
    if flags & _WITNESS:
        for _ in inputs:
            count, at = _count(raw, at, 1)
            for _ in range(count):
                length, at = _count(raw, at, 1)
                at += length
    if flags & _EXTENSION:
        # Hidden transfers of a transaction are in the extension block; only the empty mark stands here.
        if raw[at : at + 1] != b"\0":
            raise InvalidBlock("a transaction with hidden transfers outside the extension block")
        at += 1
    at += 4
    if at > len(raw):
        raise InvalidBlock("it ends early")
    id_ = double_hash(raw[began : began + 4] + raw[body:end] + raw[at - 4 : at] if flags else raw[began:at])
    return RawTransaction(id_, inputs, outputs), at, bool(flags & _EXTENSION)
