"""Units of collecting: what of which addresses, over which blocks; and what they took of a provider."""

from enum import StrEnum
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


class WorkClass(StrEnum):
    """What a network's node was asked for."""

    LIVE = "Live"
    """Heads, what is tracked, and readings; never held back."""
    HISTORY = "History"
    SECOND_READING = "SecondReading"
    SEARCH = "Search"
    """Holders that no movement names."""
    ATTESTATION = "Attestation"


class RpcUsage(NamedTuple):
    """What a provider was asked: JSON-RPC requests, each call of a batch one, and the bytes of its answers."""

    requests: int
    answer_bytes: int


class UsageRecord(NamedTuple):
    """What a piece of work took.

    Attributes:
        work: the kind of segment; `balances` of a past block; `other` is what belongs to none.
        units: blocks of the segment; balances.
        milliseconds: until it was read.
    """

    purpose: WorkClass
    work: Kind | Literal["balances", "other"]
    spent: RpcUsage
    units: int = 0
    milliseconds: int = 0
