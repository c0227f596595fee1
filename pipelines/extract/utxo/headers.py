"""Headers by number, dated by their median time past.

The median time past of a block is the median of its own time and those of the ten blocks before it. It never decreases,
which a block's own time may do. It is computed from proven headers, so no node can state another one.

Each header has the work of its target. On main networks, targets are also compared with those of earlier headers. Test
networks allow blocks of the least work at any time.
"""

from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from typing import Annotated, NamedTuple

import msgspec
import polars as pl

from control.networks.definitions import Network
from control.networks.utxo import ProofOfWork
from pipelines.extract.errors import CallRefused, ChainReorganised, MalformedAnswer
from pipelines.extract.family import Header
from pipelines.extract.headers import check_clock, check_links, find_first_at_or_after, header_frame
from pipelines.extract.jsonrpc.client import SMALL_ANSWER, Call, RpcClient
from pipelines.extract.prefetch import map_in_order
from pipelines.extract.utxo.definition import own_definition
from pipelines.extract.utxo.serialization import RawHeader, read_header

HEADER_CALL = "getblockheader"
HASH_CALL = "getblockhash"
Hash = Annotated[str, msgspec.Meta(pattern=r"^[0-9a-f]{64}\Z")]

# The median is over this many blocks.
_MEDIAN_BLOCKS = 11
_HEADERS_PER_REQUEST = 100
# Bitcoin and Litecoin change the target once in this many blocks, and make it at most this many times easier.
_BLOCKS_OF_A_TARGET = 2_016
_MOST_EASIER = 4


class _Tip(msgspec.Struct):
    """The node's newest block."""

    blocks: Annotated[int, msgspec.Meta(ge=0, lt=2**31)]
    bestblockhash: Hash


class Numbered(NamedTuple):
    """A header and the number of its block."""

    number: int
    header: RawHeader


def read_head(client: RpcClient, network: Network) -> Header:
    """Return the newest block that the node knows.

    Raises:
        ChainReorganised: the newest block changed while it was read.
    """
    tip = client.call("getblockchaininfo", [], _Tip, max_response_bytes=SMALL_ANSWER)
    (head,) = read_dated(client, network, [tip.blocks])
    if head.hash != tip.bestblockhash:
        detail = "the newest block changed while it was read"
        raise ChainReorganised(client.network, HEADER_CALL, head.number, head.number, detail, block_number=head.number)
    check_clock(client.network, HEADER_CALL, head)
    return head


def read_headers(client: RpcClient, network: Network, numbers: Sequence[int]) -> pl.DataFrame:
    """Read headers by number.

    Returns:
        HEADERS; one row per distinct number, ascending.

    Raises:
        MalformedAnswer: a block is missing, or its bytes have another hash or too little work; names it.
        ChainReorganised: of two neighbours, the second does not name the first as its parent.
    """
    headers = read_dated(client, network, sorted(set(numbers)))
    check_links(client.network, HEADER_CALL, headers)
    return header_frame(headers)


def find_first_block_at_or_after(client: RpcClient, network: Network, instant: datetime, head: Header) -> int | None:
    """Return the number of the first block at or after an instant; see `find_first_at_or_after`."""
    return find_first_at_or_after(
        client.network, HEADER_CALL, instant, head, 0, lambda number: read_dated(client, network, [number])[0]
    )


def read_dated(client: RpcClient, network: Network, numbers: Sequence[int]) -> list[Header]:
    """Read headers by distinct ascending numbers, dated by their median time past."""
    needed = sorted({one for number in numbers for one in range(max(0, number - _MEDIAN_BLOCKS + 1), number + 1)})
    raw = dict(zip(needed, read_raw(client, network, needed), strict=True))
    return [Header(number, raw[number].hash, raw[number].parent_hash, _median_time(raw, number)) for number in numbers]


def _median_time(raw: dict[int, RawHeader], number: int) -> datetime:
    times = sorted(raw[one].time for one in range(max(0, number - _MEDIAN_BLOCKS + 1), number + 1))
    return datetime.fromtimestamp(times[len(times) // 2], UTC)


def read_raw(client: RpcClient, network: Network, numbers: Sequence[int]) -> Iterable[RawHeader]:
    """Yield the headers of distinct ascending numbers, each checked against those before it.

    Raises:
        MalformedAnswer, ChainReorganised: as `read_headers`.
    """
    pieces = [numbers[at : at + _HEADERS_PER_REQUEST] for at in range(0, len(numbers), _HEADERS_PER_REQUEST)]

    def read(piece: Sequence[int]) -> list[RawHeader]:
        hashes = read_hashes(client, piece)
        answers = client.batch([(HEADER_CALL, [hash_, False]) for hash_ in hashes], str)
        return [
            checked_header(client, network, number, hash_, answer)
            for number, hash_, answer in zip(piece, hashes, answers, strict=True)
        ]

    earlier: list[Numbered] = []
    for piece, headers in zip(pieces, map_in_order(read, pieces, client.max_in_flight), strict=True):
        for later in map(Numbered, piece, headers):
            check_follows(network, earlier, later)
            earlier = [*earlier[:1], later]
            yield later.header


def compares_targets(network: Network) -> bool:
    """Return whether targets are compared: on main networks with work."""
    return not network.is_testnet and own_definition(network).proof_of_work is not ProofOfWork.NONE


def check_follows(network: Network, earlier: Iterable[Numbered], later: Numbered) -> None:
    """Check a header against earlier ones of its chain.

    Raises:
        ChainReorganised: it names another parent than the header before it.
        MalformedAnswer: it has an easier target than a main network can have come to.
    """
    number, header = later
    for before, other in earlier:
        if number == before + 1 and header.parent_hash != other.hash:
            detail = f"block {number} does not follow the block {before} read with it"
            raise ChainReorganised(network.name, HEADER_CALL, before, number, detail, block_number=before)
        # The number of changes of the target, at most.
        changes = -((before - number) // _BLOCKS_OF_A_TARGET)
        if compares_targets(network) and header.target > other.target * _MOST_EASIER**changes:
            detail = f"block {number} needed too little work: its target is too easy after that of block {before}"
            raise MalformedAnswer(network.name, HEADER_CALL, number, number, detail)


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


def read_header_of(client: RpcClient, network: Network, number: int, hash_: str) -> RawHeader:
    """Return the header with a hash.

    Raises:
        MalformedAnswer: the answer does not have the hash, or has no work.
    """
    answer = client.call(HEADER_CALL, [hash_, False], str, max_response_bytes=SMALL_ANSWER)
    return checked_header(client, network, number, hash_, answer)


def checked_header(client: RpcClient, network: Network, number: int, hash_: str, answer: str) -> RawHeader:
    """Return the header in an answer.

    Raises:
        MalformedAnswer: it does not have the hash, or has no work.
    """
    try:
        header = read_header(bytes.fromhex(answer), own_definition(network).proof_of_work)
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
