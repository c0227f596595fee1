"""Records of builds and publications, and checks whether the marts are behind the raw tables."""

from datetime import timedelta

import duckdb

from control.clock import stored_now
from pipelines.raw.database import transaction


def is_behind(connection: duckdb.DuckDBPyConnection) -> bool:
    """Return whether collected or configured data is not published yet.

    Rows, prices, the configuration, a market list or the status of a network or price source changed since the last
    complete build, or that build was never published.
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
            -- The clock was ahead, and times of later changes are before that of the build.
            or built.finished_at > $now
            or exists (select 1 from raw.changes where changes.batch_id > built.batch_id)
            or exists (select 1 from raw.price_changes where price_changes.batch_id > built.batch_id)
            or built.control_revision is distinct from (select max(revision) from raw.control_revisions)
            or built.batch_id is distinct from (select max(batch_id) from raw.publications)
            or exists (select 1 from raw.reorganisations where reorganisations.batch_id > built.batch_id)
            or exists (
                select 1
                from (
                    select status_since from raw.network_states
                    union all
                    select status_since from raw.price_polls
                    union all
                    select status_since from raw.market_lists
                ) as states
                where states.status_since > built.finished_at and states.status_since <= $now
            )
        from built
        """,
        {"now": stored_now()},
    ).fetchone()
    assert row is not None
    return bool(row[0])


def has_relation(connection: duckdb.DuckDBPyConnection, name: str) -> bool:
    """Return whether a model that cycles read was built; none is before the first build."""
    found = connection.execute(
        "select 1 from information_schema.tables where table_schema in ('intermediate', 'requests') and table_name = ?",
        [name],
    ).fetchone()
    return found is not None


def was_read_to_end(connection: duckdb.DuckDBPyConnection, batch_id: int) -> bool:
    """Return whether history, an attestation or a price discovery was finished since the batch but not published."""
    row = connection.execute(
        """
        select
            exists (
                select 1
                from raw.history_requests as requests
                inner join raw.covered_ranges as covered
                    on
                        requests.subject_key = covered.subject_key
                        and not covered.is_native
                        and requests.from_block >= covered.from_block
                        and requests.to_block <= covered.to_block
                inner join raw.changes on requests.subject_key = changes.subject_key and changes.batch_id > $batch
                where requests.status = 'Running'
            )
            or exists (select 1 from raw.attestations where attestations.batch_id > $batch)
            or exists (
                select 1
                from raw.price_discoveries as discoveries
                where
                    discoveries.status = 'Running'
                    and discoveries.changed_batch > $batch
                    and not exists (
                        select 1
                        from raw.discovery_readings as readings
                        where readings.operation_key = discoveries.operation_key and not readings.is_finished
                    )
            )
        """,
        {"batch": batch_id},
    ).fetchone()
    assert row is not None
    return bool(row[0])


def has_prices_to_build(connection: duckdb.DuckDBPyConnection) -> bool:
    """Return whether any tenant has a price pair, or had one that is still in the marts."""
    row = connection.execute(
        "select exists (select 1 from raw.control_price_pairs) or exists (select 1 from raw.price_changes)"
    ).fetchone()
    assert row is not None
    return bool(row[0])


def has_attestations_to_build(connection: duckdb.DuckDBPyConnection) -> bool:
    """Return whether a past block of any subject was attested, or an attestation is still in the marts."""
    known = "select 1 from intermediate.int_attestations"
    if not has_relation(connection, "int_attestations"):
        known = "select 1 where false"
    row = connection.execute(f"select exists (select 1 from raw.attestations) or exists ({known})").fetchone()
    assert row is not None
    return bool(row[0])


def has_wallets_to_build(connection: duckdb.DuckDBPyConnection) -> bool:
    """Return whether any tenant has a wallet, or had one at the last build of the marts."""
    row = connection.execute(
        """
        select
            exists (select 1 from raw.control_subjects where kind = 'wallet')
            or (select max(control_revision) from raw.transforms)
            is distinct from (select max(revision) from raw.control_revisions)
        """
    ).fetchone()
    assert row is not None
    return bool(row[0])


