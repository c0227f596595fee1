"""Price sources, the pairs that manual ones support, and the prices entered for them, on the wire."""

from typing import Annotated, Literal

from msgspec import Meta

from api.prices.schemas.prices import PriceType
from api.schema import DataVersion, Decimal, Instant, Page, Schema


class PollStatus(Schema, frozen=True, kw_only=True):
    """Result of the pipeline's last poll of a source."""

    polled_at: Instant
    error: Annotated[str | None, Meta(description="The reason of the failure; null if the poll succeeded.")]


class PriceSource(Schema, frozen=True, kw_only=True):
    """A source of prices."""

    id: Annotated[str, Meta(description="`src_...`")]
    name: str
    kind: Annotated[
        Literal["Manual", "Preconfigured"],
        Meta(
            description="`Manual`: you enter its prices. `Preconfigured`: the pipeline polls it; it is enabled at "
            "first."
        ),
    ]
    enabled: Annotated[
        bool,
        Meta(
            description="True if your new pairs may use it; other tenants have their own setting. A disabled source is "
            "not polled."
        ),
    ]
    price_types: Annotated[list[PriceType], Meta(description="Price types that pairs may get from it.")]
    history_types: Annotated[
        list[PriceType], Meta(description="Price types with past prices that a discovery can collect.")
    ]
    granularities: Annotated[
        list[str],
        Meta(
            description="Window lengths of its past prices, shortest first, such as `1m`, `1h`, `1d`. `round`: "
            "irregular windows of its own."
        ),
    ]
    status: Annotated[
        PollStatus | None,
        Meta(description="Null for a manual source, and for one that was not polled yet."),
    ]
    created_at: Annotated[Instant | None, Meta(description="Null for a preconfigured source.")]
    updated_at: Annotated[Instant | None, Meta(description="Null for a preconfigured source.")]


class PriceSources(Schema, frozen=True, kw_only=True):
    """The preconfigured sources by id, then the tenant's manual ones, oldest first."""

    data: list[PriceSource]
    page: Page
    as_of: DataVersion


class SupportedPair(Schema, frozen=True, kw_only=True):
    """A pair for which a manual source has prices."""

    id: Annotated[str, Meta(description="`spair_...`, the `{pairId}` of the paths below this source.")]
    price_source: Annotated[str, Meta(description="`src_...`")]
    priced_as: str
    priced_in: str
    price_type: PriceType
    created_at: Instant


class SupportedPairs(Schema, frozen=True, kw_only=True):
    """Pairs of a manual source, oldest first."""

    data: list[SupportedPair]
    page: Page


class ManualPrice(Schema, frozen=True, kw_only=True):
    """A price as entered."""

    id: Annotated[str, Meta(description="`price_...`")]
    price: Decimal
    effective_from: Instant
    revision: Annotated[
        int, Meta(ge=1, description="Number of the revision among the prices entered for this instant.")
    ]
    is_current: Annotated[bool, Meta(description="True unless a later revision replaces it.")]
    note: str | None
    created_at: Instant
    created_by: Annotated[str, Meta(description="Id of the key, `key_...`")]


class ManualPriceBatch(Schema, frozen=True, kw_only=True):
    """The prices that one request stored, in its order."""

    data: list[ManualPrice]


class ManualPrices(Schema, frozen=True, kw_only=True):
    """Prices of a supported pair with all revisions, newest `effectiveFrom` first."""

    data: list[ManualPrice]
    page: Page
