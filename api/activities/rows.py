"""What the queries of this folder return: one struct per query, its fields named and ordered as the columns."""

from datetime import datetime

from api.activities.schemas import AmountStatus, Direction, TokenActivityType, WalletActivityStatus, WalletActivityType
from api.engine.rows import Row
from api.schema import ActivityStatus, ActivityValueStatus, MetadataStatus


class ActivityValueRow(Row, frozen=True):
    """`token_activity_values`, `wallet_activity_values`: what an activity was worth at its block's time."""

    activity_id: str
    pair_key: int | None
    price: str | None
    value: str | None
    value_status: ActivityValueStatus


class MetadataStatusRow(Row, frozen=True):
    """`metadata_statuses`: whether a second reading of each contract agreed."""

    token_address: str
    metadata_status: MetadataStatus


class ActivityExtentRow(Row, frozen=True):
    """`token_activity_extent`, `wallet_activity_extent`: how many activities a subject has, and in which blocks."""

    activity_count: int
    first_block: int
    last_block: int


class ActivityDigestRow(Row, frozen=True):
    """`token_activity_digest`, `wallet_activity_digest`: a number of 128 bits that tells sets of activities apart."""

    digest: int


class ActivityBlockRow(Row, frozen=True):
    """`token_activity_blocks`, `wallet_activity_blocks`: the block of one activity."""

    block_number: int


class TokenActivityRow(Row, frozen=True):
    """`token_activities_*`: one movement."""

    activity_id: str
    activity_type: TokenActivityType
    status: ActivityStatus
    block_number: int
    block_time: datetime
    transaction_index: int
    log_index: int
    transaction_hash: str | None
    from_address: str | None
    to_address: str | None
    amount_raw: str
    amount: str | None
    is_located: bool | None


class WalletActivityRow(Row, frozen=True):
    """`wallet_activities_*`: one movement."""

    activity_id: str
    activity_type: WalletActivityType
    direction: Direction | None
    status: WalletActivityStatus
    block_number: int
    block_time: datetime
    transaction_index: int
    log_index: int
    trace_index: int | None
    transaction_hash: str | None
    counterparty_address: str | None
    token_address: str
    token_id: str | None
    token_symbol: str | None
    amount_raw: str | None
    amount: str | None
    is_located: bool | None
    amount_status: AmountStatus
