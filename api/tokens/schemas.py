"""Structs of tokens and their cap tables."""

from typing import Annotated, Literal

from msgspec import UNSET, Meta, UnsetType, field

from api.operations.schemas import TrackingEstimate, TrackingHistory
from api.schema import (
    Address,
    AsOf,
    AsOfStatus,
    BaseUnits,
    CheckedBlock,
    Coverage,
    DataVersion,
    Decimal,
    Instant,
    MetadataStatus,
    OpenedBy,
    OwnName,
    Page,
    Reconciliation,
    Schema,
    TrackingStatus,
    ValueStatus,
    Warnings,
    Window,
)
from api.subjects.schemas import Behaviour, ContractStatus, SupplyStatus
from api.values.schemas import CapitalizationStatus, ChangeStatus, Explanation, TotalStatus
from figures import cap_table

UnattributedStatus = Annotated[
    cap_table.UnattributedStatus,
    Meta(
        description="The status of the supply, or `Negative`: the known balances exceed the total supply, and a "
        "reading confirms that supply."
    ),
]
HoldersStatus = Annotated[
    cap_table.HoldersStatus,
    Meta(
        description="`Complete`: the history since the contract's creation is covered up to the moment, and a "
        "confirmed supply leaves nothing unattributed. Otherwise holders may be missing; a history request from "
        "`creation` finds those outside the view."
    ),
]
HolderCountStatus = Annotated[
    Literal["Counted", "LowerBound", "NotYetCollected"],
    Meta(
        description="`LowerBound`: the count of the known holders; there may be more. `NotYetCollected`: the count is "
        "null.",
    ),
]
FigureStatus = Annotated[
    cap_table.FigureStatus,
    Meta(
        description="`Observed`: the figure is certain. `Unconfirmed`: no reading confirms its supply. "
        "`HoldersUnknown`: it is null, because it depends on the holders of the unattributed supply. "
        "Otherwise the status of the supply."
    ),
]
Top10Status = Annotated[
    cap_table.Top10Status,
    Meta(description="`LowerBound`: unknown holders may be among the ten. Otherwise the status of the supply."),
]
HolderChangeKind = Literal["New", "Gone", "Changed"]
HolderChangeOrder = Literal["difference", "-difference", "wallet", "-wallet"]
QuantityStatus = Annotated[
    Literal["Known", "UnknownBefore", "UnknownAfter"],
    Meta(
        description="`Known`: both quantities are known. `UnknownBefore`: up to the earlier moment, the covered range "
        "of that moment does not show the wallet as a holder. `UnknownAfter`: the same for the later moment."
    ),
]


class TokenTracking(Schema, frozen=True, kw_only=True):
    """Tracking of a token after the request."""

    id: str
    tracking_status: TrackingStatus
    windows: Annotated[list[Window], Meta(description="Periods in which tracking was enabled, oldest first.")]
    priced_in: str | None
    history_request: TrackingHistory
    history_estimate: TrackingEstimate


class TokenSummary(Schema, frozen=True, kw_only=True):
    """A token in lists."""

    id: Annotated[str, Meta(description="`tok_...`")]
    name: str | None
    symbol: str
    ledger: Annotated[str, Meta(description="Name of the ledger.")]
    ledger_id: Annotated[Address, Meta(description="Address of the contract.")]
    external_id: str | None
    tracking_status: TrackingStatus
    contract_status: ContractStatus
    metadata_status: Annotated[MetadataStatus | None, Meta(description="Null until the contract was read.")]
    priced_as: Annotated[str | None, Meta(description="Symbol of the linked pair.")]
    priced_in: Annotated[
        str | None, Meta(description="Symbol of the currency of values; set when tracking is first enabled.")
    ]
    pair_id: Annotated[str | None, Meta(description="Linked pair, `pair_...`.")]
    price: Annotated[Decimal | None, Meta(description="System price at the newest covered block.")]
    price_status: TotalStatus
    market_capitalization: Annotated[Decimal | None, Meta(description="Total supply times price.")]
    market_capitalization_status: CapitalizationStatus
    change24h: Annotated[Decimal | None, Meta(description="Change of the price in 24 hours, in percent.")]
    change24h_status: ChangeStatus


