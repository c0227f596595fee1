"""One measured run of the benchmark of outputs: `python -m tests.bench.outputs_process PART FOLDER URL FIRST LAST ...`.

The last arguments are the watched addresses.

Part `collect` reads and decodes without storing, `half` the first half of the blocks. `discard` sends the same requests
and drops their bodies, and `decoded` requests blocks with decoded transactions in place of bytes. `cycle` is a whole
cycle of the network. Prints one JSON object: rows (outputs of watched addresses), cpu and wall in seconds, peak and
imported in bytes, and of `cycle` the bytes of the warehouse.
"""

import json
import sys
from datetime import UTC
from pathlib import Path
from typing import Any

import msgspec

from control.networks.definitions import load_networks
from control.ranges import BlockRange
from control.settings import load_settings
from pipelines.extract.jsonrpc.client import RpcClient
from pipelines.extract.prefetch import map_in_order
from pipelines.extract.utxo.blocks import BLOCKS_PER_REQUEST
from pipelines.extract.utxo.dialect import UTXO
from pipelines.extract.utxo.family import UtxoNode
from pipelines.extract.utxo.headers import read_hashes
from pipelines.network_cycle import collect_network
from pipelines.raw.database import open_warehouse
from pipelines.rows import Segment
from pipelines.tables.utxo import UTXO_OUTPUTS
from pipelines.tenants.configuration import open_batch, replace_control
from tests.bench.measurement import Clock, peak_bytes
from tests.snapshots import record, snapshot_of

_NETWORK = "local-utxo"


def _discard(client: RpcClient, covered: BlockRange, verbosity: int) -> None:
    def read(start: int) -> None:
        numbers = range(start, min(start + BLOCKS_PER_REQUEST, covered.last + 1))
        client.batch([("getblock", [hash_, verbosity]) for hash_ in read_hashes(client, numbers)], msgspec.Raw)

    for _ in map_in_order(read, range(covered.first, covered.last + 1, BLOCKS_PER_REQUEST), client.max_in_flight):
        pass


def main(part: str, folder: str, url: str, first: str, last: str, *addresses: str) -> None:
    """Run one part and print its measurements."""
    imported = peak_bytes()
    covered = BlockRange(int(first), int(last))
    networks = load_networks(load_settings({}).networks_file, {"LOCAL_UTXO_RPC_URL": url})
    network = networks[_NETWORK]
    client = RpcClient(network.name, network.rpc_urls, UTXO)
    node = UtxoNode(network, client)
    node.probe()
    found: dict[str, Any] = {}
    if part == "cycle":
        path = Path(folder) / "warehouse.duckdb"
        opened_at = node.headers([covered.first])["block_time"][0].replace(tzinfo=UTC)
        subjects = [
            record("control_subjects", number, f"wal_{number}", "wallet", "ten_bench", "led_bench", _NETWORK, address,
                   created_at=opened_at)
            for number, address in enumerate(addresses, 1)
        ]  # fmt: skip
        snapshot = snapshot_of(
            tenants=[record("control_tenants", "ten_bench", "bench")],
            ledgers=[record("control_ledgers", "led_bench", "ten_bench", _NETWORK, "bench")],
            subjects=subjects,
            windows=[record("control_windows", number, number, opened_at) for number in range(1, len(subjects) + 1)],
        )
        with open_warehouse(path) as connection:
            batch_id = open_batch(connection, "bench")
            replace_control(connection, snapshot, networks, batch_id)
            clock = Clock()
            report = collect_network(connection, node, batch_id)
            connection.execute("checkpoint")
            if report.error is not None:
                raise RuntimeError(report.error)
            found = {"rows": report.rows[UTXO_OUTPUTS.name], **clock.read()}
        found["bytes"] = path.stat().st_size
    elif part in ("collect", "half"):
        if part == "half":
            covered = BlockRange(covered.first, (covered.first + covered.last) // 2)
        clock = Clock()
        rows = 0
        for collected in node.collect(Segment("native", covered, addresses), covered.last):
            rows += collected.rows[UTXO_OUTPUTS.name].height
        found = {"rows": rows, **clock.read()}
    else:
        clock = Clock()
        _discard(client, covered, 2 if part == "decoded" else 0)
        found = clock.read()
    print(json.dumps({**found, "peak": peak_bytes(), "imported": imported}))


if __name__ == "__main__":
    main(*sys.argv[1:])
