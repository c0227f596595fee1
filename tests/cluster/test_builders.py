"""Extractors, builders and API nodes with folders of their own give the answers of one machine, also after kills."""

import random
import signal
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import psycopg
import pytest
from litestar.testing import TestClient
from sqlalchemy import select

from api.app import create_app
from control import access
from control.clock import stored_now
from control.models import Tenant
from control.operations import Status
from tests.chain.node import AnvilNode
from tests.cluster.commands import collect_past_until_killed, cycle_until_killed
from tests.datasets.object_store import ObjectStore
from tests.integration.conftest import MakeService
from tests.integration.dbt_runner import Stores
from tests.integration.harness import LocalNetwork, Service
from tests.integration.test_kill import System, statuses
from tests.integration.test_shards import Rows, undated
from tests.integration.transformed import content
from tests.integration.warm_processes import run_forked
from tests.oracles.node import instant
from tests.unit.control.postgres import new_database, unique_name
from tests.waiting import eventually
from warehouse.versions import current_publication

_KILLS_AT_A_HEAD = 8
# Measured speeds, and numbers that count cycles.
_OF_RUNS = {"publication", "collection_paces", "tenant_versions"}
pytestmark = [pytest.mark.release, pytest.mark.timeout(7200)]


@pytest.fixture
def shared(postgres_server: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[dict[str, str]]:
    """Settings that all machines have."""
    with ObjectStore() as objects, new_database(postgres_server, unique_name()) as control:
        with new_database(postgres_server, unique_name()) as catalogue:
            objects.make_bucket("ledgermart")
            for name, value in objects.variables.items():
                monkeypatch.setenv(name, value)
            yield {
                "LEDGERMART_CONTROL_URL": control,
                "LEDGERMART_VERSIONS": "s3://ledgermart/versions",
                "LEDGERMART_LAKE": f"ducklake:postgres:{catalogue}",
                "LEDGERMART_LAKE_DATA": "s3://ledgermart/lake",
            }


@pytest.fixture
def copy(postgres_server: str) -> Iterator[Callable[[str], str]]:
    """Copy a database without sessions; return the URL of the copy."""
    with psycopg.connect(postgres_server, autocommit=True) as session:
        made = []

        def copy_database(url: str) -> str:
            made.append(unique_name())
            server, _, name = url.rpartition("/")
            session.execute(f'create database "{made[-1]}" template "{name}"')  # type: ignore[arg-type]
            return f"{server}/{made[-1]}"

        yield copy_database
        for name in made:
            session.execute(f'drop database "{name}" with (force)')  # type: ignore[arg-type]


class Machine:
    """A process with a data folder of its own, which is killed at random moments."""

    def __init__(self, service: Service, work: Callable[..., None], seed: int) -> None:
        self.service = service
        self.work = work
        self.chance = random.Random(seed)
        self.longest = 15.0

    def run(self) -> None:
        """Run to the end."""
        assert self._run(None) == 0

    def killed_runs(self, times: int) -> int:
        """Run several times, each killed at a random moment, and then to the end; return how many were killed."""
        killed = 0
        for _ in range(times):
            began = time.monotonic()
            if self._run(self.chance.uniform(0, self.longest)) == 0:
                # It was quicker: kill earlier from now on.
                self.longest = time.monotonic() - began
            else:
                killed += 1
        self.run()
        return killed

    def _run(self, seconds: float | None) -> int:
        environment = self.service.environment(LEDGERMART_CYCLE_SECONDS="86400")
        done = run_forked(self.work, (seconds,), environment)
        expected = (0,) if seconds is None else (0, -signal.SIGKILL)
        assert done.returncode in expected, done.stdout + done.stderr
        return done.returncode


def marts(service: Service, folder: Path, began: str) -> dict[str, Rows]:
    """Return the published marts, without what depends on the time and the number of cycles."""
    serving = service.settings.serving_dir
    current = current_publication(serving)
    assert current is not None
    stores = Stores(folder)
    folder.mkdir()
    stores.marts.write_bytes((serving / current.file).read_bytes())
    found = content(stores)
    # Addresses are numbered in the order in which they were met.
    found["addresses"] = sorted(row[1:] for row in found["addresses"])
    return {name: undated(rows, began) for name, rows in found.items() if name not in _OF_RUNS}


@pytest.mark.parametrize("kills", [4, 200])
def test_shards_show_what_one_machine_shows(
    kills: int,
    shared: dict[str, str],
    copy: Callable[[str], str],
    node: AnvilNode,
    make_service: MakeService,
    tmp_path: Path,
) -> None:
    """Extractors and the builder of each shard end in the marts of a pipeline that shares nothing with others."""
    began = str(stored_now())
    system = System(node)
    network = LocalNetwork("local", node.url)
    shards = [{**shared, "LEDGERMART_SHARD": str(shard)} for shard in range(2)]
    asked, keys = [], []
    for shard, settings in enumerate(shards):
        with closing(Service(tmp_path / "configured", [network], settings)) as service:
            asked.append(system.configure(service, f"tenant {shard}"))
            keys.append(bearer(service, f"tenant {shard}"))
    copied = copy(shared["LEDGERMART_CONTROL_URL"])
    services = [make_service(network, name=f"shard {shard}", **settings) for shard, settings in enumerate(shards)]
    builders = [Machine(service, cycle_until_killed, shard) for shard, service in enumerate(services)]
    extractors = [
        Machine(make_service(network, name=f"extractor {number}", **shared), collect_past_until_killed, 2 + number)
        for number in range(2)
    ]
    alone_service = make_service(network, name="alone", LEDGERMART_SHARD="1", LEDGERMART_CONTROL_URL=copied)
    alone = Machine(alone_service, cycle_until_killed, 4)
    begin_lake(make_service(network, name="opener", LEDGERMART_SHARD="2", **shared), system)
    machines = [*extractors, *builders]
    killed, times = 0, min(_KILLS_AT_A_HEAD, kills // len(machines))
    with ThreadPoolExecutor(len(machines) + 1) as threads:
        # Extractors collect history before the builders begin.
        killed += sum(threads.map(Machine.killed_runs, extractors, [times] * len(extractors)))
        while killed < kills:
            # All pipelines read balances at the same heads.
            untouched = threads.submit(alone.run)
            killed += sum(threads.map(Machine.killed_runs, machines, [times] * len(machines)))
            untouched.result()
            system.go_on(2)
    for machine in (*machines, alone) * 2:
        machine.run()
    for service, requests in zip(services, asked, strict=True):
        assert statuses(service, requests) == {Status.SUCCEEDED}
        # They may wait for each other.
        failed = "call = 'lake' and detail not like '%is being written by%'"
        assert service.query(f"select detail from raw.collection_failures where {failed}") == []
        assert service.query("select settled_number > 0 from raw.lake_states") == [(True,)]
    taken = services[1].query("select count(*) from raw.requests_spent where work = 'lake'")
    assert taken != [(0,)]
    check_nodes(services, keys, tmp_path)

    found, expected = (
        marts(service, tmp_path / name, began)
        for name, service in (("found", services[1]), ("expected", alone_service))
    )
    assert found.keys() == expected.keys()
    different = {mart: (found[mart], rows) for mart, rows in expected.items() if found[mart] != rows}
    assert {m: ([r for r in a if r not in b], [r for r in b if r not in a]) for m, (a, b) in different.items()} == {}


def begin_lake(service: Service, system: System) -> None:
    """Give the first settled blocks, from a shard that tracks a token of which the others request no history."""
    service.token(service.tenant("opener"), system.tokens[1].address, tracked_from=instant(system.node, 3))
    builder = Machine(service, cycle_until_killed, 0)
    for _ in range(3):
        builder.run()


def bearer(service: Service, tenant: str) -> str:
    """Create one more key of a tenant."""
    with service.store.write() as session:
        tenant_id = session.execute(select(Tenant.id).where(Tenant.name == tenant)).scalar_one()
        return access.create_key(session, tenant_id, access.Role.VIEWER)[1]


def check_nodes(services: list[Service], keys: list[str], folder: Path) -> None:
    """Check that two API nodes with empty folders give the same answers to both tenants, each from its shard."""
    with ExitStack() as stack:
        clients = [
            stack.enter_context(
                TestClient(create_app(replace(services[0].settings, data_dir=folder / f"node {number}")))
            )
            for number in range(2)
        ]
        for key in keys:
            nodes = [partial(client.get, headers={"Authorization": f"Bearer {key}"}) for client in clients]
            listed = answer_of(nodes[0], "/v1/tokens").json()["data"]
            assert len(listed) == 2
            for token in listed:
                for path in (f"/v1/tokens/{token['id']}/cap-table", f"/v1/tokens/{token['id']}/activities"):
                    first, second = (answer_of(get, path) for get in nodes)
                    assert first.json()["data"]
                    assert first.content == second.content


def answer_of(get: Callable[..., Any], path: str) -> Any:
    """Return the answer of a node once it has fetched the version of the shard."""
    eventually(lambda: get(path).status_code == 200, f"the node answers {path}")
    return get(path)
