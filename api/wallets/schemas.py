"""Structs of wallets and their balances."""

from typing import Annotated, Literal

from msgspec import UNSET, Meta, UnsetType, field

from api.activities.schemas import (
    AssetMetadataStatus,
)
from api.operations.schemas import TrackingEstimate, TrackingHistory
from api.schema import (
    Address,
    AsOf,
    BaseUnits,
    CheckedBlock,
    Coverage,
    DataVersion,
    Decimal,
    Instant,
    Interval,
    IntervalAt,
    IntervalComplete,
    IntervalFrom,
    IntervalStart,
    IntervalTo,
    OpenedBy,
    Page,
    Reconciliation,
    Schema,
    TokenReference,
    TrackingStatus,
    ValueStatus,
    Warnings,
    Window,
)
from api.values.schemas import ChangeOmitted, Explanation, TotalStatus, WalletChange, WalletChangeStatus


class WalletTracking(Schema, frozen=True, kw_only=True):
    """Tracking of a wallet after the request."""

    id: str
    tracking_status: TrackingStatus
    windows: Annotated[list[Window], Meta(description="Periods in which tracking was enabled, oldest first.")]
    history_request: TrackingHistory
    history_estimate: TrackingEstimate


WalletLedgerId = Annotated[
    Address, Meta(description="Address of the wallet; of a wallet of keys, its descriptor with shortened keys.")
]


class WalletSummary(Schema, frozen=True, kw_only=True):
    """A wallet in lists."""

    id: Annotated[str, Meta(description="`wal_...`")]
    name: str | None
    ledger: Annotated[str, Meta(description="Name of the ledger.")]
    ledger_id: WalletLedgerId
    external_id: str | None
    tracking_status: TrackingStatus
    total_value: Annotated[
        Decimal | None,
        Meta(description="Sum of the values of all positions with a value, at the newest covered block."),
    ]
    total_value_status: TotalStatus
    change24h: WalletChange
    change24h_status: WalletChangeStatus
    change24h_omitted: ChangeOmitted
    value_complete: Annotated[bool, Meta(description="True if the value includes every position.")]
    unpriced: Annotated[
        list[str],
        Meta(
            description="Positions that the value leaves out: the symbol of each, or its address if it has no symbol."
        ),
    ]


class StoredWallet(WalletSummary, frozen=True, kw_only=True):
    """A wallet after it was added."""

    warnings: Warnings


class DerivedAddress(Schema, frozen=True, kw_only=True):
    """An address of a wallet of keys."""

    branch: Annotated[int, Meta(description="Position of the branch in the descriptor, from 0.")]
    index: Annotated[int, Meta(description="Index of the address in its branch.")]
    address: Annotated[Address, Meta(description="Address on the ledger.")]


class DerivedAddresses(Schema, frozen=True, kw_only=True):
    """Descriptor of a wallet of keys, with a page of its addresses."""

    descriptor: Annotated[str, Meta(description="Output descriptor in its canonical form, with its checksum.")]
    branches: Annotated[int, Meta(description="Number of branches, such as one for receiving and one for change.")]
    scan_range: Annotated[
        int,
        Meta(
            description="Number of indices of each branch that are scanned when tracking begins. Afterwards, 20 "
            "indices beyond the highest used one are watched."
        ),
    ]
    data: Annotated[
        list[DerivedAddress], Meta(description="Addresses of the scanned indices, by branch and then by index.")
    ]
    page: Page


class Wallets(Schema, frozen=True, kw_only=True):
    """A page of wallets."""

    data: list[WalletSummary]
    page: Page
    as_of: DataVersion


class Wallet(WalletSummary, frozen=True, kw_only=True):
    """A wallet with its details."""

    windows: list[Window]
    created_at: Instant
    updated_at: Instant
    as_of: AsOf


class Position(Schema, frozen=True, kw_only=True):
    """A wallet's balance of one asset."""

    token: TokenReference
    quantity: Annotated[Decimal | None, Meta(description="In whole tokens, or base units when decimals are unknown.")]
    quantity_raw: BaseUnits | None
    quantity_status: Annotated[
        Literal["Known", "NotYetCollected"],
        Meta(
            description="`NotYetCollected`: the balance is not read yet, or cannot be read for now. Its numbers are "
            "null. If nothing of the wallet is collected, its native asset is the only position."
        ),
    ]
    detail: Annotated[str | None, Meta(description="Why the balance could not be read, as text; null if it is known.")]
    value: Decimal | None
    value_status: TotalStatus
    price: Annotated[Decimal | None, Meta(description="Price at the moment.")]
    price_status: ValueStatus
    reconciliation: Reconciliation
    checked_block_number: CheckedBlock
    opened_by: Annotated[OpenedBy | None, Meta(description="Null if the quantity is null.")]
    metadata_status: AssetMetadataStatus
    explanation: Annotated[Explanation, Meta(description="Only with `explain=true`.")] | UnsetType = UNSET


class BalancePoint(Schema, frozen=True, kw_only=True):
    """State at the end of one interval."""

    date: IntervalStart
    from_: IntervalFrom = field(name="from")
    to: IntervalTo
    at: IntervalAt
    quantity: Decimal | None
    quantity_raw: BaseUnits | None
    quantity_status: Annotated[
        Literal["Known", "NotCovered"],
        Meta(description="`NotCovered`: the quantity is null, because the end lies in a gap."),
    ]
    value: Annotated[
        Decimal | None,
        Meta(description="Value at the interval's last moment, or at `asOf` while the interval is not over."),
    ]
    value_status: TotalStatus
    is_complete: IntervalComplete


class BalanceSeries(Schema, frozen=True, kw_only=True):
    """History of one asset."""

    token: TokenReference
    points: list[BalancePoint]


class BalanceHistoryRow(Schema, frozen=True, kw_only=True):
    """One point of one asset's history, as a row of CSV, NDJSON and Parquet."""

    token: TokenReference
    date: IntervalStart
    from_: IntervalFrom = field(name="from")
    to: IntervalTo
    at: IntervalAt
    quantity: Decimal | None
    quantity_raw: BaseUnits | None
    quantity_status: Literal["Known", "NotCovered"]
    value: Decimal | None
    value_status: TotalStatus
    is_complete: bool


class Balances(Schema, frozen=True, kw_only=True):
    """Positions of a wallet at one moment, and their history up to it."""

    current: list[Position]
    history: list[BalanceSeries]
    interval: Interval
    holdings_complete: Annotated[
        bool, Meta(description="False until the history since the wallet's first block is covered.")
    ]
    currency: Annotated[str, Meta(description="Currency of values.")]
    as_of: AsOf
    coverage: Coverage

    @property
    def has_all_rows(self) -> bool:
        """True if every asset of the wallet is known."""
        return self.holdings_complete
