"""What the embedded reports show, on the wire: heads, charts and rows of the cap table and of a wallet's activity.

Where the JSON interface has the same thing, it has the same struct there.
"""

from typing import Annotated, Literal

from msgspec import UNSET, Meta, UnsetType, field

from api.schemas.common import (
    ActivityValueStatus,
    Address,
    AsOf,
    AsOfStatus,
    Coverage,
    Decimal,
    Form,
    Instant,
    Interval,
    IntervalAt,
    IntervalComplete,
    IntervalFrom,
    IntervalTo,
    OwnName,
    Reconciliation,
    Schema,
    TokenReference,
    TrackingStatus,
)
from api.schemas.tokens import (
    CapTableChangeTotals,
    Concentration,
    HolderChange,
    HolderChangeKind,
    HolderChangeOrder,
    HolderCountStatus,
    HoldersStatus,
    Holding,
    SupplyStatus,
    Unattributed,
)
from api.schemas.values import (
    CapitalizationStatus,
    ChangeOmitted,
    TotalStatus,
    WalletChange,
    WalletChangeStatus,
    WalletValuePoint,
)
from api.schemas.wallets import Direction, Position, WalletActivity, WalletActivityType

Day = Annotated[str, Meta(description="Day, UTC.", examples=["2026-01-31"])]
ExplorerUrl = Annotated[
    str | None,
    Meta(
        description="Block explorer of the network, before `/address/...`, `/tx/...` and `/block/...` (by hash); null "
        "where its definition names none.",
        examples=["https://etherscan.io"],
    ),
]
Version = Annotated[int, Meta(description="Number of the tenant's data that answered; pass it to page within it.")]
Total = Annotated[int, Meta(description="Rows that match, on all pages.")]
RowLimit = Annotated[int, Meta(ge=1, le=200, description="Most rows of a page.")]
HoldersAtStatus = Annotated[
    Literal["Counted", "NotCovered"], Meta(description="`NotCovered` beside null: the end of the day lies in a gap.")
]
HoldingChangeStatus = Annotated[
    Literal["Known", "UnknownBefore", "NotCovered"],
    Meta(
        description="Whether the change is known; `UnknownBefore`: nobody saw the balance up to 30 days before; "
        "`NotCovered`: that moment is not collected."
    ),
]

FlowStatus = Annotated[
    Literal[
        "Priced",
        "NoPair",
        "NoPrice",
        "StalePrice",
        "UnknownDecimals",
        "UnknownAmount",
        "UnknownTime",
        "Quarantined",
        "UnknownSupply",
        "NotCovered",
    ],
    Meta(
        description="Why the sums beside it are null, or `Priced` when something has a value; `UnknownAmount`: of none "
        "of the activities is it known what moved; `NotCovered`: nothing is collected."
    ),
]


HolderReportSort = Literal[
    "rank",
    "-rank",
    "wallet",
    "-wallet",
    "quantity",
    "-quantity",
    "percentage",
    "-percentage",
    "value",
    "-value",
    "reconciliation",
    "-reconciliation",
]
ActivityReportSort = Literal[
    "date",
    "-date",
    "type",
    "-type",
    "token",
    "-token",
    "quantity",
    "-quantity",
    "value",
    "-value",
    "counterparty",
    "-counterparty",
]


IndexTokenSort = Literal["created", "name", "-name", "holders", "-holders", "value", "-value"]
IndexWalletSort = Literal["created", "name", "-name", "change", "-change", "value", "-value"]
FeeRows = Literal["apart", "folded"]


class ReportToken(Schema, frozen=True, kw_only=True):
    """The token of a report."""

    id: Annotated[str, Meta(description="`tok_...`")]
    name: str | None
    symbol: str
    ledger: Annotated[str, Meta(description="Name of the ledger.")]
    network: str
    network_display_name: str
    explorer: ExplorerUrl
    ledger_id: Annotated[Address, Meta(description="Address of the contract.")]
    decimals: Annotated[int | None, Meta(description="As the contract says; null when it does not or is not read yet.")]


