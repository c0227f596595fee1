"""Result rows of this folder's queries: one struct per query; its fields have the names and order of the columns."""

from datetime import datetime

from api.engine.rows import Row
from api.networks.schemas import ProbedStatus


class NetworkRow(Row, frozen=True):
    """`networks`: a network with the result of its last probe."""

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
    has_input_addresses: bool | None


class StatisticsRow(Row, frozen=True):
    """`statistics_activities`: the activities of one interval, or of the whole range (bucket null)."""

    bucket: datetime | None
    token_activities: int
    wallet_activities: int
    active_wallets: int


class MissingRow(Row, frozen=True):
    """`statistics_gaps`: an interval in which a subject is not covered; a null bound is open."""

    from_time: datetime | None
    to_time: datetime | None


class NewestRow(Row, frozen=True):
    """`newest_collected`: the newest collected block; its time is null when it was not stored."""

    block_number: int
    block_time: datetime | None
