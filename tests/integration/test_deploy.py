"""The files of `deploy/`: instances of Dagster, what their launchers start, compose file and Kubernetes manifests.

No Docker daemon and no Kubernetes cluster answers here: their clients make and check every request, and send none.
"""

import json
import re
import tomllib
import uuid
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from functools import cache
from pathlib import Path
from typing import Any

import dagster as dg
import docker
import kubernetes
import psycopg
import pytest
import yaml
from dagster._core.launcher.base import LaunchRunContext
from dagster._core.origin import JobPythonOrigin, RepositoryPythonOrigin
from dagster_k8s.models import k8s_model_from_dict, k8s_snake_case_dict

from control.settings import VARIABLES, load_settings
from pipelines.defs.runs import launched_tags
from tests import CHECKOUT
from tests.unit.control.postgres import new_database

_DEPLOY = CHECKOUT / "deploy"
_MEMORY_MB = "4000"
_IMAGE = f"ledgermart:{tomllib.loads((CHECKOUT / 'pyproject.toml').read_text())['project']['version']}"


@pytest.fixture(scope="module")
def records(postgres_server: str) -> Iterator[str]:
    """URL of an empty database for Dagster's records."""
    with new_database(postgres_server, f"t{uuid.uuid4().hex}") as url:
        yield url


@pytest.fixture
def open_instance(
    records: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Callable[[str], dg.DagsterInstance]]:
    """Return a function that opens the instance of a folder of `deploy/`, with its variables set."""
    for name in yaml.safe_load((_DEPLOY / "docker" / "dagster.yaml").read_text())["run_launcher"]["config"]["env_vars"]:
        monkeypatch.setenv(name, "a value")
    monkeypatch.setenv("DAGSTER_POSTGRES_URL", records.replace("postgresql:", "postgresql+psycopg2:"))
    monkeypatch.setenv("LEDGERMART_DAGSTER_DIR", str(tmp_path))
    monkeypatch.setattr(kubernetes.config, "load_incluster_config", lambda: None)
    with ExitStack() as stack:
        yield lambda kind: stack.enter_context(dg.DagsterInstance.from_config(str(_DEPLOY / kind)))


@dg.job(executor_def=dg.in_process_executor)
def rebuild() -> None:
    dg.op(name="build", pool="shard_0")(lambda: None)()


def test_records_of_an_instance_are_in_postgres(
    open_instance: Callable[[str], dg.DagsterInstance], records: str
) -> None:
    instance = open_instance("machines")
    run_id = rebuild.execute_in_process(instance=instance).run_id
    with psycopg.connect(records) as connection:
        (status,) = connection.execute("select status from runs where run_id = %s", [run_id]).fetchall()
        events = connection.execute("select count(*) from event_logs where run_id = %s", [run_id]).fetchone()
    assert status == ("SUCCESS",)
    assert events is not None
    assert events[0] > 5
    assert type(instance.run_launcher).__name__ == "DefaultRunLauncher"
    assert isinstance(instance.run_coordinator, dg.QueuedRunCoordinator)
    assert instance.run_monitoring_enabled
    pools = instance.get_concurrency_config().pool_config
    assert pools.default_pool_limit == 1
    assert pools.pool_granularity is not None
    assert pools.pool_granularity.value == "run"


def test_instances_of_all_kinds_differ_in_the_launcher_only() -> None:
    configured = [yaml.safe_load(path.read_text()) for path in sorted(_DEPLOY.glob("*/dagster.yaml"))]
    for found in configured:
        del found["run_launcher"]
    assert len(configured) == 3
    assert configured[0] == configured[1] == configured[2]
    embedded = yaml.safe_load((CHECKOUT / "dagster.yaml").read_text())
    for name in ("compute_logs", "run_monitoring", "retention", "telemetry", "nux"):
        assert configured[0][name] == embedded[name]


