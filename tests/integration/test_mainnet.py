"""Real mainnet blocks, served like a node's answers, through extraction, load, dbt and the API.

The expected result is a list decoded by others: all ERC-20 transfers, each once, and no ERC-721 transfers, which have
the same first topic.
"""

import json
import shutil
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from litestar.testing import TestClient

from api.app import create_app
from control.models import TrackingWindow
from control.settings import load_settings
from tests.chain.mainnet import FOLDER, listed_transfers
from tests.chain.replay_node import ReplayNode
from tests.chain.world import TRANSFER_TOPIC, ZERO_ADDRESS
from tests.integration.dbt_runner import LATER_CYCLE, Stores, build_over_nothing, open_marts, run_dbt
from tests.integration.harness import LocalNetwork, Service
from warehouse.versions import publish

_AROUND = timedelta(seconds=30)


def receipts() -> list[dict[str, Any]]:
    """All receipts, as the node gives them."""
    return [json.loads(line) for line in (FOLDER / "receipts.jsonl").read_text(encoding="utf-8").splitlines()]


def non_fungible() -> set[str]:
    """Return contracts with Transfer events of four topics, and contracts that are only in the list with token ids."""
    of_four_topics = {
        log["address"]
        for receipt in receipts()
        for log in receipt["logs"]
        if log["topics"] and log["topics"][0] == TRANSFER_TOPIC and len(log["topics"]) == 4
    }
    tokens = {row[3] for row in listed_transfers()}
    return (of_four_topics | {row[3] for row in listed_transfers("transfers_ethereum_etl.csv")}) - tokens


def windows_around(times: list[int]) -> list[tuple[datetime, datetime]]:
    """Half a minute around each time, joined where they touch."""
    result: list[tuple[datetime, datetime]] = []
    for time in sorted(times):
        moment = datetime.fromtimestamp(time, UTC)
        if result and moment - _AROUND <= result[-1][1]:
            result[-1] = (result[-1][0], moment + _AROUND)
        else:
            result.append((moment - _AROUND, moment + _AROUND))
    return result


@dataclass(frozen=True)
class Collected:
    """A service that has collected everything, and its marts."""

    service: Service
    stores: Stores
    bearer: str
    wallets: list[str]


@pytest.fixture(scope="module")
def collected(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Collected]:
    service = Service(
        tmp_path_factory.mktemp("mainnet"), [LocalNetwork("ethereum", None, chain_id=1, finality_depth=0)]
    )
    stores = build_over_nothing(service.settings.data_dir)
    tokens = sorted({row[3] for row in listed_transfers()} | non_fungible())
    parties: dict[str, int] = defaultdict(int)
    for row in listed_transfers():
        for party in set(row[4:6]) - {ZERO_ADDRESS}:
            parties[party] += 1
    wallets = sorted(parties, key=lambda party: (-parties[party], party))[:6]
    with ReplayNode(FOLDER, blocks_after=10) as node:
        service.point_at("ethereum", node.url)
        tenant = service.tenant(network="ethereum")
        subjects = [service.token(tenant, address, ledger="ethereum") for address in tokens]
        subjects += [service.wallet(tenant, address, ledger="ethereum") for address in wallets]
        spans = windows_around([node.block_time(number) for number in node.numbers])
        with service.store.write() as session:
            session.add_all(
                TrackingWindow(
                    subject_key=subject.subject_key, opened_at=opened, closed_at=closed, opened_by=tenant.key_id
                )
                for subject in subjects
                for opened, closed in spans
            )
        report = service.cycle("ethereum")
    assert report.error is None
    assert len(report.ranges) >= len(spans)
    run_dbt(stores, *LATER_CYCLE)
    yield Collected(service, stores, service.bearer(tenant), wallets)
    service.close()


def test_raw_rows_are_the_listed_transfers(collected: Collected) -> None:
    rows = collected.service.query(
        """
        select
            block_number, log_index, transaction_hash, token_address, from_address, to_address, amount_raw::varchar
        from raw.token_transfers order by 1, 2
        """
    )
    assert [(*row[:6], int(row[6])) for row in rows] == listed_transfers()


