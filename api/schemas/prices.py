"""Prices of pairs on the wire: the newest one, and their history."""

from typing import Annotated, Literal

from msgspec import Meta, field

from api.schemas.common import (
    DataVersion,
    Decimal,
    Instant,
    Interval,
    IntervalFrom,
    IntervalStart,
    IntervalTo,
    Page,
    Schema,
)

PriceType = Literal["Ask", "Bid", "Trade", "Market", "NAV"]
Derivation = Annotated[
    Literal["Direct", "Inverse", "Bridge", "Manual"],
    Meta(description="How the source's market gave it: as quoted, turned over, crossed through the bridge, by hand."),
]
PriceStatus = Annotated[
    Literal["Priced", "NoPrice", "StalePrice", "Quarantined"],
    Meta(description="Why the price is null, or `Priced` when it is there."),
]
RouteStatus = Literal["Resolved", "Pending", "NoMarket", "Ambiguous", "MarketGone", "Unsupported"]
PriceState = Annotated[
    Literal["Used", "Quarantined", "Accepted", "Rejected"],
    Meta(description="Whether the pair may use a source's price: what its guards and its reviews say."),
]


class LatestPrice(Schema, frozen=True, kw_only=True):
    """The newest system price of a pair."""

    price: Decimal
    effective_from: Annotated[Instant, Meta(description="When the source's price took effect.")]
    price_source: Annotated[str, Meta(description="`src_...`")]
    is_fallback: Annotated[bool, Meta(description="Whether it came from another source than the first one.")]
    is_stale: Annotated[
        bool,
        Meta(
            description="True where it is not in force and values nothing: it is older than the pair allows, or a "
            "guard stopped a newer one of its source."
        ),
    ]


class PricePoint(Schema, frozen=True, kw_only=True):
    """One price of a pair: a step of the system price, a source's own price, or the price at an interval's end.

    Properties of another kind of history than the one asked for are null.
    """

    date: Annotated[
        IntervalStart | None,
        Meta(description="Deprecated; null when no interval is asked for.", extra_json_schema={"deprecated": True}),
    ]
    from_: IntervalFrom | None = field(name="from")
    to: IntervalTo | None
    at: Annotated[
        Instant | None,
        Meta(
            description="The moment of the price: the last one before the interval's end, or before `to` of the "
            "request where that is earlier. Null while the interval is not over: then the price is the present one.",
            examples=["2026-01-31T23:59:59.999999Z"],
        ),
    ]
    price: Decimal | None
    price_status: PriceStatus
    price_type: PriceType
    price_source: Annotated[str | None, Meta(description="`src_...`; null without a price.")]
    is_fallback: Annotated[
        bool | None, Meta(description="Whether it came from another source than the pair's first one.")
    ]
    effective_from: Annotated[Instant | None, Meta(description="When the source's price took effect: a window's end.")]
    window_start: Annotated[Instant | None, Meta(description="Start of the window that it closes; null for a point.")]
    is_partial: Annotated[bool | None, Meta(description="Whether its window was cut short.")]
    derivation: Derivation | None
    valid_from: Annotated[Instant | None, Meta(description="Since when the pair's system price is this one.")]
    valid_until: Annotated[
        Instant | None,
        Meta(description="Until when, not included, as far as known; of a source's price, until when it is fresh."),
    ]
    is_complete: Annotated[bool | None, Meta(description="False while the interval is not over, or `to` cuts it.")]
    price_id: Annotated[str | None, Meta(description="`price_...` of a source's own price.")]
    state: PriceState | None
    reason: Annotated[str | None, Meta(description="Why a guard holds it back.")]


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