def has_values_to_build(connection: duckdb.DuckDBPyConnection) -> bool:
    """Return whether days of tokens or of wallets are valued, or were at the last build of the marts."""
    return has_prices_to_build(connection) or has_wallets_to_build(connection)


def build_identity(project_fingerprint: str, mark: str) -> str:
    """Return the identity of a build for `raw.transforms`: the project, and the mark in the build file of the marts."""
    return f"{project_fingerprint} {mark}"


def begin_build(
    connection: duckdb.DuckDBPyConnection, project_fingerprint: str, mark_before: str | None, mark: str
) -> bool:
    """Return whether the build of the dbt project that begins now may keep the rows of the marts.

    There are two conditions. Since the last complete build, only builds of the same project wrote them. Their file is
    the one that the newest build wrote, neither older nor newer. If one fails, all builds start from nothing until one
    is complete, because a build that fails half-way leaves tables of two projects.

    Args:
        project_fingerprint: of the project as it is now.
        mark_before: mark that the newest build left in the build file; None if that is lost or damaged.
        mark: mark of the build that begins, already written there.
    """
    row = connection.execute("select max(project_fingerprint) from raw.transforms").fetchone()
    assert row is not None
    keeps = mark_before is not None and row[0] == build_identity(project_fingerprint, mark_before)
    now = build_identity(project_fingerprint, mark) if keeps else ""
    connection.execute("update raw.transforms set project_fingerprint = ?", [now])
    return keeps


def record_transform(connection: duckdb.DuckDBPyConnection, batch_id: int, build: str) -> None:
    """Record that the marts contain everything up to the batch; delete marks up to the batch.

    Args:
        batch_id: newest batch of the build.
        build: `build_identity`.
    """
    with transaction(connection):
        connection.execute("delete from raw.transforms")
        connection.execute(
            "insert into raw.transforms select ?, max(revision), ?, ? from raw.control_revisions",
            [batch_id, build, stored_now()],
        )
        connection.execute("delete from raw.changes where batch_id <= ?", [batch_id])
        connection.execute("delete from raw.price_changes where batch_id <= ?", [batch_id])


def transformed_batch(connection: duckdb.DuckDBPyConnection) -> int:
    """Return the batch that the marts contain; 0 before the first build."""
    row = connection.execute("select coalesce(max(batch_id), 0) from raw.transforms").fetchone()
    assert row is not None
    return int(row[0])


def transformed_revision(connection: duckdb.DuckDBPyConnection) -> int:
    """Return the revision of the control store that the marts contain; 0 before the first build."""
    row = connection.execute("select coalesce(max(control_revision), 0) from raw.transforms").fetchone()
    assert row is not None
    return int(row[0])


def newest_publication(connection: duckdb.DuckDBPyConnection) -> int:
    """Return the newest published version; 0 before the first."""
    row = connection.execute("select coalesce(max(version), 0) from raw.publications").fetchone()
    assert row is not None
    return int(row[0])


def newest_published_batch(connection: duckdb.DuckDBPyConnection) -> int:
    """Return the newest cycle in the newest published version; 0 before the first."""
    row = connection.execute("select coalesce(max(batch_id), 0) from raw.publications").fetchone()
    assert row is not None
    return int(row[0])


def record_publication(connection: duckdb.DuckDBPyConnection, version: int, batch_id: int) -> None:
    """Record that a version with everything up to the batch is published."""
    connection.execute("insert into raw.publications values (?, ?, ?)", [version, batch_id, stored_now()])


def finish_batch(connection: duckdb.DuckDBPyConnection, batch_id: int) -> None:
    """Record that the cycle's extraction is finished."""
    connection.execute("update raw.batches set finished_at = ? where batch_id = ?", [stored_now(), batch_id])


def remove_old_records(connection: duckdb.DuckDBPyConnection, keep: timedelta) -> int:
    """Delete the cycles' own records that are older than `keep`; return the number of batches. Facts remain."""
    with transaction(connection):
        old = connection.execute(
            "delete from raw.batches where started_at < ? returning batch_id", [stored_now() - keep]
        ).fetchall()
        newest = max((batch for (batch,) in old), default=0)
        for table in ("collections", "collection_failures"):
            connection.execute(f"delete from raw.{table} where batch_id <= ?", [newest])
    return len(old)
