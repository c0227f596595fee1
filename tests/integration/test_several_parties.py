"""Transactions of several parties, from the raw tables through dbt to the API."""

import json
from pathlib import Path
from typing import Any

import duckdb
import pytest

from api.examples import EXAMPLE_NETWORK, EXAMPLE_WALLET_ID
from control.networks.definitions import load_networks
from control.snapshot import read_snapshot
from tests.api.built import rows_of
from tests.api.collected import Collected
from tests.api.marts import publish
from tests.api.world import HOLDERS, hash_of, make_world, time_of
from tests.integration.dbt_runner import Stores, run_dbt

ME, A, B, C = HOLDERS.values()
COIN = 10**18
OPENED = 100 * COIN
DETAIL = {"headerTime": 0, "inputCount": 1, "outputCount": 0, "inputs": [], "outputs": [], "spendableFromBlock": None}
MARTS = ("blocks", "networks", "wallets", "coverage", "wallet_activities", "balance_changes")
# Block, coinbase, sum of inputs, sum of outputs, fee, its status, addresses of the other side, number of its parties.
TRANSACTIONS = [
    (120, False, 5 * COIN, 199 * COIN // 100, COIN // 100, "Paid", [A], 1),
    (150, False, 7 * COIN, 7 * COIN - 40, 40, "Paid", [], 0),
    (200, False, 4 * COIN, COIN, None, "Shared", [A, B], 2),
    (251, False, COIN, COIN, None, "Shared", [A, B], 2),
    (260, False, 0, 6 * COIN, None, "NotPaid", [B, C], 2),
    (300, True, 0, 50 * COIN, None, "NotPaid", [], 0),
    (310, False, 0, 8, None, "NotRead", None, None),
]
# Blocks with a reading: before each range, and at the end of the last one.
READ = (99, 250, 400)


def row(block: int, is_coinbase: bool, spent: int, received: int, fee: int | None, *others: Any) -> dict[str, Any]:
    fee_status, counterparties, count = others
    return {
        "network": EXAMPLE_NETWORK,
        "block_number": block,
        "block_hash": hash_of(block),
        "transaction_index": 0 if is_coinbase else 1,
        "transaction_hash": f"{block:064x}",
        "address": ME,
        "is_coinbase": is_coinbase,
        "spent_raw": str(spent),
        "received_raw": str(received),
        "fee_raw": None if fee is None else str(fee),
        "fee_status": fee_status,
        "counterparties": counterparties,
        "counterparty_count": count,
        "detail": json.dumps(DETAIL),
        "batch_id": 1,
    }


def balance_at(block: int) -> int:
    return OPENED + sum(received - spent for number, _, spent, received, *_ in TRANSACTIONS if number <= block)


@pytest.mark.proof("a transaction of several parties is one activity of each")
def test_a_transaction_is_one_activity_from_the_raw_tables_to_the_api(tmp_path: Path) -> None:
    world = make_world(tmp_path)
    key, stores = world.subject_keys[EXAMPLE_WALLET_ID], Stores(tmp_path / "stores")
    stores.folder.mkdir()
    numbers = (99, 100, 250, *(block for block, *_ in TRANSACTIONS), *range(400, 411))
    raw = Collected(
        EXAMPLE_NETWORK,
        world.tenant_id,
        {block: (hash_of(block), time_of(block).replace(tzinfo=None)) for block in numbers},
        tail=400,
    )
    raw.state(head=410, final=350)
    with world.store.read() as session:
        snapshot = read_snapshot(session, 0)
    windows = [one.window_key for one in snapshot.tables["control_windows"] if one.subject_key == key]
    raw.view(key, windows, "full")
    raw.collected("wallet", ME)
    raw.collected("native", ME)
    raw.rows["utxo_transactions"] = [row(*one) for one in TRANSACTIONS]
    for block in READ:
        raw.balances(block, "native", {ME: balance_at(block)})
    raw.write(stores.warehouse, snapshot, load_networks(world.settings.networks_file, {}), [key])
    run_dbt(stores, "run", "--select", *(f"+{mart}" for mart in MARTS))

    publish(world.settings.serving_dir, 1, rows_of(stores.marts, MARTS))
    with world.client() as client:
        answer = client.get(f"/v1/wallets/{EXAMPLE_WALLET_ID}/activities?sort=date").json()
        found = [(one["blockNumber"], one["type"], one["amount"], one["fee"], one["feeStatus"],
                  one["counterparty"], one["counterpartyCount"], one["counterpartyStatus"])
                 for one in answer["data"]]  # fmt: skip
        single = client.get(f"/v1/wallets/{EXAMPLE_WALLET_ID}/activities/{answer['data'][0]['id']}").json()
        listed = client.get(f"/v1/wallets/{EXAMPLE_WALLET_ID}/activities?counterparty={B}&sort=date").json()["data"]
    assert found == [
        (120, "TransferOut", "3", "0.01", "Paid", A, 1, "Known"),
        (150, "Self", "0", "0.00000000000000004", "Paid", None, 0, "None"),
        (200, "TransferOut", "3", None, "Shared", None, 2, "Several"),
        (251, "TransferIn", "0", None, "Shared", None, 2, "Several"),
        (260, "TransferIn", "6", None, "NotPaid", None, 2, "Several"),
        (300, "Coinbase", "50", None, "NotPaid", None, 0, "None"),
        (310, "TransferIn", "0.000000000000000008", None, "NotRead", None, None, "NotRead"),
    ]
    assert single["transaction"] == DETAIL | {"headerTime": "1970-01-01T00:00:00Z"}
    assert [one["blockNumber"] for one in listed] == [200, 251, 260]
    with duckdb.connect() as connection:
        connection.execute(f"attach '{stores.marts}' as built (read_only)")
        balances = connection.execute(
            "select block_number, balance_raw::varchar, is_adjusted from built.marts.balance_changes order by all"
        ).fetchall()
    # Movements alone give the balances between readings, and no reading had to adjust one.
    blocks = sorted([*READ, *(block for block, *_ in TRANSACTIONS)])
    assert balances == [(block, str(balance_at(block)), False) for block in blocks]
    world.store.close()
