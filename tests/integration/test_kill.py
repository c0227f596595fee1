"""Processes that are killed at any moment: the next cycle goes on from there, and nobody has to lend a hand."""

import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import duckdb
import pytest

from pipelines.load.lock import is_locked
from pipelines.publish import current_publication
from tests.chain.node import AnvilNode
from tests.chain.world import Token, World
from tests.integration.conftest import MakeService
from tests.integration.dbt_runner import Stores, run_dbt
from tests.integration.harness import CHECKOUT, LEDGERMART, LocalNetwork, Service
from tests.integration.oracle import check_anchors, check_truth, instant
from tests.integration.test_transform import content

LONG = pytest.param(50, marks=[pytest.mark.long, pytest.mark.timeout(1800)])


class Scene:
    """A chain with traffic that goes on, and a service that follows a token and a wallet on it."""

    def __init__(self, node: AnvilNode) -> None:
        self.node = node
        self.world = World(node, wallet_count=10, gas_price=10**9)
        self.world.place_multicall()
        self.tokens: list[Token] = [self.world.deploy_token("GOLD", 18), self.world.deploy_token("TIN", 0)]
        for token in self.tokens:
            self.world.distribute(token, 100_000)
        self.opening = node.head() + 1
        self.go_on(20)

    def go_on(self, blocks: int) -> None:
        """Make blocks with traffic."""
        self.world.transfer_many(5 * blocks, self.tokens, per_block=5)

    def configure(self, service: Service) -> None:
        """Have everything tracked from `opening` on."""
        tenant = service.tenant()
        opened = instant(self.node, self.opening)
        for token in self.tokens:
            service.token(tenant, token.address, tracked_from=opened)
        for wallet in self.world.wallets[:3]:
            service.wallet(tenant, wallet, tracked_from=opened)


@pytest.fixture
def scene(node: AnvilNode) -> Scene:
    return Scene(node)


def check_raw(service: Service, scene: Scene, folder: Path) -> None:
    """The raw rows are the node's, and but for readings at other heads those of one collection from nothing."""
    check_truth(service, scene.node)
    check_anchors(service, scene.node)
    rows, clean = service.raw_rows(), service.clean_rows(folder)
    openings = {row for row in clean.pop("balance_observations") if row[6] != "Check"}
    assert openings <= set(rows.pop("balance_observations"))
    assert {row[1] for row in rows.pop("supply_observations")} == {row[1] for row in clean.pop("supply_observations")}
    # Headers at the ends of what was asked for at once are more where it was asked for in more parts.
    assert set(clean.pop("blocks")) <= set(rows.pop("blocks"))
    assert rows == clean


@pytest.mark.parametrize("kills", [5, LONG])
def test_killed_collection_loses_nothing(kills: int, scene: Scene, make_service: MakeService, tmp_path: Path) -> None:
    """Killed between any two statements of the collection itself, without the seconds of imports around it."""
    service = make_service(LocalNetwork("local", scene.node.url), name="killed")
    scene.configure(service)
    command = [sys.executable, "-m", "tests.integration.collect_once", str(tmp_path / "killed"), scene.node.url]
    chance = random.Random(kills)
    longest, killed = 1.0, 0
    for attempt in range(2 * kills):
        with subprocess.Popen(command, cwd=CHECKOUT, stdout=subprocess.PIPE) as process:
            assert process.stdout is not None
            assert process.stdout.readline() == b"ready\n"
            begun = time.monotonic()
            try:
                process.wait(chance.uniform(0, longest))
                # It was quicker: look earlier from now on.
                longest = time.monotonic() - begun
                assert process.returncode == 0
            except subprocess.TimeoutExpired:
                process.kill()
                killed += 1
        if killed == kills:
            break
        if attempt % 2:
            scene.go_on(3)
    assert killed >= kills // 2
    service.good_cycle()
    check_raw(service, scene, tmp_path)


@pytest.mark.parametrize("kills", [3, LONG])
def test_killed_cycle_leaves_a_version_that_opens_and_no_lock(
    kills: int, scene: Scene, ready_service: Service, tmp_path: Path
) -> None:
    """The whole command, dbt and publishing included. Its dbt is killed with it, or outlives it."""
    service = ready_service
    service.point_at("local", scene.node.url)
    scene.configure(service)
    chance = random.Random(kills)
    longest = 12.0
    for attempt in range(kills):
        with subprocess.Popen(
            [str(LEDGERMART), "cycle", "--json"],
            env=service.environment(),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        ) as process:
            try:
                begun = time.monotonic()
                assert process.wait(chance.uniform(2.0, longest)) == 0
                longest = time.monotonic() - begun
            except subprocess.TimeoutExpired:
                if attempt % 2:
                    process.kill()
                else:
                    os.killpg(process.pid, signal.SIGKILL)
        # A dbt that outlives its cycle ends by itself; the version that is published was complete all the time.
        check_publication(service)
        assert not is_locked(service.settings.lock_path)
        scene.go_on(2)
    before = current_publication(service.settings.serving_dir)
    done = service.ledgermart("cycle", "--json")
    assert done.returncode == 0, done.stdout + done.stderr
    after = current_publication(service.settings.serving_dir)
    assert before is not None
    assert after is not None
    assert after.version > before.version
    assert not is_locked(service.settings.lock_path)
    check_publication(service)
    check_raw(service, scene, tmp_path)
    check_marts(service, tmp_path)


def check_publication(service: Service) -> None:
    """The pointer names a file that opens and is of that version; so is the one under the stable name."""
    current = current_publication(service.settings.serving_dir)
    assert current is not None
    for name in (current.file, "current.duckdb"):
        with duckdb.connect(str(service.settings.serving_dir / name), read_only=True) as connection:
            ((version,),) = connection.execute("select version from marts.publication").fetchall()
        assert version in (current.version, current.version - 1)
        assert version == current.version or name == "current.duckdb"


def check_marts(service: Service, folder: Path) -> None:
    """What was published is what dbt builds from nothing over the same raw rows."""
    current = current_publication(service.settings.serving_dir)
    assert current is not None
    published = Stores(folder / "published")
    published.folder.mkdir()
    published.marts.write_bytes((service.settings.serving_dir / current.file).read_bytes())
    anew = Stores(folder / "anew")
    anew.folder.mkdir()
    anew.warehouse.write_bytes(service.settings.warehouse_path.read_bytes())
    run_dbt(anew, "run", "--full-refresh")
    expected, actual = content(anew), content(published)
    actual.pop("publication")
    assert actual == expected
