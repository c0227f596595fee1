"""Bulk history: one run collects the history requests of all shards on a network, and gives the facts to its lake.

The run has a warehouse of its own in a scratch folder, so it waits for no cycle, and none waits for it. Its newest
block is one that the lake has, so all that it collects is settled. It reports no progress: shards report on their
requests after they have taken the facts.
"""

import time
from collections.abc import Callable
from contextlib import closing
from dataclasses import replace

import duckdb

from control.networks.definitions import Network
from control.settings import Settings
from control.snapshot import read_history_snapshot
from control.store import open_store
from pipelines.chain.finality import record_settled
from pipelines.chain.missing import missing_segments
from pipelines.chain.states import record_healthy
from pipelines.chain.tail import final_number, repair_tail
from pipelines.chain.times import store_headers
from pipelines.data_sets.collecting import list_due_data_sets
from pipelines.extract.budget import Budget
from pipelines.extract.families import open_node
from pipelines.extract.family import Header, Node
from pipelines.history.collecting import collect_history
from pipelines.history.requests import first_error, waiting_detail
from pipelines.lake.giving import give
from pipelines.lake.reading import read_common_block
from pipelines.raw.builds import finish_batch
from pipelines.raw.database import create_tables
from pipelines.tenants.configuration import open_batch, replace_control
from warehouse.folders import scratch_folder
from warehouse.lakes import Lake
from warehouse.port import Warehouse

# Facts are given after each slice, so a killed run loses at most this much work.
SLICE_SECONDS = 60.0


class BulkHistoryError(Exception):
    """The run cannot continue; the message says why."""


def collect_bulk(settings: Settings, network: Network, lake: Lake, log: Callable[[str], None]) -> None:
    """Collect all history requests of a network, and give the facts to its lake.

    Args:
        settings: of any shard; its data folder gets a scratch folder.
        network: its family has a lake.
        lake: of the network.
        log: called with a message after each slice.

    Raises:
        BulkHistoryError: the lake has no final block yet, or blocks are missing that no source gives now.
        LakeBusyError: another bulk run collects the network.
        LakeError: the lake does not answer, or is of another chain.
        ExtractError: the node did not answer.
        StoreUnavailable: the control store did not answer.
    """
    with lake.bulk_run(settings.lock_wait_seconds), scratch_folder(settings.data_dir / "bulk" / network.name) as folder:
        elsewhere = replace(settings, data_dir=folder)
        with Warehouse(elsewhere).open() as connection:
            create_tables(connection)
            while _collect_slice(connection, elsewhere, network, lake, log):
                pass


def _collect_slice(
    connection: duckdb.DuckDBPyConnection,
    settings: Settings,
    network: Network,
    lake: Lake,
    log: Callable[[str], None],
) -> bool:
    """Collect for a slice of time, and give the facts; return whether another slice is needed."""

    def make_budget() -> Budget:
        return Budget(settings.network_seconds, settings.network_answer_mb)

    # At each slice, for new and cancelled requests.
    with closing(open_store(settings)) as store, store.read() as session:
        snapshot = read_history_snapshot(session)
    batch_id = open_batch(connection, f"bulk history of {network.name}")
    replace_control(connection, snapshot, {network.name: network}, batch_id)
    with closing(open_node(network, budget=make_budget())) as node:
        head = _start_at_settled(connection, node, lake, batch_id)
    list_due_data_sets(connection, [network], settings.staging_path, batch_id)
    ends_at = time.monotonic() + SLICE_SECONDS
    reports = collect_history(
        connection,
        {network.name: network},
        batch_id,
        lambda: time.monotonic() >= ends_at,
        lambda: None,
        make_budget,
        settings.staging_path,
        {network.name: lake},
        is_bulk=True,
    )
    # The slice has given the facts, or only noted why not. A run that cannot give must not collect for hours.
    give(connection, network, lake, settings.lock_wait_seconds)
    finish_batch(connection, batch_id)
    rows = sum(count for report in reports for count in report.rows.values())
    log(f"{network.name}: stored {rows} rows up to block {head.number}")
    if time.monotonic() >= ends_at:
        return True
    reason = waiting_detail(connection, network.name) or first_error(connection, network.name)
    if reason is None and missing_segments(connection, network.name, head.number, is_live=False):
        reason = "blocks are missing"
    if reason is not None and not any(report.ranges for report in reports):
        raise BulkHistoryError(f"the bulk run of {network.name} ends before all is collected: {reason}")
    return reason is not None


def _start_at_settled(connection: duckdb.DuckDBPyConnection, node: Node, lake: Lake, batch_id: int) -> Header:
    """Record the newest block of the lake that the node calls final as the newest one of all, and as settled.

    A shard has settled it, and the node has it. So all blocks before it are settled, too.

    Raises:
        BulkHistoryError: the lake has no final block.
        ChainReset: the node has another block than before.
        ContradictedLakeError: the lake has another block than the node.
    """
    network = node.network.name
    capabilities = node.probe()
    newest = node.head()
    repair_tail(connection, node, newest, batch_id)
    with lake.open() as opened:
        head = read_common_block(opened, node, final_number(connection, node, newest, batch_id))
    if head is None:
        raise BulkHistoryError(
            f"{network}: the lake has no block that is final on the node; a shard has to give its first facts before"
        )
    store_headers(connection, node, node.headers([head.number]), batch_id)
    record_settled(connection, network, head.number)
    facts = {
        "head_number": head.number,
        "head_hash": head.hash,
        "head_time": head.time.replace(tzinfo=None),
        "capabilities": sorted(capabilities),
    }
    record_healthy(connection, network, facts, head.number, batch_id)
    return head
