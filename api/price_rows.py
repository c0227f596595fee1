"""What the named queries about prices and values return, as `api.rows` for the others.

Prices and values are exact text, null where there is none; their status says why.
"""

from datetime import date, datetime

from api.rows import Row
from api.schemas.common import ActivityValueStatus
from api.schemas.prices import Derivation, PriceState, PriceStatus, PriceType, RouteStatus
from api.schemas.tokens import SupplyStatus
from api.schemas.values import CapitalizationStatus, ChangeStatus, TotalStatus, WalletChangeStatus


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
    """`prices_at`: the step of the system price that holds at a moment asked for."""

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


class ProductRow(Row, frozen=True):
    """`products`: a quantity times a price."""

    value: str


class PricePairRow(Row, frozen=True):
    """`price_pairs`: a pair as the pipeline knows it."""

    pair_key: int
    pair_id: str
    priced_as: str
    priced_in: str
    price_type: PriceType
    max_age_seconds: int | None


class PassedOverRow(Row, frozen=True):
    """`newest_source_prices`: a source of a pair, and its newest price at a moment (null without one)."""

    pair_key: int
    moment: datetime
    source_id: str
    position: int
    status: RouteStatus
    detail: str | None
    price: str | None
    effective_from: datetime | None
    fresh_until: datetime | None
    state: PriceState | None
    reason: str | None


class TokenPairRow(Row, frozen=True):
    """`token_pairs`: the pair that values an asset seen from a subject."""

    token_address: str
    pair_key: int


class LinkedAssetRow(Row, frozen=True):
    """`links_of_tokens`: the pair of a token's own link."""

    subject_key: int
    token_address: str
    pair_key: int


class UsdPairRow(Row, frozen=True):
    """`usd_pairs`: a pair that is priced in USD."""

    pair_key: int
    priced_as: str
    price_type: PriceType


class TokenPriceRow(Row, frozen=True):
    """`token_prices`: price and capitalization of a token at its newest covered block."""

    subject_key: int
    pair_key: int | None
    price: str | None
    price_status: TotalStatus
    market_capitalization: str | None
    market_capitalization_status: CapitalizationStatus
    change24h: str | None
    change24h_status: ChangeStatus


class WalletTotalRow(Row, frozen=True):
    """`wallet_totals`: what a wallet is worth at its newest covered block."""

    subject_key: int
    total_value: str | None
    total_value_status: TotalStatus
    value_complete: bool
    unpriced: list[str]
    change24h: str | None
    change24h_status: WalletChangeStatus
    change24h_omitted: list[str]


class ActivityValueRow(Row, frozen=True):
    """`token_activity_values`, `wallet_activity_values`: what an activity was worth at its block's time."""

    activity_id: str
    pair_key: int | None
    price: str | None
    value: str | None
    value_status: ActivityValueStatus


class SupplyChangeRow(Row, frozen=True):
    """`token_supply_changes`: the last supply in one interval, or before all of them (bucket null)."""

    range_from_block: int
    bucket: datetime | None
    total_supply_raw: str
    total_supply: str | None
    supply_status: SupplyStatus


class WalletValueDayRow(Row, frozen=True):
    """`wallet_value_days`: what a wallet was worth at the end of a day."""

    day: date
    value: str | None
    value_status: TotalStatus
    value_complete: bool
    unpriced: list[str]


class OriginRow(Row, frozen=True):
    """`explained_balances`, `explained_supplies`: a quantity and the reading that it starts from (null: none)."""

    place: int
    quantity_raw: str
    anchor_block: int | None
    anchor_raw: str | None


class MovementsRow(Row, frozen=True):
    """`explained_token_movements`, `explained_wallet_movements`, `explained_supply_movements`: activities by place."""

    place: int
    movement_count: int
    from_block: int
    to_block: int
    adjustment_count: int
    latest: list[str]


class MarketRow(Row, frozen=True):
    """`price_markets`: a market that a source lists, or listed."""

    source_id: str
    market_id: str
    base: str
    quote: str
    base_code: str
    quote_code: str
    is_active: bool


class MarketListRow(Row, frozen=True):
    """`collected_market_lists`: a source whose market list is there."""

    source_id: str


class StoppedPriceRow(Row, frozen=True):
    """`quarantined_prices`, `stopped_price`: a price that a pair's guards stopped.

    One that is not usable does not fit the type of prices, whatever is decided.
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
