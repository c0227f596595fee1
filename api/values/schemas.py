"""Structs of values over time, and of explanations: quantity, price, and sources that were passed over."""

from typing import Annotated, Literal

from msgspec import UNSET, Meta, UnsetType, field

from api.prices.schemas.prices import Derivation, PriceStatus, PriceType
from api.schema import (
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
        description="`Priced` if the number is not null; otherwise the reason why it is null. `NotCovered`: its moment "
        "lies in no covered range, or the balance could not be read. If no position of a wallet has a value, the "
        "reason is that of its positions."
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
        description="`Priced`: the number is given. `Unconfirmed`: it is given, but no reading confirms its supply. "
        "Otherwise the reason why the number is null."
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
    Meta(
        description="`Priced` if the change is not null; otherwise the reason why it is null. `ZeroBase`: the earlier "
        "number is zero, so there is no change in percent."
    ),
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
        description="`Priced`: the change covers all positions. `Partial`: it leaves out positions without a known "
        "value at both moments. Otherwise the reason why it is null. `ZeroBase`: the earlier value is zero, so there "
        "is no change in percent."
    ),
]
WalletChange = Annotated[
    Decimal | None,
    Meta(
        description="Change of the value in 24 hours, in percent, flows included. It compares the positions with a "
        "known value at both moments. An asset that is not held at a moment has the value 0 then."
    ),
]
ChangeOmitted = Annotated[
    list[str],
    Meta(description="Positions that the change leaves out: the symbol of each, or its address if it has no symbol."),
]


class PassedOver(Schema, frozen=True, kw_only=True):
    """A source whose newest price at the moment was not used, with that price."""

    price_source: Annotated[str, Meta(description="`src_...`")]
    position: Annotated[int, Meta(description="Position in the pair's order of sources; 0 is the first.")]
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
        Meta(
            description="The reason. `Pending`, `NoMarket`, `Ambiguous`, `MarketGone`, `Unsupported`: no market of the "
            "source gives the pair's price."
        ),
    ]
    detail: Annotated[str | None, Meta(description="More about the reason, as text; null if nothing more is known.")]
    price: Annotated[Decimal | None, Meta(description="Its newest price at the moment; null when it had none.")]
    effective_from: Instant | None
    fresh_until: Annotated[
        Instant | None, Meta(description="End of the time in which that price may be used, not included.")
    ]


class PriceExplanation(Schema, frozen=True, kw_only=True):
    """The price that was used, with its source and the rule."""

    pair_id: Annotated[str, Meta(description="`pair_...`")]
    priced_as: str
    priced_in: str
    price_type: PriceType
    max_age_seconds: Annotated[int | None, Meta(description="Greatest age of a price that is used; null for no limit.")]
    at: Annotated[Instant, Meta(description="Moment of the valuation.")]
    price: Decimal | None
    price_status: PriceStatus
    price_source: str | None
    position: Annotated[int | None, Meta(description="Position of the source in the pair's order; 0 is the first.")]
    is_fallback: bool | None
    derivation: Derivation | None
    effective_from: Instant | None
    window_start: Instant | None
    is_partial: bool | None
    age_seconds: Annotated[Decimal | None, Meta(description="Time from `effectiveFrom` to `at`, in seconds.")]
    passed_over: Annotated[
        list[PassedOver],
        Meta(
            description="Sources that were passed over, in the pair's order: those before the used source, or all if "
            "no price was used. The used source is among them if its newest price was not used."
        ),
    ]


class Anchor(Schema, frozen=True, kw_only=True):
    """The reading of the chain from which a quantity is computed."""

    block_number: int
    quantity_raw: BaseUnits


class Movements(Schema, frozen=True, kw_only=True):
    """The activities after the anchor, up to the moment."""

    count: int
    from_block: Annotated[int | None, Meta(description="Block of the first activity; null if there is none.")]
    to_block: int | None
    latest: Annotated[list[str], Meta(description="Ids of at most 20 of the latest activities, newest first.")]


class QuantityExplanation(Schema, frozen=True, kw_only=True):
    """The parts of a quantity: a reading of the chain and the activities since."""

    quantity_raw: BaseUnits | None
    anchor: Annotated[Anchor | None, Meta(description="Null if there was no reading before the first movement.")]
    movements: Movements
    adjustments: Annotated[
        int, Meta(description="Number of the activities in `movements` that come from a reading, not from an event.")
    ]


