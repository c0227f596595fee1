"""Lost and damaged files of the data folder: the next cycle repairs them or names the fix, and no row is lost."""

import json
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import duckdb
import pytest
from litestar.testing import TestClient

from api.app import create_app
from control.pricing import links
from control.pricing.links import PricedAsPut
from tests import damages
from tests.chain.conftest import GENESIS_TIME
from tests.chain.node import AnvilNode
from tests.chain.world import World
from tests.damages import Damage, cut, emptied, garbage, overwritten, removed
from tests.integration.conftest import READY_NETWORKS
from tests.integration.dbt_runner import Stores
from tests.integration.harness import Service
from tests.integration.transformed import content
from warehouse.damage import damaged_tables
from warehouse.versions import current_publication

Rows = dict[str, list[tuple[object, ...]]]


# One of each kind runs with every commit, another before a release.
_MARKS: dict[Damage, Any] = {removed: (), overwritten: pytest.mark.release}
FEW = [pytest.param(one, marks=_MARKS.get(one, pytest.mark.release)) for one in damages.ALL]


@dataclass(frozen=True)
class Prepared:
    """A data folder with a priced token; its node has rows that are not collected yet.

    Attributes:
        older: the build file of the cycle before the last one.
        expected: the marts after one more cycle, without any damage.
    """

    folder: Path
    node: AnvilNode
    older: bytes
    expected: Rows


@pytest.fixture(scope="module")
def prepared(ready_folder: tuple[Path, str], tmp_path_factory: pytest.TempPathFactory) -> Iterator[Prepared]:
    folder = tmp_path_factory.mktemp("lost") / "service"
    shutil.copytree(ready_folder[0], folder)
    with AnvilNode(genesis_time=GENESIS_TIME) as node:
        world = World(node, wallet_count=3)
        gold = world.deploy_token("GOLD", 18)
        service = service_of(folder, node)
        tenant = service.tenant()
        start = datetime.fromtimestamp(node.block_time(node.head()), UTC) + timedelta(seconds=1)
        token = service.token(tenant, gold.address, tracked_from=start)
        service.wallet(tenant, world.wallets[0], tracked_from=start)
        with TestClient(create_app(service.settings)) as client:
            client.headers["Authorization"] = f"Bearer {service.bearer(tenant)}"
            _price(client)
        with service.store.write() as session:
            links.link(session, tenant, token, PricedAsPut(priced_as="TKN"))
        world.distribute(gold, 100)
        cycle(service)
        older = service.settings.marts_path.read_bytes()
        world.distribute(gold, 200)
        cycle(service)
        assert service.published("select count(*) > 0 from marts.token_pairs") == [(True,)]
        world.distribute(gold, 300)
        service.close()
        undamaged = service_of(shutil.copytree(folder, folder.with_name("undamaged")), node)
        cycle(undamaged)
        yield Prepared(folder, node, older, published(undamaged, folder.with_name("expected")))
        undamaged.close()


def _price(client: "TestClient[Any]") -> None:
    """Enter a manual price of TKN, the symbol of the harness's tokens."""

    def post(path: str, body: Any) -> Any:
        answer = client.post(path, json=body)
        assert answer.status_code == 201, answer.text
        return answer.json()

    for symbol in ("TKN", "USD"):
        post("/v1/priced-items", {"symbol": symbol, "name": symbol, "class": "Other"})
    desk = post("/v2/price-sources", {"name": "Desk"})["id"]
    assert client.patch(f"/v2/price-sources/{desk}/enable").status_code == 200
    nav = {"pricedAs": "TKN", "priceType": "NAV"}
    supported = post(f"/v2/price-sources/{desk}/pairs", nav)["id"]
    post("/v2/pairs", nav | {"priceSources": [desk], "maxAge": None})
    post(f"/v2/price-sources/{desk}/pairs/{supported}/prices", [{"price": "2", "effectiveFrom": "2020-01-01"}])


def service_of(folder: Path, node: AnvilNode) -> Service:
    service = Service(folder, READY_NETWORKS)
    service.point_at("local", node.url)
    return service


@pytest.fixture
def service(prepared: Prepared, tmp_path: Path) -> Iterator[Service]:
    service = service_of(shutil.copytree(prepared.folder, tmp_path / "service"), prepared.node)
    yield service
    service.close()


def cycle(service: Service, *options: str, code: int = 0) -> dict[str, Any]:
    """Run a cycle and return its output."""
    done = service.ledgermart("cycle", "--json", *options)
    assert done.returncode == code, done.stdout + done.stderr
    printed: dict[str, Any] = json.loads(done.stdout)
    return printed


def published(service: Service, folder: Path) -> Rows:
    """The marts of the version in force, without those that depend on its time or on the number of attempts."""
    current = current_publication(service.settings.serving_dir)
    assert current is not None
    folder.mkdir()
    stores = Stores(folder)
    shutil.copy(service.settings.serving_dir / current.file, stores.marts)
    rows = content(stores)
    return {mart: found for mart, found in rows.items() if mart not in ("publication", "tenant_versions", "networks")}


def check_readers(service: Service, version: int) -> None:
    """Check that the version in force is complete and not older than `version`."""
    current = current_publication(service.settings.serving_dir)
    assert current is not None
    assert current.version >= version
    assert service.published("select version from marts.publication") == [(current.version,)]


