"""Writing what a chain said: rows, their coverage and their marks for the marts in one transaction."""

from collections.abc import Iterable, Sequence

import duckdb
import polars as pl

from pipelines.load.coverage import Watched, record_coverage
from pipelines.load.ranges import BlockRange
from pipelines.load.warehouse import sql, transaction, utc_now


class HashMismatchError(Exception):
    """Rows name another hash for a block than its stored header: the chain moved while it was read."""

    def __init__(self, block_number: int) -> None:
        super().__init__(f"block {block_number} changed while it was being read")
        self.block_number = block_number


def insert_blocks(connection: duckdb.DuckDBPyConnection, network: str, headers: pl.DataFrame, batch_id: int) -> None:
    """Add headers that are not stored yet (columns of `read_headers`)."""
    connection.register("headers", headers)
    connection.execute(
        """
        insert into raw.blocks
        select ?, headers.block_number, headers.block_hash, headers.parent_hash, headers.block_time, ?
        from headers
        where not exists (
            select 1 from raw.blocks
            where blocks.network = ? and blocks.block_number = headers.block_number
        )
        """,
        [network, batch_id, network],
    )
    connection.unregister("headers")


def missing_headers(connection: duckdb.DuckDBPyConnection, network: str, numbers: Iterable[int]) -> list[int]:
    """Those of the block numbers whose header is not stored, in order."""
    wanted = pl.DataFrame({"block_number": sorted(set(numbers))}, schema={"block_number": pl.Int64})
    connection.register("wanted", wanted)
    rows = connection.execute(
        """
        select wanted.block_number
        from wanted
        anti join (select block_number from raw.blocks where network = ?) as blocks
            on wanted.block_number = blocks.block_number
        order by wanted.block_number
        """,
        [network],
    ).fetchall()
    connection.unregister("wanted")
    return [number for (number,) in rows]


def _check_hashes(connection: duckdb.DuckDBPyConnection, network: str, covered: BlockRange) -> None:
    row = connection.execute(
        """
        select min(incoming.block_number)
        from incoming
        left join raw.blocks
            on blocks.network = ? and incoming.block_number = blocks.block_number
            and blocks.block_number between ? and ?
        where blocks.block_hash is distinct from incoming.block_hash
        """,
        [network, *covered],
    ).fetchone()
    if row is not None and row[0] is not None:
        raise HashMismatchError(int(row[0]))


def _insert(
    connection: duckdb.DuckDBPyConnection, table: str, network: str, rows: pl.DataFrame, covered: BlockRange, batch: int
) -> None:
    if rows.is_empty():
        return
    connection.register("incoming", rows)
    try:
        _check_hashes(connection, network, covered)
        connection.execute(
            f"insert into raw.{table} by name select *, ? as network, ? as batch_id from incoming", [network, batch]
        )
    finally:
        connection.unregister("incoming")


def replace_token_range(
    connection: duckdb.DuckDBPyConnection,
    network: str,
    tokens: Sequence[str],
    covered: BlockRange,
    transfers: pl.DataFrame,
    provider: str,
    batch_id: int,
) -> None:
    """Replace the transfers of the tokens in the range by those given, with coverage, in one transaction.

    Args:
        tokens: the contracts that were asked for; each is covered, also without rows.
        transfers: columns of `fetch_transfers`; their headers are stored already.

    Raises:
        HashMismatchError: a row's block hash is not that of the stored header; nothing is written.
    """
    counts = dict(transfers.group_by("token_address").len().iter_rows())
    with transaction(connection):
        connection.execute(
            """
            delete from raw.token_transfers
            where network = ? and block_number between ? and ? and token_address in (select unnest(?::varchar[]))
            """,
            [network, *covered, list(tokens)],
        )
        _insert(connection, "token_transfers", network, transfers, covered, batch_id)
        subjects = {Watched("token", token): counts.get(token, 0) for token in tokens}
        record_coverage(connection, network, subjects, covered, provider, batch_id)


def replace_wallet_range(
    connection: duckdb.DuckDBPyConnection,
    network: str,
    wallets: Sequence[str],
    covered: BlockRange,
    transfers: pl.DataFrame,
    transactions: pl.DataFrame,
    provider: str,
    batch_id: int,
) -> None:
    """Replace the wallets' token transfers and transactions in the range, with coverage, in one transaction.

    Raises:
        HashMismatchError: a row's block hash is not that of the stored header; nothing is written.
    """
    counts = dict.fromkeys(wallets, 0)
    for frame in (transfers, transactions):
        for sender, recipient in frame.select("from_address", "to_address").iter_rows():
            for party in {sender, recipient} & counts.keys():
                counts[party] += 1
    with transaction(connection):
        for table in ("token_transfers", "transactions"):
            connection.execute(
                f"""
                delete from raw.{table}
                where
                    network = ? and block_number between ? and ?
                    and (
                        from_address in (select unnest(?::varchar[]))
                        or to_address in (select unnest(?::varchar[]))
                    )
                """,
                [network, *covered, list(wallets), list(wallets)],
            )
        _insert(connection, "token_transfers", network, transfers, covered, batch_id)
        _insert(connection, "transactions", network, transactions, covered, batch_id)
        subjects = {Watched("wallet", wallet): count for wallet, count in counts.items()}
        record_coverage(connection, network, subjects, covered, provider, batch_id)


