"""One measured run of the extract benchmark: `python -m tests.bench.extract_process PART FOLDER URL TOKEN FIRST LAST`.

Part `extract` fetches and decodes without storing. Part `load` writes transfers that were fetched before its clock
starts. Part `cycle` runs a whole cycle of the network with probing, headers, metadata and balance readings.
Prints one JSON object: rows, cpu and wall in seconds, peak and imported in bytes; except for `cycle` also the sum of
the amounts, as decimal text.
"""

import json
import sys
from collections.abc import Iterable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import duckdb
import polars as pl

from control.networks.definitions import Network, load_networks
from control.ranges import BlockRange
from control.settings import load_settings
from control.snapshot import ControlSnapshot
from pipelines.chain.headers import insert_blocks
from pipelines.chain.rows import store_segment
from pipelines.extract.evm.blocks import read_headers
from pipelines.extract.evm.collecting import ROWS_PER_PART
from pipelines.extract.evm.dialect import EVM
from pipelines.extract.evm.family import EvmNode
from pipelines.extract.evm.logs import TransferFilter, Transfers, fetch_transfers
from pipelines.extract.jsonrpc.client import RpcClient
from pipelines.network_cycle import collect_network
from pipelines.raw.database import open_warehouse
from pipelines.rows import Origin, Segment
from pipelines.tables.evm import TOKEN_TRANSFERS
from pipelines.tenants.configuration import open_batch, replace_control
from tests.bench.measurement import Clock, peak_bytes
from tests.snapshots import record, snapshot_of

_NETWORK = "local"
# Closing the file would do the same after the clock has stopped.
_CLOSING = "checkpoint"


def _fetch(client: RpcClient, token: str, covered: BlockRange) -> Iterable[Transfers]:
    return fetch_transfers(client, TransferFilter(tokens=frozenset({token})), covered.first, covered.last)


def _sum(amounts: Iterable[pl.Series]) -> str:
    return str(sum(sum(map(int, part)) for part in amounts))


def _extract(client: RpcClient, token: str, covered: BlockRange) -> dict[str, Any]:
    clock = Clock()
    rows, amounts = 0, []
    for part in _fetch(client, token, covered):
        rows += part.rows.height
        amounts.append(part.rows["amount_raw"])
    return {"rows": rows, **clock.read(), "amounts": _sum(amounts)}


def _load(
    connection: duckdb.DuckDBPyConnection, client: RpcClient, token: str, covered: BlockRange, batch_id: int
) -> dict[str, Any]:
    writes: list[tuple[BlockRange, pl.DataFrame]] = []
    waiting: list[Transfers] = []
    for part in _fetch(client, token, covered):
        waiting.append(part)
        if part.to_block == covered.last or sum(p.rows.height for p in waiting) >= ROWS_PER_PART:
            written = BlockRange(waiting[0].from_block, part.to_block)
            writes.append((written, pl.concat([p.rows for p in waiting])))
            waiting = []
    headers = read_headers(client, range(covered.first, covered.last + 1))
    clock = Clock()
    insert_blocks(connection, _NETWORK, headers, batch_id)
    for written, rows in writes:
        segment = Segment("token", written, (token,))
        parts = {TOKEN_TRANSFERS.name: rows}
        store_segment(connection, _NETWORK, segment, parts, Origin(client.provider), batch_id)
    connection.execute(_CLOSING)
    found = {"rows": sum(rows.height for _, rows in writes), **clock.read()}
    return {**found, "amounts": _sum(rows["amount_raw"] for _, rows in writes)}


def _cycle(connection: duckdb.DuckDBPyConnection, client: RpcClient, network: Network, batch_id: int) -> dict[str, Any]:
    clock = Clock()
    report = collect_network(connection, EvmNode(network, client), batch_id)
    connection.execute(_CLOSING)
    if report.error is not None:
        raise RuntimeError(report.error)
    return {"rows": report.rows["token_transfers"], **clock.read()}


def _tracking(token: str, opened_at: datetime) -> ControlSnapshot:
    named = {"symbol": "BENCH", "created_at": opened_at}
    known = (1, "tok_bench", "token", "ten_bench", "led_bench", _NETWORK, token)
    return snapshot_of(
        tenants=[record("control_tenants", "ten_bench", "bench")],
        ledgers=[record("control_ledgers", "led_bench", "ten_bench", _NETWORK, "bench")],
        subjects=[record("control_subjects", *known, **named)],
        windows=[record("control_windows", 1, 1, opened_at)],
    )


def main(part: str, folder: str, url: str, token: str, first: str, last: str) -> None:
    """Run one part and print its measurements."""
    imported = peak_bytes()
    covered = BlockRange(int(first), int(last))
    networks = load_networks(load_settings({}).networks_file, {"LOCAL_RPC_URL": url})
    network = networks[_NETWORK]
    client = RpcClient(network.name, network.rpc_urls, EVM)
    with open_warehouse(Path(folder) / "warehouse.duckdb") as connection:
        opened_at: datetime = read_headers(client, [covered.first])["block_time"][0]
        batch_id = open_batch(connection, "bench")
        replace_control(connection, _tracking(token, opened_at.replace(tzinfo=UTC)), networks, batch_id)
        if part == "extract":
            found = _extract(client, token, covered)
        elif part == "load":
            found = _load(connection, client, token, covered, batch_id)
        else:
            found = _cycle(connection, client, network, batch_id)
    print(json.dumps({**found, "peak": peak_bytes(), "imported": imported}))


if __name__ == "__main__":
    main(*sys.argv[1:])
