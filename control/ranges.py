"""Arithmetic on block ranges. Pure; a range is inclusive at both ends."""

from collections.abc import Iterable
from typing import NamedTuple

# The genesis block has no transactions; its state is read as that before block 1.
FIRST_BLOCK = 1


class BlockRange(NamedTuple):
    """Blocks `first` to `last`, both included; never empty."""

    first: int
    last: int


def merged(ranges: Iterable[BlockRange]) -> list[BlockRange]:
    """Unite overlapping and adjacent ranges, in order."""
    result: list[BlockRange] = []
    for current in sorted(ranges):
        if result and current.first <= result[-1].last + 1:
            result[-1] = BlockRange(result[-1].first, max(result[-1].last, current.last))
        else:
            result.append(current)
    return result


def difference(wanted: Iterable[BlockRange], covered: Iterable[BlockRange]) -> list[BlockRange]:
    """Return the parts of `wanted` that `covered` lacks, in order."""
    holes = merged(covered)
    result: list[BlockRange] = []
    for want in merged(wanted):
        first = want.first
        for hole in holes:
            if hole.last < first:
                continue
            if hole.first > want.last:
                break
            if hole.first > first:
                result.append(BlockRange(first, hole.first - 1))
            first = hole.last + 1
        if first <= want.last:
            result.append(BlockRange(first, want.last))
    return result


def intersection(ranges: Iterable[BlockRange], others: Iterable[BlockRange]) -> list[BlockRange]:
    """Return the blocks that are in both, in order."""
    united = merged(others)
    result: list[BlockRange] = []
    for one in merged(ranges):
        result += [
            BlockRange(max(one.first, other.first), min(one.last, other.last))
            for other in united
            if other.first <= one.last and other.last >= one.first
        ]
    return result
