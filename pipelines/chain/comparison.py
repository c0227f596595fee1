"""Comparison of two readings of the same rows, and the choice of the blocks that a sample compares. Pure."""

import hashlib
from collections import defaultdict
from collections.abc import Mapping, Sequence

import polars as pl

from control.networks import sampling
from control.ranges import BlockRange, merged
from pipelines.rows import Segment
from pipelines.tables.families import ROW_TABLES


def sample(covered: BlockRange, seed: str) -> list[BlockRange]:
    """Choose the blocks of a sampled range: its first, its last, and 2 percent of its stretches.

    A stretch is chosen by its number and a secret of the installation, so that a node cannot foresee it.
    """
    chosen = [
        BlockRange(
            max(number * sampling.STRETCH, covered.first), min((number + 1) * sampling.STRETCH - 1, covered.last)
        )
        for number in range(covered.first // sampling.STRETCH, covered.last // sampling.STRETCH + 1)
        if int.from_bytes(hashlib.sha256(f"{seed}:{number}".encode()).digest()[:8]) % sampling.STRETCHES_PER_CHOSEN == 0
    ]
    return merged([BlockRange(covered.first, covered.first), BlockRange(covered.last, covered.last), *chosen])


def within(frame: pl.DataFrame, blocks: Sequence[BlockRange]) -> pl.DataFrame:
    """Return the rows of some blocks."""
    return frame.filter(pl.any_horizontal(pl.lit(False), *(pl.col("block_number").is_between(*one) for one in blocks)))


def of_segment(frame: pl.DataFrame, name: str, segment: Segment) -> pl.DataFrame:
    """Return the rows of a segment's blocks and addresses, in their table's order."""
    table = ROW_TABLES[name]
    named = (pl.col(column).is_in(segment.addresses) for column in table.addressed(segment.kind))
    return within(frame, [segment.covered]).filter(pl.any_horizontal(pl.lit(False), *named)).sort(table.key)


def differing_blocks(
    segment: Segment, stored: Mapping[str, pl.DataFrame], read: Mapping[str, pl.DataFrame]
) -> dict[int, list[str]]:
    """Find the blocks in which two readings differ, each with the addresses of the differing rows."""
    found: dict[int, set[str]] = defaultdict(set)
    for name, frame in read.items():
        columns = frame.columns
        other = stored[name].select(columns)
        for one, another in ((frame, other), (other, frame)):
            only = one.join(another, on=columns, how="anti", nulls_equal=True)
            for column in ROW_TABLES[name].addressed(segment.kind):
                for block, address in only.select("block_number", column).iter_rows():
                    if address in segment.addresses:
                        found[block].add(address)
    return {block: sorted(addresses) for block, addresses in found.items()}


def fingerprint(rows: Mapping[str, pl.DataFrame]) -> str:
    """Return a hash of rows that is equal for two readings of the same rows."""
    texts = (f"{name}:{frame.select(sorted(frame.columns)).rows()}" for name, frame in sorted(rows.items()))
    return hashlib.sha256("\n".join(texts).encode()).hexdigest()


def height(rows: Mapping[str, pl.DataFrame]) -> int:
    return sum(frame.height for frame in rows.values())
