"""Processes that are killed at any moment: the next cycle continues from there, without any help."""

import random
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

import duckdb
import pytest

from control.operations import OperationRow, Status
from pipelines.raw.builds import record_publication, record_transform
from pipelines.raw.database import open_warehouse
from tests import CHECKOUT
from tests.chain.node import AnvilNode
from tests.chain.world import Token, World
from tests.integration.clean_collection import check_against_clean
from tests.integration.conftest import MakeService
from tests.integration.dbt_runner import Stores, run_dbt
from tests.integration.harness import LEDGERMART, LocalNetwork, Service
from tests.integration.transformed import content
from tests.oracles.node import instant
from tests.waiting import eventually
from warehouse.lock import is_locked
from warehouse.versions import current_publication


class System:
    """A chain with continuing traffic, and a service that tracks tokens and wallets on it, with histories."""

    def __init__(self, node: AnvilNode) -> None:
        self.node = node
        self.world = World(node, wallet_count=10, gas_price=10**9)
        self.world.place_multicall()
        self.tokens: list[Token] = [self.world.deploy_token("GOLD", 18), self.world.deploy_token("TIN", 0)]
        for token in self.tokens:
            self.world.distribute(token, 100_000)
        self.go_on(10)
        self.opening = node.head() + 1
        self.go_on(10)

    def go_on(self, blocks: int) -> None:
        """Make blocks with traffic, and empty ones by which others become final: then they are verified."""
        first, second, *_ = self.world.wallets
        for _ in range(blocks):
            self.world.submit(first, second, value=10**15)
            self.world.transfer_many(5, self.tokens, per_block=5)
        for _ in range(3 * blocks):
            self.world.mine()

    def configure(self, service: Service, name: str = "acme") -> list[OperationRow]:
        """Track tokens and wallets from `opening` on; request the history of a token and of two more wallets.

        One wallet's history only has balances of its native value, so the service must search for their changes.
        """
        tenant = service.tenant(name)
        opened = instant(self.node, self.opening)
        gold, _ = [service.token(tenant, token.address, tracked_from=opened) for token in self.tokens]
        *_, payer = [service.wallet(tenant, wallet, tracked_from=opened) for wallet in self.world.wallets[1:4]]
        quiet = service.wallet(tenant, self.world.wallets[0])
        return [
            service.ask_history(tenant, gold, "creation"),
            service.ask_history(tenant, payer, "block:3", native="full"),
            service.ask_history(tenant, quiet, "creation", native="balance-only"),
        ]


@pytest.fixture
def system(node: AnvilNode) -> System:
    return System(node)


def statuses(service: Service, asked: list[OperationRow]) -> set[Status]:
    """Return the progress of operations."""
    return {service.operation(operation).status for operation in asked}


def settle(service: Service) -> None:
    """Let all work end: run a cycle, the rest of history, a cycle with its readings, and a publication."""
    service.good_cycle()
    service.history()
    service.good_cycle()
    with open_warehouse(service.settings.warehouse_path) as connection:
        ((batch,),) = connection.execute("select max(batch_id) from raw.batches").fetchall()
        record_transform(connection, batch, "")
        record_publication(connection, 1, batch)
    service.history(parts=0)


@pytest.mark.release
@pytest.mark.parametrize("kills", [3, 100])
def test_killed_collection_loses_nothing(kills: int, system: System, make_service: MakeService, tmp_path: Path) -> None:
    """Killed between any two statements of collection and history."""
    service = make_service(LocalNetwork("local", system.node.url), name="killed")
    asked = system.configure(service)
    command = [sys.executable, "-m", "tests.integration.collect_once", str(tmp_path / "killed"), system.node.url]
    chance = random.Random(kills)
    # The first collection and all of history execute some 1,300 statements.
    most, killed = 400, 0
    while killed < kills:
        statements = chance.randrange(most)
        done = subprocess.run([*command, str(statements)], cwd=CHECKOUT, check=False)
        if done.returncode == 0:
            # It executed fewer: kill earlier from now on.
            most = max(statements, 1)
        else:
            assert done.returncode == -signal.SIGKILL
            killed += 1
        if killed % 2:
            system.go_on(3)
    settle(service)
    assert statuses(service, asked) == {Status.SUCCEEDED}
    check_against_clean(service, system.node, tmp_path / "clean")


@pytest.mark.ci
@pytest.mark.proof("a killed cycle leaves a version that opens and no lock")
@pytest.mark.parametrize("kills", [1, pytest.param(100, marks=pytest.mark.release)])
def test_killed_cycle_leaves_a_version_that_opens_and_no_lock(
    kills: int, system: System, ready_service: Service, tmp_path: Path
) -> None:
    """The whole command, dbt and publishing included: killed while dbt writes marts, and at random moments."""
    service = ready_service
    service.point_at("local", system.node.url)
    asked = system.configure(service)
    chance = random.Random(kills + 4)
    being_written = service.settings.marts_path.with_name(f"{service.settings.marts_path.name}.wal")
    longest, killed = 12.0, 0
    while killed < kills:
        with subprocess.Popen(
            [str(LEDGERMART), "cycle", "--json"],
            env=service.environment(),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        ) as process:
            if killed % 2:
                begun = time.monotonic()
                with suppress(subprocess.TimeoutExpired):
                    process.wait(chance.uniform(0, longest))
                    # It was quicker: kill earlier from now on.
                    longest = time.monotonic() - begun
            else:
                eventually(lambda: being_written.exists() or process.poll() is not None, "dbt writes marts")
            process.kill()
        assert process.returncode in (0, -signal.SIGKILL)
        killed += process.returncode == -signal.SIGKILL
        # The version that is published was complete all the time.
        check_publication(service)
        assert not is_locked(service.settings.lock_path)
        system.go_on(2)
    before = current_publication(service.settings.serving_dir)

    def cycle() -> None:
        done = service.ledgermart("cycle", "--json")
        assert done.returncode == 0, done.stdout + done.stderr

    # The first one collects all of history, and the second one publishes it.
    cycle()
    cycle()
    assert statuses(service, asked) == {Status.SUCCEEDED}
    # Readings that open what history collected are the next cycle's. New rows make it build: second readings do not.
    system.go_on(1)
    cycle()
    after = current_publication(service.settings.serving_dir)
    assert before is not None
    assert after is not None
    assert after.version > before.version
    assert not is_locked(service.settings.lock_path)
    check_publication(service)
    check_against_clean(service, system.node, tmp_path / "clean")
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
    """Assert that the published marts equal a full refresh over the same raw rows."""
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
