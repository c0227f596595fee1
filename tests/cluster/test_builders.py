"""Builders and API nodes with folders of their own give the answers of one machine, also after kills."""

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
from tests.cluster.commands import cycle_until_killed
from tests.datasets.object_store import ObjectStore
from tests.integration.conftest import MakeService
from tests.integration.dbt_runner import Stores
from tests.integration.harness import LocalNetwork, Service
from tests.integration.test_kill import System, statuses
from tests.integration.test_shards import Rows, undated
from tests.integration.test_transform import content
from tests.integration.warm_processes import run_forked
from tests.unit.control.postgres import new_database, unique_name
from tests.waiting import eventually
from warehouse.versions import current_publication

_KILLS_AT_A_HEAD = 8
# Measured speeds, and numbers that count cycles.
_OF_RUNS = {"publication", "collection_paces", "tenant_versions"}
# `make test-cluster` runs them: a cycle takes some seconds.
pytestmark = [pytest.mark.long, pytest.mark.timeout(7200)]


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


class Builder:
    """The pipeline of a shard."""

    def __init__(self, service: Service, seed: int) -> None:
        self.service = service
        self.chance = random.Random(seed)
        self.longest = 15.0

    def cycle(self, *arguments: str) -> None:
        done = run_forked(cycle_until_killed, (None, *arguments), self._environment())
        assert done.returncode == 0, done.stdout + done.stderr

    def killed_cycles(self, times: int) -> int:
        """Run some cycles, each killed at a random moment, and then a whole one; return how many were killed."""
        killed = sum(self._killed_cycle() for _ in range(times))
        self.cycle()
        return killed

    def _killed_cycle(self) -> bool:
        """Run a cycle and kill it at a random moment; return whether it was killed."""
        began = time.monotonic()
        done = run_forked(cycle_until_killed, (self.chance.uniform(0, self.longest),), self._environment())
        if done.returncode == 0:
            # It was quicker: kill earlier from now on.
            self.longest = time.monotonic() - began
        assert done.returncode in (0, -signal.SIGKILL), done.stdout + done.stderr
        return done.returncode != 0

    def _environment(self) -> dict[str, str]:
        return self.service.environment(LEDGERMART_CYCLE_SECONDS="86400")

    def marts(self, folder: Path, began: str) -> dict[str, Rows]:
        """Return the published marts, without what depends on the time and the number of cycles."""
        serving = self.service.settings.serving_dir
        current = current_publication(serving)
        assert current is not None
        stores = Stores(folder)
        folder.mkdir()
        stores.marts.write_bytes((serving / current.file).read_bytes())
        found = content(stores)
        # Addresses are numbered in the order in which they were met.
        found["addresses"] = sorted(row[1:] for row in found["addresses"])
        return {name: undated(rows, began) for name, rows in found.items() if name not in _OF_RUNS}


@pytest.mark.parametrize("kills", [2, 200])
def test_shards_show_what_one_machine_shows(
    kills: int,
    shared: dict[str, str],
    copy: Callable[[str], str],
    node: AnvilNode,
    make_service: MakeService,
    tmp_path: Path,
) -> None:
    """Each shard's builder, with everything shared, ends in the marts of a pipeline that shares nothing."""
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
    builders = [Builder(service, shard) for shard, service in enumerate(services)]
    alone = Builder(make_service(network, name="alone", LEDGERMART_SHARD="1", LEDGERMART_CONTROL_URL=copied), 2)
    # The first shard gives facts, and the second one takes them.
    for builder in [builders[0]] * 3:
        builder.cycle()
    killed, times = 0, min(_KILLS_AT_A_HEAD, kills // len(builders))
    with ThreadPoolExecutor(len(builders) + 1) as threads:
        while killed < kills:
            # All pipelines read balances at the same heads.
            untouched = threads.submit(alone.cycle)
            killed += sum(threads.map(Builder.killed_cycles, builders, [times] * len(builders)))
            untouched.result()
            system.go_on(2)
    for builder in (*builders, alone) * 2:
        builder.cycle()
    for service, requests in zip(services, asked, strict=True):
        assert statuses(service, requests) == {Status.SUCCEEDED}
        assert service.query("select detail from raw.collection_failures where call = 'lake'") == []
        assert service.query("select settled_number > 0 from raw.lake_states") == [(True,)]
    taken = services[1].query("select count(*) from raw.requests_spent where work = 'lake'")
    assert taken != [(0,)]
    check_nodes(services, keys, tmp_path)

    found, expected = builders[1].marts(tmp_path / "found", began), alone.marts(tmp_path / "expected", began)
    assert found.keys() == expected.keys()
    different = {mart: (found[mart], rows) for mart, rows in expected.items() if found[mart] != rows}
    assert {m: ([r for r in a if r not in b], [r for r in b if r not in a]) for m, (a, b) in different.items()} == {}


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
