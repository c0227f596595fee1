"""A year of a token with 300 holders: the cap table at each month's end, over the API, every row confirmed and true."""

import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from typing import Any

import pytest
from litestar.testing import TestClient

from api.app import create_app
from control.operations import Status
from pipelines.raw.builds import record_publication, record_transform
from pipelines.raw.database import open_warehouse
from tests.chain.node import AnvilNode
from tests.chain.world import Token, World, call_data
from tests.integration.dbt_runner import LATER_CYCLE, Stores, build_over_nothing, run_dbt
from tests.integration.harness import LocalNetwork, Service
from tests.oracles.node import instant
from warehouse.versions import publish

HOLDERS = 300
# The first day of a month, and the last days of the twelve that follow it.
BEGIN = date(2025, 3, 1)
MONTH_ENDS = [date(2025 + (3 + count) // 12, (3 + count) % 12 + 1, 1) - timedelta(days=1) for count in range(12)]
# Depth at which blocks are final.
_DEPTH = 64


def _seconds(day: date, hour: int) -> int:
    return int(datetime.combine(day, time(hour), UTC).timestamp())


def _live(world: World, token: Token) -> None:
    """Make transfers on the 5th and 20th of every month, and change balances and the supply silently in some months."""
    supply_each = 10_000
    for start in range(0, HOLDERS, 100):
        for wallet in world.wallets[start : start + 100]:
            world.transfer(token, world.deployer, wallet, supply_each)
        world.mine(_seconds(BEGIN, 1 + start // 100))
    for number, end in enumerate(MONTH_ENDS):
        for day in (5, 20):
            for _ in range(30):
                sender, receiver = world.random.sample(world.wallets, 2)
                world.transfer(token, sender, receiver, world.random.randint(1, 400))
            world.mine(_seconds(end.replace(day=day), 12))
        if number % 3 == 1:
            for function, amount in (("mint_silently", 3 * number), ("burn_silently", 7 + number)):
                holder = world.random.choice(world.wallets)
                data = call_data(token.contract, function, holder, amount, True)
                world.submit(world.deployer, token.address, data)
            world.mine(_seconds(end.replace(day=21), 12))
    # The last month is over, and all its blocks are final.
    world.mine(_seconds(MONTH_ENDS[-1] + timedelta(days=1), 1))
    for _ in range(_DEPTH + 1):
        world.mine()


@dataclass(frozen=True)
class Year:
    """The chain at its end, and the API of a tenant that has its history and every month's end attested.

    Attributes:
        first_block: the block of the token's creation.
        words_before: `reconciliation` of the rows of each month's end before it was attested.
    """

    node: AnvilNode
    world: World
    token: Token
    path: str
    client: "TestClient[Any]"
    first_block: int
    words_before: list[set[str]]

    def block_at(self, end: date) -> int:
        """The last block of a day."""
        midnight = _seconds(end + timedelta(days=1), 0)
        return max(number for number in range(self.node.head() + 1) if self.node.block_time(number) < midnight)


def _cap_table(client: "TestClient[Any]", path: str, end: date) -> dict[str, Any]:
    answer = client.get(f"{path}/cap-table", params={"asOf": end.isoformat(), "limit": 1000})
    assert answer.status_code == 200, answer.text
    found: dict[str, Any] = answer.json()
    return found


def _words(client: "TestClient[Any]", path: str) -> list[set[str]]:
    return [{row["reconciliation"] for row in _cap_table(client, path, end)["data"]} for end in MONTH_ENDS]


def _build(service: Service, version: int) -> None:
    """Run a cycle, build the marts and record a publication."""
    service.good_cycle()
    stores = Stores(service.settings.data_dir)
    run_dbt(stores, *LATER_CYCLE)
    shutil.copyfile(stores.marts, service.settings.marts_path)
    publish(service.settings.marts_path, service.settings.serving_dir, version)
    with open_warehouse(service.settings.warehouse_path) as connection:
        ((batch,),) = connection.execute("select max(batch_id) from raw.batches").fetchall()
        record_transform(connection, batch, "the project")
        record_publication(connection, version, batch)


@pytest.fixture(scope="module")
def year(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Year]:
    with AnvilNode(genesis_time=_seconds(BEGIN, 0)) as node:
        world = World(node, wallet_count=HOLDERS)
        multicall = world.place_multicall()
        token = world.deploy_strange_token("LyingToken", "HUSH", 6)
        first_block = node.head()
        _live(world, token)
        service = Service(
            tmp_path_factory.mktemp("year"), [LocalNetwork("local", node.url, multicall_address=multicall)]
        )
        build_over_nothing(service.settings.data_dir)
        tenant = service.tenant()
        subject = service.token(tenant, token.address, tracked_from=instant(node, node.head()))
        service.ask_history(tenant, subject, "creation", f"block:{node.head() - 1}")
        service.good_cycle()
        service.history()
        _build(service, 1)
        with TestClient(create_app(service.settings)) as client:
            client.headers["Authorization"] = f"Bearer {service.bearer(tenant)}"
            path = f"/v1/tokens/{subject.id}"
            words_before = _words(client, path)
            asked = [client.post(f"{path}/attestations", json={"asOf": end.isoformat()}) for end in MONTH_ENDS]
            assert {answer.status_code for answer in asked} == {202}, asked[0].text
            service.attest()
            _build(service, 2)
            service.attest()
            states = [client.get(f"{path}/attestations/{answer.json()['id']}").json()["status"] for answer in asked]
            assert states == [Status.SUCCEEDED] * len(states)
            # Cycles locate the differences that attestations found.
            _build(service, 3)
            yield Year(node, world, token, path, client, first_block, words_before)
        service.close()


@pytest.mark.proof("an attested month-end is the node's")
@pytest.mark.parametrize("end", MONTH_ENDS, ids=str)
def test_a_month_end_is_confirmed_and_the_nodes(year: Year, end: date) -> None:
    block = year.block_at(end)
    answer = _cap_table(year.client, year.path, end)
    assert answer["asOf"]["blockNumber"] == block
    shown = {row["wallet"].lower(): int(row["quantityRaw"]) for row in answer["data"]}
    everybody = [*year.world.wallets, year.world.deployer]
    balances = year.world.balances_of(year.token, everybody, block)
    assert shown == {who: quantity for who, quantity in zip(everybody, balances, strict=True) if quantity}
    assert len(shown) > HOLDERS * 9 // 10
    assert {row["reconciliation"] for row in answer["data"]} <= {"Reconciled", "Adjusted"}
    assert {row["checkedBlockNumber"] for row in answer["data"]} == {block}
    assert answer["totalSupplyRaw"] == str(year.world.total_supply(year.token, block))
    assert answer["totalSupplyStatus"] == "Observed"
    assert answer["unattributed"]["quantityRaw"] == "0"


def test_attestations_confirm_otherwise_unchecked_rows(year: Year) -> None:
    assert year.words_before == [{"Unchecked"}] * len(MONTH_ENDS)
    # Rows after the silent changes are `Adjusted`; rows before them are not.
    words = _words(year.client, year.path)
    assert (words[0], words[-1]) == ({"Reconciled"}, {"Reconciled", "Adjusted"})


def test_the_supply_of_any_past_block_is_the_nodes(year: Year) -> None:
    for block in year.world.random.sample(range(year.first_block, year.node.head() + 1), 25):
        answer = year.client.get(f"{year.path}/cap-table", params={"asOf": f"block:{block}", "limit": 1}).json()
        truth = year.world.total_supply(year.token, block)
        assert (block, answer["totalSupplyRaw"]) == (block, str(truth))
        assert answer["totalSupplyStatus"] in ("Observed", "Unconfirmed")
        assert answer["unattributed"]["status"] == answer["totalSupplyStatus"]


@pytest.mark.ci
def test_attestations_name_the_difference_of_the_supply(year: Year) -> None:
    records = year.client.get(f"{year.path}/attestations", params={"limit": 100}).json()["data"]
    opening = year.world.total_supply(year.token, year.first_block)
    truth = {end: year.world.total_supply(year.token, end) for end in map(year.block_at, MONTH_ENDS)}
    assert len(set(truth.values())) == 5
    for record in records:
        difference = truth[record["blockNumber"]] - opening
        assert int(record["supplyDifferenceRaw"]) == difference
        assert difference == 0 or (record["status"] == "Adjusted" and record["differences"] > 0)