def test_marts_have_the_listed_transfers_and_no_other(collected: Collected) -> None:
    with open_marts(collected.stores) as connection:
        rows = connection.execute(
            """
            select
                activities.block_number, activities.log_index, activities.transaction_hash, tokens.address,
                activities.from_address, activities.to_address, activities.amount_raw::varchar
            from marts.token_activities as activities
            inner join marts.tokens as tokens using (subject_key)
            where activities.activity_type != 'Adjustment'
            """
        ).fetchall()
        adjustments = connection.execute(
            "select count(*) from marts.token_activities where activity_type = 'Adjustment'"
        ).fetchall()
        types = dict(
            connection.execute("select activity_type, count(*) from marts.token_activities group by all").fetchall()
        )
    expected = listed_transfers()
    assert sorted((*row[:6], int(row[6])) for row in rows) == expected
    assert adjustments == [(0,)]
    minted = sum(1 for row in expected if row[4] == ZERO_ADDRESS != row[5])
    burnt = sum(1 for row in expected if row[5] == ZERO_ADDRESS != row[4])
    assert types == {"Mint": minted, "Burn": burnt, "Transfer": len(expected) - minted - burnt}


def test_non_fungible_contracts_have_no_rows(collected: Collected) -> None:
    contracts = sorted(non_fungible())
    assert len(contracts) == 2
    found = collected.service.query(
        "select count(*) from raw.token_transfers where list_contains(?, token_address)", [contracts]
    )
    assert found == [(0,)]
    with open_marts(collected.stores) as connection:
        for mart in ("token_activities", "wallet_activities"):
            join = "inner join marts.tokens as tokens using (subject_key)" if mart == "token_activities" else ""
            column = "tokens.address" if mart == "token_activities" else "token_address"
            rows = connection.execute(
                f"select count(*) from marts.{mart} {join} where list_contains(?, {column})", [contracts]
            ).fetchall()
            assert rows == [(0,)]


def test_wallets_have_their_transfers_from_both_sides(collected: Collected) -> None:
    expected = sorted(
        (wallet, row[0], row[1], row[3], row[6])
        for wallet in collected.wallets
        for row in listed_transfers()
        if wallet in row[4:6]
    )
    with open_marts(collected.stores) as connection:
        rows = connection.execute(
            """
            select
                wallets.address, activities.block_number, activities.log_index, activities.token_address,
                activities.amount_raw::varchar
            from marts.wallet_activities as activities
            inner join marts.wallets as wallets using (subject_key)
            where activities.token_address != 'native'
            """
        ).fetchall()
    assert sorted((*row[:4], int(row[4])) for row in rows) == expected


def test_transactions_of_wallets_have_their_fee_and_status(collected: Collected) -> None:
    expected = sorted(
        (
            receipt["transactionHash"],
            int(receipt["gasUsed"], 16) * int(receipt["effectiveGasPrice"], 16),
            receipt["status"] == "0x1" if "status" in receipt else None,
        )
        for receipt in receipts()
        if {receipt["from"], receipt.get("to")} & set(collected.wallets)
    )
    assert expected
    rows = collected.service.query("select transaction_hash, fee_raw::varchar, is_success from raw.transactions")
    assert sorted((name, int(fee), is_success) for name, fee, is_success in rows) == expected


def test_api_answers_the_listed_transfers(collected: Collected) -> None:
    service = collected.service
    shutil.copyfile(collected.stores.marts, service.settings.marts_path)
    publish(service.settings.marts_path, service.settings.serving_dir, 1)
    settings = load_settings({**service.variables, "LEDGERMART_RATE_LIMIT_PER_MINUTE": "1000000"})
    with TestClient(create_app(settings)) as client:
        client.headers["Authorization"] = f"Bearer {collected.bearer}"
        tokens = pages(client, "/v1/tokens")
        found = [
            (
                activity["blockNumber"],
                activity["logIndex"],
                activity["transactionHash"],
                token["ledgerId"].lower(),
                activity["fromWallet"].lower(),
                activity["toWallet"].lower(),
                int(activity["amountRaw"]),
            )
            for token in tokens
            for activity in pages(client, f"/v1/tokens/{token['id']}/activities")
        ]
    assert sorted(found) == listed_transfers()


def pages(client: "TestClient[Any]", path: str) -> list[dict[str, Any]]:
    """All rows of a list, page by page."""
    rows: list[dict[str, Any]] = []
    parameters: dict[str, str | int] = {"limit": 100}
    while True:
        answer = client.get(path, params=parameters)
        assert answer.status_code == 200, answer.text
        body = answer.json()
        rows += body["data"]
        if body["page"]["nextCursor"] is None:
            return rows
        parameters["cursor"] = body["page"]["nextCursor"]


def test_largest_amount_comes_out_digit_by_digit(collected: Collected) -> None:
    with open_marts(collected.stores) as connection:
        rows = connection.execute(
            "select amount_raw::varchar from marts.token_activities order by amount_raw desc limit 1"
        ).fetchall()
    assert rows == [(str(max(row[6] for row in listed_transfers())),)]
