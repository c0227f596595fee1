"""Pairs on the wire: what they price and where from, discoveries of past prices, and prices that guards stopped."""

from typing import Annotated, Literal

from msgspec import UNSET, Meta, UnsetType, field

from api.schemas.common import DataVersion, Decimal, ExactNumber, Instant, OperationStatus, Page, Schema
from api.schemas.inputs import described, positive, whole
from api.schemas.prices import Derivation, LatestPrice, RouteStatus
from control.instants import pattern_of
from control.pricing.discovery import MOST_MULTIPLIER
from control.pricing.durations import DURATION, LONGEST_DAYS
from control.pricing.pair_checks import MOST_SOURCES
from control.pricing.price_types import PriceType

WindowSize = Literal["minute", "hour", "day", "week", "month", "quarter", "year"]
Decision = Literal["Accepted", "Rejected"]

PriceSourceIds = Annotated[
    list[str],
    described(
        "Ids of price sources, the one to be asked first in front.",
        [["src_kraken"]],
        minItems=1,
        maxItems=MOST_SOURCES,
        uniqueItems=True,
    ),
]
MaxAge = Annotated[
    str | None,
    described(
        "Greatest age of a price that is used: an ISO 8601 duration of weeks, days, hours, minutes and seconds, at "
        f"most P{LONGEST_DAYS}D; null for no limit.",
        ["P1D"],
        pattern=whole(DURATION),
    ),
]
Bridge = Annotated[
    str | None,
    Meta(description="Symbol of an item over which two markets may be multiplied, where there is none for the pair."),
]
AllowInverse = Annotated[
    bool, Meta(description="Whether a market the other way round may be used, as 1 / price, where there is no other.")
]
_MAX_JUMP = "Greatest difference from the source's price before, in percent; a price beyond it is quarantined."
_MAX_DEVIATION = "Greatest difference from the other sources' prices, in percent; a price beyond it is quarantined."


class PairCreate(Schema, frozen=True, kw_only=True):
    """A pair to add; give `priceSources`, or `priceSource` where there is one."""

    priced_as: Annotated[str, Meta(description="Symbol of the item that is priced.", examples=["BTC"])]
    priced_in: Annotated[str, Meta(description="Symbol of the item that the price is in.")] = "USD"
    price_type: PriceType
    price_sources: PriceSourceIds | UnsetType = UNSET
    price_source: Annotated[str, Meta(description="Id of the only price source.")] | UnsetType = UNSET
    max_age: MaxAge | UnsetType = UNSET
    allow_inverse: AllowInverse = False
    bridge: Bridge = None
    max_jump: Annotated[ExactNumber | None, positive(_MAX_JUMP)] = None
    max_deviation: Annotated[ExactNumber | None, positive(_MAX_DEVIATION)] = None


class PairPatch(Schema, frozen=True, kw_only=True):
    """Changes to a pair; what is left out stays. What it prices, in what and by which type is fixed."""

    price_sources: PriceSourceIds | UnsetType = UNSET
    max_age: MaxAge | UnsetType = UNSET
    allow_inverse: AllowInverse | UnsetType = UNSET
    bridge: Bridge | UnsetType = UNSET
    max_jump: Annotated[ExactNumber | None, positive(_MAX_JUMP)] | UnsetType = UNSET
    max_deviation: Annotated[ExactNumber | None, positive(_MAX_DEVIATION)] | UnsetType = UNSET


class PairMarket(Schema, frozen=True, kw_only=True):
    """A market that a pair's price comes from; of a bridge there are two."""

    id: Annotated[str, Meta(description="The source's own id of the market.")]
    price_type: Annotated[PriceType, Meta(description="Of an inverted market the other side's: a bid from its ask.")]
    is_inverted: Annotated[bool, Meta(description="Whether it counts as 1 / price.")]


class PairMapping(Schema, frozen=True, kw_only=True):
    """Where one source has the price of a pair, by the market list that is published."""

    price_source: Annotated[str, Meta(description="`src_...`")]
    status: Annotated[
        RouteStatus,
        Meta(description="`Resolved`, or why there is no market; `Pending` until its list is read for you."),
    ]
    derivation: Annotated[Derivation | None, Meta(description="Null while there is no market.")]
    markets: list[PairMarket]
    detail: Annotated[str | None, Meta(description="Why there is no market, for people; null when there is one.")]


class Pair(Schema, frozen=True, kw_only=True):
    """What is priced, in what, and where from."""

    id: Annotated[str, Meta(description="`pair_...`, the `{pairId}` of paths.")]
    priced_as: str
    priced_in: str
    price_type: PriceType
    price_sources: PriceSourceIds
    max_age: MaxAge
    allow_inverse: AllowInverse
    bridge: Bridge
    max_jump: Annotated[Decimal | None, Meta(description=_MAX_JUMP)]
    max_deviation: Annotated[Decimal | None, Meta(description=_MAX_DEVIATION)]
    mapping_status: Annotated[RouteStatus, Meta(description="The worst of the sources' statuses.")]
    mappings: Annotated[list[PairMapping], Meta(description="In the order of the sources.")]
    latest_price: Annotated[LatestPrice | None, Meta(description="The newest system price; null while there is none.")]
    created_at: Instant
    updated_at: Instant


