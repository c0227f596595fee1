"""What the named queries return: one struct per query, its fields named and ordered as the query's columns.

Times are naive UTC, as DuckDB gives them; raw amounts are text; an amount in whole tokens is null when the token's
decimals are unknown. How an answer looks does not go here.
"""

from datetime import UTC, datetime
from typing import overload

import msgspec


class Row(msgspec.Struct, frozen=True):
    """Base of the rows of named queries."""


class VersionsRow(Row, frozen=True):
    """`versions_of_number`: which versions show a tenant a number of its own: after one, up to another."""

    after_version: int
    last_version: int


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
