"""Pairs on the wire: what they price and where from, discoveries of past prices, and prices that guards stopped."""

from typing import Annotated, ClassVar, Literal

from msgspec import UNSET, Meta, UnsetType, field

from api.http.inputs import ITEM, PAIR_ID, SOURCE_ID, Keywords, described, needs_one_of, positive, whole
from api.prices.schemas.prices import Derivation, LatestPrice, RouteStatus
from api.schema import DataVersion, Decimal, ExactNumber, Instant, OperationStatus, Page, Schema
from control.instants import pattern_of
from control.pricing.discovery import MOST_MULTIPLIER
from control.pricing.durations import DURATION, LONGEST_DAYS
from control.pricing.pair_checks import MOST_SOURCES
from control.pricing.price_types import PriceType

WindowSize = Literal["minute", "hour", "day", "week", "month", "quarter", "year"]
Decision = Literal["Accepted", "Rejected"]

PriceSourceIds = Annotated[
    list[Annotated[str, described("`src_...`", **SOURCE_ID)]],
    described(
        "Ids of price sources, in order of preference.",
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
    described(
        "Symbol of an item through which two markets may be combined if there is no market for the pair.", **ITEM
    ),
]
AllowInverse = Annotated[
    bool,
    Meta(description="True if the market of the opposite direction may be used, as 1 / price, when there is no other."),
]
_MAX_JUMP = "Greatest difference from the source's last used price, in percent; a price beyond it is quarantined."
_MAX_DEVIATION = (
    "Greatest difference from the median of the other sources' prices, in percent; a price beyond it is quarantined."
)


class PairCreate(Schema, frozen=True, kw_only=True):
    """A pair to add; give `priceSources`, or `priceSource` for a single source."""

    rules: ClassVar[Keywords] = needs_one_of("priceSources", "priceSource")

    priced_as: Annotated[str, described("Symbol of the item that is priced.", ["BTC"], **ITEM)]
    priced_in: Annotated[str, described("Symbol of the item that expresses the price.", **ITEM)] = "USD"
    price_type: PriceType
    price_sources: PriceSourceIds | UnsetType = UNSET
    price_source: Annotated[str, described("Id of the only price source.", **SOURCE_ID)] | UnsetType = UNSET
    max_age: MaxAge | UnsetType = UNSET
    allow_inverse: AllowInverse = False
    bridge: Bridge = None
    max_jump: Annotated[ExactNumber | None, positive(_MAX_JUMP)] = None
    max_deviation: Annotated[ExactNumber | None, positive(_MAX_DEVIATION)] = None


class PairPatch(Schema, frozen=True, kw_only=True):
    """Changes to a pair. A field that is left out stays the same. `pricedAs`, `pricedIn` and `priceType` are fixed."""

    price_sources: PriceSourceIds | UnsetType = UNSET
    max_age: MaxAge | UnsetType = UNSET
    allow_inverse: AllowInverse | UnsetType = UNSET
    bridge: Bridge | UnsetType = UNSET
    max_jump: Annotated[ExactNumber | None, positive(_MAX_JUMP)] | UnsetType = UNSET
    max_deviation: Annotated[ExactNumber | None, positive(_MAX_DEVIATION)] | UnsetType = UNSET


class PairMarket(Schema, frozen=True, kw_only=True):
    """A market that a pair's price comes from; a bridge has two."""

    id: Annotated[str, Meta(description="The source's own id of the market.")]
    price_type: Annotated[
        PriceType,
        Meta(
            description="Price type that is read from the market. For an inverted market it is the opposite side: a "
            "bid comes from its ask."
        ),
    ]
    is_inverted: Annotated[bool, Meta(description="True if the market's price is used as 1 / price.")]


class PairMapping(Schema, frozen=True, kw_only=True):
    """The markets of a pair at one source, from the market list of the published version."""

    price_source: Annotated[str, Meta(description="`src_...`")]
    status: Annotated[
        RouteStatus,
        Meta(
            description="`Resolved`, or the reason why there is no market. `Pending`: the source's market list is not "
            "read for you yet."
        ),
    ]
    derivation: Annotated[Derivation | None, Meta(description="Null while there is no market.")]
    markets: list[PairMarket]
    detail: Annotated[str | None, Meta(description="The reason why there is no market, as text; null if there is one.")]


class Pair(Schema, frozen=True, kw_only=True):
    """A pair: the priced item, its currency, and its price sources."""

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
    mapping_status: Annotated[RouteStatus, Meta(description="The worst status of its sources.")]
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
            "End, after `from`; it takes the same forms. An end in the future is replaced by the present, and `note` "
            "says so. If the last window is longer than the rest of the range, it is shortened and marked as partial.",
            ["2026-02-01"],
            pattern=pattern_of(),
        ),
    ]
    window_size: Annotated[
        WindowSize,
        Meta(
            description="Length of a window. Windows of months, quarters and years begin on the day of `from`, or on "
            "the last day of a shorter month."
        ),
    ]
    multiplier: (
        Annotated[
            ExactNumber,
            positive(
                "Number of `windowSize` units in a window, 1 by default. For month, quarter and year it is a whole "
                "number; for the others the window is a whole number of seconds.",
                MOST_MULTIPLIER,
            ),
        ]
        | UnsetType
    ) = UNSET


