"""Units of collection: kinds of rows, addresses and blocks; and the usage of a provider for them."""

from enum import StrEnum
from typing import Literal, NamedTuple, TypeAlias

from control.ranges import BlockRange

Kind: TypeAlias = Literal["token", "wallet", "native"]
"""Rows that are collected for an address.

`token`: its movements; `wallet`: its movements in all tokens; `native`: its movements of the network's own asset.
"""


class Segment(NamedTuple):
    """A range that coverage lacks for several addresses: a unit of work."""

    kind: Kind
    covered: BlockRange
    addresses: tuple[str, ...]


class Origin(NamedTuple):
    """Where rows are from.

    Attributes:
        provider: host of the node's provider; for files, `data set` and its name.
        data_set: name of the data set; None: they are from a node.
        work: work for which the node was asked; None: for the rows themselves.
    """

    provider: str
    data_set: str | None = None
    work: Literal["files", "lake"] | None = None


class WorkClass(StrEnum):
    """Class of work for which a network's node is used."""

    LIVE = "Live"
    """Heads, tracked addresses, and readings; never delayed for the budget."""
    HISTORY = "History"
    SECOND_READING = "SecondReading"
    SEARCH = "Search"
    """Holders that no movement names."""
    ATTESTATION = "Attestation"


class RpcUsage(NamedTuple):
    """Usage of a provider: JSON-RPC requests, counting each call of a batch, and the bytes of its answers."""

    requests: int
    answer_bytes: int


class UsageRecord(NamedTuple):
    """Usage of a piece of work.

    Attributes:
        work: the kind of segment; `files` and `lake` for checks of blocks from there; `balances` of a past block;
            `other` for all other requests.
        units: blocks of the segment or of the files; balances.
        milliseconds: duration of the reading.
    """

    purpose: WorkClass
    work: Kind | Literal["files", "lake", "balances", "other"]
    spent: RpcUsage
    units: int = 0
    milliseconds: int = 0