class StoredToken(TokenSummary, frozen=True, kw_only=True):
    """A token after it was added."""

    warnings: Warnings


class Tokens(Schema, frozen=True, kw_only=True):
    """A page of tokens."""

    data: list[TokenSummary]
    page: Page
    as_of: DataVersion


class FoundMetadata(Schema, frozen=True, kw_only=True):
    """Latest reading of a contract, if it differs from the reading in force."""

    found_at: Annotated[Instant, Meta(description="Time of the first reading that returned this.")]
    contract_status: ContractStatus
    standard: str | None
    symbol: str | None
    name: str | None
    decimals: int | None


class TokenMetadata(Schema, frozen=True, kw_only=True):
    """Metadata that a token's contract returned, with the times of its readings."""

    symbol: Annotated[str | None, Meta(description="Symbol that the contract returned; null if it returned none.")]
    name: Annotated[str | None, Meta(description="Name that the contract returned; null if it returned none.")]
    detail: Annotated[str | None, Meta(description="Missing data, with the reason; null when nothing is missing.")]
    read_at: Annotated[Instant, Meta(description="Time of the reading in force.")]
    checked_at: Annotated[Instant, Meta(description="Time of the latest reading.")]
    confirmed_at: Annotated[
        Instant | None, Meta(description="Time at which a reading last agreed; null while none did.")
    ]
    found: Annotated[FoundMetadata | None, Meta(description="Null unless `metadataStatus` is `Contradicted`.")]


class MetadataCheck(Schema, frozen=True, kw_only=True):
    """A request to read a token's contract again."""

    accept: Annotated[
        bool,
        Meta(
            description="Also accepts the data in `metadata.found`. They are applied if the contract returns them once "
            "more."
        ),
    ] = False


class MetadataChecked(Schema, frozen=True, kw_only=True):
    """The stored request to read a token's contract again."""

    id: Annotated[str, Meta(description="`tok_...`")]
    requested_at: Instant


class Token(TokenSummary, frozen=True, kw_only=True):
    """A token with its details."""

    decimals: Annotated[
        int | None, Meta(description="As read from the contract; null if the contract has none or is not read yet.")
    ]
    standard: Annotated[
        str | None, Meta(description="Standard of the contract, by the name that its family uses; null when unknown.")
    ]
    metadata: Annotated[TokenMetadata | None, Meta(description="Null until the contract was read.")]
    behaviour: Annotated[Behaviour | None, Meta(description="Null until balances were compared with the chain.")]
    total_supply: Annotated[
        Decimal | None, Meta(description="In whole tokens, or base units when decimals are unknown.")
    ]
    total_supply_status: SupplyStatus
    holder_count: Annotated[int | None, Meta(description="Number of holders with a known balance other than zero.")]
    holder_count_status: HolderCountStatus
    windows: list[Window]
    created_at: Instant
    updated_at: Instant
    as_of: AsOf


class Unattributed(Schema, frozen=True, kw_only=True):
    """The part of the supply that no known holder has; negative if a token's balances exceed its supply."""

    quantity: Decimal | None
    quantity_raw: BaseUnits | None
    percentage: Decimal | None
    status: UnattributedStatus


class Concentration(Schema, frozen=True, kw_only=True):
    """How unevenly the supply is held.

    A figure is given only if it is identical in both extreme cases: one unknown holder has all unattributed supply, or
    infinitely many share it.
    """

    top10: Annotated[
        Decimal | None, Meta(description="Share of the ten largest known holders, in percent of the supply.")
    ]
    top10_status: Top10Status
    hhi: Annotated[Decimal | None, Meta(description="Herfindahl-Hirschman index.")]
    hhi_status: FigureStatus
    gini: Annotated[
        Decimal | None,
        Meta(
            description="Gini coefficient; given only if nothing is unattributed, because many holders may share the "
            "rest."
        ),
    ]
    gini_status: FigureStatus
    nakamoto: Annotated[int | None, Meta(description="Fewest holders with more than half of the supply.")]
    nakamoto_status: FigureStatus
    status: SupplyStatus