class ReportWallet(Schema, frozen=True, kw_only=True):
    """The wallet of a report."""

    id: Annotated[str, Meta(description="`wal_...`")]
    name: str | None
    ledger: Annotated[str, Meta(description="Name of the ledger.")]
    network: str
    network_display_name: str
    explorer: ExplorerUrl
    ledger_id: Annotated[Address, Meta(description="Address of the wallet.")]


class ReconciliationCounts(Schema, frozen=True, kw_only=True):
    """How many of the balances shown were compared with the chain; null while nothing is collected."""

    reconciled: int | None
    adjusted: int | None
    unchecked: int | None
    status: Annotated[Literal["Counted", "NotYetCollected"], Meta(description="`NotYetCollected` beside null.")]


class LargestHolder(Schema, frozen=True, kw_only=True):
    """One of the largest holders."""

    rank: int
    wallet: Address
    name: OwnName
    quantity: Decimal
    percentage: Decimal | None
    percentage_status: SupplyStatus


class CurvePoint(Schema, frozen=True, kw_only=True):
    """The share of the supply that the largest holders have together."""

    holders: Annotated[int, Meta(description="How many of the largest holders.")]
    percentage: Annotated[Decimal, Meta(description="Their share of the total supply, percent.")]


class HoldersAtEnd(Schema, frozen=True, kw_only=True):
    """Holders at the end of an interval; at `asOf` while it is not over."""

    from_: IntervalFrom = field(name="from")
    to: IntervalTo
    at: IntervalAt
    holder_count: int | None
    holder_count_status: HoldersAtStatus
    is_complete: IntervalComplete


class CapTableReport(Schema, frozen=True, kw_only=True):
    """The head and the charts of a cap table report."""

    token: ReportToken
    currency: Annotated[str, Meta(description="What prices and values are in.")]
    price: Annotated[Decimal | None, Meta(description="System price at the moment.")]
    price_status: TotalStatus
    price_effective_from: Annotated[Instant | None, Meta(description="Since when that price holds.")]
    is_current: Annotated[bool, Meta(description="Whether the report describes the newest covered block.")]
    as_of: AsOf
    as_of_status: AsOfStatus
    coverage: Coverage
    reconciliation: ReconciliationCounts
    total_supply: Decimal | None
    total_supply_status: SupplyStatus
    holder_count: int | None
    holder_count_status: HolderCountStatus
    holders_status: HoldersStatus
    market_capitalization: Decimal | None
    market_capitalization_status: CapitalizationStatus
    unattributed: Unattributed
    concentration: Concentration
    largest: Annotated[list[LargestHolder], Meta(description="The ten largest, largest first.")]
    curve: Annotated[
        list[CurvePoint],
        Meta(description="At most 80 points, evenly spaced by logarithm; empty without holders or supply."),
    ]
    holders_interval: Annotated[Interval, Meta(description="Of `holdersOverTime`: longer where the view is long.")]
    holders_over_time: Annotated[list[HoldersAtEnd], Meta(description="Of all that is covered, oldest first.")]
    data_version: Version


class ReportHolding(Holding, frozen=True, kw_only=True):
    """One row of a cap table report."""

    change30d: Annotated[Decimal | None, Meta(description="Quantity less that of 30 days before.")]
    change30d_status: HoldingChangeStatus
    wallet_tracking_status: Annotated[
        TrackingStatus | None, Meta(description="Tracking of the wallet `walletId`; null without one.")
    ]


class ReportHoldings(Schema, frozen=True, kw_only=True):
    """A page of the rows of a cap table report."""

    data: list[ReportHolding]
    total: Total
    limit: RowLimit
    offset: int
    data_version: Version


class CapTableChangesReport(Schema, frozen=True, kw_only=True):
    """The head of a report of what differs between two cap tables."""

    token: ReportToken
    from_: Annotated[AsOf, Meta(description="The earlier moment.")] = field(name="from")
    from_status: AsOfStatus
    to: Annotated[AsOf, Meta(description="The later moment.")]
    to_status: AsOfStatus
    is_current: Annotated[bool, Meta(description="Whether `to` is the newest covered block.")]
    coverage: Annotated[Coverage, Meta(description="Of the time between the moments.")]
    totals: CapTableChangeTotals
    largest: Annotated[list[HolderChange], Meta(description="At most 10 of the largest differences, of either sign.")]
    data_version: Version


