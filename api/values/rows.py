"""Result rows of this folder's queries: one struct per query; its fields have the names and order of the columns."""

from datetime import datetime

from api.engine.rows import Row
from api.prices.schemas.prices import PriceState, PriceType, RouteStatus
from api.values.schemas import CapitalizationStatus, ChangeStatus, TotalStatus, WalletChangeStatus


class ProductRow(Row, frozen=True):
    """`products`: a quantity times a price."""

    value: str


class PassedOverRow(Row, frozen=True):
    """`newest_source_prices`: a source of a pair, with its newest price at a moment (null if there is none)."""

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
    """`token_pairs`: the pair that values an asset of a subject."""

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
    """`wallet_totals`: the value of a wallet at its newest covered block."""

    subject_key: int
    total_value: str | None
    total_value_status: TotalStatus
    value_complete: bool
    unpriced: list[str]
    change24h: str | None
    change24h_status: WalletChangeStatus
    change24h_omitted: list[str]


class OriginRow(Row, frozen=True):
    """`explained_balances`, `explained_supplies`: a quantity, and the reading that it starts from (null if none)."""

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
