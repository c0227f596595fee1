"""Result rows of this folder's queries: one struct per query; its fields have the names and order of the columns."""

from datetime import date, datetime

from api.engine.rows import Row


class NetworkHeadRow(Row, frozen=True):
    """`network_head`: a network's newest block, and the oldest stored block of its tail."""

    head_number: int | None
    head_time: datetime | None
    tail_number: int | None
    tail_time: datetime | None


class CollectionPaceRow(Row, frozen=True):
    """`collection_paces`: the observed cost of a million blocks or balances at a network's node, by kind of work."""

    work: str
    requests_per_million: int
    answer_bytes_per_million: int
    milliseconds_per_million: int


class DataFilesRow(Row, frozen=True):
    """`data_files`: files of a data set for the same blocks; these are null before files of a day were read."""

    data_set: str
    day: date | None
    from_block: int | None
    to_block: int | None
    file_count: int
    byte_count: int
