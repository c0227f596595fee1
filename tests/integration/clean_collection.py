"""A clean collection of all requested ranges in one cycle, for comparison with the raw tables of any other history.

Only rows inside some view are compared: more cycles make more readings, and cancelled requests leave more coverage.
All rows are also compared with the node.
"""

from collections.abc import Collection, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any
from unittest import mock

from control.snapshot import read_snapshot
from pipelines.network_cycle import collect_network
from pipelines.raw.builds import finish_batch
from pipelines.raw.database import open_warehouse
from pipelines.tenants.configuration import open_batch, replace_control
from tests.chain.node import AnvilNode
from tests.chain.world import ZERO_ADDRESS
from tests.integration.dbt_runner import Stores
from tests.integration.harness import Service
from tests.oracles.node import Oracle
from tests.snapshots import with_tables

Rows = list[tuple[Any, ...]]

_NETWORK = "local"
_SMALL_PARTS = {
    "pipelines.extract.evm.collecting.BLOCKS_PER_PART": 7,
    "pipelines.extract.evm.collecting.FULL_BLOCKS_PER_PART": 5,
    "pipelines.chain.verification.BLOCKS_PER_RANGE": 9,
    "pipelines.chain.verification.RANGES_PER_CYCLE": 3,
}

# The collected rows inside every view.
_COVERED = """
    with covered as (
        select ranges.*, subjects.kind, subjects.address, subjects.tenant_id
        from raw.covered_ranges as ranges
        inner join raw.control_subjects as subjects on ranges.subject_key = subjects.subject_key
    ),

    transfers as (
        select covered.subject_key, covered.kind, covered.address, transfers.*
        from raw.token_transfers as transfers
        inner join covered
            on transfers.block_number between covered.from_block and covered.to_block and not covered.is_native
            and (
                (covered.kind = 'token' and covered.address = transfers.token_address)
                or (covered.kind = 'wallet' and covered.address in (transfers.from_address, transfers.to_address))
            )
    )
"""
_IN_VIEW = {
    "covered_ranges": "select subject_key, is_native, from_block, to_block from covered",
    "token_transfers": "select * exclude (batch_id) replace (amount_raw::varchar as amount_raw) from transfers",
    "transactions": """
        select
            covered.subject_key,
            transactions.* exclude (batch_id) replace (value_raw::varchar as value_raw, fee_raw::varchar as fee_raw)
        from raw.transactions
        inner join covered
            on transactions.block_number between covered.from_block and covered.to_block and covered.is_native
            and covered.address in (transactions.from_address, transactions.to_address)""",
    "internal_transfers": """
        select
            covered.subject_key,
            internals.* exclude (batch_id) replace (amount_raw::varchar as amount_raw)
        from raw.internal_transfers as internals
        inner join covered
            on internals.block_number between covered.from_block and covered.to_block and covered.is_native
            and covered.address in (internals.from_address, internals.to_address)""",
}
# Missing readings at the start of ranges: of holders that moved in any range of the subject, and of wallets' holdings.
_UNANCHORED = """,
    pairs as (
        select
            subject_key, token_address,
            unnest(if(kind = 'token', [from_address, to_address], [address])) as holder_address
        from transfers
        union
        select covered.subject_key, tokens.address, covered.address
        from covered
        inner join raw.control_subjects as tokens on covered.tenant_id = tokens.tenant_id and tokens.kind = 'token'
        where covered.kind = 'wallet'
        union
        select subject_key, 'native', address
        from covered
        where kind = 'wallet'
    )

    select pairs.*, covered.from_block - 1
    from pairs
    inner join covered on pairs.subject_key = covered.subject_key and not covered.is_native
    anti join raw.balance_observations as readings
        on pairs.token_address = readings.token_address
        and pairs.holder_address = readings.holder_address
        and readings.block_number = covered.from_block - 1
        and readings.quantity_raw is not null
    where pairs.holder_address != ?
"""


@contextmanager
def small_parts() -> Iterator[None]:
    """Collect and verify few blocks at a time, so that a short chain has many parts, too."""
    with ExitStack() as stack:
        for name, value in _SMALL_PARTS.items():
            stack.enter_context(mock.patch(name, value))
        yield


def collect_cleanly(service: Service, folder: Path, tenants: Collection[str] | None = None) -> Stores:
    """Collect all requested ranges in one cycle into a new warehouse, as if no other tenant existed.

    Args:
        folder: new folder for the warehouse.
        tenants: tenants with the tracking and requests to collect; default: all.
    """
    folder.mkdir()
    stores = Stores(folder)
    with service.store.read() as session:
        snapshot = read_snapshot(session, 0)
    if tenants is not None:
        tables = snapshot.tables
        subjects = [row for row in tables["control_subjects"] if row.tenant_id in tenants]
        keys = {row.subject_key for row in subjects}
        snapshot = with_tables(
            snapshot,
            tenants=(row for row in tables["control_tenants"] if row.tenant_id in tenants),
            ledgers=(row for row in tables["control_ledgers"] if row.tenant_id in tenants),
            subjects=subjects,
            windows=(row for row in tables["control_windows"] if row.subject_key in keys),
            history_requests=(row for row in tables["control_history_requests"] if row.subject_key in keys),
        )
    # Use the stored ranges: `now` was another block then, and cancelled requests were shortened.
    asked = service.query("select * from raw.view_ranges where origin = 'History'")
    node = service.node(_NETWORK)
    with open_warehouse(stores.warehouse) as connection:
        batch = open_batch(connection, "clean")
        replace_control(connection, snapshot, service.networks, batch)
        for row in asked:
            if row[2] in {subject.subject_key for subject in snapshot.tables["control_subjects"]}:
                connection.execute("insert into raw.view_ranges values (?, ?, ?, ?, ?, ?, ?)", row)
        # A cycle collects all missing blocks of requests that are done.
        connection.execute(
            """
            insert into raw.history_requests
            select origin_key, subject_key, network, from_block, to_block, native, null, null, 'Succeeded', 0, 0
            from raw.view_ranges
            where origin = 'History'
            """
        )
        report = collect_network(connection, node, batch)
        finish_batch(connection, batch)
    node.close()
    assert report.error is None
    return stores


