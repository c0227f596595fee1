"""The Dagster code location: its assets and their lineage, and the sensor's decision to start a cycle."""

import json
import time
import uuid
from collections.abc import Mapping
from datetime import timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import dagster as dg
import pytest

from control.access import Principal
from control.networks.definitions import Network, load_networks
from control.operations import Status
from control.settings import load_settings
from pipelines.definitions import build_definitions
from pipelines.defs import cycle, heads
from pipelines.defs.bulk import BULK_JOB
from pipelines.defs.cycle import JOB, REBUILD_JOB
from pipelines.defs.keys import BUILD, OF_EVERY_CYCLE, OUTCOME, SNAPSHOT, network_key, network_keys
from pipelines.defs.runs import REBUILD_TAG, SHARD_TAG, WORKER_TAG
from pipelines.deliver.progress import write_progress
from pipelines.deliver.worker_state import worker_lock
from pipelines.extract.families import family_of, open_node
from pipelines.extract.family import Node
from pipelines.raw.database import open_warehouse
from tests.chain.node import AnvilNode
from tests.chain.world import Token, World
from tests.integration.harness import Service
from tests.oracles.node import instant
from tests.waiting import PATIENCE_SECONDS
from warehouse.lock import writer_lock
from warehouse.versions import current_publication, publish

# dagster-dbt 0.29 asks a pydantic model for its fields in the old way.
pytestmark = pytest.mark.filterwarnings("ignore:The `__fields__` attribute:DeprecationWarning")


@pytest.fixture
def service(ready_service: Service, monkeypatch: pytest.MonkeyPatch) -> Service:
    """A prepared service with its variables set in this process."""
    for name, value in ready_service.variables.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("LEDGERMART_CYCLE_SECONDS", "10")

    def open_patient_node(network: Network, **options: Any) -> Node:
        return open_node(network, timeout=(PATIENCE_SECONDS, PATIENCE_SECONDS), max_attempts=options["max_attempts"])

    # The sensor waits some seconds for a head; a busy test machine needs longer.
    monkeypatch.setattr(heads, "open_node", open_patient_node)
    return ready_service


def shipped_networks(without: str = "") -> dict[str, Network]:
    """The shipped definitions, with an address for every network but one."""
    path = load_settings({}).networks_file
    variables = {
        f"{name.upper().replace('-', '_')}_RPC_URL": f"http://127.0.0.1/{name}"
        for name in load_networks(path, {})
        if name != without
    }
    networks = load_networks(path, variables)
    assert {network.name for network in networks.values() if not network.is_enabled} == ({without} - {""})
    return networks


def ancestors(graph: Any, key: dg.AssetKey) -> set[dg.AssetKey]:
    """Return all direct and indirect parents of an asset."""
    found: set[dg.AssetKey] = set()
    waiting = [key]
    while waiting:
        for parent in graph.get(waiting.pop()).parent_keys - found:
            found.add(parent)
            waiting.append(parent)
    return found


@pytest.mark.ci
def test_definitions_load_with_all_shipped_networks(service: Service) -> None:
    networks = shipped_networks()
    definitions = build_definitions(networks)
    dg.Definitions.validate_loadable(definitions)
    graph = definitions.resolve_asset_graph()
    keys = graph.get_all_asset_keys()
    assert len(networks) == 14
    for name in networks:
        assert set(network_keys([networks[name]])) <= keys
        rows = family_of(networks[name]).tables[0].name
        for mart in ("token_activities", "wallet_activities", "cap_tables", "wallet_balances"):
            assert network_key(name, rows) in ancestors(graph, dg.AssetKey(["marts", mart])), (name, mart)
        assert network_key(name, "blocks") in ancestors(graph, dg.AssetKey(["marts", "coverage"]))
    # Publication depends on the build alone: cycles may skip models, and Dagster would skip their dependents. A cycle
    # selects no models, so the build itself depends on their sources.
    assert set(graph.get(dg.AssetKey(["serving", "publication"])).parent_keys) == {BUILD}
    models = {key for key in keys if "dagster-dbt/materialization_type" in graph.get(key).metadata}
    sources = set().union(*(graph.get(key).parent_keys for key in models)) - models
    assert set(graph.get(BUILD).parent_keys) == sources | {key for key in models if key.path[0] == "marts"}
    assert set(OF_EVERY_CYCLE) == keys - models - set(network_keys(networks.values()))
    assert dg.AssetKey(["prices", "market_prices"]) in ancestors(graph, dg.AssetKey(["marts", "system_prices"]))
    assert dg.AssetKey(["control", "snapshot"]) in ancestors(graph, network_key("ethereum", "blocks"))
    # Every source is replaced by the asset that fills it.
    assert {key for key in keys if not graph.get(key).is_executable} == set()
    checks = {(key.asset_key.to_user_string(), key.name) for key in graph.asset_check_keys}
    assert {
        ("ethereum/blocks", "collected"),
        ("ethereum/blocks", "gaps"),
        ("ethereum/token_transfers", "duplicates"),
        ("ethereum/token_transfers", "orphans"),
    } <= checks


