"""The console command: output, exit codes, and error messages."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from control import subjects
from control.operations import Status
from tests.chain.fault_proxy import FaultProxy, HttpFault
from tests.chain.node import AnvilNode
from tests.chain.process import free_port
from tests.chain.world import World
from tests.integration.conftest import READY_NETWORKS
from tests.integration.harness import Service
from tests.integration.transformed import VALUE_COLUMNS as VALUES
from tests.oracles.node import instant
from warehouse.lock import writer_lock
from warehouse.versions import current_publication


def output(service: Service, *arguments: str, code: int = 0, **variables: str) -> dict[str, Any]:
    """Run the command with --json and return the one object that it prints."""
    done = service.ledgermart(*arguments, "--json", **variables)
    assert done.returncode == code, done.stdout + done.stderr
    printed: dict[str, Any] = json.loads(done.stdout)
    return printed


@pytest.mark.ci
def test_init_prints_the_key_once_and_publishes_an_empty_version(
    ready_folder: tuple[Path, str], ready_service: Service
) -> None:
    first = json.loads(ready_folder[1])
    assert first.keys() == {"tenant", "apiKey"}
    assert first["tenant"] == "first"
    assert first["apiKey"].startswith("lm_")
    for mart in ("tokens", "wallets", "token_activities", "cap_tables", "coverage", *VALUES):
        assert ready_service.published(f"select count(*) from marts.{mart}") == [(0,)]
    version = current_publication(ready_service.settings.serving_dir)
    assert output(ready_service, "init", "--tenant", "first") == {"tenant": "first", "apiKey": None}
    assert output(ready_service, "init", "--tenant", "another")["apiKey"].startswith("lm_")
    assert current_publication(ready_service.settings.serving_dir) == version
    assert output(ready_service, "status")["tenants"] == ["first", "another"]


def test_status_before_anything_is_set_up(tmp_path: Path) -> None:
    service = Service(tmp_path / "service", READY_NETWORKS)
    service.close()
    (tmp_path / "service" / "data" / "control.db").unlink()
    status = output(service, "status")
    assert (status["isInitialised"], status["version"], status["lastCycle"]) == (False, None, None)
    assert "ledgermart init" in service.ledgermart("status").stdout


@pytest.mark.proof("a network that fails does not stop the others")
def test_cycle_publishes_healthy_networks_and_reports_failed_ones(node: AnvilNode, ready_service: Service) -> None:
    service = ready_service
    world = World(node, wallet_count=4)
    gold = world.deploy_token("GOLD", 18)
    opening = world.distribute(gold, 10)
    dead = f"http://127.0.0.1:{free_port()}"
    service.point_at("local", node.url)
    service.point_at("second", dead)
    tenant = service.tenant()
    service.ledger(tenant, "second")
    for ledger in ("local", "second"):
        service.token(tenant, gold.address, tracked_from=instant(node, opening), ledger=ledger)
    before = current_publication(service.settings.serving_dir)
    assert before is not None

    # One network fails, and the other one's rows are published.
    result = output(service, "cycle", code=3)
    assert result["exitCode"] == 3
    assert result["networks"].keys() == {"local", "second"}
    local, second = result["networks"]["local"], result["networks"]["second"]
    assert (local["status"], local["error"]) == ("Healthy", None)
    assert (local["head"], local["collectedTo"]) == (opening, opening)
    assert {"table": "token_transfers", "from": opening, "to": opening, "rows": 4} in local["collected"]
    assert (second["status"], second["head"], second["collected"]) == ("Unreachable", None, [])
    assert "second: eth_" in second["error"]
    assert second["error"] in result["error"]
    assert "Stack Trace" in (service.settings.data_dir / "logs" / "cycle.log").read_text()
    assert result["published"].keys() == {"version", "publishedAt", "isNew"}
    assert (result["published"]["version"], result["published"]["isNew"]) == (before.version + 1, True)
    assert service.published("select status from marts.networks order by network") == [("Healthy",), ("Unreachable",)]
    assert service.published("select count(*), max(block_number) from marts.token_activities") == [(4, opening)]

    # Without new data there is no new version; a cycle of one network reports it alone.
    version = result["published"]["version"]
    result = output(service, "cycle", "--network", "local")
    assert (result["published"]["version"], result["published"]["isNew"]) == (version, False)
    assert {name: network["collected"] for name, network in result["networks"].items()} == {"local": []}

    rows = {row["network"]: row for row in output(service, "status")["networks"]}
    assert (rows["local"]["status"], rows["local"]["tokens"], rows["local"]["tracked"]) == ("Healthy", 1, 1)
    assert (rows["local"]["collectedTo"], rows["second"]["collectedTo"]) == (opening, None)


@pytest.mark.release
def test_a_lost_version_is_published_again_without_new_rows(ready_service: Service) -> None:
    service = ready_service
    before = output(service, "cycle")["published"]
    current = current_publication(service.settings.serving_dir)
    assert current is not None
    damaged = service.settings.serving_dir / current.file
    damaged.chmod(0o600)
    damaged.write_bytes(b"")
    mended = output(service, "cycle")["published"]
    assert (mended["version"], mended["isNew"]) == (before["version"] + 1, True)
    assert service.published("select version from marts.publication") == [(mended["version"],)]
    assert output(service, "cycle")["published"] == {**mended, "isNew": False}


@pytest.mark.release
def test_removing_the_last_wallet_leaves_no_row(node: AnvilNode, ready_service: Service) -> None:
    """Builds skip the models of wallets if there are none, except the first build after the last wallet."""
    service = ready_service
    world = World(node, wallet_count=1)
    service.point_at("local", node.url)
    tenant = service.tenant()
    wallet = service.wallet(tenant, world.wallets[0], tracked_from=instant(node, world.mine()))
    assert output(service, "cycle")["published"]["isNew"]
    assert service.published("select count(*) from marts.wallets") == [(1,)]
    with service.store.write() as session:
        subjects.remove(session, tenant, wallet)
    assert output(service, "cycle")["published"]["isNew"]
    assert service.published("select count(*) from marts.wallets") == [(0,)]


@pytest.mark.release
def test_failed_history_is_read_and_published_without_new_blocks(node: AnvilNode, ready_service: Service) -> None:
    service = ready_service
    world = World(node, wallet_count=4)
    gold = world.deploy_token("GOLD", 18)
    world.distribute(gold, 10)
    world.mine()
    opening = node.head()
    tenant = service.tenant()

    def is_of_the_past(calls: Sequence[dict[str, Any]]) -> bool:
        return any(int(call["params"][0]["fromBlock"], 16) < opening for call in calls)

    with FaultProxy(node.url) as proxy:
        service.point_at("local", proxy.url)
        token = service.token(tenant, gold.address, tracked_from=instant(node, opening))
        asked = service.ask_history(tenant, token, "creation")
        proxy.inject(HttpFault(status=503, methods=["eth_getLogs"], when=is_of_the_past))
        # The first cycle publishes the live blocks, the second one the blocks of the request.
        for _ in range(2):
            failed = output(service, "cycle", code=3)
            assert failed["networks"]["local"]["status"] == "Healthy"
            assert "eth_getLogs" in failed["networks"]["local"]["error"]
        waiting = service.operation(asked)
        assert waiting.status is Status.RUNNING
        assert waiting.error is not None
        proxy.clear()
        read = output(service, "cycle")
        assert (read["published"]["isNew"], read["isPublicationDue"]) == (False, True)
        done = output(service, "cycle")
        assert (done["published"]["isNew"], done["isPublicationDue"]) == (True, False)
    assert service.operation(asked).status is Status.SUCCEEDED
    moved = [int(log["blockNumber"], 16) for log in world.transfer_logs(0, opening)]
    assert service.published("select count(*), min(block_number) from marts.token_activities") == [
        (len(moved), min(moved))
    ]


@pytest.mark.ci
def test_cycle_gives_up_while_another_process_writes(node: AnvilNode, ready_service: Service) -> None:
    ready_service.point_at("local", node.url)
    with writer_lock(ready_service.settings.lock_path, "a test", 0):
        result = output(ready_service, "cycle", code=4, LEDGERMART_LOCK_WAIT_SECONDS="1")
    assert result["exitCode"] == 4
    assert "a test" in result["error"]
    assert result["networks"] == {}
    assert result["published"]["isNew"] is False


@pytest.mark.parametrize(
    ("network", "words"),
    [("nowhere", ["'nowhere' is not defined"]), ("second", ["'second' is disabled", "set SECOND_RPC_URL"])],
)
def test_cycle_of_an_unusable_network_is_refused(network: str, words: list[str], ready_service: Service) -> None:
    done = ready_service.ledgermart("cycle", "--network", network, "--json")
    assert done.returncode == 2
    assert done.stdout == ""
    assert all(word in done.stderr for word in words), done.stderr
    assert "Traceback" not in done.stderr


def test_malformed_variable_and_network_definition_are_named(ready_service: Service) -> None:
    definitions = ready_service.settings.networks_file
    definitions.write_text(definitions.read_text().replace("chain_id = 31337", 'chain_id = "mainnet"', 1))
    for variables, named in (
        ({"LEDGERMART_API_PORT": "70000"}, "LEDGERMART_API_PORT"),
        ({}, "network 'local': field 'chain_id'"),
    ):
        done = ready_service.ledgermart("cycle", **variables)
        assert done.returncode == 2
        assert named in done.stderr
        assert "Traceback" not in done.stderr


@pytest.mark.parametrize(
    ("parameters", "reason"), [("", "Connection refused"), ("?unheard_of=1", 'invalid connection option "unheard_of"')]
)
def test_a_missing_control_store_is_an_error_in_one_line(parameters: str, reason: str, ready_service: Service) -> None:
    url = f"postgresql://someone:hidden-word@127.0.0.1:{free_port()}/control{parameters}"
    done = ready_service.ledgermart("cycle", LEDGERMART_CONTROL_URL=url)
    assert done.returncode == 2
    assert done.stdout == ""
    (line,) = done.stderr.splitlines()
    assert line.startswith("Error: the control store cannot be used: ")
    assert reason in line
    assert "hidden-word" not in line


def test_keys_are_made_listed_and_revoked(ready_service: Service) -> None:
    service = ready_service
    made = output(service, "key", "create", "--tenant", "first", "--role", "viewer")
    assert made.keys() == {"id", "tenant", "role", "apiKey"}
    assert (made["tenant"], made["role"]) == ("first", "viewer")
    rows = output(service, "key", "list", "--tenant", "first")["data"]
    assert [(row["role"], row["revokedAt"]) for row in rows] == [("admin", None), ("viewer", None)]
    assert made["apiKey"] not in json.dumps(rows)
    revoked = output(service, "key", "revoke", "--tenant", "first", made["id"])
    assert revoked == {"id": made["id"], "tenant": "first", "isRevoked": True}
    rows = output(service, "key", "list", "--tenant", "first")["data"]
    assert [row["revokedAt"] is None for row in rows] == [True, False]
    for arguments in (
        ("key", "create", "--tenant", "nobody", "--role", "viewer"),
        ("key", "create", "--tenant", "first", "--role", "emperor"),
        ("key", "list", "--tenant", "nobody"),
        ("key", "revoke", "--tenant", "first", "key_unknown"),
    ):
        done = service.ledgermart(*arguments)
        assert done.returncode == 2
        assert done.stderr
        assert "Traceback" not in done.stderr


def test_a_narrow_terminal_cuts_nothing_that_is_copied(ready_service: Service) -> None:
    service = ready_service
    (key,) = output(service, "key", "list", "--tenant", "first")["data"]
    assert key["id"] in service.ledgermart("key", "list", "--tenant", "first", COLUMNS="30").stdout
    tenant = service.tenant()
    token = service.token(tenant, "0x" + "ab" * 20)
    asked = service.ask_history(tenant, token, "creation")
    printed = service.ledgermart("status", COLUMNS="30").stdout
    for whole in ("LOCAL_RPC_URL", asked.id, token.address):
        assert whole in printed
    assert "…" not in printed


def test_status_shows_requests_and_the_configuration_as_it_is_now(ready_service: Service) -> None:
    service = ready_service
    tenant = service.tenant()
    token = service.token(tenant, "0x" + "ab" * 20)
    asked = service.ask_history(tenant, token, "block:5", "block:9")
    before = output(service, "status")
    assert {row["network"]: row["status"] for row in before["networks"]} == {"local": "Disabled", "second": "Disabled"}
    assert before["operations"] == [
        {
            "operation": asked.id,
            "kind": "History",
            "tenant": "acme",
            "network": "local",
            "address": token.address,
            "from": asked.from_text,
            "to": asked.to_text,
            "status": "Pending",
            "done": 0,
            "total": None,
            "error": None,
            "resumesAt": None,
        }
    ]
    # Set now, and no cycle since.
    service.point_at("local", "http://127.0.0.1:1")
    local = output(service, "status")["networks"][0]
    assert (local["network"], local["status"], local["detail"]) == ("local", "Unknown", None)