def insert_balance_observations(
    connection: duckdb.DuckDBPyConnection, network: str, observations: pl.DataFrame, purpose: str, batch_id: int
) -> None:
    """Add balances as read (columns of `read_balances`) and mark every subject that they concern."""
    connection.register("observed", observations)
    with transaction(connection):
        connection.execute(
            """
            insert into raw.balance_observations
            select
                ?, observed.token_address, observed.holder_address, observed.block_number, observed.block_hash,
                observed.quantity_raw::bignum, ?, ?
            from observed
            """,
            [network, purpose, batch_id],
        )
        connection.execute(
            """
            insert into raw.changes
            select distinct ?, subjects.subject_key, observed.block_number, observed.block_number, 'Observation'
            from raw.control_subjects as subjects
            inner join observed
                on (subjects.kind = 'token' and subjects.address = observed.token_address)
                or (subjects.kind = 'wallet' and subjects.address = observed.holder_address)
            where subjects.network = ?
            """,
            [batch_id, network],
        )
    connection.unregister("observed")


def record_observed(connection: duckdb.DuckDBPyConnection, network: str, head_number: int, batch_id: int) -> None:
    """Record that every reading owed up to the head in this batch was made."""
    with transaction(connection):
        connection.execute("delete from raw.observed_batches where network = ?", [network])
        connection.execute("insert into raw.observed_batches values (?, ?)", [network, batch_id])
        connection.execute(
            """
            insert into raw.opened_windows
            select window_key
            from raw.window_ranges
            where
                network = ? and from_block <= ? + 1
                and window_key not in (select window_key from raw.opened_windows)
            """,
            [network, head_number],
        )


def insert_supply_observations(
    connection: duckdb.DuckDBPyConnection, network: str, observations: pl.DataFrame, batch_id: int
) -> None:
    """Add total supplies as read (columns of `read_supplies`) and mark the tokens."""
    connection.register("observed", observations)
    with transaction(connection):
        connection.execute(
            """
            insert into raw.supply_observations
            select ?, token_address, block_number, block_hash, total_supply_raw::bignum, ? from observed
            """,
            [network, batch_id],
        )
        connection.execute(
            """
            insert into raw.changes
            select ?, subjects.subject_key, observed.block_number, observed.block_number, 'Observation'
            from raw.control_subjects as subjects
            inner join observed on subjects.address = observed.token_address
            where subjects.network = ? and subjects.kind = 'token'
            """,
            [batch_id, network],
        )
    connection.unregister("observed")


def replace_metadata(
    connection: duckdb.DuckDBPyConnection, network: str, metadata: pl.DataFrame, batch_id: int
) -> None:
    """Replace what is known of the contracts (columns of raw.token_metadata less network and read_at).

    Subjects whose rows show a contract that now reads differently are marked.
    """
    connection.register("incoming", metadata)
    columns = "token_address, contract_status, standard, symbol, name, decimals, detail"
    with transaction(connection):
        connection.execute(
            f"""
            create or replace temp table changed_contracts as
            select token_address
            from (
                select {columns} from incoming
                except select {columns} from raw.token_metadata where network = ?
            )
            """,
            [network],
        )
        connection.execute(
            """
            insert into raw.changes
            select distinct ?, subjects.subject_key, 0, null, 'Metadata'
            from raw.control_subjects as subjects
            where
                subjects.network = ?
                and (
                    (subjects.kind = 'token' and subjects.address in (select token_address from changed_contracts))
                    or (
                        subjects.kind = 'wallet'
                        and subjects.address in (
                            select unnest([from_address, to_address])
                            from raw.token_transfers
                            where network = ? and token_address in (select token_address from changed_contracts)
                            union
                            select holder_address
                            from raw.balance_observations
                            where network = ? and token_address in (select token_address from changed_contracts)
                        )
                    )
                )
            """,
            [batch_id, network, network, network],
        )
        connection.execute(
            """
            delete from raw.token_metadata
            where network = ? and token_address in (select token_address from incoming)
            """,
            [network],
        )
        connection.execute(
            "insert into raw.token_metadata by name select *, ? as network, ? as read_at from incoming",
            [network, utc_now()],
        )
        connection.execute("drop table changed_contracts")
    connection.unregister("incoming")