def launch(instance: dg.DagsterInstance, context: dict[str, Any]) -> None:
    """Launch a run with the tags of launched runs, from a code server with this container context."""
    run = instance.create_run_for_job(
        rebuild,
        tags={name: json.dumps(value) for name, value in launched_tags(settings()).items()},
        job_code_origin=JobPythonOrigin(
            "rebuild",
            RepositoryPythonOrigin(
                executable_path="python",
                code_pointer=dg.reconstructable(rebuild).repository.pointer,
                container_image=_IMAGE,
                container_context=context,
                entry_point=["dagster"],
            ),
        ),
    )
    instance.run_launcher.launch_run(LaunchRunContext(run, workspace=None))


def settings() -> Any:
    """The settings of a code server with a limit of memory."""
    return load_settings({"LEDGERMART_PROCESS_MEMORY_MB": _MEMORY_MB})


def context_in(command: list[str], **variables: str) -> dict[str, Any]:
    """Return the container context in the command of a code server, with its variables replaced."""
    (text,) = [part.removeprefix("--container-context=") for part in command if part.startswith("--container-context=")]
    for name, value in variables.items():
        text = text.replace(f"${{{name}}}", value).replace(f"$({name})", value)
    assert "$" not in text
    found = json.loads(text)
    assert isinstance(found, dict)
    return found


def checked(kind: str, document: dict[str, Any]) -> Any:
    """Return a manifest as the model of the Kubernetes client, which has names, types and required fields."""
    model = getattr(kubernetes.client, f"V1{kind}")
    made = k8s_model_from_dict(model, dict(k8s_snake_case_dict(model, document)))
    # The models convert numbers to texts, and the server refuses them.
    assert kubernetes.client.ApiClient().sanitize_for_serialization(made) == document
    return made


@cache
def manifests() -> list[dict[str, Any]]:
    return list(yaml.safe_load_all((_DEPLOY / "kubernetes" / "ledgermart.yaml").read_text()))


def container_of(name: str) -> dict[str, Any]:
    """Return a container of the manifests."""
    pods = [document["spec"]["template"]["spec"] for document in manifests() if "template" in document.get("spec", {})]
    (found,) = [container for pod in pods for container in pod["containers"] if container["name"] == name]
    assert isinstance(found, dict)
    return found


def test_kubernetes_job_of_a_launched_run_is_valid(
    open_instance: Callable[[str], dg.DagsterInstance], monkeypatch: pytest.MonkeyPatch
) -> None:
    sent = []
    monkeypatch.setattr(
        kubernetes.client.BatchV1Api,
        "create_namespaced_job",
        lambda self, body, namespace, **_: sent.append((namespace, body)),
    )
    launch(open_instance("kubernetes"), context_in(container_of("code-server")["command"], LEDGERMART_SHARD="1"))
    ((namespace, body),) = sent
    assert namespace == "ledgermart"
    job = checked("Job", kubernetes.client.ApiClient().sanitize_for_serialization(body))
    pod = job.spec.template.spec
    (container,) = pod.containers
    assert container.image == _IMAGE
    assert container.args[:3] == ["dagster", "api", "execute_run"]
    assert container.resources.limits == container.resources.requests == {"memory": f"{_MEMORY_MB}M"}
    assert {variable.name: variable.value for variable in container.env}["LEDGERMART_SHARD"] == "1"
    assert {source.secret_ref.name for source in container.env_from if source.secret_ref} == {"ledgermart"}
    assert {source.config_map_ref.name for source in container.env_from if source.config_map_ref} == {"ledgermart"}
    volumes = {volume.name: volume for volume in pod.volumes}
    assert volumes["data"].persistent_volume_claim.claim_name == "data-builder-1"
    mounted = {mount.name: mount.mount_path for mount in container.volume_mounts}
    assert mounted.keys() == volumes.keys()
    assert mounted["data"] == "/data"
    (term,) = pod.affinity.pod_affinity.required_during_scheduling_ignored_during_execution
    assert term.label_selector.match_labels == {"statefulset.kubernetes.io/pod-name": "builder-1"}
    assert pod.service_account_name == "dagster"


