"""Whether the marts are behind the raw tables, and the record of what was transformed and published."""

from datetime import timedelta

import duckdb

from pipelines.load.warehouse import transaction, utc_now


def transform_due(connection: duckdb.DuckDBPyConnection, as_of_seconds: int) -> bool:
    """Tell whether dbt has something to do.

    It has when rows, prices, the configuration, a market list or the status of a network or price source changed since
    the last complete build, when that build was never published, while price discoveries wait for the time after
    publication, and, so that as-of advances over blocks without rows, when it is older than `as_of_seconds`.
    """
    row = connection.execute(
        """
        with built as (
            select
                max(batch_id) as batch_id,
                arg_max(control_revision, batch_id) as control_revision,
                max(finished_at) as finished_at
            from raw.transforms
        )

        select
            built.batch_id is null
            or exists (select 1 from raw.changes where changes.batch_id > built.batch_id)
            or exists (select 1 from raw.price_changes where price_changes.batch_id > built.batch_id)
            or built.control_revision is distinct from (select max(revision) from raw.control_revisions)
            or built.batch_id is distinct from (select max(batch_id) from raw.publications)
            or exists (select 1 from raw.reorganisations where reorganisations.batch_id > built.batch_id)
            or exists (select 1 from raw.network_states where network_states.status_since > built.finished_at)
            or exists (
                select 1
                from raw.control_price_discoveries as requests
                left join raw.price_discoveries as known on requests.operation_key = known.operation_key
                where coalesce(known.status, requests.status) in ('Pending', 'Running')
            )
            or exists (select 1 from raw.price_polls where price_polls.status_since > built.finished_at)
            or exists (select 1 from raw.market_lists where market_lists.status_since > built.finished_at)
            or (
                built.finished_at < ?
                and exists (select 1 from raw.coverage where coverage.collected_at > built.finished_at)
            )
        from built
        """,
        [utc_now() - timedelta(seconds=as_of_seconds)],
    ).fetchone()
    assert row is not None
    return bool(row[0])


def has_prices_to_build(connection: duckdb.DuckDBPyConnection) -> bool:
    """Tell whether any tenant has a price pair, or had one that the marts still know."""
    row = connection.execute(
        "select exists (select 1 from raw.control_price_pairs) or exists (select 1 from raw.price_changes)"
    ).fetchone()
    assert row is not None
    return bool(row[0])


def built_fingerprint(connection: duckdb.DuckDBPyConnection) -> str | None:
    """The fingerprint of the dbt project that built the marts; None before the first build."""
    row = connection.execute("select max(project_fingerprint) from raw.transforms").fetchone()
    assert row is not None
    return None if row[0] is None else str(row[0])


def record_transform(connection: duckdb.DuckDBPyConnection, batch_id: int, project_fingerprint: str) -> None:
    """Record that the marts hold everything up to the batch; marks that are in the marts now are dropped."""
    with transaction(connection):
        connection.execute("delete from raw.transforms")
        connection.execute(
            "insert into raw.transforms select ?, max(revision), ?, ? from raw.control_revisions",
            [batch_id, project_fingerprint, utc_now()],
        )
        connection.execute("delete from raw.changes where batch_id <= ?", [batch_id])
        connection.execute("delete from raw.price_changes where batch_id <= ?", [batch_id])


def transformed_batch(connection: duckdb.DuckDBPyConnection) -> int:
    """The batch that the marts hold; 0 before the first build."""
    row = connection.execute("select coalesce(max(batch_id), 0) from raw.transforms").fetchone()
    assert row is not None
    return int(row[0])


def record_publication(connection: duckdb.DuckDBPyConnection, version: int, batch_id: int) -> None:
    """Record that a version with everything up to the batch is published."""
    connection.execute("insert into raw.publications values (?, ?, ?)", [version, batch_id, utc_now()])


def finish_batch(connection: duckdb.DuckDBPyConnection, batch_id: int) -> None:
    """Record that the cycle's extraction came to its end."""
    connection.execute("update raw.batches set finished_at = ? where batch_id = ?", [utc_now(), batch_id])


def remove_old_records(connection: duckdb.DuckDBPyConnection, keep: timedelta) -> int:
    """Remove the cycles' own records that are older than `keep`; return how many batches went. Facts stay."""
    with transaction(connection):
        old = connection.execute(
            "delete from raw.batches where started_at < ? returning batch_id", [utc_now() - keep]
        ).fetchall()
        newest = max((batch for (batch,) in old), default=0)
        for table in ("collections", "collection_failures"):
            connection.execute(f"delete from raw.{table} where batch_id <= ?", [newest])
    return len(old)
