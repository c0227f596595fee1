"""What the queries of this folder return: one struct per query, its fields named and ordered as the columns."""

from datetime import datetime

from api.engine.rows import Row
from api.networks.schemas import ProbedStatus


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
