"""Prices of pairs on the wire: the newest one, and their history."""

from typing import Annotated, Literal

from msgspec import Meta, field

from api.schema import DataVersion, Decimal, Instant, Interval, IntervalFrom, IntervalStart, IntervalTo, Page, Schema
from control.pricing.price_types import PriceTypeName

PriceType = PriceTypeName
Derivation = Annotated[
    Literal["Direct", "Inverse", "Bridge", "Manual"],
    Meta(
        description="Origin of the price at the source. `Direct`: as quoted. `Inverse`: 1 / price. `Bridge`: product "
        "of two markets. `Manual`: entered by hand."
    ),
]
PriceStatus = Annotated[
    Literal["Priced", "NoPrice", "StalePrice", "Quarantined"],
    Meta(description="`Priced` if the price is not null; otherwise the reason why it is null."),
]
RouteStatus = Literal["Resolved", "Pending", "NoMarket", "Ambiguous", "MarketGone", "Unsupported"]
PriceState = Annotated[
    Literal["Used", "Quarantined", "Accepted", "Rejected"],
    Meta(
        description="State of a source's price after guards and reviews. `Used` and `Accepted` prices may be used; "
        "`Quarantined` and `Rejected` ones may not."
    ),
]


class LatestPrice(Schema, frozen=True, kw_only=True):
    """The newest system price of a pair."""

    price: Decimal
    effective_from: Annotated[Instant, Meta(description="Time from which the source's price is in effect.")]
    price_source: Annotated[str, Meta(description="`src_...`")]
    is_fallback: Annotated[bool, Meta(description="True if it comes from another source than the pair's first one.")]
    is_stale: Annotated[
        bool,
        Meta(
            description="True if the price is not used for values: it is older than the pair allows, or a guard "
            "stopped a newer price of its source."
        ),
    ]


class PricePoint(Schema, frozen=True, kw_only=True):
    """One price of a pair: a step of the system price, a source's own price, or the price at an interval's end.

    A property that does not apply to the requested kind of history is null.
    """

    date: Annotated[
        IntervalStart | None,
        Meta(description="Deprecated; null without `interval`.", extra_json_schema={"deprecated": True}),
    ]
    from_: IntervalFrom | None = field(name="from")
    to: IntervalTo | None
    at: Annotated[
        Instant | None,
        Meta(
            description="The moment of the price: the last one before the interval's end, or before `to` of the "
            "request where that is earlier. Null while the interval is not over; the price is then the present one.",
            examples=["2026-01-31T23:59:59.999999Z"],
        ),
    ]
    price: Decimal | None
    price_status: PriceStatus
    price_type: PriceType
    price_source: Annotated[str | None, Meta(description="`src_...`; null without a price.")]
    is_fallback: Annotated[
        bool | None, Meta(description="True if it comes from another source than the pair's first one.")
    ]
    effective_from: Annotated[
        Instant | None, Meta(description="Time from which the source's price is in effect; for a window, its end.")
    ]
    window_start: Annotated[Instant | None, Meta(description="Start of its window; null for a price without a window.")]
    is_partial: Annotated[bool | None, Meta(description="True if its window was cut short.")]
    derivation: Derivation | None
    valid_from: Annotated[Instant | None, Meta(description="Time from which this is the pair's system price.")]
    valid_until: Annotated[
        Instant | None,
        Meta(
            description="End of the time that begins at `validFrom`, not included, as far as known. For a source's "
            "price: the time until which it is fresh."
        ),
    ]
    is_complete: Annotated[
        bool | None, Meta(description="False if the interval is not over, or if `to` of the request lies inside it.")
    ]
    price_id: Annotated[str | None, Meta(description="`price_...` of a source's own price.")]
    state: PriceState | None
    reason: Annotated[str | None, Meta(description="The guard that stopped it; null if there is none.")]


class PriceHistory(Schema, frozen=True, kw_only=True):
    """A page of the prices of a pair, newest first."""

    pair_id: Annotated[str, Meta(description="`pair_...`")]
    priced_as: str
    priced_in: str
    price_type: PriceType
    interval: Interval | None
    data: list[PricePoint]
    page: Page
    as_of: DataVersion
