"""What the named queries of the reports return, as `api.engine.rows` for the others."""

from datetime import datetime

from api.activities.rows import WalletActivityRow
from api.activities.schemas import Direction, WalletActivityType
from api.engine.rows import Row
from api.schema import ActivityValueStatus, Reconciliation


class CountRow(Row, frozen=True):
    """`matching_holder_count`, `report_activity_count`: how many rows match."""

    row_count: int


class ReconciliationRow(Row, frozen=True):
    """`holder_reconciliations`: how many holders there are of a reconciliation."""

    reconciliation: Reconciliation
    holder_count: int


class HolderDayRow(Row, frozen=True):
    """`report_holders_by_day`: by how many the holders of a covered range grew on a day."""

    range_from_block: int
    day: datetime
    holder_change: int


class WalletDayRow(Row, frozen=True):
    """`report_wallet_days`: activities of one day, kind and direction; values in units of 10^-18, null without any.

    `folded_count` of them are fees of transactions with another activity.
    """

    day: datetime
    activity_type: WalletActivityType
    direction: Direction | None
    activity_count: int
    folded_count: int
    valued_count: int
    value_units: str | None
    statuses_without_value: list[ActivityValueStatus]


class WalletExtentRow(Row, frozen=True):
    """`report_wallet_extent`: the activities of a range as a whole."""

    counterparty_count: int
    last_time: datetime | None


class WalletAssetRow(Row, frozen=True):
    """`report_wallet_assets`: an asset that activities of a range have."""

    token_address: str
    token_symbol: str | None
    token_id: str | None


class LeftOutRow(WalletAssetRow, frozen=True):
    """`report_wallet_left_out`: movements of an asset that have no value for one reason."""

    value_status: ActivityValueStatus
    activity_count: int
    priced_from: datetime | None


class ValuedActivityRow(WalletActivityRow, frozen=True):
    """`report_activities`: one movement and its value (status null: without a pair)."""

    pair_key: int | None
    price: str | None
    value: str | None
    value_status: ActivityValueStatus | None


class FoldedFeeRow(ValuedActivityRow, frozen=True):
    """`report_folded_fees`: a fee, and the activity of its transaction that it is shown with."""

    shown_with: str
