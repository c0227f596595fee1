"""Check of empty answers near the head: the bloom filter of a block's header shows whether it may hold transfers.

One URL often leads to several nodes. A node that lags behind answers a range beyond its head with no logs and without
an error. A header from another node then shows that there should be some.
"""

import functools
from collections.abc import Iterable, Sequence

import msgspec
import polars as pl
from eth_hash.auto import keccak

from pipelines.extract.errors import MalformedAnswer, StateUnavailable
from pipelines.extract.evm.hexadecimal import Bloom, Hash
from pipelines.extract.evm.logs import TRANSFER_TOPIC, TransferFilter, fetch_blocks, padded_address, split_filter
from pipelines.extract.evm.state import BlockPoint, check_canonical
from pipelines.extract.jsonrpc.client import Call, RpcClient

_BITS = 2_048


class _Bloomed(msgspec.Struct, rename="camel"):
    hash: Hash
    logs_bloom: Bloom


def may_contain_transfers(bloom: str, filters: Iterable[TransferFilter]) -> bool:
    """Return whether a block with that bloom filter (0x text) may hold a transfer that matches one of the filters.

    False is certain. True is not: in a full block of a busy network, every 20th address seems to be there.

    Source: https://ethereum.github.io/yellowpaper/paper.pdf, section 4.3.1
    """
    bits = int(bloom, 16)

    def may_contain(addresses: Iterable[str] | None) -> bool:
        return addresses is None or any(_mask(address) & ~bits == 0 for address in addresses)

    return _mask(TRANSFER_TOPIC) & ~bits == 0 and any(
        may_contain(filter.tokens) and may_contain(_padded(filter.senders)) and may_contain(_padded(filter.recipients))
        for filter in filters
    )


def _padded(addresses: Iterable[str] | None) -> list[str] | None:
    return None if addresses is None else [padded_address(address) for address in addresses]


@functools.lru_cache(maxsize=65_536)
def _mask(item: str) -> int:
    """Return the three bits that an address or a topic sets."""
    digest = keccak(bytes.fromhex(item[2:]))
    mask = 0
    for at in (0, 2, 4):
        mask |= 1 << (int.from_bytes(digest[at : at + 2]) % _BITS)
    return mask


def confirm_empty_blocks(
    client: RpcClient, filters: Sequence[TransferFilter], from_block: int, to_block: int, rows: pl.DataFrame
) -> pl.DataFrame:
    """Request again, by hash, blocks without rows that may hold transfers by their bloom filters.

    Use it for the unfinalised tail, where the nodes behind one URL differ. It reads one header per block, and makes one
    more request for each part of a filter that a block seems to match.

    Args:
        filters: the filters with which the rows were fetched.
        from_block, to_block: both included; few blocks.
        rows: result of `fetch_transfers` for these blocks.

    Returns:
        The rows that were missing, like those of `fetch_transfers`; empty where the first answers were right.

    Raises:
        StateUnavailable: the node lags behind: it does not know the hash of a block of its chain.
        ChainReorganised: the chain now has another block at that number.
        MalformedAnswer: a header is missing, or a log is not of its block.
    """
    numbers = range(from_block, to_block + 1)
    calls: list[Call] = [("eth_getBlockByNumber", [hex(number), False]) for number in numbers]
    parts = [part for filter in filters for part in split_filter(filter)]
    known = [set(rows.filter(_is_match(part))["block_number"]) for part in parts]
    doubtful: list[tuple[TransferFilter, int, str]] = []
    for number, header in zip(numbers, client.batch(calls, _Bloomed | None), strict=True):
        if header is None:
            detail = f"block {number} is missing"
            raise MalformedAnswer(client.network, "eth_getBlockByNumber", number, number, detail)
        doubtful += [
            (part, number, header.hash.lower())
            for part, blocks in zip(parts, known, strict=True)
            if number not in blocks and may_contain_transfers(header.logs_bloom, [part])
        ]
    try:
        found = fetch_blocks(client, doubtful)
    except StateUnavailable:
        for number, hash_ in {(number, hash_) for _, number, hash_ in doubtful}:
            check_canonical(client, BlockPoint(number, hash_))
        raise
    return found.join(rows, on=["block_hash", "transaction_index", "log_index"], how="anti", maintain_order="left")


def _is_match(filter: TransferFilter) -> pl.Expr:
    wanted = (
        ("token_address", filter.tokens),
        ("from_address", filter.senders),
        ("to_address", filter.recipients),
    )
    return pl.all_horizontal(
        pl.lit(True), *(pl.col(name).is_in(addresses) for name, addresses in wanted if addresses is not None)
    )