def test_container_of_a_launched_run_is_valid(
    open_instance: Callable[[str], dg.DagsterInstance], monkeypatch: pytest.MonkeyPatch
) -> None:
    client = docker.DockerClient(base_url="tcp://127.0.0.1:1", version="1.44")
    sent: list[dict[str, Any]] = []

    def create(config: dict[str, Any], *_: object) -> dict[str, str]:
        sent.append(config)
        return {"Id": "container"}

    monkeypatch.setattr(client.api, "create_container_from_config", create)
    monkeypatch.setattr(client.api, "inspect_container", lambda _: {"Id": "container"})
    monkeypatch.setattr(client.api, "start", lambda _: None)
    monkeypatch.setattr(docker.client, "from_env", lambda: client)
    command = compose()["services"]["code-server-1"]["command"]
    launch(open_instance("docker"), context_in(command, LEDGERMART_PROCESS_MEMORY_MB=_MEMORY_MB))
    client.close()
    # docker-py made ContainerConfig and HostConfig, which refuse unknown arguments.
    (config,) = sent
    assert config["Image"] == _IMAGE
    assert config["Cmd"][:3] == ["dagster", "api", "execute_run"]
    variables = dict(text.split("=", 1) for text in config["Env"])
    assert variables["LEDGERMART_SHARD"] == "1"
    assert variables["LEDGERMART_PROCESS_MEMORY_MB"] == _MEMORY_MB
    assert variables["LEDGERMART_CONTROL_URL"] == "a value"
    host = config["HostConfig"]
    assert host["Binds"] == ["ledgermart_data-1:/data"]
    assert host["Memory"] == int(_MEMORY_MB) * 1024 * 1024
    assert host["AutoRemove"] is True
    assert host["NetworkMode"] == "ledgermart"


def compose() -> dict[str, Any]:
    found = yaml.safe_load((_DEPLOY / "docker" / "compose.yaml").read_text())
    assert isinstance(found, dict)
    return found


def test_compose_file_names_only_defined_parts() -> None:
    document = compose()
    services, volumes = document["services"], set(document["volumes"])
    for name, service in services.items():
        assert set(service["networks"]) <= document["networks"].keys(), name
        named = {volume.split(":")[0] for volume in service.get("volumes", ())}
        assert {volume for volume in named if volume[0] not in "./"} <= volumes, name
        assert set(service.get("depends_on", ())) <= services.keys(), name
    # The launcher names network and volumes as Docker does, with the name of the project.
    assert document["networks"]["ledgermart"]["name"] == launcher_of("docker")["network"]
    for shard in range(2):
        worker, server = services[f"worker-{shard}"], services[f"code-server-{shard}"]
        assert worker["volumes"] == server["volumes"] == [f"data-{shard}:/data"]
        assert worker["environment"]["LEDGERMART_SHARD"] == server["environment"]["LEDGERMART_SHARD"] == str(shard)
        context = context_in(server["command"], LEDGERMART_PROCESS_MEMORY_MB=_MEMORY_MB)
        assert context["docker"]["container_kwargs"]["volumes"] == [f"{document['name']}_data-{shard}:/data"]
        assert f"LEDGERMART_SHARD={shard}" in context["env_vars"]
    example = dict(line.split("=", 1) for line in lines_of("docker/env.example"))
    used = set(re.findall(r"\$\{(\w+)\}", (_DEPLOY / "docker" / "compose.yaml").read_text()))
    dockerfile = (_DEPLOY / "docker" / "Dockerfile").read_text()
    passed = {name for name in launcher_of("docker")["env_vars"] if f"{name}=" not in dockerfile}
    assert used | passed <= example.keys()


def test_api_nodes_share_a_network_with_postgres_alone() -> None:
    services = compose()["services"]
    reached = {name for name in services if set(services[name]["networks"]) & set(services["api"]["networks"])}
    assert reached == {"api", "postgres"}
    assert services["postgres"]["networks"] == ["ledgermart", "api"]


def launcher_of(kind: str) -> dict[str, Any]:
    found = yaml.safe_load((_DEPLOY / kind / "dagster.yaml").read_text())["run_launcher"]["config"]
    assert isinstance(found, dict)
    return found


