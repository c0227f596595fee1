"""Values over time on the wire, and what explains a number: its quantity, its price, and what was passed over."""

from typing import Annotated, Literal

from msgspec import UNSET, Meta, UnsetType, field

from api.schemas.common import (
    AsOf,
    BaseUnits,
    Coverage,
    Decimal,
    Instant,
    Interval,
    IntervalAt,
    IntervalComplete,
    IntervalFrom,
    IntervalStart,
    IntervalTo,
    Schema,
    TokenReference,
    ValueStatus,
)
from api.schemas.prices import Derivation, PriceStatus, PriceType

TotalStatus = Annotated[
    Literal[
        "Priced",
        "NoPair",
        "NoPrice",
        "StalePrice",
        "UnknownDecimals",
        "UnknownTime",
        "Quarantined",
        "UnknownSupply",
        "NotCovered",
    ],
    Meta(
        description="Why the number beside it is null, or `Priced` when it is there; `NotCovered`: its moment is not "
        "collected. A wallet's is that of what it holds, when none of it has a value."
    ),
]
CapitalizationStatus = Annotated[
    Literal[
        "Priced",
        "Unconfirmed",
        "NoPair",
        "NoPrice",
        "StalePrice",
        "UnknownDecimals",
        "UnknownTime",
        "Quarantined",
        "UnknownSupply",
        "NotCovered",
    ],
    Meta(
        description="`Priced`: the number is there. `Unconfirmed`: it is there, and its supply is confirmed by no "
        "reading. Otherwise the reason why the number is null."
    ),
]
ChangeStatus = Annotated[
    Literal[
        "Priced",
        "NoPair",
        "NoPrice",
        "StalePrice",
        "UnknownDecimals",
        "UnknownTime",
        "Quarantined",
        "NotCovered",
        "ZeroBase",
    ],
    Meta(description="Why the change is null, or `Priced`; `ZeroBase`: from zero there is none in percent."),
]

WalletChangeStatus = Annotated[
    Literal[
        "Priced",
        "Partial",
        "NoPair",
        "NoPrice",
        "StalePrice",
        "UnknownDecimals",
        "UnknownTime",
        "Quarantined",
        "NotCovered",
        "ZeroBase",
    ],
    Meta(
        description="`Priced`, or `Partial`: over the positions whose value is known at both moments, which are not "
        "all; else why the change is null; `ZeroBase`: from zero there is none in percent."
    ),
]
WalletChange = Annotated[
    Decimal | None,
    Meta(
        description="Change of the value in 24 hours, flows included, percent; over the positions whose value is known "
        "at both moments. What is not held at a moment is worth 0 then."
    ),
]
ChangeOmitted = Annotated[
    list[str], Meta(description="Symbols, else addresses, of the positions that are not in the change.")
]


class PassedOver(Schema, frozen=True, kw_only=True):
    """A source that came first and gave no price, with its newest price at the moment."""

    price_source: Annotated[str, Meta(description="`src_...`")]
    position: Annotated[int, Meta(description="Place in the pair's order; 0 is asked first.")]
    reason: Annotated[
        Literal[
            "Stale",
            "NoPrice",
            "Quarantined",
            "Rejected",
            "Pending",
            "NoMarket",
            "Ambiguous",
            "MarketGone",
            "Unsupported",
        ],
        Meta(description="Why; from `Pending` on: no market of the source gives the pair's price."),
    ]
    detail: Annotated[str | None, Meta(description="In words, where more is known.")]
    price: Annotated[Decimal | None, Meta(description="Its newest price at the moment; null when it had none.")]
    effective_from: Instant | None
    fresh_until: Annotated[Instant | None, Meta(description="Until when that price may be used, not included.")]


class PriceExplanation(Schema, frozen=True, kw_only=True):
    """Which price was used, from which source, by which rule."""

    pair_id: Annotated[str, Meta(description="`pair_...`")]
    priced_as: str
    priced_in: str
    price_type: PriceType
    max_age_seconds: Annotated[int | None, Meta(description="Oldest price allowed; null: no limit.")]
    at: Annotated[Instant, Meta(description="The moment that is valued.")]
    price: Decimal | None
    price_status: PriceStatus
    price_source: str | None
    position: Annotated[int | None, Meta(description="Place of the source in the pair's order; 0 is asked first.")]
    is_fallback: bool | None
    derivation: Derivation | None
    effective_from: Instant | None
    window_start: Instant | None
    is_partial: bool | None
    age_seconds: Annotated[Decimal | None, Meta(description="From `effectiveFrom` to `at`.")]
    passed_over: Annotated[list[PassedOver], Meta(description="What came first and was not used, in order.")]


class Anchor(Schema, frozen=True, kw_only=True):
    """The reading of the chain that a quantity starts from."""

    block_number: int
    quantity_raw: BaseUnits


class Movements(Schema, frozen=True, kw_only=True):
    """The activities after the anchor, up to the moment."""

    count: int
    from_block: Annotated[int | None, Meta(description="Block of the first one; null without any.")]
    to_block: int | None
    latest: Annotated[list[str], Meta(description="Ids of the latest ones, newest first, at most 20.")]


