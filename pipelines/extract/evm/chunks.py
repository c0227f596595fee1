"""Width of the next block range to request, adapted to the answers so far. Pure: no calls here."""

from bisect import insort

# Answers of 2,000 to 10,000 logs are cheapest for node and client together.
_TARGET_LOGS = 5_000
_FIRST_SPAN = 20
_WIDEST_SPAN = 10_000
_GROWTH = 4
_FIRST_PATIENCE = 32

BlockRange = tuple[int, int]


class RangePlanner:
    """Cuts a range of blocks into pieces that a provider answers; every block is in exactly one accepted piece.

    The span starts small, grows on success towards answers of a good size, and halves on refusal. A refused piece is
    cut again. The narrowest refused span is a ceiling, which the span approaches by half the distance each time. After
    a long run of successes the ceiling is lifted, since limits on results depend on how dense the blocks are.

    Args:
        from_block, to_block: the range, both included.
        max_range: blocks of the widest piece; None for the default.
    """

    def __init__(self, from_block: int, to_block: int, max_range: int | None = None) -> None:
        self._pending: list[BlockRange] = [(from_block, to_block)] if from_block <= to_block else []
        self._widest = _WIDEST_SPAN if max_range is None else max(1, max_range)
        self._ceiling = self._widest
        self._span = min(_FIRST_SPAN, self._widest)
        self._successes = 0
        self._patience = _FIRST_PATIENCE

    @property
    def next_block(self) -> int | None:
        """First block of the piece that `take` would return; None when no piece is left."""
        return self._pending[0][0] if self._pending else None

    def take(self) -> BlockRange:
        """Return the earliest pending piece, cut to the current span."""
        first, last = self._pending.pop(0)
        end = min(first + self._span - 1, last)
        if end < last:
            self._pending.insert(0, (end + 1, last))
        return first, end

    def succeeded(self, piece: BlockRange, logs: int) -> None:
        """Learn from an answer with that many logs."""
        size = _size(piece)
        self._successes += 1
        if self._ceiling < self._widest and self._successes >= self._patience:
            self._ceiling = self._widest
            self._patience *= 2
            self._successes = 0
        # A piece narrower than the current span (the end of a range, or one taken earlier) says nothing about the span,
        # unless it was too full.
        if size < self._span and logs <= _TARGET_LOGS:
            return
        wanted = min(size * _TARGET_LOGS // max(logs, 1), size * _GROWTH)
        if self._ceiling < self._widest:
            # Go halfway from the span that works to the one that was refused, until the gain becomes small.
            gap = self._ceiling - size
            wanted = min(wanted, size + (gap + 1) // 2 if gap > size // 8 else size)
        self._span = max(1, min(wanted, self._ceiling))

    def refused(self, piece: BlockRange, suggested: BlockRange | None = None) -> None:
        """Take back a piece that was too wide.

        Args:
            piece: of at least two blocks.
            suggested: the provider's proposal; used only where it is a strictly shorter prefix, since providers have
                proposed the very range that they refused.
        """
        size = _size(piece)
        narrower = size // 2
        if suggested is not None and suggested[0] == piece[0] and piece[0] <= suggested[1] < piece[1]:
            narrower = _size(suggested)
        self._span = min(self._span, narrower)
        self._ceiling = max(1, min(self._ceiling, size - 1))
        self._successes = 0
        insort(self._pending, piece)
        self._merge()

    def _merge(self) -> None:
        merged: list[BlockRange] = []
        for first, last in self._pending:
            if merged and merged[-1][1] + 1 == first:
                merged[-1] = (merged[-1][0], last)
            else:
                merged.append((first, last))
        self._pending = merged


def _size(piece: BlockRange) -> int:
    return piece[1] - piece[0] + 1