def lines_of(path: str) -> list[str]:
    """Return the lines of a file of variables, without comments."""
    return [line for line in (_DEPLOY / path).read_text().splitlines() if line and not line.startswith("#")]


def test_kubernetes_manifests_are_valid() -> None:
    made = {(document["kind"], document["metadata"]["name"]): document for document in manifests()}
    assert len(made) == len(manifests())
    secrets = {line.split("=", 1)[0] for line in lines_of("kubernetes/secret.env.example")}
    for (kind, name), document in made.items():
        # The client names the subjects of a role binding otherwise.
        checked(kind, document)
        assert document["metadata"]["namespace"] == launcher_of("kubernetes")["job_namespace"]
        template = document["spec"].get("template") if kind in ("Deployment", "StatefulSet") else None
        if template is None:
            continue
        assert document["spec"]["selector"]["matchLabels"] == template["metadata"]["labels"], name
        pod = template["spec"]
        claims = {claim["metadata"]["name"] for claim in document["spec"].get("volumeClaimTemplates", ())}
        volumes = claims | {volume["name"] for volume in pod.get("volumes", ())}
        maps = {volume["configMap"]["name"] for volume in pod.get("volumes", ()) if "configMap" in volume}
        assert all(("ConfigMap", found) in made for found in maps - {launcher_of("kubernetes")["instance_config_map"]})
        for container in pod["containers"]:
            assert {mount["name"] for mount in container["volumeMounts"]} <= volumes
            for variable in container.get("env", ()):
                reference = variable.get("valueFrom", {}).get("secretKeyRef")
                assert reference is None or reference["key"] in secrets
    assert made["ServiceAccount", launcher_of("kubernetes")["service_account_name"]]


@pytest.mark.parametrize("kind", ["docker", "kubernetes", "machines"])
def test_workspace_names_the_code_server_of_each_shard(kind: str) -> None:
    servers = [
        found["grpc_server"] for found in yaml.safe_load((_DEPLOY / kind / "workspace.yaml").read_text())["load_from"]
    ]
    assert [server["location_name"] for server in servers] == ["shard_0", "shard_1"]
    assert all(server["port"] == 4000 for server in servers)
    if kind == "docker":
        assert {server["host"] for server in servers} <= compose()["services"].keys()
    if kind == "kubernetes":
        (builder,) = [
            found for found in manifests() if found["kind"] == "StatefulSet" and found["metadata"]["name"] == "builder"
        ]
        assert [server["host"] for server in servers] == [
            f"builder-{k}.builder" for k in range(builder["spec"]["replicas"])
        ]


def test_variables_are_settings() -> None:
    files = [path for path in _DEPLOY.rglob("*") if path.is_file()]
    named = {name for path in files for name in re.findall(r"\bLEDGERMART_[A-Z_]+", path.read_text())}
    settings = {variable.name for variable in VARIABLES}
    # `dagster.yaml` reads this variable; it is no setting.
    assert named - {"LEDGERMART_DAGSTER_DIR"} <= settings
    assert named >= {"LEDGERMART_SHARD", "LEDGERMART_CONTROL_URL"}


@pytest.mark.parametrize("path", sorted(_DEPLOY.glob("*/*.example")), ids=lambda path: path.parent.name)
def test_examples_name_the_driver_of_dagsters_storage(path: Path) -> None:
    found = dict(line.split("=", 1) for line in lines_of(str(path.relative_to(_DEPLOY))))
    assert found["DAGSTER_POSTGRES_URL"].startswith("postgresql+psycopg2://")
    # The control store has another driver.
    load_settings({"LEDGERMART_CONTROL_URL": found["LEDGERMART_CONTROL_URL"]})


def test_images_have_the_version_of_the_package() -> None:
    version = re.search(r'^version = "(.+)"$', (CHECKOUT / "pyproject.toml").read_text(), re.MULTILINE)
    assert version is not None
    named = {name for path in _DEPLOY.rglob("*.yaml") for name in re.findall(r"ledgermart:[\d.]+", path.read_text())}
    assert named == {f"ledgermart:{version[1]}"}
