"""One measured history.

`python -m tests.bench.history_process NODE_PID FOLDER URL KIND ADDRESS NATIVE FIRST LAST FILES`: KIND is token or
wallet, NATIVE full, balance-only or nothing, FILES a data set in the form of AWS Open Data or nothing.

A first cycle stores the network's state. Then the run collects the history, and the next cycle makes the readings that
open and close it. Prints one JSON object: blocks, rows (transfers, transactions and internal transfers), readings, peak
and imported in bytes. For each step (history, cycle) it has wall seconds, and processor seconds of this process and of
the node.
"""

import json
import sys
from dataclasses import replace
from datetime import datetime
from pathlib import Path

from control.clock import stored_now
from control.networks.data_sets import DataSet
from control.networks.definitions import load_networks
from control.settings import load_settings
from control.snapshot import ControlSnapshot
from pipelines.chain.segments import NetworkReport
from pipelines.extract.families import open_node
from pipelines.history.collecting import collect_history
from pipelines.network_cycle import collect_network
from pipelines.raw.database import open_warehouse
from pipelines.tenants.configuration import open_batch, replace_control
from tests.bench.measurement import Clock, peak_bytes
from tests.snapshots import record, snapshot_of

_NETWORK = "local"
# Closing the file would do the same after the clock has stopped.
_CLOSING = "checkpoint"


def _request(kind: str, address: str, native: str, first: str, last: str, now: datetime) -> ControlSnapshot:
    subject = (1, "subject_bench", kind, "ten_bench", "led_bench", _NETWORK, address, "BENCH")
    request = (1, 1, f"block:{first}", f"block:{last}", native or None, "Pending", False, now)
    return snapshot_of(
        tenants=[record("control_tenants", "ten_bench", "bench")],
        ledgers=[record("control_ledgers", "led_bench", "ten_bench", _NETWORK, "bench")],
        subjects=[record("control_subjects", *subject, created_at=now)],
        history_requests=[record("control_history_requests", *request)],
    )


def _rows(report: NetworkReport) -> dict[str, int]:
    if report.error is not None:
        raise RuntimeError(report.error)
    return report.rows


def main(
    node_pid: str, folder: str, url: str, kind: str, address: str, native: str, first: str, last: str, files: str
) -> None:
    """Collect the history and print its measurements."""
    imported = peak_bytes()
    networks = load_networks(load_settings({}).networks_file, {"LOCAL_RPC_URL": url})
    network = networks[_NETWORK]
    if files:
        network = networks[_NETWORK] = replace(network, data_sets=(DataSet("aws", "aws", files),))
    node = open_node(network)
    with open_warehouse(Path(folder) / "warehouse.duckdb") as connection:
        batch_id = open_batch(connection, "before")
        replace_control(connection, _request(kind, address, native, first, last, stored_now()), networks, batch_id)
        _rows(collect_network(connection, node, batch_id))
        clock = Clock(int(node_pid))
        (report,) = collect_history(
            connection,
            networks,
            open_batch(connection, "history"),
            lambda: False,
            lambda: None,
            staging=Path(folder) / "staging",
        )
        connection.execute(_CLOSING)
        history = clock.read()
        collected = _rows(report)
        clock = Clock(int(node_pid))
        read = _rows(collect_network(connection, node, open_batch(connection, "after")))
        connection.execute(_CLOSING)
        cycle = clock.read()
    answer = {
        "blocks": int(last) - int(first) + 1,
        "rows": sum(collected.get(name, 0) for name in ("token_transfers", "transactions", "internal_transfers")),
        "readings": read["balance_observations"],
        "history": history,
        "cycle": cycle,
        "peak": peak_bytes(),
        "imported": imported,
    }
    print(json.dumps(answer))


if __name__ == "__main__":
    main(*sys.argv[1:])
