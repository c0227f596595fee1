"""Result rows of this folder's queries: one struct per query; its fields have the names and order of the columns."""

from datetime import datetime

import msgspec

from api.activities.schemas import (
    AmountStatus,
    CounterpartyStatus,
    Direction,
    FeeStatus,
    TokenActivityType,
    WalletActivityStatus,
    WalletActivityType,
)
from api.engine.rows import Row
from api.schema import ActivityStatus, ActivityValueStatus, MetadataStatus


class ActivityValueRow(Row, frozen=True):
    """`token_activity_values`, `wallet_activity_values`: the value of an activity at its block's time."""

    activity_id: str
    pair_key: int | None
    price: str | None
    value: str | None
    value_status: ActivityValueStatus


class MetadataStatusRow(Row, frozen=True):
    """`metadata_statuses`: the result of a second reading of a contract."""

    token_address: str
    metadata_status: MetadataStatus


class ActivityExtentRow(Row, frozen=True):
    """`token_activity_extent`, `wallet_activity_extent`: number, first and last block of a subject's activities."""

    activity_count: int
    first_block: int
    last_block: int


class ActivityDigestRow(Row, frozen=True):
    """`token_activity_digest`, `wallet_activity_digest`: a digest of 128 bits of a set of activities."""

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
    fee_raw: str | None
    fee: str | None
    fee_status: FeeStatus
    counterparties: list[str] | None
    counterparty_count: int | None
    counterparty_status: CounterpartyStatus


class DescribedActivityRow(WalletActivityRow, frozen=True):
    """`wallet_activity`: one movement, and the JSON text of `TransactionDetail`; null if the family has none."""

    detail: str | None
    native_decimals: int | None


class InputDetail(msgspec.Struct, frozen=True, rename="camel"):
    """An input in `TransactionDetail`; amount and address are null where it is unknown."""

    output: str
    address: str | None
    amount_raw: str | None


class OutputDetail(msgspec.Struct, frozen=True, rename="camel"):
    """An output in `TransactionDetail`; the address is null where its script has none."""

    address: str | None
    amount_raw: str


class TransactionDetail(msgspec.Struct, frozen=True, rename="camel"):
    """The JSON of column `detail`: Unix seconds, the first 100 inputs and outputs, and the numbers of all."""

    header_time: int
    input_count: int
    output_count: int
    inputs: list[InputDetail]
    outputs: list[OutputDetail]
    spendable_from_block: int | None
