"""Result rows of the reports' queries; `api.engine.rows` has their conventions."""

from datetime import datetime

from api.activities.rows import WalletActivityRow
from api.activities.schemas import Direction, WalletActivityType
from api.engine.rows import Row
from api.schema import ActivityValueStatus, Reconciliation


class CountRow(Row, frozen=True):
    """`matching_holder_count`, `report_activity_count`: the number of matching rows."""

    row_count: int


class ReconciliationRow(Row, frozen=True):
    """`holder_reconciliations`: the number of holders with a reconciliation."""

    reconciliation: Reconciliation
    holder_count: int


class HolderDayRow(Row, frozen=True):
    """`report_holders_by_day`: the change of the number of holders on a day in a covered range."""

    range_from_block: int
    day: datetime
    holder_change: int


class WalletDayRow(Row, frozen=True):
    """`report_wallet_days`: activities of one day, kind and direction; values in units of 10^-18, null without any.

    `folded_count` counts the fees of transactions with another activity.
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
    """`report_wallet_extent`: totals of the activities of a range."""

    counterparty_count: int
    last_time: datetime | None


class WalletAssetRow(Row, frozen=True):
    """`report_wallet_assets`: an asset of the activities of a range."""

    token_address: str
    token_symbol: str | None
    token_id: str | None


class LeftOutRow(WalletAssetRow, frozen=True):
    """`report_wallet_left_out`: movements of an asset that have no value, for one reason."""

    value_status: ActivityValueStatus
    activity_count: int
    priced_from: datetime | None


class ValuedActivityRow(WalletActivityRow, frozen=True):
    """`report_activities`: one movement and its value; the status is null if the asset has no pair."""

    pair_key: int | None
    price: str | None
    value: str | None
    value_status: ActivityValueStatus | None


class FoldedFeeRow(ValuedActivityRow, frozen=True):
    """`report_folded_fees`: a fee, and the activity of the same transaction that shows it."""

    shown_with: str