class Explanation(Schema, frozen=True, kw_only=True):
    """The quantity and the price that give a value.

    `price` is null without a pair, or if the moment's time was not stored.
    """

    quantity: QuantityExplanation
    price: PriceExplanation | None


class PositionExplanation(Schema, frozen=True, kw_only=True):
    """One position's part of a wallet's value."""

    token: TokenReference
    quantity: Decimal | None
    value: Decimal | None
    value_status: ValueStatus
    explanation: Explanation


class WalletExplanation(Schema, frozen=True, kw_only=True):
    """Positions of a wallet's value, also those without a value."""

    positions: list[PositionExplanation]


SupplyAtStatus = Annotated[
    Literal["Observed", "Unconfirmed", "ZeroSupply", "Unknown", "NotCovered"],
    Meta(
        description="The same as `totalSupplyStatus` of the token at that moment, or `NotCovered`: the interval's end "
        "lies in a gap."
    ),
]


class CurrentCapitalization(Schema, frozen=True, kw_only=True):
    """Market capitalization at the newest covered block."""

    value: Annotated[Decimal | None, Meta(description="Total supply times price.")]
    value_status: CapitalizationStatus
    price: Decimal | None
    price_status: TotalStatus
    supply: Annotated[Decimal | None, Meta(description="In whole tokens, or base units when decimals are unknown.")]
    supply_raw: BaseUnits | None
    supply_status: SupplyAtStatus
    change24h: Annotated[Decimal | None, Meta(description="Change of the price in 24 hours, in percent.")]
    change24h_status: ChangeStatus
    as_of: AsOf
    explanation: Annotated[Explanation, Meta(description="Only with `explain=true`.")] | UnsetType = UNSET


class CapitalizationPoint(Schema, frozen=True, kw_only=True):
    """Market capitalization at the last moment of one interval, or at `asOf` while the interval is not over."""

    date: IntervalStart
    from_: IntervalFrom = field(name="from")
    to: IntervalTo
    at: IntervalAt
    supply: Annotated[Decimal | None, Meta(description="In whole tokens, or base units when decimals are unknown.")]
    supply_raw: BaseUnits | None
    supply_status: SupplyAtStatus
    price: Decimal | None
    price_status: TotalStatus
    value: Decimal | None
    value_status: CapitalizationStatus
    is_complete: IntervalComplete
    explanation: Annotated[Explanation, Meta(description="Only with `explain=true`.")] | UnsetType = UNSET


class MarketCapitalization(Schema, frozen=True, kw_only=True):
    """Market capitalization of a token now and by intervals, oldest first."""

    current: CurrentCapitalization
    history: list[CapitalizationPoint]
    interval: Interval
    pair_id: Annotated[str, Meta(description="The linked pair, `pair_...`.")]
    priced_as: str
    currency: Annotated[str, Meta(description="Currency of prices and values.")]
    as_of: AsOf
    coverage: Coverage


class WalletValuePoint(Schema, frozen=True, kw_only=True):
    """Value of a wallet at the last moment of one interval, or at `asOf` while the interval is not over."""

    date: IntervalStart
    from_: IntervalFrom = field(name="from")
    to: IntervalTo
    at: IntervalAt
    value: Annotated[Decimal | None, Meta(description="Sum of the values of the positions that have one.")]
    value_status: TotalStatus
    value_complete: Annotated[bool, Meta(description="True if the value includes every position.")]
    unpriced: Annotated[
        list[str],
        Meta(
            description="Positions that the value leaves out: the symbol of each, or its address if it has no symbol."
        ),
    ]
    is_complete: IntervalComplete
    explanation: Annotated[WalletExplanation, Meta(description="Only with `explain=true`.")] | UnsetType = UNSET


class WalletValueHistory(Schema, frozen=True, kw_only=True):
    """Value of a wallet now and by intervals, oldest first."""

    total_value: Annotated[Decimal | None, Meta(description="Value at the newest covered block.")]
    total_value_status: TotalStatus
    value_complete: bool
    unpriced: list[str]
    change24h: WalletChange
    change24h_status: WalletChangeStatus
    change24h_omitted: ChangeOmitted
    currency: Annotated[str, Meta(description="Currency of values.")]
    holdings_complete: Annotated[
        bool, Meta(description="False until the history since the wallet's first block is covered.")
    ]
    points: list[WalletValuePoint]
    interval: Interval
    as_of: AsOf
    coverage: Coverage

    @property
    def has_all_rows(self) -> bool:
        """Say whether every asset of the wallet is known."""
        return self.holdings_complete