class ReportChanges(Schema, frozen=True, kw_only=True):
    """A page of the rows of a report of changes."""

    data: list[HolderChange]
    total: Total
    limit: RowLimit
    offset: int
    data_version: Version


class ReportRange(Schema, frozen=True, kw_only=True):
    """The range a wallet report describes, `from` <= t < `to`; null where it is open and nothing is collected."""

    from_: Instant | None = field(name="from")
    to: Instant | None


class LeftOut(Schema, frozen=True, kw_only=True):
    """Movements of one asset that have no value, for one reason."""

    token: TokenReference
    status: Annotated[ActivityValueStatus, Meta(description="The reason.")]
    count: Annotated[int, Meta(description="How many movements.")]
    priced_from: Annotated[
        Instant | None,
        Meta(description="Beginning of the first price, when all these movements lie before it; null otherwise."),
    ]


class Flows(Schema, frozen=True, kw_only=True):
    """What went into a wallet and out of it in the range, fees included, at the prices of the time."""

    in_: Annotated[Decimal | None, Meta(description="Sum of the values that have one.")] = field(name="in")
    out: Decimal | None
    net: Annotated[Decimal | None, Meta(description="In less out.")]
    status: FlowStatus
    is_complete: Annotated[bool, Meta(description="Whether every movement has a value and the range has no gap.")]
    left_out: Annotated[
        list[LeftOut], Meta(description="Movements that have no value, by asset and reason, the most frequent first.")
    ]


class TimelinePoint(Schema, frozen=True, kw_only=True):
    """The activities of one kind on one day."""

    date: Day
    type: WalletActivityType
    count: int
    folded_count: Annotated[int, Meta(description="Of them, fees of transactions with another activity.")]
    value: Annotated[Decimal | None, Meta(description="Sum of the values that have one.")]
    value_status: FlowStatus
    value_complete: Annotated[bool, Meta(description="Whether every activity is in the value.")]
    value_in: Annotated[Decimal | None, Meta(description="What of `value` came in; null where that is null.")]
    value_out: Annotated[Decimal | None, Meta(description="What of `value` went out; null where that is null.")]


class ReportPosition(Position, frozen=True, kw_only=True):
    """What a wallet holds of one asset, and how its value changed."""

    change24h: Annotated[
        Decimal | None, Meta(description="Change of the position's value in 24 hours, flows included, percent.")
    ]
    change24h_status: WalletChangeStatus


class WalletActivityReport(Schema, frozen=True, kw_only=True):
    """The head and the charts of a wallet activity report."""

    wallet: ReportWallet
    currency: Annotated[str, Meta(description="What prices and values are in.")]
    range: ReportRange
    is_current: Annotated[bool, Meta(description="Whether the report goes up to the newest covered block.")]
    as_of: AsOf
    coverage: Coverage
    holdings_complete: Annotated[
        bool, Meta(description="False until history from the wallet's first block is covered.")
    ]
    holdings_from: Annotated[
        Instant | None, Meta(description="Beginning of the history that the holdings follow from; null when not known.")
    ]
    reconciliation: ReconciliationCounts
    total_value: Annotated[Decimal | None, Meta(description="Of the positions that have a value, at `asOf`.")]
    total_value_status: TotalStatus
    value_complete: bool
    unpriced: Annotated[list[str], Meta(description="Symbols, else addresses, of the positions without a value.")]
    change24h: WalletChange
    change24h_status: WalletChangeStatus
    change24h_omitted: ChangeOmitted
    activity_count: Annotated[int, Meta(description="In the range, fees included.")]
    folded_fee_count: Annotated[
        int, Meta(description="Of them, fees of transactions with another activity: what `fees=folded` leaves out.")
    ]
    counterparty_count: Annotated[int, Meta(description="Different addresses in the range, the wallet's own left out.")]
    last_activity_at: Annotated[Instant | None, Meta(description="In the range; null without any activity.")]
    flows: Flows
    value_history: Annotated[list[WalletValuePoint], Meta(description="By day, oldest first; at most 366.")]
    timeline: Annotated[list[TimelinePoint], Meta(description="By day, oldest first; at most 366 days.")]
    balances: Annotated[list[ReportPosition], Meta(description="At `asOf`.")]
    tokens: Annotated[list[TokenReference], Meta(description="Assets that the activities of the range have.")]
    types: Annotated[list[WalletActivityType], Meta(description="Kinds that the activities of the range have.")]
    data_version: Version


