"""Balances and supplies at two blocks, compared with the movements that files have between them.

A difference need not be the file's fault: some tokens change balances without a movement. So the block of a difference
is searched, and the caller compares its rows.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from control.networks.families import codec_for
from control.ranges import BlockRange
from pipelines.data_sets.staged import Staged
from pipelines.extract.errors import CallRefused, StateUnavailable
from pipelines.extract.family import Header, Node
from pipelines.rows import Segment

# Addresses of a segment, and balances of each of them, that are compared for one unit.
_ADDRESSES = 20
_BALANCES = 10
# Number of differences of one unit to locate: each costs some 13 readings for the blocks of a day.
_MOST_SEARCHED = 5


class _Figure(NamedTuple):
    """A balance, or a supply where `holder` is None, with its changes by the file's rows: block and base units."""

    address: str
    token: str
    holder: str | None
    changes: Sequence[tuple[int, int]]

    def change(self, covered: BlockRange) -> int:
        """Return the sum of the changes in a range."""
        return sum(amount for block, amount in self.changes if covered.first <= block <= covered.last)


@dataclass
class BalanceCheck:
    """Compares the movements of staged rows with balances that the node reads.

    Attributes:
        compared: number of changes of balances and supplies that were compared.
    """

    node: Node
    head: Header
    staged: Staged
    seed: str
    compared: int = 0

    def differences(self, segment: Segment) -> Iterator[tuple[str, int]]:
        """Yield address and block of changes that the segment's rows do not explain, at most some of them.

        Nothing is compared where the node lacks the states of the segment's ends.
        """
        before, last = segment.covered.first - 1, segment.covered.last
        if not (self.node.keeps_state(before, self.head) and self.node.keeps_state(last, self.head)):
            return
        figures = self._figures(segment)
        try:
            low, high = self._read(figures, before), self._read(figures, last)
        except (StateUnavailable, CallRefused):
            # The node lacks the states after all. Hashes and rows are compared without them.
            return
        searched = 0
        for figure, start, end in zip(figures, low, high, strict=True):
            if start is None or end is None:
                continue
            self.compared += 1
            if end - start != figure.change(segment.covered) and searched < _MOST_SEARCHED:
                searched += 1
                yield figure.address, self._block_of(figure, before, last, start)

    def _figures(self, segment: Segment) -> list[_Figure]:
        """Choose the figures: of a token its supply and some holders, of a wallet some tokens."""
        figures = []
        nobody = codec_for(self.node.network.family).nobody
        for address in self.staged.drawn(segment, self.seed, _ADDRESSES):
            if segment.kind == "token":
                if nobody is not None:
                    created = self.staged.changes(segment.covered, address, nobody)
                    figures.append(_Figure(address, address, None, [(block, -amount) for block, amount in created]))
                parties = self.staged.parties(segment.covered, address, self.seed, _BALANCES)
                pairs = [(address, party) for party in parties if party != nobody]
            else:
                pairs = [(token, address) for token in self.staged.tokens(segment.covered, address, _BALANCES)]
            figures += [_Figure(address, *pair, self.staged.changes(segment.covered, *pair)) for pair in pairs]
        return figures

    def _read(self, figures: Sequence[_Figure], number: int) -> list[int | None]:
        """Read figures at the end of a block; None where a contract gives no number."""
        if not figures:
            return []
        hash_ = str(self.node.headers([number])["block_hash"][0])
        supplies = [figure.token for figure in figures if figure.holder is None]
        pairs = [(figure.token, figure.holder) for figure in figures if figure.holder is not None]
        read: dict[tuple[str, str | None], str | None] = {}
        if supplies:
            for token, *_, text in self.node.supplies(supplies, number, hash_).iter_rows():
                read[token, None] = text
        if pairs:
            for token, holder, *_, text in self.node.balances(pairs, number, hash_).iter_rows():
                read[token, holder] = text
        texts = [read.get((figure.token, figure.holder)) for figure in figures]
        return [None if text is None else int(text) for text in texts]

    def _block_of(self, figure: _Figure, low: int, high: int, value: int) -> int:
        """Search a block in which the figure changes otherwise than by the rows."""
        while high - low > 1:
            middle = (low + high) // 2
            (found,) = self._read([figure], middle)
            if found is not None and found - value != figure.change(BlockRange(low + 1, middle)):
                high = middle
            else:
                value += figure.change(BlockRange(low + 1, middle))
                low = middle
        return high