def record_healthy(
    connection: duckdb.DuckDBPyConnection, network: str, facts: dict[str, object], final_number: int, batch_id: int
) -> None:
    """Keep what the network's node said in a cycle that went well.

    Subjects with rows in blocks that became final since the last state are marked.

    Args:
        facts: the other columns of raw.network_states by name: head_*, has_*.
    """
    now = utc_now()
    before = connection.execute(
        "select status_since from raw.network_states where network = ? and status = 'Healthy'", [network]
    ).fetchone()
    row = {
        "network": network,
        "status": "Healthy",
        "status_since": before[0] if before else now,
        "final_number": final_number,
        "failures_in_a_row": 0,
        "probed_at": now,
        "batch_id": batch_id,
        **facts,
    }
    with transaction(connection):
        connection.execute(sql("mark_finalized"), {"network": network, "final": final_number, "batch": batch_id})
        connection.execute("delete from raw.network_states where network = ?", [network])
        names, marks = ", ".join(row), ", ".join("?" for _ in row)
        connection.execute(f"insert into raw.network_states ({names}) values ({marks})", list(row.values()))


def record_failure(
    connection: duckdb.DuckDBPyConnection,
    network: str,
    status: str,
    call: str,
    covered: tuple[int | None, int | None],
    detail: str,
    batch_id: int,
) -> None:
    """Note what a cycle could not collect, and the network's status; what its node said before stays known."""
    now = utc_now()
    with transaction(connection):
        connection.execute(
            "insert into raw.collection_failures values (?, ?, ?, ?, ?, ?, ?)",
            [batch_id, network, call, *covered, detail, now],
        )
        known = connection.execute(
            """
            update raw.network_states
            set
                status = $status,
                status_since = if(status = $status, status_since, $now),
                detail = $detail,
                failures_in_a_row = failures_in_a_row + 1,
                probed_at = $now,
                batch_id = $batch
            where network = $network
            returning network
            """,
            {"status": status, "now": now, "detail": detail, "batch": batch_id, "network": network},
        ).fetchall()
        if not known:
            connection.execute(
                """
                insert into raw.network_states
                    (network, status, status_since, detail, failures_in_a_row, probed_at, batch_id)
                values (?, ?, ?, ?, 1, ?, ?)
                """,
                [network, status, now, detail, now, batch_id],
            )


def record_collection(
    connection: duckdb.DuckDBPyConnection, network: str, table: str, covered: BlockRange | None, rows: int, batch: int
) -> None:
    """Note what a cycle collected, for its report."""
    first, last = covered if covered else (None, None)
    connection.execute(
        "insert into raw.collections values (?, ?, ?, ?, ?, ?)", [batch, network, table, first, last, rows]
    )


def remove_orphaned(
    connection: duckdb.DuckDBPyConnection,
    network: str,
    ancestor: int,
    orphaned_hash: str,
    canonical_hash: str,
    batch_id: int,
) -> int:
    """Remove all that rests on blocks after the common ancestor, in one transaction, and return the rows removed.

    Rows, headers and readings go; coverage is cut at the ancestor; windows that were resolved by an orphaned block
    are resolved anew; the subjects are marked from the first orphaned block on; the event is recorded.
    """
    removed = 0
    with transaction(connection):
        connection.execute(sql("mark_reorganised"), {"network": network, "ancestor": ancestor, "batch": batch_id})
        connection.execute(sql("uncount_orphaned"), {"network": network, "ancestor": ancestor})
        for table in ("token_transfers", "transactions", "balance_observations", "supply_observations", "blocks"):
            row = connection.execute(
                f"delete from raw.{table} where network = ? and block_number > ?", [network, ancestor]
            ).fetchone()
            assert row is not None
            removed += int(row[0])
        connection.execute("delete from raw.coverage where network = ? and from_block > ?", [network, ancestor])
        connection.execute(
            "update raw.coverage set to_block = ? where network = ? and to_block > ?", [ancestor, network, ancestor]
        )
        connection.execute(
            "delete from raw.window_ranges where network = ? and (from_block > ? or to_block >= ?)",
            [network, ancestor, ancestor],
        )
        connection.execute(
            "delete from raw.opened_windows where window_key not in (select window_key from raw.window_ranges)"
        )
        connection.execute(
            "insert into raw.reorganisations values (?, ?, ?, ?, ?, ?, ?, ?)",
            [batch_id, network, ancestor, ancestor + 1, orphaned_hash, canonical_hash, removed, utc_now()],
        )
    return removed
