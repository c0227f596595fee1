"""Result rows of this folder's queries: one struct per query; its fields have the names and order of the columns."""

from datetime import datetime

from api.engine.rows import Row
from api.schema import Finality, GapReason, MetadataStatus, Verified
from api.subjects.schemas import Behaviour, ContractStatus, SupplyStatus


class TenantHeadRow(Row, frozen=True):
    """`tenant_heads`: the newest final block of each network that a tenant may see."""

    network: str
    final_number: int | None


class TokenRow(Row, frozen=True):
    """`token`: facts about a token at its newest covered block."""

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
    """`wallet`: the newest covered block of a wallet."""

    as_of_block_number: int | None
    as_of_block_hash: str | None
    as_of_block_time: datetime | None
    as_of_finality: Finality | None


class CoverageRow(Row, frozen=True):
    """`coverage`: a covered range or a gap of a subject's view, in order."""

    from_block: int
    to_block: int | None
    from_time: datetime | None
    to_time: datetime | None
    is_covered: bool
    reason: GapReason | None
    verified: Verified | None = None
    source: str | None = None


class BlockRow(Row, frozen=True):
    """`block`, `newest_block_before`: a stored block."""

    block_number: int
    block_hash: str
    block_time: datetime