_NOTHING = "there is nothing to do before LEDGERMART_CYCLE_SECONDS have passed"


class Sensor:
    """The cycle sensor of a service, with its cursor and Dagster's records."""

    def __init__(self, networks: Mapping[str, Network]) -> None:
        self.networks = networks
        self.instance = dg.DagsterInstance.ephemeral()
        self.sensor = cycle.cycle_sensor(networks)
        self.cursor: str | None = None

    def tick(self) -> list[str] | str:
        """Evaluate once; return the networks of the requested cycle, or the reason for none.

        Afterwards the pauses since the last cycle and since the last poll of a head count as over.
        """
        context = dg.build_sensor_context(instance=self.instance, cursor=self.cursor)
        answer = self.sensor(context)
        assert isinstance(answer, dg.SensorResult)
        assert answer.cursor is not None
        self.cursor = answer.cursor
        self.get_or_compute(began_at=None, polled_at={}, file_at=None)
        if answer.skip_reason is not None:
            return str(answer.skip_reason.skip_message)
        assert answer.run_requests is not None
        (request,) = answer.run_requests
        assert request.asset_selection is not None
        chosen = set(request.asset_selection) - set(OF_EVERY_CYCLE)
        # A short cycle has fewer common assets.
        assert set(request.asset_selection) - chosen in ({SNAPSHOT, OUTCOME}, set(OF_EVERY_CYCLE))
        networks = sorted({key.path[0] for key in chosen})
        assert chosen == set(network_keys(self.networks[name] for name in networks))
        assert request.tags["networks"] == ",".join(networks)
        return networks

    def get_or_compute(self, **memory: object) -> None:
        """Change the state that the sensor remembers."""
        cursor = json.loads(self.cursor or "{}")
        self.cursor = json.dumps({**cursor, "memory": {**cursor.get("memory", {}), **memory}})


def edit_progress(service: Service, network: str | None = None, **fields: object) -> None:
    """Change the last cycle's progress file, at the top level or for a network."""
    path = service.settings.data_dir / "progress.json"
    progress = json.loads(path.read_bytes())
    (progress if network is None else progress["networks"][network]).update(fields)
    path.write_text(json.dumps(progress))


class System:
    """A service with a token tracked on the network `local`, collected up to the head."""

    def __init__(self, service: Service, node: AnvilNode) -> None:
        self.service = service
        self.node = node
        self.world = World(node, wallet_count=3)
        self.token: Token = self.world.deploy_token("GOLD", 18)
        service.point_at("local", node.url)
        self.tenant: Principal = service.tenant()
        self.opened = instant(node, node.head())
        self.subject = service.token(self.tenant, self.token.address, tracked_from=self.opened)
        self.sensor = Sensor(service.networks)
        self.cycle()

    def cycle(self) -> None:
        """Run a successful cycle, and record its rows as published without dbt."""
        self.service.good_cycle()
        edit_progress(self.service, "local", has_unfinished_history=False)
        self.publish()

    def publish(self) -> None:
        """Record all collected rows as published."""
        settings = self.service.settings
        if current_publication(settings.serving_dir) is None:
            publish(settings.marts_path, settings.serving_dir, 1)
        edit_progress(self.service, is_behind=False)


@pytest.fixture
def system(service: Service, node: AnvilNode) -> System:
    return System(service, node)


