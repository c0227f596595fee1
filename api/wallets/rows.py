"""Result rows of this folder's queries: one struct per query; its fields have the names and order of the columns."""

from datetime import date, datetime

from api.engine.rows import Row
from api.schema import (
    OpenedBy,
    Reconciliation,
)
from api.values.schemas import TotalStatus


class WalletValueDayRow(Row, frozen=True):
    """`wallet_value_days`: the value of a wallet at the end of a day."""

    day: date
    value: str | None
    value_status: TotalStatus
    value_complete: bool
    unpriced: list[str]


class UnreadBalanceRow(Row, frozen=True):
    """`unread_balances`: an asset of a wallet without any known balance in a covered range."""

    range_from_block: int
    asset: str


class BalanceAsOfRow(Row, frozen=True):
    """`balances_as_of`: the balance of one asset of a wallet."""

    token_address: str
    token_symbol: str | None
    quantity_raw: str | None
    quantity: str | None
    reconciliation: Reconciliation
    checked_block_number: int | None
    opened_by: OpenedBy | None
    unread_reason: str | None


class TokenIdRow(Row, frozen=True):
    """`wallet_token_ids`: the tenant's own token with this address."""

    token_address: str
    token_id: str


class HeldAssetRow(Row, frozen=True):
    """`wallets_with_assets`: a wallet that ever held one of the requested assets."""

    subject_key: int


class PositionRow(Row, frozen=True):
    """`wallet_balances`: one position of a wallet."""

    token_address: str
    token_id: str | None
    token_symbol: str | None
    quantity_raw: str | None
    quantity: str | None
    reconciliation: Reconciliation
    checked_block_number: int | None
    opened_by: OpenedBy | None
    unread_reason: str | None


class BalanceChangeRow(Row, frozen=True):
    """`wallet_balance_changes`: the last balance of one token in one interval, or before all of them (bucket null)."""

    token_address: str
    token_symbol: str | None
    range_from_block: int
    bucket: datetime | None
    balance_raw: str
    balance: str | None
