"""Result rows of the queries about prices; `api.engine.rows` has their conventions.

Prices are exact text. They are null if there is no price, and the status gives the reason.
"""

from datetime import datetime

from api.engine.rows import Row
from api.prices.schemas.prices import Derivation, PriceState, PriceStatus, PriceType


class LatestPriceRow(Row, frozen=True):
    """`latest_prices`: the newest price of a pair, and whether it is still in force."""

    pair_key: int
    price: str
    effective_from: datetime
    window_start: datetime | None
    source_id: str
    is_fallback: bool
    is_in_force: bool
    max_age_seconds: int | None


class PriceStepRow(Row, frozen=True):
    """`price_steps`: a step of the system price that has a price."""

    valid_from: datetime
    valid_until: datetime | None
    price: str
    source_id: str
    is_fallback: bool
    effective_from: datetime
    window_start: datetime | None
    is_partial: bool
    derivation: Derivation


class SourcePriceRow(Row, frozen=True):
    """`source_prices`: a price as one source of the pair gave it."""

    price_id: str
    effective_from: datetime
    window_start: datetime | None
    price: str
    is_partial: bool
    derivation: Derivation
    fresh_until: datetime | None
    position: int
    state: PriceState
    reason: str | None


class PriceAtRow(Row, frozen=True):
    """`prices_at`: the step of the system price at a requested moment."""

    pair_key: int
    moment: datetime
    price: str | None
    price_status: PriceStatus
    source_id: str | None
    position: int | None
    is_fallback: bool | None
    effective_from: datetime | None
    window_start: datetime | None
    is_partial: bool | None
    derivation: Derivation | None
    valid_from: datetime
    valid_until: datetime | None


class PricePairRow(Row, frozen=True):
    """`price_pairs`: a pair as the pipeline published it."""

    pair_key: int
    pair_id: str
    priced_as: str
    priced_in: str
    price_type: PriceType
    max_age_seconds: int | None


class MarketRow(Row, frozen=True):
    """`price_markets`: a market that a source lists or once listed."""

    source_id: str
    market_id: str
    base: str
    quote: str
    base_code: str
    quote_code: str
    is_active: bool


class MarketListRow(Row, frozen=True):
    """`collected_market_lists`: a source with a collected market list."""

    source_id: str


class StoppedPriceRow(Row, frozen=True):
    """`quarantined_prices`, `stopped_price`: a price that a pair's guards stopped.

    An unusable price does not fit the type of prices, so it cannot be accepted.
    """

    price_id: str
    effective_from: datetime
    window_start: datetime | None
    price: str
    is_partial: bool
    source_id: str
    derivation: Derivation
    reason: str | None
    is_usable: bool


class SourcePollRow(Row, frozen=True):
    """`source_polls`: time and error of the last poll of a price source."""

    source_id: str
    polled_at: datetime
    poll_error: str | None


class ListedSymbolRow(Row, frozen=True):
    """`listed_symbols`: whether a source's market list is collected, and has an active market with a symbol."""

    source_id: str
    symbol: str
    is_collected: bool
    is_listed: bool
