"""Result rows of this folder's queries: one struct per query; its fields have the names and order of the columns."""

from datetime import datetime

from api.engine.rows import Row
from api.schema import MetadataStatus, OpenedBy, Reconciliation, TrackingStatus
from api.subjects.schemas import ContractStatus, SupplyStatus
from api.tokens.schemas import HolderChangeKind, HoldersStatus, HolderType


class SupplyChangeRow(Row, frozen=True):
    """`token_supply_changes`: the last supply in one interval, or before all of them (bucket null)."""

    range_from_block: int
    bucket: datetime | None
    total_supply_raw: str
    total_supply: str | None
    supply_status: SupplyStatus


class ContractStatusRow(Row, frozen=True):
    """`contract_statuses`: status of the contract at a token's address."""

    subject_key: int
    contract_status: ContractStatus
    metadata_status: MetadataStatus | None


class MetadataRow(Row, frozen=True):
    """`token_metadata`: metadata of a contract, with the values of a later reading that differs."""

    symbol: str | None
    name: str | None
    detail: str | None
    read_at: datetime
    checked_at: datetime
    confirmed_at: datetime | None
    found_at: datetime | None
    found_contract_status: ContractStatus | None
    found_standard: str | None
    found_symbol: str | None
    found_name: str | None
    found_decimals: int | None


class HolderRow(Row, frozen=True):
    """One holder: `holders_by_*`.

    Without known decimals, `quantity` is in base units and `value` is null. `change` is the change of the quantity
    since an earlier moment; null if the earlier quantity is not known, or without such a moment.
    """

    rank: int
    holder_address: str
    quantity: str
    quantity_raw: str
    percentage: str | None
    value: str | None
    reconciliation: Reconciliation
    checked_block_number: int | None
    opened_by: OpenedBy
    change: str | None


class FileRow(HolderRow, frozen=True):
    """One holder with its labels, for a file, which has columns and no structs: `file_of_holders_by_*`."""

    wallet: str
    name: str | None
    wallet_id: str | None
    holder_type: HolderType | None
    wallet_tracking_status: TrackingStatus | None


class HolderCountRow(Row, frozen=True):
    """`holder_counts`: the number of holders of a token; null until blocks are collected."""

    subject_key: int
    holder_count: int | None
    holders_status: HoldersStatus


class SupplyRow(Row, frozen=True):
    """`supply_as_of`: the supply at a block, with its status."""

    total_supply_raw: str
    total_supply: str | None
    supply_status: SupplyStatus
    opened_by: OpenedBy


class QuantitiesRow(Row, frozen=True):
    """`holder_quantities`: quantities of all holders, separated by spaces; null if there are none."""

    quantities_raw: str | None


class HolderChangeRow(Row, frozen=True):
    """`cap_table_changes`: totals of two cap tables, and one changed holder (null if the page is empty).

    `position` is the key for the next page.
    """

    holders_before: int
    holders_after: int
    new_count: int
    gone_count: int
    changed_count: int
    matching_count: int
    position: int | None
    holder_address: str | None
    change: HolderChangeKind | None
    before_raw: str | None
    after_raw: str | None
    difference_raw: str | None
    percentage_before: str | None
    percentage_after: str | None
