"""What the named queries return: one struct per query, its fields named and ordered as the query's columns.

Times are naive UTC, as DuckDB gives them; raw amounts are text; an amount in whole tokens is null when the token's
decimals are unknown. How an answer looks does not go here.
"""

from datetime import UTC, datetime
from typing import Literal, overload

import msgspec

from api.schemas.common import (
    ActivityStatus,
    Finality,
    GapReason,
    MetadataStatus,
    OpenedBy,
    Reconciliation,
    Verified,
)
from api.schemas.ledgers import ProbedStatus
from api.schemas.tokens import (
    Behaviour,
    ContractStatus,
    HolderChangeKind,
    HoldersStatus,
    SupplyStatus,
    TokenActivityType,
)
from api.schemas.wallets import AmountStatus, Direction, WalletActivityStatus, WalletActivityType


class Row(msgspec.Struct, frozen=True):
    """Base of the rows of named queries."""


class NetworkRow(Row, frozen=True):
    """`networks`: a network as last probed."""

    network: str
    display_name: str
    family: str
    chain_id: int | None
    is_testnet: bool
    native_symbol: str
    status: ProbedStatus
    status_detail: str | None
    head_number: int | None
    head_time: datetime | None
    final_number: int | None
    has_archive: bool | None
    has_traces: bool | None


class NetworkHeadRow(Row, frozen=True):
    """`network_head`: a network's newest block, and the oldest one stored of its tail."""

    head_number: int | None
    head_time: datetime | None
    tail_number: int | None
    tail_time: datetime | None


class CollectionPaceRow(Row, frozen=True):
    """`collection_paces`: what a million blocks, or balances, took of a network's node, by kind of work."""

    work: str
    requests_per_million: int
    answer_bytes_per_million: int
    milliseconds_per_million: int


class AttestationRow(Row, frozen=True):
    """`attestations`: what was attested of a subject."""

    attestation_number: int
    block_number: int
    block_hash: str
    block_time: datetime | None
    is_automatic: bool
    status: Literal["Reconciled", "Adjusted", "Incomplete"]
    balance_count: int
    read_count: int
    difference_count: int
    unconfirmed_count: int
    balances_raw: str | None
    balances: str | None
    total_supply_raw: str | None
    total_supply: str | None
    supply_difference_raw: str | None
    supply_difference: str | None
    attested_at: datetime
    superseded_by: Literal["NewHolder", "FilledGap", "ChainReset", "OtherBalance"] | None


class StandingAttestationRow(Row, frozen=True):
    """`standing_attestations`: a block of a subject whose attestation stands."""

    block_number: int


class UnconfirmedBalancesRow(Row, frozen=True):
    """`unconfirmed_balances`: what an attestation of a block would read."""

    balance_count: int
    is_supply_read: bool


class VersionsRow(Row, frozen=True):
    """`versions_of_number`: which versions show a tenant a number of its own: after one, up to another."""

    after_version: int
    last_version: int


class TenantHeadRow(Row, frozen=True):
    """`tenant_heads`: the newest final block that a tenant is shown of a network."""

    network: str
    final_number: int | None


class TokenRow(Row, frozen=True):
    """`token`: what is known of a token at its newest covered block."""

    contract_status: ContractStatus
    standard: str | None
    behaviour: Behaviour | None
    decimals: int | None
    created_block_number: int | None
    total_supply_raw: str | None
    total_supply: str | None
    total_supply_status: SupplyStatus
    holder_count: int | None
    as_of_block_number: int | None
    as_of_block_hash: str | None
    as_of_block_time: datetime | None
    as_of_finality: Finality | None
    metadata_status: MetadataStatus | None


class WalletRow(Row, frozen=True):
    """`wallet`: what is known of a wallet at its newest covered block."""

    as_of_block_number: int | None
    as_of_block_hash: str | None
    as_of_block_time: datetime | None
    as_of_finality: Finality | None


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


class MetadataStatusRow(Row, frozen=True):
    """`metadata_statuses`: whether a second reading of each contract agreed."""

    token_address: str
    metadata_status: MetadataStatus


class CoverageRow(Row, frozen=True):
    """`coverage`: a covered range or a gap of a subject's view, in order."""

    from_block: int
    to_block: int | None
    from_time: datetime | None
    to_time: datetime | None
    is_covered: bool
    reason: GapReason | None
    verified: Verified | None = None


class BlockRow(Row, frozen=True):
    """`block`, `newest_block_before`: a stored block."""

    block_number: int
    block_hash: str
    block_time: datetime


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


class BalanceAsOfRow(Row, frozen=True):
    """`balances_as_of`: the balance of one asset of a wallet."""

    token_address: str
    token_symbol: str | None
    quantity_raw: str
    quantity: str | None
    reconciliation: Reconciliation
    checked_block_number: int | None
    opened_by: OpenedBy


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


class TokenIdRow(Row, frozen=True):
    """`wallet_token_ids`: the tenant's own token with this address."""

    token_address: str
    token_id: str


class HeldAssetRow(Row, frozen=True):
    """`wallets_with_assets`: a wallet that ever held one of the assets asked for."""

    subject_key: int


class PositionRow(Row, frozen=True):
    """`wallet_balances`: one position of a wallet."""

    token_address: str
    token_id: str | None
    token_symbol: str | None
    quantity_raw: str
    quantity: str | None
    reconciliation: Reconciliation
    checked_block_number: int | None
    opened_by: OpenedBy


class BalanceChangeRow(Row, frozen=True):
    """`wallet_balance_changes`: the last balance of one token in one interval, or before all of them (bucket null)."""

    token_address: str
    token_symbol: str | None
    range_from_block: int
    bucket: datetime | None
    balance_raw: str
    balance: str | None


class StatisticsRow(Row, frozen=True):
    """`statistics_activities`: the activities of one interval, or of all of them (bucket null)."""

    bucket: datetime | None
    token_activities: int
    wallet_activities: int
    active_wallets: int


class MissingRow(Row, frozen=True):
    """`statistics_gaps`: a time in which something is not covered; a null bound is open."""

    from_time: datetime | None
    to_time: datetime | None


class NewestRow(Row, frozen=True):
    """`newest_collected`: the newest collected block; its time is null when it was not stored."""

    block_number: int
    block_time: datetime | None


class SourcePollRow(Row, frozen=True):
    """`source_polls`: how the pipeline gets on with a price source that it has asked."""

    source_id: str
    polled_at: datetime
    poll_error: str | None


class ListedSymbolRow(Row, frozen=True):
    """`listed_symbols`: whether a source's market list is there, and has a live market with a symbol in it."""

    source_id: str
    symbol: str
    is_collected: bool
    is_listed: bool


@overload
def as_utc(instant: datetime) -> datetime: ...
@overload
def as_utc(instant: None) -> None: ...
def as_utc(instant: datetime | None) -> datetime | None:
    """Return a naive UTC time of the marts as an aware one."""
    return None if instant is None else instant.replace(tzinfo=UTC)


def as_naive(instant: datetime) -> datetime:
    """Return an aware instant as the naive UTC time that the marts hold."""
    return instant.astimezone(UTC).replace(tzinfo=None)