def check_equal(rows: Rows, expected: Rows) -> None:
    assert rows.keys() == expected.keys()
    for mart in rows:
        assert (mart, rows[mart]) == (mart, expected[mart])


@pytest.mark.ci
@pytest.mark.parametrize("damage", FEW)
def test_a_lost_or_damaged_build_file_is_built_again(
    damage: Damage, prepared: Prepared, service: Service, tmp_path: Path
) -> None:
    damage(service.settings.marts_path)
    check_readers(service, 3)
    assert cycle(service)["published"]["isNew"]
    check_equal(published(service, tmp_path / "published"), prepared.expected)


def damage_rows(path: Path) -> None:
    """Damage one block of rows, so that the file opens and rows cannot be read."""
    whole = path.read_bytes()
    for start in range(12_288, len(whole), 262_144):
        path.write_bytes(whole[: start + 8] + bytes(1000) + whole[start + 1008 :])
        try:
            if damaged_tables(path):
                return
        except duckdb.IOException:
            continue
    raise AssertionError("no block has rows alone")


@pytest.mark.release
def test_damage_found_by_the_build_is_repaired_in_the_same_cycle(
    prepared: Prepared, service: Service, tmp_path: Path
) -> None:
    damage_rows(service.settings.marts_path)
    assert cycle(service)["published"]["isNew"]
    assert damaged_tables(service.settings.marts_path) == []
    check_equal(published(service, tmp_path / "published"), prepared.expected)


@pytest.mark.release
def test_a_build_file_of_an_earlier_cycle_is_not_reused(prepared: Prepared, service: Service, tmp_path: Path) -> None:
    service.settings.marts_path.write_bytes(prepared.older)
    assert cycle(service)["published"]["isNew"]
    check_equal(published(service, tmp_path / "published"), prepared.expected)


@pytest.mark.release
def test_rebuild_makes_the_same_marts_without_new_rows(prepared: Prepared, service: Service, tmp_path: Path) -> None:
    cycle(service)
    with duckdb.connect(str(service.settings.marts_path)) as connection:
        connection.execute("delete from marts.token_activities")
    assert not cycle(service)["published"]["isNew"]
    assert cycle(service, "--rebuild")["published"]["isNew"]
    check_equal(published(service, tmp_path / "published"), prepared.expected)


@pytest.mark.ci
@pytest.mark.parametrize("damage", FEW)
def test_a_lost_or_damaged_warehouse_is_named_with_the_fix(damage: Damage, service: Service, tmp_path: Path) -> None:
    path = service.settings.warehouse_path
    shutil.copy(path, tmp_path / "backup")
    damage(path)
    version = current_publication(service.settings.serving_dir)
    result = cycle(service, code=1)
    if damage is removed:
        lost = "is lost, with the data of 2 tokens and wallets, 1 price pair; restore a backup"
        assert f"{path} {lost}" in result["error"]
    else:
        assert f"{path} is damaged (" in result["error"]
        assert "); restore a backup with `ledgermart restore` (docs/how-to/backup-and-upgrade.md)" in result["error"]
    assert "`ledgermart cycle --new-warehouse`" in result["error"]
    assert "Traceback" not in result["error"]
    assert result["networks"] == {}
    assert current_publication(service.settings.serving_dir) == version
    # With the backup, nothing is lost.
    shutil.copy(tmp_path / "backup", path)
    assert cycle(service)["published"]["isNew"]


@pytest.mark.release
@pytest.mark.parametrize("damage", [removed, cut])
def test_a_new_warehouse_on_request_collects_the_tracked_tokens_and_wallets(
    damage: Damage, prepared: Prepared, service: Service, tmp_path: Path
) -> None:
    path = service.settings.warehouse_path
    damage(path)
    assert cycle(service, "--new-warehouse")["published"]["isNew"]
    assert len(list(path.parent.glob("aside-*-warehouse.duckdb"))) == (damage is not removed)
    rows, mart = published(service, tmp_path / "published"), "token_activities"
    assert len(rows[mart]) == len(prepared.expected[mart]) > 0


@pytest.mark.release
@pytest.mark.parametrize(
    ("name", "damage"),
    [
        ("event_log.db", cut),
        pytest.param("event_log.db", emptied, marks=pytest.mark.release),
        pytest.param("runs.db", overwritten, marks=pytest.mark.release),
        pytest.param("schedules.db", garbage, marks=pytest.mark.release),
        pytest.param("runs.db", removed, marks=pytest.mark.release),
    ],
)
def test_damaged_dagster_records_do_not_stop_a_cycle(name: str, damage: Damage, service: Service) -> None:
    folder = service.settings.dagster_dir
    for log in (*folder.glob("*.db-wal"), *folder.glob("*.db-shm")):
        log.unlink()
    damage(folder / name)
    assert cycle(service)["published"]["isNew"]
    assert (folder.with_name("dagster.damaged") / name).exists() == (damage is not removed)


@pytest.mark.release
def test_all_published_files_are_lost(prepared: Prepared, service: Service, tmp_path: Path) -> None:
    before = current_publication(service.settings.serving_dir)
    assert before is not None
    shutil.rmtree(service.settings.serving_dir)
    assert cycle(service)["published"]["version"] == before.version + 1
    check_equal(published(service, tmp_path / "published"), prepared.expected)