class Pairs(Schema, frozen=True, kw_only=True):
    """A page of pairs, oldest first."""

    data: list[Pair]
    page: Page
    as_of: DataVersion


class PriceDiscoveryRequest(Schema, frozen=True, kw_only=True):
    """Past prices to collect, window by window."""

    from_: Annotated[
        str,
        described(
            "Start of the first window: an instant, or a day (its start), UTC, 1970 or later.",
            ["2026-01-01"],
            pattern=pattern_of(),
        ),
    ] = field(name="from")
    to: Annotated[
        str,
        described(
            "End: as `from`, and later. What is not past yet is cut off; `note` says so. The last window is cut at the "
            "end and marked partial.",
            ["2026-02-01"],
            pattern=pattern_of(),
        ),
    ]
    window_size: Annotated[
        WindowSize,
        Meta(description="Windows of months, quarters and years begin on the day of `from`, or the month's last."),
    ]
    multiplier: (
        Annotated[
            ExactNumber,
            positive(
                "Sizes that a window lasts, 1 by default; whole for month, quarter and year, and whole seconds for the "
                "others.",
                MOST_MULTIPLIER,
            ),
        ]
        | UnsetType
    ) = UNSET


class WindowProgress(Schema, frozen=True, kw_only=True):
    """How much is done; a window counts once for each source."""

    done: int
    total: Annotated[int | None, Meta(description="Null until it is taken up.")]
    unit: Literal["windows"] = "windows"


class MissingPrices(Schema, frozen=True, kw_only=True):
    """A time for which a source had no prices."""

    from_: Instant = field(name="from")
    to: Instant
    price_source: Annotated[str, Meta(description="`src_...`")]


class PriceDiscovery(Schema, frozen=True, kw_only=True):
    """A discovery and how far it is; what was stored stays when it is cancelled."""

    id: Annotated[str, Meta(description="`op_...`")]
    status: OperationStatus
    progress: WindowProgress
    from_: Instant = field(name="from")
    to: Instant
    window_size: WindowSize
    multiplier: Decimal
    prices_stored: Annotated[int, Meta(description="Prices of windows that it has found so far, of all sources.")]
    missing: Annotated[list[MissingPrices], Meta(description="What the sources did not have.")]
    note: Annotated[str | None, Meta(description="A remark, such as that the end was cut.")]
    error: Annotated[str | None, Meta(description="Why it failed, or what keeps it from getting on.")]
    created_at: Instant
    started_at: Instant | None
    cancel_requested_at: Annotated[Instant | None, Meta(description="Set once it was asked to stop.")]
    finished_at: Instant | None


class PriceDiscoveries(Schema, frozen=True, kw_only=True):
    """A page of the discoveries of one pair, newest first."""

    data: list[PriceDiscovery]
    page: Page


class QuarantinedPrice(Schema, frozen=True, kw_only=True):
    """A price that the pair's guards stopped."""

    id: Annotated[str, Meta(description="`price_...`, the `{priceId}` of paths.")]
    price: Decimal
    effective_from: Annotated[Instant, Meta(description="When it would take effect: a window's end.")]
    window_start: Annotated[Instant | None, Meta(description="Start of the window that it closes; null for a point.")]
    is_partial: Annotated[bool, Meta(description="Whether its window was cut short.")]
    price_source: Annotated[str, Meta(description="`src_...`")]
    derivation: Derivation
    reason: Annotated[str | None, Meta(description="Which guard stopped it.", examples=["Jump"])]
    decision: Annotated[
        Decision | None, Meta(description="What was decided; it counts with the next cycle. Null until then.")
    ]


class QuarantinedPrices(Schema, frozen=True, kw_only=True):
    """A page of quarantined prices of one pair, newest first."""

    data: list[QuarantinedPrice]
    page: Page
    as_of: DataVersion


class PricedAsPut(Schema, frozen=True, kw_only=True):
    """Which symbol's price a token has; it is in USD."""

    priced_as: Annotated[str, Meta(description="Symbol of a priced item.", examples=["BTC"])]
    pair_id: Annotated[
        str | None, Meta(description="`pair_...`, where the symbol has several USD pairs (of other price types).")
    ] = None


class TokenLink(Schema, frozen=True, kw_only=True):
    """The pair that values a token."""

    id: Annotated[str, Meta(description="`tok_...`")]
    priced_as: str | None
    priced_in: str | None
    pair_id: str | None
