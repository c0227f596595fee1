"""Units of collecting: what of which addresses, over which blocks."""

from typing import Literal, NamedTuple, TypeAlias

from pipelines.ranges import BlockRange

Kind: TypeAlias = Literal["token", "wallet", "native"]
"""What is collected of an address.

`token`: its movements; `wallet`: its movements in all tokens; `native`: its movements of the network's own asset.
"""


class Segment(NamedTuple):
    """A range that the same addresses miss: a unit of work."""

    kind: Kind
    covered: BlockRange
    addresses: tuple[str, ...]