def rows_in_view(warehouse: Path) -> dict[str, Rows]:
    """Return the rows of each raw table inside every view."""
    with open_warehouse(warehouse) as connection:
        return {
            table: connection.execute(f"{_COVERED} {rows} order by all").fetchall() for table, rows in _IN_VIEW.items()
        }


def visible_ranges(service: Service, node: AnvilNode) -> dict[int, list[tuple[int, int]]]:
    """Return the visible ranges of every subject up to the head, computed block by block."""
    blocks = node.batch([("eth_getBlockByNumber", [hex(number), False]) for number in range(node.head() + 1)])
    times = [int(block["timestamp"], 16) for block in blocks]
    with service.store.read() as session:
        snapshot = read_snapshot(session, 0)
    visible: dict[int, set[int]] = {subject.subject_key: set() for subject in snapshot.tables["control_subjects"]}
    for window in snapshot.tables["control_windows"]:
        opened = window.opened_at.timestamp()
        closed = window.closed_at.timestamp() if window.closed_at else float("inf")
        visible[window.subject_key] |= {
            number for number, time in enumerate(times) if number > 0 and opened <= time < closed
        }
    for key, first, last in service.query(
        "select subject_key, from_block, to_block from raw.view_ranges where origin = 'History'"
    ):
        visible[key] |= set(range(first, min(last, len(times) - 1) + 1))
    return {key: _as_ranges(numbers) for key, numbers in visible.items()}


def _as_ranges(numbers: set[int]) -> list[tuple[int, int]]:
    firsts = sorted(number for number in numbers if number - 1 not in numbers)
    lasts = sorted(number for number in numbers if number + 1 not in numbers)
    return list(zip(firsts, lasts, strict=True))


def check_against_clean(service: Service, node: AnvilNode, folder: Path) -> None:
    """Assert that all views are collected and anchored, and equal a clean collection and the node.

    Args:
        folder: new folder for the clean warehouse.
    """
    found = rows_in_view(service.settings.warehouse_path)
    ranges: dict[int, list[tuple[int, int]]] = {key: [] for key in visible_ranges(service, node)}
    for key, is_native, first, last in found["covered_ranges"]:
        if not is_native:
            ranges[key].append((first, last))
    assert ranges == visible_ranges(service, node)
    expected = rows_in_view(collect_cleanly(service, folder).warehouse)
    for table in _IN_VIEW:
        assert (table, found[table]) == (table, expected[table])
    unanchored = service.query(_COVERED + _UNANCHORED, [ZERO_ADDRESS])
    assert unanchored == []
    _check_node(service, node)


def _check_node(service: Service, node: AnvilNode) -> None:
    """Assert that all rows are on the node's chain, all readings equal the node's, and there are no duplicates."""
    transfers = service.query(
        """
        select
            block_number, log_index, block_hash, transaction_hash, token_address, from_address, to_address,
            amount_raw::varchar
        from raw.token_transfers
        """
    )
    true = set(Oracle(service, node).all_transfers())
    assert {(*row[:7], int(row[7])) for row in transfers} <= true
    assert len(transfers) == len({row[:2] for row in transfers})
    readings = service.query(
        "select token_address, holder_address, block_number, block_hash, quantity_raw::varchar "
        "from raw.balance_observations order by all"
    )
    calls = [_balance_call(*reading[:3]) for reading in readings]
    # Balances are zero before the contract's creation.
    balances = [0 if answer == "0x" else int(answer, 16) for answer in node.batch(calls)]
    assert [int(reading[4]) for reading in readings] == balances
    assert len(readings) == len({reading[:3] for reading in readings})
    headers = dict(service.query("select block_number, block_hash from raw.blocks"))
    blocks = node.batch([("eth_getBlockByNumber", [hex(number), False]) for number in headers])
    assert headers == {int(block["number"], 16): block["hash"] for block in blocks}
    assert {reading[2:4] for reading in readings} <= set(headers.items())


def _balance_call(token: str, holder: str, block_number: int) -> tuple[str, list[Any]]:
    if token == "native":
        return "eth_getBalance", [holder, hex(block_number)]
    request: Mapping[str, str] = {"to": token, "data": "0x70a08231" + holder[2:].rjust(64, "0")}
    return "eth_call", [request, hex(block_number)]