@pytest.mark.ci
def test_new_block_starts_a_cycle_and_nothing_new_starts_none(system: System) -> None:
    assert system.sensor.tick() == _NOTHING
    system.world.mine()
    assert system.sensor.tick() == ["local"]
    system.cycle()
    # The last cycle's head was false; otherwise a block with a lower number would be older.
    edit_progress(system.service, "local", head=10_000)
    assert system.sensor.tick() == _NOTHING
    system.world.mine()
    assert system.sensor.tick() == ["local"]


def test_changed_configuration_starts_a_cycle(service: Service) -> None:
    service.point_at("local", "http://127.0.0.1:1")
    sensor = Sensor(service.networks)
    edit_progress(service, control_revision=1)
    assert sensor.tick() == _NOTHING
    # A change without effect on networks still starts a cycle.
    tenant = service.tenant()
    assert sensor.tick() == []
    service.wallet(tenant, "0x" + "ab" * 20)
    assert sensor.tick() == ["local"]


def test_lost_published_file_and_unreadable_progress_start_a_cycle(service: Service) -> None:
    sensor = Sensor(service.networks)
    edit_progress(service, control_revision=1)
    assert sensor.tick() == _NOTHING
    published = current_publication(service.settings.serving_dir)
    assert published is not None
    file = service.settings.serving_dir / published.file
    kept = file.rename(service.settings.data_dir / "kept")
    assert sensor.tick() == []
    kept.rename(file)
    assert sensor.tick() == _NOTHING
    (service.settings.data_dir / "progress.json").write_text('{"batch_id": 1}')
    assert sensor.tick() == []


@pytest.mark.ci
def test_a_history_read_to_its_end_is_published_at_once_by_one_run(
    system: System, monkeypatch: pytest.MonkeyPatch
) -> None:
    service = system.service
    now = time.time()
    monkeypatch.setattr(cycle, "time", SimpleNamespace(time=lambda: now))
    asked = service.ask_history(system.tenant, system.subject, "creation")
    service.good_cycle()
    with open_warehouse(service.settings.warehouse_path) as connection:
        ((batch,),) = connection.execute("select max(batch_id) from raw.batches").fetchall()
    service.history()
    assert service.operation(asked).status is Status.RUNNING
    with open_warehouse(service.settings.warehouse_path) as connection:
        assert write_progress(connection, service.settings.data_dir, batch).was_read_to_end
    system.sensor.get_or_compute(began_at=now)
    assert system.sensor.tick() == ["local"]
    system.sensor.get_or_compute(began_at=now)
    assert system.sensor.tick() == _NOTHING


@pytest.mark.ci
def test_window_ending_after_the_head_is_collected_to_its_end(system: System) -> None:
    """Tracking is disabled at a moment after the head: blocks until then are collected later, and no others."""
    service = system.service
    service.track(system.tenant, system.subject, False, system.opened + timedelta(seconds=30))
    assert system.sensor.tick() == ["local"]
    system.cycle()
    assert system.sensor.tick() == _NOTHING
    for _ in range(3):
        system.world.distribute(system.token, 5)
        if system.sensor.tick() == ["local"]:
            system.cycle()
    assert system.sensor.tick() == _NOTHING
    last = system.node.head() - 1
    assert [row[4] for row in service.raw_rows()["coverage"]] == [last]
    system.world.mine()
    assert system.sensor.tick() == _NOTHING


class Runs:
    """The sensor of a service with work for a cycle, and runs of cycles that no process executes."""

    def __init__(self, service: Service) -> None:
        (service.settings.data_dir / "progress.json").unlink()
        self.settings = service.settings
        self.sensor = Sensor(service.networks)
        self._ids: list[str] = []

    def begin(self, run_id: str | None = None, **tags: str) -> None:
        """Record a run as started."""
        job = dg.JobDefinition(name=JOB, graph_def=dg.GraphDefinition(name=JOB))
        run = self.sensor.instance.create_run_for_job(job, run_id=run_id, status=dg.DagsterRunStatus.STARTED, tags=tags)
        self._ids.append(run.run_id)

    def statuses(self) -> list[str]:
        """Return the statuses of the runs in order."""
        found = [self.sensor.instance.get_run_by_id(run_id) for run_id in self._ids]
        return [run.status.value for run in found if run is not None]


@pytest.fixture
def runs(service: Service) -> Runs:
    return Runs(service)


