"""Whole blocks of a range, each proven by its hash."""

from collections.abc import Iterator
from typing import NamedTuple

from control.ranges import BlockRange
from pipelines.extract.errors import MalformedAnswer
from pipelines.extract.jsonrpc.client import Call, RpcClient
from pipelines.extract.prefetch import map_in_order
from pipelines.extract.utxo.headers import check_parent, read_hashes
from pipelines.extract.utxo.serialization import RawBlock, read_block

BLOCK_CALL = "getblock"
# A block has up to 4 MB, its hexadecimal text 8 MB.
BLOCKS_PER_REQUEST = 4
# Answer without JSON: the block's own bytes.
_RAW = 0


class Numbered(NamedTuple):
    """A block and its number."""

    number: int
    block: RawBlock


def read_blocks(client: RpcClient, covered: BlockRange, *, has_extension: bool) -> Iterator[Numbered]:
    """Read the blocks of a range in order, a few requests ahead; memory is bounded by the blocks in flight.

    Raises:
        MalformedAnswer: a block is missing, or its bytes are not those that its hash commits to; names it.
        ChainReorganised: a block does not follow the one before it.
        StateUnavailable: the node has pruned a block.
    """

    def read(start: int) -> list[Numbered]:
        numbers = range(start, min(start + BLOCKS_PER_REQUEST, covered.last + 1))
        hashes = read_hashes(client, numbers)
        calls: list[Call] = [(BLOCK_CALL, [hash_, _RAW]) for hash_ in hashes]
        answers = client.batch(calls, str)
        return [
            Numbered(number, _checked(client, number, hash_, answer, has_extension=has_extension))
            for number, hash_, answer in zip(numbers, hashes, answers, strict=True)
        ]

    starts = range(covered.first, covered.last + 1, BLOCKS_PER_REQUEST)
    parent_hash: str | None = None
    for blocks in map_in_order(read, starts, client.max_in_flight):
        for number, block in blocks:
            if parent_hash is not None:
                check_parent(client, number, block.header, parent_hash)
            parent_hash = block.header.hash
            yield Numbered(number, block)


def _checked(client: RpcClient, number: int, hash_: str, answer: str, *, has_extension: bool) -> RawBlock:
    try:
        block = read_block(bytes.fromhex(answer), has_extension=has_extension)
    except ValueError as error:
        raise MalformedAnswer(client.network, BLOCK_CALL, number, number, f"block {number}: {error}") from None
    if block.header.hash != hash_:
        raise MalformedAnswer(client.network, BLOCK_CALL, number, number, f"the bytes of another block than {number}")
    return block
