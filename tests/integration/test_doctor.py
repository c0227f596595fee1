"""`ledgermart doctor` over real and failing nodes, before and after the service was set up."""

import socket
import sys
import threading
from typing import NoReturn

import pytest

from cli import doctor
from cli.checks import Check
from cli.doctor import Diagnosis, diagnose
from control.settings import load_settings
from tests.chain.node import AnvilNode
from tests.chain.process import free_port
from tests.integration.conftest import MakeService
from tests.integration.harness import LocalNetwork, Service
from warehouse.lock import writer_lock


def examined(service: Service, monkeypatch: pytest.MonkeyPatch, *networks: str) -> Diagnosis:
    """Run the checks of the command, with free ports."""
    for name in ("API", "DAGSTER"):
        service.variables[f"LEDGERMART_{name}_PORT"] = str(free_port())
    for name, value in service.variables.items():
        monkeypatch.setenv(name, value)
    service.settings.data_dir.mkdir(exist_ok=True)
    return diagnose(load_settings(), networks)


def check_of(found: Diagnosis, name: str) -> Check:
    (check,) = [check for check in found.checks if check.check == name]
    return check


def test_a_node_is_examined_before_anything_is_tracked(
    node: AnvilNode, make_service: MakeService, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = examined(make_service(LocalNetwork("local", node.url)), monkeypatch)
    (local,) = found.nodes
    assert (local.network, local.chain_id, local.verdict) == ("local", 31337, "ok")
    assert local.provider == node.url.removeprefix("http://")
    assert local.head is not None
    assert (local.archive, local.traces) == (True, True)
    assert local.latency_ms is not None
    assert "no tenant yet; run `ledgermart init" in check_of(found, "control store").detail
    assert check_of(found, "published").verdict == "note"
    assert check_of(found, "ports").detail.startswith("free: API ")
    assert (found.exit_code, found.as_json()["nodes"][0]["chainId"]) == (0, 31337)


def test_each_bad_node_is_named_with_its_reason(
    node: AnvilNode, make_service: MakeService, monkeypatch: pytest.MonkeyPatch
) -> None:
    nothing_there = f"http://127.0.0.1:{free_port()}/key-of-mine"
    service = make_service(
        LocalNetwork("other", node.url, chain_id=5),
        LocalNetwork("away", nothing_there, chain_id=6),
        LocalNetwork("off", None, chain_id=7),
    )
    found = examined(service, monkeypatch)
    other, away = found.nodes
    assert "31337" in other.detail
    assert "no connection" in away.detail
    assert (other.verdict, away.verdict, found.exit_code) == ("wrong", "wrong", 1)
    assert "key-of-mine" not in str(found)
    assert check_of(found, "networks").detail == "2 enabled; disabled: off"
    (off,) = [check for check in examined(service, monkeypatch, "off").checks if check.check == "network off"]
    assert (off.verdict, off.detail) == ("wrong", "disabled: no node address: set OFF_RPC_URL")
    with pytest.raises(doctor.UnknownNetwork, match="there are other, away, off"):
        examined(service, monkeypatch, "nowhere")


def test_nodes_are_examined_without_the_control_store(
    node: AnvilNode, make_service: MakeService, monkeypatch: pytest.MonkeyPatch
) -> None:
    service = make_service(LocalNetwork("local", node.url))
    service.variables["LEDGERMART_CONTROL_URL"] = f"postgresql://127.0.0.1:{free_port()}/nothing"
    found = examined(service, monkeypatch)
    assert check_of(found, "control store").verdict == "wrong"
    assert ([local.verdict for local in found.nodes], found.exit_code) == (["ok"], 1)


def test_a_replaced_package_is_named_with_the_version_that_is_needed(
    make_service: MakeService, monkeypatch: pytest.MonkeyPatch
) -> None:
    service = make_service(LocalNetwork("local", None))
    for name, needed in (("duckdb", "duckdb==0.1"), ("not-there", "not-there")):
        told = ["click>=8", "nothing==1; extra == 'other'", needed]
        monkeypatch.setattr(doctor, "requires", lambda _, told=told: told)
        check = check_of(examined(service, monkeypatch), "versions")
        assert (check.verdict, check.detail.startswith(f"{name} ")) == ("wrong", True)
        assert f"the service needs {needed}; run `{sys.executable} -m pip install '{needed}'`" in check.detail


def test_a_node_that_never_ends_its_answer_is_given_up(
    make_service: MakeService, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = threading.Event()

    def open_node(*_: object, **__: object) -> NoReturn:
        asked.set()
        threading.Event().wait()
        pytest.fail("no node answers")

    monkeypatch.setattr(doctor, "open_node", open_node)
    monkeypatch.setattr(doctor, "NODE_SECONDS", 0.0)
    (given_up,) = examined(make_service(LocalNetwork("local", "http://127.0.0.1:9")), monkeypatch).nodes
    assert asked.wait()
    assert (given_up.verdict, given_up.detail.startswith("no response within")) == ("wrong", True)


def test_a_lost_warehouse_is_named_with_its_data_and_the_command(
    make_service: MakeService, monkeypatch: pytest.MonkeyPatch
) -> None:
    service = make_service(LocalNetwork("local", None))
    tenant = service.tenant()
    service.wallet(tenant, "0x" + "1" * 40)
    assert "warehouse" not in [check.check for check in examined(service, monkeypatch).checks]
    service.settings.marts_path.touch()
    found = check_of(examined(service, monkeypatch), "warehouse")
    assert found.verdict == "wrong"
    assert f"{service.settings.warehouse_path} is lost, with the data of 1 token or wallet" in found.detail
    assert "`ledgermart restore`" in found.detail


def test_ports_of_the_running_service_are_its_own(make_service: MakeService, monkeypatch: pytest.MonkeyPatch) -> None:
    service = make_service(LocalNetwork("local", None))
    service.tenant()
    service.settings.data_dir.mkdir(exist_ok=True)
    with writer_lock(service.settings.data_dir / "up.lock", "ledgermart up", 0):
        found = examined(service, monkeypatch)
    assert check_of(found, "ports").detail.startswith("in use by the service itself: process ")
    assert check_of(found, "control store").verdict == "ok"
    assert (check_of(found, "networks").verdict, found.exit_code) == ("note", 0)
    with socket.create_server(("127.0.0.1", 0)) as server:
        monkeypatch.setenv("LEDGERMART_DAGSTER_PORT", str(server.getsockname()[1]))
        found = diagnose(load_settings(), [])
    assert check_of(found, "port of Dagster").verdict == "wrong"
    assert "LEDGERMART_DAGSTER_PORT" in check_of(found, "port of Dagster").detail
    assert found.exit_code == 1
