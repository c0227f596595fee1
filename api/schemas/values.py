"""Values over time on the wire, and what explains a number: its quantity, its price, and what was passed over."""

from typing import Annotated, Literal

from msgspec import Meta

from api.schemas.common import BaseUnits, Decimal, Instant, Schema, TokenReference, ValueStatus
from api.schemas.prices import Derivation, PriceStatus, PriceType

TotalStatus = Annotated[
    Literal[
        "Priced",
        "NoPair",
        "NoPrice",
        "StalePrice",
        "UnknownDecimals",
        "Quarantined",
        "UnknownSupply",
        "NotCovered",
    ],
    Meta(
        description="Why the number beside it is null, or `Priced` when it is there; `NotCovered`: its moment is not "
        "collected. A wallet's is that of what it holds, when none of it has a value."
    ),
]
ChangeStatus = Annotated[
    Literal[
        "Priced",
        "NoPair",
        "NoPrice",
        "StalePrice",
        "UnknownDecimals",
        "Quarantined",
        "NotCovered",
        "ZeroBase",
    ],
    Meta(description="Why the change is null, or `Priced`; `ZeroBase`: from zero there is none in percent."),
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
    """What a value is made of; `price` is null without a pair."""

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