class WindowProgress(Schema, frozen=True, kw_only=True):
    """Progress of the discovery; a window counts once for each source."""

    done: int
    total: Annotated[int | None, Meta(description="Null until the discovery starts.")]
    unit: Literal["windows"] = "windows"


class MissingPrices(Schema, frozen=True, kw_only=True):
    """A range of time for which a source had no prices."""

    from_: Instant = field(name="from")
    to: Instant
    price_source: Annotated[str, Meta(description="`src_...`")]


class PriceDiscovery(Schema, frozen=True, kw_only=True):
    """A discovery and its progress. Stored prices stay when it is cancelled."""

    id: Annotated[str, Meta(description="`op_...`")]
    status: OperationStatus
    progress: WindowProgress
    from_: Instant = field(name="from")
    to: Instant
    window_size: WindowSize
    multiplier: Decimal
    prices_stored: Annotated[int, Meta(description="Number of window prices found so far, of all sources.")]
    missing: Annotated[list[MissingPrices], Meta(description="Ranges for which a source had no prices.")]
    note: Annotated[str | None, Meta(description="A remark, for example that the end was replaced by the present.")]
    error: Annotated[str | None, Meta(description="The reason of the failure, or the reason why there is no progress.")]
    created_at: Instant
    started_at: Instant | None
    cancel_requested_at: Annotated[
        Instant | None, Meta(description="Time of the cancel request; null if there is none.")
    ]
    finished_at: Instant | None


class PriceDiscoveries(Schema, frozen=True, kw_only=True):
    """A page of the discoveries of one pair, newest first."""

    data: list[PriceDiscovery]
    page: Page


class QuarantinedPrice(Schema, frozen=True, kw_only=True):
    """A price that the pair's guards stopped."""

    id: Annotated[str, Meta(description="`price_...`, the `{priceId}` of paths.")]
    price: Decimal
    effective_from: Annotated[
        Instant, Meta(description="Time from which it would be in effect; for a window, its end.")
    ]
    window_start: Annotated[Instant | None, Meta(description="Start of its window; null for a price without a window.")]
    is_partial: Annotated[bool, Meta(description="True if its window was cut short.")]
    price_source: Annotated[str, Meta(description="`src_...`")]
    derivation: Derivation
    reason: Annotated[str | None, Meta(description="Guard that stopped it.", examples=["Jump"])]
    decision: Annotated[
        Decision | None,
        Meta(description="The decision, which takes effect with the next cycle; null if there is none."),
    ]


class QuarantinedPrices(Schema, frozen=True, kw_only=True):
    """A page of quarantined prices of one pair, newest first."""

    data: list[QuarantinedPrice]
    page: Page
    as_of: DataVersion


class PricedAsPut(Schema, frozen=True, kw_only=True):
    """The symbol that gives a token its USD price."""

    priced_as: Annotated[str, described("Symbol of a priced item.", ["BTC"], **ITEM)]
    pair_id: Annotated[
        str | None,
        described("`pair_...`; needed if the symbol has several USD pairs, of different price types.", **PAIR_ID),
    ] = None


class TokenLink(Schema, frozen=True, kw_only=True):
    """The pair that values a token."""

    id: Annotated[str, Meta(description="`tok_...`")]
    priced_as: str | None
    priced_in: str | None
    pair_id: str | None
