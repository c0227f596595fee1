"""Sizes of second readings: the blocks that are read at once, and the blocks that a sample reads."""

BLOCKS_PER_RANGE = 2_000
"""Blocks that a cycle reads a second time as one range."""

BLOCKS_PER_SAMPLE = 10_000
"""Blocks of a sampled range: of each, the first and the last block are read."""

STRETCH = 100
"""Blocks that a sample reads together, since single blocks would cost a request each."""

STRETCHES_PER_CHOSEN = 50
"""A sample reads one of this many stretches: 2 percent."""

HEADERS_PER_UNIT = 10
"""Number of blocks of a unit of files to compare with the node by hash and time, in addition to its first and last."""

REQUESTS_PER_UNIT = 20
"""Requests that check a unit of files of some thousand blocks, where nothing was observed yet: those headers, the rows
of both ends and of a stretch, and balances and supplies at two blocks."""
