"""Structs of the embedded reports: heads, charts and rows of the cap table and of a wallet's activity.

The reports reuse the structs of the API where it has the same objects.
"""

from typing import Annotated, Literal

from msgspec import UNSET, Meta, UnsetType, field

from api.activities.schemas import Direction, WalletActivity, WalletActivityType
from api.schema import (
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
from api.subjects.schemas import SupplyStatus
from api.tokens.schemas import (
    CapTableChangeTotals,
    Concentration,
    HolderChange,
    HolderChangeKind,
    HolderChangeOrder,
    HolderCountStatus,
    HoldersStatus,
    Holding,
    Unattributed,
)
from api.values.schemas import (
    CapitalizationStatus,
    ChangeOmitted,
    TotalStatus,
    WalletChange,
    WalletChangeStatus,
    WalletValuePoint,
)
from api.wallets.schemas import Position, WalletLedgerId
from control.inputs import ASSET, FILTER, INSTANT_OR_DAY, described

Day = Annotated[str, Meta(description="Day, UTC.", examples=["2026-01-31"])]
ExplorerUrl = Annotated[
    str | None,
    Meta(
        description="Address of the network's block explorer; append `/address/...`, `/tx/...` or `/block/...` (by "
        "hash). Null if the network's definition names none.",
        examples=["https://etherscan.io"],
    ),
]
Version = Annotated[
    int,
    Meta(description="Data version of the answer; send it as `dataVersion` to read further pages of the same data."),
]
Total = Annotated[int, Meta(description="Number of matching rows on all pages.")]
RowLimit = Annotated[int, Meta(ge=1, le=200, description="Largest number of rows in a page.")]
HoldersAtStatus = Annotated[
    Literal["Counted", "NotCovered"],
    Meta(description="`NotCovered`: the count is null, because the end of the interval lies in a gap."),
]
HoldingChangeStatus = Annotated[
    Literal["Known", "UnknownBefore", "NotCovered"],
    Meta(
        description="`Known`: the change is known. `UnknownBefore`: the balance was not known yet 30 days before. "
        "`NotCovered`: that moment lies in no covered range."
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
        description="`Priced` if an activity has a value; otherwise the reason why the sums are null. `UnknownAmount`: "
        "no activity has a known amount. `NotCovered`: nothing is collected."
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
    decimals: Annotated[
        int | None, Meta(description="As read from the contract; null if the contract has none or is not read yet.")
    ]


class ReportWallet(Schema, frozen=True, kw_only=True):
    """The wallet of a report."""

    id: Annotated[str, Meta(description="`wal_...`")]
    name: str | None
    ledger: Annotated[str, Meta(description="Name of the ledger.")]
    network: str
    network_display_name: str
    explorer: ExplorerUrl
    ledger_id: WalletLedgerId


class ReconciliationCounts(Schema, frozen=True, kw_only=True):
    """Number of the shown balances by `reconciliation`; null while nothing is collected."""

    reconciled: int | None
    adjusted: int | None
    unchecked: int | None
    status: Annotated[
        Literal["Counted", "NotYetCollected"], Meta(description="`NotYetCollected`: the numbers are null.")
    ]


class LargestHolder(Schema, frozen=True, kw_only=True):
    """One of the largest holders."""

    rank: int
    wallet: Address
    name: OwnName
    quantity: Decimal
    percentage: Decimal | None
    percentage_status: SupplyStatus


class CurvePoint(Schema, frozen=True, kw_only=True):
    """Share of the supply that the largest holders have together."""

    holders: Annotated[int, Meta(description="Number of the largest holders.")]
    percentage: Annotated[Decimal, Meta(description="Their share of the total supply, in percent.")]


class HoldersAtEnd(Schema, frozen=True, kw_only=True):
    """Holders at the end of an interval, or at `asOf` while the interval is not over."""

    from_: IntervalFrom = field(name="from")
    to: IntervalTo
    at: IntervalAt
    holder_count: int | None
    holder_count_status: HoldersAtStatus
    is_complete: IntervalComplete


class CapTableReport(Schema, frozen=True, kw_only=True):
    """The head and the charts of a cap table report."""

    token: ReportToken
    currency: Annotated[str, Meta(description="Currency of prices and values.")]
    price: Annotated[Decimal | None, Meta(description="System price at the moment.")]
    price_status: TotalStatus
    price_effective_from: Annotated[Instant | None, Meta(description="Time from which that price is in effect.")]
    is_current: Annotated[bool, Meta(description="True if the report describes the newest covered block.")]
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
    holders_interval: Annotated[Interval, Meta(description="Interval of `holdersOverTime`; longer for a long view.")]
    holders_over_time: Annotated[
        list[HoldersAtEnd], Meta(description="Points of the whole covered time, oldest first.")
    ]
    data_version: Version


class ReportHolding(Holding, frozen=True, kw_only=True):
    """One row of a cap table report."""

    change30d: Annotated[Decimal | None, Meta(description="Quantity minus the quantity 30 days before.")]
    change30d_status: HoldingChangeStatus
    wallet_tracking_status: Annotated[
        TrackingStatus | None, Meta(description="Tracking of the wallet `walletId`; null without a wallet.")
    ]


class ReportHoldings(Schema, frozen=True, kw_only=True):
    """A page of the rows of a cap table report."""

    data: list[ReportHolding]
    total: Total
    limit: RowLimit
    offset: int
    data_version: Version


class CapTableChangesReport(Schema, frozen=True, kw_only=True):
    """The head of a report of the changes between two cap tables."""

    token: ReportToken
    from_: Annotated[AsOf, Meta(description="The earlier moment.")] = field(name="from")
    from_status: AsOfStatus
    to: Annotated[AsOf, Meta(description="The later moment.")]
    to_status: AsOfStatus
    is_current: Annotated[bool, Meta(description="True if `to` is the newest covered block.")]
    coverage: Annotated[Coverage, Meta(description="Coverage of the time between the moments.")]
    totals: CapTableChangeTotals
    largest: Annotated[
        list[HolderChange], Meta(description="At most 10 changes with the largest differences, positive or negative.")
    ]
    data_version: Version


class ReportChanges(Schema, frozen=True, kw_only=True):
    """A page of the rows of a report of changes."""

    data: list[HolderChange]
    total: Total
    limit: RowLimit
    offset: int
    data_version: Version


class ReportRange(Schema, frozen=True, kw_only=True):
    """The range of a wallet report, `from` <= t < `to`; a bound is null if it is open and nothing is collected."""

    from_: Instant | None = field(name="from")
    to: Instant | None


class LeftOut(Schema, frozen=True, kw_only=True):
    """Movements of one asset that have no value, for one reason."""

    token: TokenReference
    status: Annotated[ActivityValueStatus, Meta(description="The reason.")]
    count: Annotated[int, Meta(description="Number of movements.")]
    priced_from: Annotated[
        Instant | None,
        Meta(description="Time of the first price if all these movements are before it; null otherwise."),
    ]


class Flows(Schema, frozen=True, kw_only=True):
    """Values that entered and left a wallet in the range, fees included, at the prices of their time."""

    in_: Annotated[Decimal | None, Meta(description="Sum of the known values.")] = field(name="in")
    out: Decimal | None
    net: Annotated[Decimal | None, Meta(description="In minus out.")]
    status: FlowStatus
    is_complete: Annotated[bool, Meta(description="True if every movement has a value and the range has no gap.")]
    left_out: Annotated[
        list[LeftOut], Meta(description="Movements that have no value, by asset and reason, the most frequent first.")
    ]


class TimelinePoint(Schema, frozen=True, kw_only=True):
    """The activities of one kind on one day."""

    date: Day
    type: WalletActivityType
    count: int
    folded_count: Annotated[
        int, Meta(description="Number of the activities that are fees of transactions with another activity.")
    ]
    value: Annotated[Decimal | None, Meta(description="Sum of the known values.")]
    value_status: FlowStatus
    value_complete: Annotated[bool, Meta(description="True if the value includes every activity.")]
    value_in: Annotated[Decimal | None, Meta(description="Incoming part of `value`; null if `value` is null.")]
    value_out: Annotated[Decimal | None, Meta(description="Outgoing part of `value`; null if `value` is null.")]


class ReportPosition(Position, frozen=True, kw_only=True):
    """A wallet's balance of one asset, with the change of its value."""

    change24h: Annotated[
        Decimal | None, Meta(description="Change of the position's value in 24 hours, in percent, flows included.")
    ]
    change24h_status: WalletChangeStatus


class WalletActivityReport(Schema, frozen=True, kw_only=True):
    """The head and the charts of a wallet activity report."""

    wallet: ReportWallet
    currency: Annotated[str, Meta(description="Currency of prices and values.")]
    range: ReportRange
    is_current: Annotated[bool, Meta(description="True if the report ends at the newest covered block.")]
    as_of: AsOf
    coverage: Coverage
    holdings_complete: Annotated[
        bool, Meta(description="False until the history since the wallet's first block is covered.")
    ]
    holdings_from: Annotated[
        Instant | None,
        Meta(description="Start of the history from which the holdings are computed; null when unknown."),
    ]
    reconciliation: ReconciliationCounts
    total_value: Annotated[Decimal | None, Meta(description="Sum of the known values of the positions, at `asOf`.")]
    total_value_status: TotalStatus
    value_complete: bool
    unpriced: Annotated[
        list[str],
        Meta(description="Positions without a value: the symbol of each, or its address if it has no symbol."),
    ]
    change24h: WalletChange
    change24h_status: WalletChangeStatus
    change24h_omitted: ChangeOmitted
    activity_count: Annotated[int, Meta(description="Number of activities in the range, fees included.")]
    folded_fee_count: Annotated[
        int,
        Meta(
            description="Number of the activities that are fees of transactions with another activity; `fees=folded` "
            "leaves them out."
        ),
    ]
    counterparty_count: Annotated[
        int, Meta(description="Number of different addresses in the range, without the wallet's own.")
    ]
    last_activity_at: Annotated[
        Instant | None, Meta(description="Time of the last activity in the range; null if there is none.")
    ]
    flows: Flows
    value_history: Annotated[list[WalletValuePoint], Meta(description="Points by day, oldest first; at most 366.")]
    timeline: Annotated[list[TimelinePoint], Meta(description="Activities by day, oldest first; at most 366 days.")]
    balances: Annotated[list[ReportPosition], Meta(description="Positions at `asOf`.")]
    tokens: Annotated[list[TokenReference], Meta(description="Assets of the activities in the range.")]
    types: Annotated[list[WalletActivityType], Meta(description="Kinds of the activities in the range.")]
    data_version: Version


class FoldedFee(Schema, frozen=True, kw_only=True):
    """A fee without a row of its own."""

    activity_id: Annotated[str, Meta(description="Id of the row that shows it: the first row of its transaction.")]
    fee: WalletActivity


class ReportActivities(Schema, frozen=True, kw_only=True):
    """A page of the rows of a wallet activity report."""

    data: list[WalletActivity]
    fees: (
        Annotated[list[FoldedFee], Meta(description="Only with `fees=folded`: the fees of the rows in `data`.")]
        | UnsetType
    ) = UNSET
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
    ledger_id: WalletLedgerId
    tracking_status: TrackingStatus
    total_value: Decimal | None
    total_value_status: TotalStatus
    value_complete: bool
    change24h: WalletChange
    change24h_status: WalletChangeStatus
    change24h_omitted: ChangeOmitted


class ReportIndex(Schema, frozen=True, kw_only=True):
    """Reports of a tenant: a page of its tokens and a page of its wallets."""

    tenant: Annotated[str, Meta(description="Name of the tenant.")]
    currency: Annotated[str, Meta(description="Currency of values.")]
    tokens: list[IndexToken]
    token_total: Total
    token_value: Annotated[Decimal | None, Meta(description="Sum of the known market capitalizations, on all pages.")]
    wallets: list[IndexWallet]
    wallet_total: Total
    wallet_value: Annotated[Decimal | None, Meta(description="Sum of the known values, on all pages.")]
    limit: RowLimit
    offset: int
    data_version: Version


class CapTableForm(Form, frozen=True, kw_only=True):
    """Form for the file of a cap table report: the parameters of the rows, and the embed token."""

    sort: HolderReportSort = "rank"
    q: Annotated[str | None, described("The rows' parameter `q`.", **FILTER)] = None
    reconciliation: Reconciliation | None = None
    data_version: Annotated[int, Meta(ge=0)] | None = None


class CapTableChangesForm(Form, frozen=True, kw_only=True):
    """Form for the file of a changes report: the parameters of the rows, and the embed token."""

    sort: HolderChangeOrder = "-difference"
    q: Annotated[str | None, described("The rows' parameter `q`.", **FILTER)] = None
    change: HolderChangeKind | None = None
    data_version: Annotated[int, Meta(ge=0)] | None = None


class WalletActivityForm(Form, frozen=True, kw_only=True):
    """Form for the file of a wallet activity report: the parameters of the rows, and the embed token."""

    sort: ActivityReportSort = "-date"
    q: Annotated[str | None, described("The rows' parameter `q`.", **FILTER)] = None
    type: WalletActivityType | None = None
    asset: Annotated[
        str | None, described("The rows' parameter `token`: address of a contract, or `native`.", **ASSET)
    ] = None
    direction: Direction | None = None
    from_: Annotated[str | None, described("Start of the range, included.", **INSTANT_OR_DAY)] = field(
        name="from", default=None
    )
    to: Annotated[str | None, described("End of the range, not included.", **INSTANT_OR_DAY)] = None
    data_version: Annotated[int, Meta(ge=0)] | None = None
