"""The parts of a network that can fail alone: a unit is at fault where the node answers for others of its kind.

A unit fails, then the node answers a control: the same method at the same block for something that must work. If the
unit fails again afterwards, it is blamed, and everything else goes on. Where waiting may help, the second failure must
lie in a later cycle.
"""

from collections.abc import Collection
from typing import Literal, NamedTuple, Protocol, TypeAlias

from pipelines.extract.errors import ExtractError

UnitKind: TypeAlias = Literal["contract", "call", "wallet", "block", "traces", "scan", "difference", "file"]
"""What a unit is.

`contract`: all calls of a contract. `call`: one call of a contract, such as the balance of a holder. `wallet`: the
native balance of an address. `block`: the rows of an address in a block. `traces`: value moved inside the transactions
of a block. `scan`: unspent outputs of an address of which the node proves less than it says. `difference`: unspent
outputs of an address that differ from its stored rows. `file`: files of a data set that hold the same blocks.
"""

HURRY_SECONDS = 5.0
"""Patience for a single answer while the unit at fault is searched among others."""


class Unit(NamedTuple):
    """A unit of a network.

    Attributes:
        address: lower-case address of the contract, or the wallet or token with the rows; the path of a file.
        part: calldata of a call, the kind of a block's rows, or a digest of a scan's faults; else empty.
        block: number of the block; None for the other kinds.
    """

    kind: UnitKind
    address: str
    part: str = ""
    block: int | None = None


class UnreadUnits(Protocol):
    """Units of a network that cannot be read; the caller of a node keeps them from cycle to cycle."""

    def left_out(self, *units: Unit) -> ExtractError | None:
        """Return the error of the first of the units that is left out until its next try; None where none is."""

    def failed(self, unit: Unit, error: ExtractError, *, is_proven: bool) -> None:
        """Note a failure. Until its next try the unit is left out.

        Args:
            is_proven: it failed twice, with a good control in between.
        """

    def is_repeated(self, unit: Unit) -> bool:
        """Return whether the unit failed in an earlier cycle, and not otherwise since."""

    def forget(self, kind: UnitKind, addresses: Collection[str]) -> None:
        """Forget all units of a kind and of some addresses: they were read."""
