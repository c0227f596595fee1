"""What the queries of this folder return: one struct per query, its fields named and ordered as the columns."""

from datetime import datetime

from api.engine.rows import Row
from api.schema import MetadataStatus, OpenedBy, Reconciliation
from api.subjects.schemas import ContractStatus, SupplyStatus
from api.tokens.schemas import HolderChangeKind, HoldersStatus


class SupplyChangeRow(Row, frozen=True):
    """`token_supply_changes`: the last supply in one interval, or before all of them (bucket null)."""

    range_from_block: int
    bucket: datetime | None
    total_supply_raw: str
    total_supply: str | None
    supply_status: SupplyStatus


class ContractStatusRow(Row, frozen=True):
    """`contract_statuses`: what is at the addresses of a page of tokens."""

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
    """One holder: `holders_by_*`; `before_raw` is what it had earlier, null where not known or not asked for."""

    rank: int
    holder_address: str
    quantity_raw: str
    percentage: str | None
    reconciliation: Reconciliation
    checked_block_number: int | None
    opened_by: OpenedBy
    before_raw: str | None


class HolderCountRow(Row, frozen=True):
    """`holder_counts`: the holders of a token; null until something is collected."""

    subject_key: int
    holder_count: int | None
    holders_status: HoldersStatus


class SupplyRow(Row, frozen=True):
    """`supply_as_of`: the supply at a block, and how certain it is."""

    total_supply_raw: str
    total_supply: str | None
    supply_status: SupplyStatus
    opened_by: OpenedBy


class QuantitiesRow(Row, frozen=True):
    """`holder_quantities`: what the holders have, apart by blanks; null without any."""

    quantities_raw: str | None


class HolderChangeRow(Row, frozen=True):
    """`cap_table_changes`: two cap tables in numbers, and one holder that differs (null when the page is empty).

    `position` is what pages go on after.
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