HolderType = Literal["Burn", "Token", "Wallet"]


class Holding(Schema, frozen=True, kw_only=True):
    """One line of a cap table."""

    rank: Annotated[int, Meta(description="1 for the largest quantity; no two holders have the same rank.")]
    wallet: Address
    quantity: Decimal
    quantity_raw: BaseUnits
    percentage: Annotated[
        Decimal | None, Meta(description="In percent of the total supply (0 to 100), rounded half-even to 12 decimals.")
    ]
    percentage_status: SupplyStatus
    value: Decimal | None
    value_status: ValueStatus
    reconciliation: Reconciliation
    checked_block_number: CheckedBlock
    opened_by: OpenedBy
    name: OwnName
    wallet_id: Annotated[str | None, Meta(description="The tenant's wallet with this address, `wal_...`.")]
    holder_type: Annotated[
        HolderType | None,
        Meta(
            description="`Burn`: nothing can be sent from this address. `Token`: the contract of one of the tenant's "
            "tokens. `Wallet`: one of the tenant's wallets. Null: not known."
        ),
    ]
    explanation: Annotated[Explanation, Meta(description="Only with `explain=true`.")] | UnsetType = UNSET


class CapTable(Schema, frozen=True, kw_only=True):
    """A page of the holders of a token at one moment."""

    total_supply: Decimal | None
    total_supply_raw: BaseUnits | None
    total_supply_status: SupplyStatus
    holder_count: int | None
    holder_count_status: HolderCountStatus
    holders_status: HoldersStatus
    unattributed: Unattributed
    concentration: Concentration
    metadata_status: MetadataStatus | None
    currency: Annotated[str, Meta(description="Currency of values.")]
    data: list[Holding]
    page: Page
    as_of: AsOf
    as_of_status: AsOfStatus
    coverage: Coverage

    @property
    def has_all_rows(self) -> bool:
        """True if every holder is known."""
        return self.holders_status == "Complete"


class HolderChange(Schema, frozen=True, kw_only=True):
    """A holder with different quantities at two moments."""

    wallet: Address
    change: HolderChangeKind
    quantity_before: Decimal | None
    quantity_before_raw: BaseUnits | None
    quantity_after: Decimal | None
    quantity_after_raw: BaseUnits | None
    difference: Annotated[Decimal | None, Meta(description="Quantity after minus quantity before.")]
    difference_raw: BaseUnits | None
    quantity_status: QuantityStatus
    percentage_before: Annotated[Decimal | None, Meta(description="Percentage of the total supply at that moment.")]
    percentage_before_status: SupplyStatus
    percentage_after: Annotated[Decimal | None, Meta(description="Percentage of the total supply at that moment.")]
    percentage_after_status: SupplyStatus
    name: OwnName


class CapTableChangeTotals(Schema, frozen=True, kw_only=True):
    """Figures of both cap tables; filters do not affect them."""

    holders_before: int
    holders_after: int
    new: Annotated[int, Meta(description="Holders in the later cap table only.")]
    gone: Annotated[int, Meta(description="Holders in the earlier cap table only.")]
    changed: Annotated[int, Meta(description="Holders in both cap tables with a different quantity.")]
    supply_before: Decimal | None
    supply_before_raw: BaseUnits | None
    supply_before_status: SupplyStatus
    supply_after: Decimal | None
    supply_after_raw: BaseUnits | None
    supply_after_status: SupplyStatus


class CapTableChanges(Schema, frozen=True, kw_only=True):
    """A page of the holders of a token with different quantities at two moments."""

    from_: Annotated[AsOf, Meta(description="The earlier moment.")] = field(name="from")
    from_status: AsOfStatus
    to: Annotated[AsOf, Meta(description="The later moment.")]
    to_status: AsOfStatus
    totals: CapTableChangeTotals
    metadata_status: MetadataStatus | None
    data: list[HolderChange]
    page: Page
    coverage: Annotated[Coverage, Meta(description="Coverage of the time between the moments.")]

    @property
    def as_of(self) -> AsOf:
        """The moment in the names and headers of files: the later one."""
        return self.to
