"""Whole blocks of a range, each proven by its hash and its work."""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from control.networks.definitions import Network
from control.ranges import BlockRange
from pipelines.extract.errors import MalformedAnswer
from pipelines.extract.jsonrpc.client import Call, RpcClient
from pipelines.extract.prefetch import map_in_order
from pipelines.extract.utxo.definition import own_definition
from pipelines.extract.utxo.headers import Numbered as NumberedHeader
from pipelines.extract.utxo.headers import check_follows, read_hashes
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


def read_blocks(
    client: RpcClient, network: Network, covered: BlockRange, earlier: Sequence[NumberedHeader] = ()
) -> Iterator[Numbered]:
    """Read the blocks of a range in order, a few requests ahead; memory is bounded by the blocks in flight.

    Args:
        earlier: headers before the range that are known, at most one.

    Raises:
        MalformedAnswer: a block is missing, has too little work, or its bytes are not those that its hash commits to;
            names it.
        ChainReorganised: a block does not follow the one before it.
        StateUnavailable: the node has pruned a block.
    """

    def read(start: int) -> list[Numbered]:
        numbers = range(start, min(start + BLOCKS_PER_REQUEST, covered.last + 1))
        hashes = read_hashes(client, numbers)
        calls: list[Call] = [(BLOCK_CALL, [hash_, _RAW]) for hash_ in hashes]
        answers = client.batch(calls, str)
        return [
            Numbered(number, _checked(client, network, number, hash_, answer))
            for number, hash_, answer in zip(numbers, hashes, answers, strict=True)
        ]

    starts = range(covered.first, covered.last + 1, BLOCKS_PER_REQUEST)
    for blocks in map_in_order(read, starts, client.max_in_flight):
        for number, block in blocks:
            header = NumberedHeader(number, block.header)
            check_follows(network, earlier, header)
            earlier = [*earlier[:1], header]
            yield Numbered(number, block)


def _checked(client: RpcClient, network: Network, number: int, hash_: str, answer: str) -> RawBlock:
    own = own_definition(network)
    try:
        block = read_block(bytes.fromhex(answer), own.proof_of_work, has_extension=own.mweb_prefix is not None)
    except ValueError as error:
        raise MalformedAnswer(client.network, BLOCK_CALL, number, number, f"block {number}: {error}") from None
    if block.header.hash != hash_:
        raise MalformedAnswer(client.network, BLOCK_CALL, number, number, f"the bytes of another block than {number}")
    return block
