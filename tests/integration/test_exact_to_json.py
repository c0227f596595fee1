"""Amounts that no float can hold, from the log of a real node to the JSON answer, checked with plain `decimal`."""

import json
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from decimal import Context, Decimal
from typing import Any

import pytest
from litestar.testing import TestClient

from api.app import create_app
from tests.chain.conftest import GENESIS_TIME
from tests.chain.node import AnvilNode
from tests.chain.world import World
from tests.integration.dbt_runner import LATER_CYCLE, Stores, build_over_nothing, open_marts, run_dbt
from tests.integration.harness import LocalNetwork, Service
from warehouse.versions import publish

MOST = 2**256 - 1
GOLDEN = (0, 1, 2**63, 2**64, 2**127, 2**128, 2**255, MOST)
DECIMALS = (0, 18, 77)


def whole(raw: int, decimals: int) -> str:
    """Return the amount in whole tokens, without the service's code."""
    text = format(Decimal(raw).scaleb(-decimals, Context(prec=200)), "f")
    return text.rstrip("0").rstrip(".") if "." in text else text


@dataclass(frozen=True)
class System:
    """The collected data, and an API client."""

    client: "TestClient[Any]"
    stores: Stores
    tokens: dict[int, str]
    wallet: str
    holder: str


@pytest.fixture(scope="module")
def system(tmp_path_factory: pytest.TempPathFactory) -> Iterator[System]:
    with AnvilNode(genesis_time=GENESIS_TIME) as node:
        service = Service(tmp_path_factory.mktemp("exact"), [LocalNetwork("local", node.url)])
        stores = build_over_nothing(service.settings.data_dir)
        world = World(node, wallet_count=3)
        world.place_multicall()
        contracts = {decimals: world.deploy_token(f"T{decimals}", decimals, supply=MOST) for decimals in DECIMALS}
        start = datetime.fromtimestamp(node.block_time(node.head()), UTC) + timedelta(seconds=1)
        tenant = service.tenant()
        tokens = {
            decimals: service.token(tenant, contract.address, tracked_from=start).id
            for decimals, contract in contracts.items()
        }
        holder = world.wallets[0]
        wallet = service.wallet(tenant, holder, tracked_from=start).id
        for amount in GOLDEN:
            for contract in contracts.values():
                world.transfer(contract, world.deployer, holder, amount)
                if amount != MOST:
                    world.transfer(contract, holder, world.deployer, amount)
            world.mine()
        service.good_cycle()
    run_dbt(stores, *LATER_CYCLE)
    shutil.copyfile(stores.marts, service.settings.marts_path)
    publish(service.settings.marts_path, service.settings.serving_dir, 1)
    with TestClient(create_app(service.settings)) as client:
        client.headers["Authorization"] = f"Bearer {service.bearer(tenant)}"
        yield System(client, stores, tokens, wallet, holder)
    service.close()


def _rows(system: System, path: str) -> list[dict[str, Any]]:
    answer = system.client.get(path, params={"limit": 1000})
    assert answer.status_code == 200, answer.text
    rows: list[dict[str, Any]] = answer.json()["data"]
    return rows


@pytest.mark.proof("amounts stay exact from the node to the answer")
@pytest.mark.parametrize("decimals", DECIMALS)
def test_activities_of_a_token(system: System, decimals: int) -> None:
    rows = _rows(system, f"/v1/tokens/{system.tokens[decimals]}/activities")
    expected = sorted([*GOLDEN, *GOLDEN[:-1]])
    assert sorted(int(row["amountRaw"]) for row in rows) == expected
    assert sorted((int(row["amountRaw"]), row["amount"]) for row in rows) == [
        (raw, whole(raw, decimals)) for raw in expected
    ]


@pytest.mark.parametrize("decimals", DECIMALS)
def test_cap_table_of_the_largest_supply(system: System, decimals: int) -> None:
    answer = system.client.get(f"/v1/tokens/{system.tokens[decimals]}/cap-table").json()
    assert answer["totalSupplyRaw"] == str(MOST)
    assert answer["totalSupply"] == whole(MOST, decimals)
    (row,) = answer["data"]
    assert row["wallet"].lower() == system.holder
    assert (row["quantityRaw"], row["quantity"], row["percentage"]) == (str(MOST), whole(MOST, decimals), "100")
    assert answer["unattributed"]["quantity"] == "0"


@pytest.mark.parametrize("decimals", DECIMALS)
def test_a_file_of_the_cap_table_says_the_same(system: System, decimals: int) -> None:
    path = f"/v1/tokens/{system.tokens[decimals]}/cap-table"
    expected = system.client.get(path).json()["data"]
    assert expected[0]["wallet"] != system.holder  # it has a checksum
    file = system.client.get(path, headers={"Accept": "application/x-ndjson"}).text
    assert [json.loads(line) for line in file.splitlines()] == expected


def test_activities_and_balances_of_a_wallet(system: System) -> None:
    decimals_of = {f"T{decimals}": decimals for decimals in DECIMALS}
    activities = _rows(system, f"/v1/wallets/{system.wallet}/activities")
    rows = [row for row in activities if row["token"]["symbol"] in decimals_of]
    assert len(rows) == len(DECIMALS) * (2 * len(GOLDEN) - 1)
    for row in rows:
        assert row["amount"] == whole(int(row["amountRaw"]), decimals_of[row["token"]["symbol"]])
    balances = system.client.get(f"/v1/wallets/{system.wallet}/balances").json()["current"]
    held = {row["token"]["symbol"]: row for row in balances}
    for symbol, decimals in decimals_of.items():
        assert (held[symbol]["quantityRaw"], held[symbol]["quantity"]) == (str(MOST), whole(MOST, decimals))


def test_only_columns_named_approx_hold_floats(system: System) -> None:
    with open_marts(system.stores) as connection:
        columns = connection.execute(
            "select table_name, column_name, data_type from duckdb_columns() where schema_name = 'marts'"
        ).fetchall()
    floats = {(table, column) for table, column, kind in columns if kind in ("DOUBLE", "FLOAT")}
    assert floats
    assert {column for _, column in floats if not column.endswith("_approx")} == set()
    raw = {kind for _, column, kind in columns if column.endswith("_raw")}
    assert raw == {"BIGNUM"}


def test_a_column_for_charts_has_the_float_nearest_to_the_exact_number(system: System) -> None:
    """Views without the exact column, such as `token_holders`, are skipped: other marts have both."""
    compared = set()
    with open_marts(system.stores) as connection:
        columns = connection.execute(
            "select table_name, column_name from duckdb_columns() where schema_name = 'marts'"
        ).fetchall()
        for table, column in columns:
            exact = column.removesuffix("_approx")
            if column == exact or (table, exact) not in columns:
                continue
            rows = connection.execute(f"select {exact}::varchar, {column} from marts.{table}").fetchall()
            assert [told for _, told in rows] == [None if text is None else float(text) for text, _ in rows], column
            if any(text is not None for text, _ in rows):
                compared.add(f"{table}.{column}")
        held = connection.execute(
            """
            select holders.quantity_approx, tables.quantity_approx
            from marts.token_holders as holders
            inner join marts.cap_tables as tables using (subject_key, holder_address)
            """
        ).fetchall()
    assert held
    assert all(one == other for one, other in held)
    assert compared >= {
        "tokens.total_supply_approx",
        "supply_changes.total_supply_approx",
        "cap_tables.quantity_approx",
    }
    assert compared >= {f"cap_table_summaries.{name}_approx" for name in ("total_supply", "unattributed", "gini")}
