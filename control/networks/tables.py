"""The form of network definitions in their file: what those of every family have."""

from enum import StrEnum
from typing import Annotated, Protocol

from control.toml_files import Label, Name, Table, one_of, within


class NativeMode(StrEnum):
    """How a wallet's native value is collected: from every block's transactions, or from its balances alone."""

    FULL = "full"
    BALANCE_ONLY = "balance-only"


class Verification(StrEnum):
    """Extent of second readings: everything, a sample, or nothing."""

    FULL = "full"
    SAMPLE = "sample"
    OFF = "off"


class FamilyDefinition(Protocol):
    """The values of a family's own fields of a network; equal for equal ones."""

    @property
    def identity(self) -> str:
        """Which chain it is: a network in use keeps it for good."""

    @property
    def chain_id(self) -> int | None:
        """The number by which clients know the chain; None where the family has none."""

    def address(self, stored: str) -> str:
        """Return the network's canonical form of an address that the family's codec returned.

        Raises:
            InvalidAddress: the address belongs to another network, or the network does not support it; says why.
        """


class TokenTable(Table, frozen=True):
    """A common token."""

    symbol: Label
    address: str
    decimals: Annotated[int, within(0, 255)]


class FeedTable(Table, frozen=True):
    """A price feed."""

    address: str
    base: Label
    quote: Label


class NativeTable(Table, frozen=True):
    """The network's own asset."""

    symbol: Label
    decimals: Annotated[int, within(0, 255)]
    collect: Annotated[str, one_of(tuple(NativeMode))] = NativeMode.FULL


class DataSetTable(Table, frozen=True):
    """Files that hold a part of the network's past."""

    name: Name
    form: str
    files: str
    columns: dict[str, str] = {}


class NetworkTable(Table, frozen=True, tag_field="family"):
    """Fields of every network's definition; a family adds its own fields, and its name as the tag."""

    name: Name
    display_name: Label
    rpc: list[str]
    native: NativeTable
    finality_depth: Annotated[int, within(0, 1_000_000)]
    poll_seconds: Annotated[int, within(1, 86_400)]
    is_testnet: bool = False
    token: list[TokenTable] = []
    feed: list[FeedTable] = []
    data_set: list[DataSetTable] = []
    block_milliseconds: Annotated[int, within(1, 86_400_000)] | None = None
    max_requests_per_day: Annotated[int, within(1, 1_000_000_000_000)] | None = None
    explorer: str | None = None
    verification: Annotated[str, one_of(tuple(Verification))] | None = None

    def own(self) -> FamilyDefinition:
        """Return the values of the family's own fields.

        Raises:
            ValueError: one of them is not right; names it.
        """
        raise NotImplementedError