class FoldedFee(Schema, frozen=True, kw_only=True):
    """A fee that is no row of its own."""

    activity_id: Annotated[str, Meta(description="The row it is shown with, the first of its transaction.")]
    fee: WalletActivity


class ReportActivities(Schema, frozen=True, kw_only=True):
    """A page of the rows of a wallet activity report."""

    data: list[WalletActivity]
    fees: Annotated[list[FoldedFee], Meta(description="With `fees=folded`: of what is in `data`.")] | UnsetType = UNSET
    total: Total
    limit: RowLimit
    offset: int
    data_version: Version


class IndexToken(Schema, frozen=True, kw_only=True):
    """A token that has a cap table report."""

    id: Annotated[str, Meta(description="`tok_...`")]
    name: str | None
    symbol: str
    ledger: Annotated[str, Meta(description="Name of the ledger.")]
    network: str
    ledger_id: Annotated[Address, Meta(description="Address of the contract.")]
    tracking_status: TrackingStatus
    holder_count: int | None
    holder_count_status: HolderCountStatus
    market_capitalization: Decimal | None
    market_capitalization_status: CapitalizationStatus


class IndexWallet(Schema, frozen=True, kw_only=True):
    """A wallet that has an activity report."""

    id: Annotated[str, Meta(description="`wal_...`")]
    name: str | None
    ledger: Annotated[str, Meta(description="Name of the ledger.")]
    network: str
    ledger_id: Annotated[Address, Meta(description="Address of the wallet.")]
    tracking_status: TrackingStatus
    total_value: Decimal | None
    total_value_status: TotalStatus
    value_complete: bool
    change24h: WalletChange
    change24h_status: WalletChangeStatus
    change24h_omitted: ChangeOmitted


class ReportIndex(Schema, frozen=True, kw_only=True):
    """What a tenant has reports of: a page of its tokens and one of its wallets."""

    tenant: Annotated[str, Meta(description="Name of the tenant.")]
    currency: Annotated[str, Meta(description="What values are in.")]
    tokens: list[IndexToken]
    token_total: Total
    token_value: Annotated[
        Decimal | None, Meta(description="Sum of the market capitalizations that are known, on all pages.")
    ]
    wallets: list[IndexWallet]
    wallet_total: Total
    wallet_value: Annotated[Decimal | None, Meta(description="Sum of the values that are known, on all pages.")]
    limit: RowLimit
    offset: int
    data_version: Version


class CapTableForm(Form, frozen=True, kw_only=True):
    """What a page sends for the file of a cap table report: the rows' parameters, and the embed token."""

    sort: HolderReportSort = "rank"
    q: str | None = None
    reconciliation: Reconciliation | None = None
    data_version: Annotated[int, Meta(ge=0)] | None = None


class CapTableChangesForm(Form, frozen=True, kw_only=True):
    """What a page sends for the file of a report of changes: the rows' parameters, and the embed token."""

    sort: HolderChangeOrder = "-difference"
    q: str | None = None
    change: HolderChangeKind | None = None
    data_version: Annotated[int, Meta(ge=0)] | None = None


class WalletActivityForm(Form, frozen=True, kw_only=True):
    """What a page sends for the file of a wallet activity report: the rows' parameters, and the embed token."""

    sort: ActivityReportSort = "-date"
    q: str | None = None
    type: WalletActivityType | None = None
    asset: Annotated[
        str | None, Meta(description="The rows' parameter `token`: address of a contract, or `native`.")
    ] = None
    direction: Direction | None = None
    from_: str | None = field(name="from", default=None)
    to: str | None = None
    data_version: Annotated[int, Meta(ge=0)] | None = None