class QuantityExplanation(Schema, frozen=True, kw_only=True):
    """What a quantity is made of: a reading of the chain and what moved since."""

    quantity_raw: BaseUnits | None
    anchor: Annotated[Anchor | None, Meta(description="Null when nothing was read before the first movement.")]
    movements: Movements
    adjustments: Annotated[int, Meta(description="How many of the activities a reading made, not an event.")]


class Explanation(Schema, frozen=True, kw_only=True):
    """What a value is made of; `price` is null without a pair, or where the moment's time was not stored."""

    quantity: QuantityExplanation
    price: PriceExplanation | None


class PositionExplanation(Schema, frozen=True, kw_only=True):
    """What one position adds to a wallet's value."""

    token: TokenReference
    quantity: Decimal | None
    value: Decimal | None
    value_status: ValueStatus
    explanation: Explanation


class WalletExplanation(Schema, frozen=True, kw_only=True):
    """What a wallet's value is made of; positions without a value are in it too."""

    positions: list[PositionExplanation]


SupplyAtStatus = Annotated[
    Literal["Observed", "Unconfirmed", "ZeroSupply", "Unknown", "NotCovered"],
    Meta(
        description="As `totalSupplyStatus` of the token at that moment, or `NotCovered`: the interval's end lies in a "
        "gap."
    ),
]


class CurrentCapitalization(Schema, frozen=True, kw_only=True):
    """Market capitalization at the newest covered block."""

    value: Annotated[Decimal | None, Meta(description="Total supply times price.")]
    value_status: CapitalizationStatus
    price: Decimal | None
    price_status: TotalStatus
    supply: Annotated[Decimal | None, Meta(description="In whole tokens; base units when decimals are unknown.")]
    supply_raw: BaseUnits | None
    supply_status: SupplyAtStatus
    change24h: Annotated[Decimal | None, Meta(description="Change of the price in 24 hours, percent.")]
    change24h_status: ChangeStatus
    as_of: AsOf
    explanation: Annotated[Explanation, Meta(description="With `explain=true`.")] | UnsetType = UNSET


class CapitalizationPoint(Schema, frozen=True, kw_only=True):
    """Market capitalization at the last moment of one interval, or at `asOf` while that is not over."""

    date: IntervalStart
    from_: IntervalFrom = field(name="from")
    to: IntervalTo
    at: IntervalAt
    supply: Annotated[Decimal | None, Meta(description="In whole tokens; base units when decimals are unknown.")]
    supply_raw: BaseUnits | None
    supply_status: SupplyAtStatus
    price: Decimal | None
    price_status: TotalStatus
    value: Decimal | None
    value_status: CapitalizationStatus
    is_complete: IntervalComplete
    explanation: Annotated[Explanation, Meta(description="With `explain=true`.")] | UnsetType = UNSET


class MarketCapitalization(Schema, frozen=True, kw_only=True):
    """Market capitalization of a token now and by intervals, oldest first."""

    current: CurrentCapitalization
    history: list[CapitalizationPoint]
    interval: Interval
    pair_id: Annotated[str, Meta(description="The linked pair, `pair_...`.")]
    priced_as: str
    currency: Annotated[str, Meta(description="What prices and values are in.")]
    as_of: AsOf
    coverage: Coverage


class WalletValuePoint(Schema, frozen=True, kw_only=True):
    """Value of a wallet at the last moment of one interval, or at `asOf` while that is not over."""

    date: IntervalStart
    from_: IntervalFrom = field(name="from")
    to: IntervalTo
    at: IntervalAt
    value: Annotated[Decimal | None, Meta(description="Sum of the values of the positions that have one.")]
    value_status: TotalStatus
    value_complete: Annotated[bool, Meta(description="Whether every position is in the value.")]
    unpriced: Annotated[list[str], Meta(description="Symbols, else addresses, of the positions that are not.")]
    is_complete: IntervalComplete
    explanation: Annotated[WalletExplanation, Meta(description="With `explain=true`.")] | UnsetType = UNSET


class WalletValueHistory(Schema, frozen=True, kw_only=True):
    """What a wallet is worth now, and was by intervals, oldest first."""

    total_value: Annotated[Decimal | None, Meta(description="At the newest covered block.")]
    total_value_status: TotalStatus
    value_complete: bool
    unpriced: list[str]
    change24h: WalletChange
    change24h_status: WalletChangeStatus
    change24h_omitted: ChangeOmitted
    currency: Annotated[str, Meta(description="What values are in.")]
    holdings_complete: Annotated[
        bool, Meta(description="False until history from the wallet's first block is covered.")
    ]
    points: list[WalletValuePoint]
    interval: Interval
    as_of: AsOf
    coverage: Coverage

    @property
    def has_all_rows(self) -> bool:
        """Say whether every asset of the wallet is known."""
        return self.holdings_complete
