"""Answers about price pairs: their sources, discoveries of past prices, and prices that guards stopped."""

from typing import Annotated, Literal

from msgspec import Meta, field

from api.prices.schemas.prices import Derivation, LatestPrice, RouteStatus
from api.schema import DataVersion, Decimal, Instant, OperationStatus, Page, Schema
from control.pricing.discovery import WindowSizeName
from control.pricing.pairs import PairFields
from control.pricing.price_types import PriceType

Decision = Literal["Accepted", "Rejected"]


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


class Pair(PairFields, frozen=True, kw_only=True):
    """A pair: the priced item, its currency, and its price sources."""

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
    window_size: WindowSizeName
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


class TokenLink(Schema, frozen=True, kw_only=True):
    """The pair that values a token."""

    id: Annotated[str, Meta(description="`tok_...`")]
    priced_as: str | None
    priced_in: str | None
    pair_id: str | None
