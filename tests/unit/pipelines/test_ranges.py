"""Range arithmetic against sets of block numbers."""

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from control.ranges import BlockRange, difference, merged

_ranges = st.lists(
    st.tuples(st.integers(0, 40), st.integers(0, 12)).map(lambda pair: BlockRange(pair[0], pair[0] + pair[1])),
    max_size=6,
)


def _blocks(ranges: list[BlockRange]) -> set[int]:
    return {block for covered in ranges for block in range(covered.first, covered.last + 1)}


@given(_ranges)
def test_merged_covers_the_same_blocks_with_gaps_between(ranges: list[BlockRange]) -> None:
    united = merged(ranges)
    assert _blocks(united) == _blocks(ranges)
    assert all(left.last + 1 < right.first for left, right in pairwise(united))


@given(_ranges, _ranges)
def test_difference_is_the_set_difference_in_order(wanted: list[BlockRange], covered: list[BlockRange]) -> None:
    missing = difference(wanted, covered)
    assert _blocks(missing) == _blocks(wanted) - _blocks(covered)
    assert missing == sorted(missing)