def test_no_cycle_starts_while_another_runs_in_this_shard(runs: Runs, monkeypatch: pytest.MonkeyPatch) -> None:
    assert runs.sensor.tick() == []
    with writer_lock(runs.settings.lock_path, "a test", 0):
        assert runs.sensor.tick() == "a cycle is running"
    runs.begin(**{SHARD_TAG: "1"})
    assert runs.sensor.tick() == []
    runs.begin()
    assert runs.sensor.tick() == "a cycle is running"
    # The run was killed: it is marked after two evaluations.
    monkeypatch.setattr(cycle, "START_SECONDS", -1)
    assert runs.sensor.tick() == "a cycle is running"
    for _ in range(2):
        assert runs.sensor.tick() == []
    assert runs.statuses() == ["STARTED", "FAILURE"]


def test_sensor_beside_a_worker_marks_only_killed_runs_of_others(runs: Runs, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cycle, "START_SECONDS", -1)
    of_worker = str(uuid.uuid4())
    runs.begin()
    # It repeats a run of the worker, and has its tags.
    runs.begin(**{WORKER_TAG: of_worker})
    runs.begin(of_worker, **{WORKER_TAG: of_worker})
    with writer_lock(worker_lock(runs.settings), "a test", 0):
        for _ in range(2):
            assert "the worker checks" in runs.sensor.tick()
    assert runs.statuses() == ["FAILURE", "FAILURE", "STARTED"]


def test_sensor_leaves_cycles_to_the_worker_if_runs_start_in_containers(
    runs: Runs, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(type(runs.sensor.instance.run_launcher), "supports_check_run_worker_health", True)
    assert runs.sensor.tick() == "only the worker starts cycles"


@pytest.mark.ci
def test_bulk_history_has_a_partition_for_each_enabled_network_with_a_lake(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    shipped = shipped_networks(without="ethereum")
    networks = {name: shipped[name] for name in ("ethereum", "base", "litecoin")}
    definitions = build_definitions(networks)
    collected = {key.path[0] for key in definitions.resolve_asset_graph().get_all_asset_keys()}
    assert collected & networks.keys() == {"base", "litecoin"}
    assert BULK_JOB not in {job.name for job in definitions.resolve_all_job_defs()}
    monkeypatch.setenv("LEDGERMART_LAKE", "ducklake:postgres:postgresql://127.0.0.1/lake")
    monkeypatch.setenv("LEDGERMART_LAKE_DATA", str(tmp_path))
    monkeypatch.setenv("LEDGERMART_SHARD", "3")
    job = build_definitions(networks).resolve_job_def(BULK_JOB)
    assert job.partitions_def is not None
    assert job.partitions_def.get_partition_keys() == ["base"]
    assert job.run_tags.keys() == {SHARD_TAG, "dagster-k8s/config"}
    # Cycles that Dagster launches have the pool of their networks, and must not wait for a bulk run.
    assert {node.definition.pool for node in job.graph.nodes} == {None}


@pytest.mark.ci
def test_launched_jobs_name_pools_shard_and_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LEDGERMART_SHARD", "3")
    monkeypatch.setenv("LEDGERMART_PROCESS_MEMORY_MB", "4000")
    shipped = shipped_networks()
    networks = {name: shipped[name] for name in ("base", "litecoin")}
    definitions = build_definitions(networks)
    jobs = {name: definitions.resolve_job_def(name) for name in (JOB, REBUILD_JOB)}
    pools = {name: {node.definition.pool for node in job.graph.nodes} - {None} for name, job in jobs.items()}
    assert pools == {JOB: {"shard_3", "network_base", "network_litecoin"}, REBUILD_JOB: {"shard_3"}}
    memory = {"memory": "4000M"}
    resources = {"container_config": {"resources": {"requests": memory, "limits": memory}}}
    assert jobs[JOB].run_tags == {SHARD_TAG: "3"}
    assert {**jobs[REBUILD_JOB].run_tags, "dagster-k8s/config": resources} == {
        REBUILD_TAG: "true",
        SHARD_TAG: "3",
        "dagster-k8s/config": resources,
    }
    assert json.loads(jobs[REBUILD_JOB].run_tags["dagster-k8s/config"]) == resources
