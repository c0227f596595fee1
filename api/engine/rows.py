"""Result rows of the named queries: one struct per query; its fields have the names and order of the columns.

Times are naive UTC, as DuckDB returns them. Raw amounts are text. An amount in whole tokens is null if the token's
decimals are unknown. The format of answers belongs elsewhere.
"""

from datetime import UTC, datetime
from typing import overload

import msgspec


class Row(msgspec.Struct, frozen=True):
    """Base class of the rows of named queries."""


class VersionsRow(Row, frozen=True):
    """`versions_of_number`: the published versions that have a tenant's data version: after one, up to another."""

    after_version: int
    last_version: int


@overload
def as_utc(instant: datetime) -> datetime: ...
@overload
def as_utc(instant: None) -> None: ...
def as_utc(instant: datetime | None) -> datetime | None:
    """Convert a naive UTC time of the marts to an aware one."""
    return None if instant is None else instant.replace(tzinfo=UTC)


def as_naive(instant: datetime) -> datetime:
    """Convert an aware instant to naive UTC, the form of times in the marts."""
    return instant.astimezone(UTC).replace(tzinfo=None)
