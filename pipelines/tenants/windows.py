"""Resolution of tracking windows and history requests to block ranges, from which the missing ranges are computed."""

from datetime import UTC, datetime

import duckdb

from control.ranges import FIRST_BLOCK
from pipelines.extract.family import Header, Node
from pipelines.raw.database import transaction


def resolve_windows(connection: duckdb.DuckDBPyConnection, node: Node, head: Header, batch_id: int) -> int:
    """Resolve new and newly closed windows to block ranges; return their number.

    A window begins with the first block at or after its opening. It ends before the first block at or after its
    closing. If the head has not reached that moment yet, or the family is not ready for the wallet, the window waits
    for a later cycle. If stored block times contradict a resolved window, false times resolved it, and it is resolved
    again.

    The network's definition at the opening sets how native value is collected. A history request that ends at a
    window's start may have been clipped to an older head; it is extended to the block before the window.

    Raises:
        ExtractError: a header could not be read; nothing is written.
    """
    network = node.network
    pending = connection.execute(
        """
        select
            windows.window_key, windows.subject_key, subjects.kind, subjects.address, windows.opened_at,
            windows.closed_at, ranges.from_block, ranges.native,
            exists (
                select 1
                from raw.blocks
                where
                    blocks.network = subjects.network
                    and (
                        (blocks.block_number = ranges.from_block and blocks.block_time < windows.opened_at)
                        or (
                            blocks.block_number = ranges.from_block - 1
                            and ranges.from_block > $first
                            and blocks.block_time >= windows.opened_at
                        )
                        or (blocks.block_number = ranges.to_block and blocks.block_time >= windows.closed_at)
                        or (blocks.block_number = ranges.to_block + 1 and blocks.block_time < windows.closed_at)
                    )
            ) as is_contradicted
        from raw.control_windows as windows
        inner join raw.control_subjects as subjects on windows.subject_key = subjects.subject_key
        left join raw.view_ranges as ranges on ranges.origin = 'Window' and windows.window_key = ranges.origin_key
        where
            subjects.network = $network
            and (
                ranges.origin_key is null
                or (windows.closed_at is not null and ranges.to_block is null)
                or is_contradicted
            )
        order by windows.window_key
        """,
        {"network": network.name, "first": FIRST_BLOCK},
    ).fetchall()
    blocks: dict[datetime, int | None] = {}

    def block_at(instant: datetime) -> int | None:
        if instant not in blocks:
            blocks[instant] = node.block_at(instant.replace(tzinfo=UTC), head)
        return blocks[instant]

    resolved, contradicted = [], []
    unready = set(node.unready()) if pending else set()
    for window_key, subject_key, kind, address, opened_at, closed_at, known, known_native, is_contradicted in pending:
        if address in unready:
            continue
        if is_contradicted:
            contradicted.append((window_key, subject_key))
        known_from = None if is_contradicted else known
        first = known_from if known_from is not None else block_at(opened_at)
        end = block_at(closed_at) if closed_at is not None else None
        if first is None or (known_from is not None and end is None):
            continue
        native = (known_native or network.native) if kind == "wallet" else None
        last = None if end is None else end - 1
        resolved.append((window_key, subject_key, network.name, max(first, FIRST_BLOCK), last, native))
    with transaction(connection):
        connection.execute(
            """
            delete from raw.history_requests
            where operation_key not in (select operation_key from raw.control_history_requests)
            """
        )
        connection.execute(
            """
            delete from raw.view_ranges
            where
                network = ?
                and (
                    (origin = 'Window' and origin_key not in (select window_key from raw.control_windows))
                    or (
                        origin = 'History'
                        and origin_key not in (select operation_key from raw.control_history_requests)
                    )
                )
            """,
            [network.name],
        )
        for window_key, subject_key in contradicted:
            connection.execute("delete from raw.view_ranges where origin = 'Window' and origin_key = ?", [window_key])
            connection.execute("insert into raw.changes values (?, ?, 0, null, 'View')", [batch_id, subject_key])
        for row in resolved:
            connection.execute("delete from raw.view_ranges where origin = 'Window' and origin_key = ?", [row[0]])
            connection.execute("insert into raw.view_ranges values ('Window', ?, ?, ?, ?, ?, ?)", row)
            connection.execute("insert into raw.changes values (?, ?, 0, null, 'View')", [batch_id, row[1]])
        _extend_history(connection, network.name, batch_id)
    return len(resolved)


def _extend_history(connection: duckdb.DuckDBPyConnection, network: str, batch_id: int) -> None:
    """Extend history requests to the start of the windows that follow them, if there are blocks in between."""
    short = connection.execute(
        """
        select requests.operation_key, requests.subject_key, max(ranges.from_block) - 1
        from raw.history_requests as requests
        inner join raw.control_history_requests as asked on requests.operation_key = asked.operation_key
        inner join raw.control_windows as windows on requests.subject_key = windows.subject_key
        inner join raw.view_ranges as ranges on ranges.origin = 'Window' and windows.window_key = ranges.origin_key
        where
            requests.network = ?
            and requests.status in ('Running', 'Succeeded')
            and requests.to_block < ranges.from_block - 1
            and (
                asked.to_text = strftime(windows.opened_at, '%Y-%m-%dT%H:%M:%SZ')
                or (
                    asked.to_text = 'now'
                    and asked.created_at >= windows.opened_at
                    and asked.created_at < coalesce(windows.closed_at, 'infinity'::timestamp)
                )
            )
        group by requests.operation_key, requests.subject_key
        """,
        [network],
    ).fetchall()
    for operation_key, subject_key, last in short:
        connection.execute(
            "update raw.view_ranges set to_block = ? where origin = 'History' and origin_key = ?", [last, operation_key]
        )
        connection.execute(
            "update raw.history_requests set to_block = ? where operation_key = ?", [last, operation_key]
        )
        connection.execute("insert into raw.changes values (?, ?, 0, null, 'View')", [batch_id, subject_key])
