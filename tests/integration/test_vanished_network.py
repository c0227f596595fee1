"""A network that ledgers use and that is no longer defined: status and warnings name it, its data stays readable."""

import json

import pytest

from cli.doctor import diagnose
from cli.status import read_status
from control.networks.definitions import load_networks
from tests.chain.node import AnvilNode
from tests.chain.world import World
from tests.integration.conftest import MakeService
from tests.integration.harness import LocalNetwork, Service
from tests.oracles.node import instant


def vanish(service: Service, network: str) -> None:
    """Take a network out of the definitions."""
    path = service.settings.networks_file
    kept = [part for part in path.read_text().split("[[network]]") if f'name = "{network}"' not in part]
    path.write_text("[[network]]".join(kept))
    service.networks = load_networks(path, service.variables)


@pytest.mark.ci
def test_status_and_doctor_name_it_and_its_last_definition_stays(
    node: AnvilNode, make_service: MakeService, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SECOND_RPC_URL", node.url)
    service = make_service(
        LocalNetwork("local", node.url, common_tokens=[("USDC", "0x" + "11" * 20, 6)]), LocalNetwork("second", node.url)
    )
    token = World(node, wallet_count=2).deploy_token("GOLD", 18)
    tenant = service.tenant()
    service.ledger(tenant, "second")
    for ledger in ("local", "second"):
        service.token(tenant, token.address, tracked_from=instant(node, 0), ledger=ledger)
        service.good_cycle(ledger)
    definition = service.query(
        "select * exclude (is_enabled, is_defined, disabled_reason) from raw.networks order by 1"
    )
    vanish(service, "local")
    service.good_cycle("second")
    shown = {row["network"]: row for row in read_status(service.settings)["networks"]}
    assert (shown["local"]["status"], shown["local"]["tokens"]) == ("Undefined", 1)
    assert "restore its definition" in shown["local"]["detail"]
    assert shown["local"]["collectedTo"] == node.head()
    assert shown["second"]["status"] == "Healthy"
    (check,) = [check for check in diagnose(service.settings, []).checks if check.check == "network local"]
    assert (check.verdict, check.detail) == ("wrong", shown["local"]["detail"])
    assert service.query("select is_enabled, is_defined, disabled_reason from raw.networks order by network") == [
        (False, False, check.detail),
        (True, None, None),
    ]
    marks = "select reason from raw.changes where batch_id = (select max(batch_id) from raw.batches)"
    assert ("Metadata",) in service.query(marks)
    service.good_cycle("second")
    assert ("Metadata",) not in service.query(marks)
    kept = service.query("select * exclude (is_enabled, is_defined, disabled_reason) from raw.networks order by 1")
    assert kept == definition
    assert service.query("select network, symbol from raw.common_tokens") == [("local", "USDC")]


@pytest.mark.ci
def test_a_cycle_warns_and_publishes_the_others(node: AnvilNode, ready_service: Service) -> None:
    service = ready_service
    token = World(node, wallet_count=2).deploy_token("GOLD", 18)
    tenant = service.tenant()
    service.ledger(tenant, "second")
    for ledger in ("local", "second"):
        service.token(tenant, token.address, tracked_from=instant(node, 0), ledger=ledger)
        service.point_at(ledger, node.url)
    assert service.ledgermart("cycle").returncode == 0
    tokens = "select network, address from marts.tokens order by 1"
    before = service.published(tokens)
    vanish(service, "local")
    node.mine_empty(1, 12)
    done = service.ledgermart("cycle", "--json")
    assert done.returncode == 0, done.stdout + done.stderr
    (warning,) = json.loads(done.stdout)["warnings"]
    assert "'local'" in warning
    states = service.published("select network, status, status_detail from marts.networks order by 1")
    assert states == [("local", "Undefined", warning), ("second", "Healthy", None)]
    assert service.published(tokens) == before != []
