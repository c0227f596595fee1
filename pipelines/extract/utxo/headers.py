"""Headers by number, dated by their median time past.

The median time past of a block is the median of its own time and those of the ten blocks before it. It never decreases,
which a block's own time may do. It is computed from proven headers, so no node can state another one.
"""

from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from typing import Annotated

import msgspec
import polars as pl

from pipelines.extract.errors import CallRefused, ChainReorganised, MalformedAnswer
from pipelines.extract.family import Header
from pipelines.extract.headers import check_clock, check_links, find_first_at_or_after, header_frame
from pipelines.extract.jsonrpc.client import SMALL_ANSWER, Call, RpcClient
from pipelines.extract.prefetch import map_in_order
from pipelines.extract.utxo.serialization import RawHeader, read_header

HEADER_CALL = "getblockheader"
HASH_CALL = "getblockhash"
Hash = Annotated[str, msgspec.Meta(pattern=r"^[0-9a-f]{64}\Z")]

# The median is over this many blocks.
_MEDIAN_BLOCKS = 11
_HEADERS_PER_REQUEST = 100


class _Tip(msgspec.Struct):
    """The node's newest block."""

    blocks: Annotated[int, msgspec.Meta(ge=0, lt=2**31)]
    bestblockhash: Hash


def read_head(client: RpcClient) -> Header:
    """Return the newest block that the node knows.

    Raises:
        ChainReorganised: the newest block changed while it was read.
    """
    tip = client.call("getblockchaininfo", [], _Tip, max_response_bytes=SMALL_ANSWER)
    (head,) = read_dated(client, [tip.blocks])
    if head.hash != tip.bestblockhash:
        detail = "the newest block changed while it was read"
        raise ChainReorganised(client.network, HEADER_CALL, head.number, head.number, detail, block_number=head.number)
    check_clock(client.network, HEADER_CALL, head)
    return head


def read_headers(client: RpcClient, numbers: Sequence[int]) -> pl.DataFrame:
    """Read headers by number.

    Returns:
        HEADERS; one row per distinct number, ascending.

    Raises:
        MalformedAnswer: a block is missing, or its bytes do not have its hash; names it.
        ChainReorganised: of two neighbours, the second does not name the first as its parent.
    """
    headers = read_dated(client, sorted(set(numbers)))
    check_links(client.network, HEADER_CALL, headers)
    return header_frame(headers)


def find_first_block_at_or_after(client: RpcClient, instant: datetime, head: Header) -> int | None:
    """Return the number of the first block at or after an instant; see `find_first_at_or_after`."""
    return find_first_at_or_after(
        client.network, HEADER_CALL, instant, head, 0, lambda number: read_dated(client, [number])[0]
    )


def read_dated(client: RpcClient, numbers: Sequence[int]) -> list[Header]:
    """Read headers by distinct ascending numbers, dated by their median time past."""
    needed = sorted({one for number in numbers for one in range(max(0, number - _MEDIAN_BLOCKS + 1), number + 1)})
    raw = dict(zip(needed, read_raw(client, needed), strict=True))
    return [Header(number, raw[number].hash, raw[number].parent_hash, _median_time(raw, number)) for number in numbers]


def _median_time(raw: dict[int, RawHeader], number: int) -> datetime:
    times = sorted(raw[one].time for one in range(max(0, number - _MEDIAN_BLOCKS + 1), number + 1))
    return datetime.fromtimestamp(times[len(times) // 2], UTC)


def read_raw(client: RpcClient, numbers: Sequence[int]) -> Iterable[RawHeader]:
    """Yield the headers of distinct ascending numbers; neighbours are linked.

    Raises:
        MalformedAnswer, ChainReorganised: as `read_headers`.
    """
    pieces = [numbers[at : at + _HEADERS_PER_REQUEST] for at in range(0, len(numbers), _HEADERS_PER_REQUEST)]

    def read(piece: Sequence[int]) -> list[RawHeader]:
        hashes = read_hashes(client, piece)
        answers = client.batch([(HEADER_CALL, [hash_, False]) for hash_ in hashes], str)
        return [
            checked_header(client, number, hash_, answer)
            for number, hash_, answer in zip(piece, hashes, answers, strict=True)
        ]

    earlier: tuple[int, RawHeader] | None = None
    for piece, headers in zip(pieces, map_in_order(read, pieces, client.max_in_flight), strict=True):
        for number, header in zip(piece, headers, strict=True):
            if earlier is not None and earlier[0] + 1 == number:
                check_parent(client, number, header, earlier[1].hash)
            earlier = number, header
            yield header


def check_parent(client: RpcClient, number: int, header: RawHeader, parent_hash: str) -> None:
    """Check that a block follows the one read before it.

    Raises:
        ChainReorganised: it names another parent.
    """
    if header.parent_hash != parent_hash:
        detail = f"block {number} does not follow the block {number - 1} read with it"
        raise ChainReorganised(client.network, HEADER_CALL, number - 1, number, detail, block_number=number - 1)


def read_hashes(client: RpcClient, numbers: Sequence[int]) -> list[str]:
    """Return the hash of each block.

    Raises:
        MalformedAnswer: the node does not have a block; names it.
    """
    calls: list[Call] = [(HASH_CALL, [number]) for number in numbers]
    answers = client.batch(calls, Hash, allow_errors=True, max_response_bytes=SMALL_ANSWER)
    hashes: list[str] = []
    for number, answer in zip(numbers, answers, strict=True):
        if not isinstance(answer, str):
            detail = f"the node has no block {number}"
            raise MalformedAnswer(client.network, HASH_CALL, number, number, detail) from answer
        hashes.append(answer)
    return hashes


def checked_header(client: RpcClient, number: int, hash_: str, answer: str) -> RawHeader:
    """Return the header in an answer.

    Raises:
        MalformedAnswer: it does not have the hash.
    """
    try:
        header = read_header(bytes.fromhex(answer))
    except ValueError as error:
        raise MalformedAnswer(client.network, HEADER_CALL, number, number, f"the answer is {error}") from None
    if header.hash != hash_:
        detail = f"the header of another block than {number}"
        raise MalformedAnswer(client.network, HEADER_CALL, number, number, detail)
    return header


def is_orphaned(client: RpcClient, block_hash: str) -> bool:
    """Return whether the block left the node's chain."""
    try:
        answer = client.call(HEADER_CALL, [block_hash, True], _Confirmed, max_response_bytes=SMALL_ANSWER)
    except CallRefused:
        return True
    return answer.confirmations < 0


class _Confirmed(msgspec.Struct):
    confirmations: int
