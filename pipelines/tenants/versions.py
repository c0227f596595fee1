"""Versions of each tenant's data: the horizon on each network, and a number that belongs to the tenant alone.

The marts are built for all tenants together. A build shows more to a tenant in two cases only. Its own data changed, or
blocks without rows were collected and a new period of absolute time began.
"""

from datetime import datetime, timedelta
from typing import Any

import duckdb

from control.clock import stored_now
from pipelines.raw.builds import has_relation, is_behind
from pipelines.raw.database import sql, transaction

_KEPT = timedelta(days=1)
_NOTHING_HELD = "(select null::bigint, null::boolean, null::bigint, null::bigint where false)"


def transform_due(connection: duckdb.DuckDBPyConnection, as_of_seconds: int) -> bool:
    """Return whether dbt has work to do.

    It does if the marts are behind. It also does if a tenant may see more anyway, so that as-of advances over blocks
    without rows.
    """
    return is_behind(connection) or is_any_due(connection, as_of_seconds)


def is_any_due(connection: duckdb.DuckDBPyConnection, as_of_seconds: int, now: datetime | None = None) -> bool:
    """Return whether any tenant may see more from now on.

    Args:
        as_of_seconds: length of the periods of absolute time.
        now: UTC without a zone.
    """
    return bool(_moving(connection, as_of_seconds, now or stored_now()))


def advance(
    connection: duckdb.DuckDBPyConnection, published: int, as_of_seconds: int, now: datetime | None = None
) -> list[str]:
    """Show more to tenants, before a build of the marts; return these tenants.

    Each gets another number, unless its last number has not been published yet.

    Args:
        published: the newest known version.
        as_of_seconds: length of the periods of absolute time.
        now: UTC without a zone.
    """
    now = now or stored_now()
    with transaction(connection):
        moving = _moving(connection, as_of_seconds, now)
        for tenant_id, revision, failing in moving:
            numbered = connection.execute(
                """
                update raw.tenant_versions set raised_at = ?, revision = ?, failing = ?
                where tenant_id = ? and after_version = ?
                returning data_version
                """,
                [now, revision, failing, tenant_id, published],
            ).fetchone()
            if numbered is None:
                connection.execute(
                    """
                    insert into raw.tenant_versions
                    select ?, coalesce(max(data_version), 0) + 1, ?, ?, ?, ?
                    from raw.tenant_versions where tenant_id = ?
                    """,
                    [tenant_id, published, now, revision, failing, tenant_id],
                )
        tenants = [row[0] for row in moving]
        connection.execute(
            """
            delete from raw.tenant_horizons
            where
                tenant_id in (select unnest(?::varchar[]))
                or tenant_id not in (select tenant_id from raw.control_tenants)
            """,
            [tenants],
        )
        connection.execute(sql("move_horizons"), {"tenants": tenants})
        connection.execute(
            """
            delete from raw.tenant_versions
            where
                tenant_id not in (select tenant_id from raw.control_tenants)
                or raised_at < ?
                and (tenant_id, data_version) not in (
                    select (tenant_id, max(data_version)) from raw.tenant_versions group by tenant_id
                )
            """,
            [now - _KEPT],
        )
    return tenants


def _moving(connection: duckdb.DuckDBPyConnection, as_of_seconds: int, now: datetime) -> list[tuple[Any, ...]]:
    held = "intermediate.int_views_transformed" if has_relation(connection, "int_views_transformed") else _NOTHING_HELD
    text = sql("moving_tenants").replace("$held", held)
    built = connection.execute("select coalesce(max(batch_id), -1) from raw.transforms").fetchone()
    assert built is not None
    return connection.execute(text, {"built": built[0], "seconds": as_of_seconds, "now": now}).fetchall()
