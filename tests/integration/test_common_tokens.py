"""Common tokens in a wallet without movements: described by their contracts, counted and valued."""

import shutil
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from litestar.testing import TestClient

from api.app import create_app
from pipelines.chain.checks import check_batch
from pipelines.raw.database import open_warehouse
from tests.chain.fault_proxy import FaultProxy, RpcFault
from tests.chain.node import AnvilNode
from tests.chain.world import World
from tests.integration.conftest import MakeService
from tests.integration.harness import LocalNetwork, Service
from tests.oracles.node import instant

_DECIMALS_CALL = "0x313ce567"


def ask(client: TestClient[Any], method: str, path: str, body: Any = None) -> Any:
    """Return the answer to a request that must succeed."""
    answer = client.request(method, path, json=body)
    assert answer.status_code in (200, 201), answer.text
    return answer.json()


@pytest.mark.release
def test_a_common_token_is_valued_with_its_contracts_decimals(
    node: AnvilNode, ready_folder: tuple[Path, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    world = World(node, wallet_count=2)
    resting = world.deploy_token("REST", 6)
    held, wallet = 5_000_000_001, world.wallets[0]
    opening = world.distribute(resting, held) + 1
    world.mine()
    shutil.copytree(ready_folder[0], tmp_path / "ready")
    # The definition is wrong about the decimals.
    network = LocalNetwork("local", node.url, common_tokens=[("REST", resting.address, 8)])
    monkeypatch.setenv(network.variable, node.url)
    service = Service(tmp_path / "ready", [network])
    tenant = service.tenant()
    tracked = service.wallet(tenant, wallet, tracked_from=instant(node, opening))
    with TestClient(create_app(service.settings)) as client:
        client.headers["Authorization"] = f"Bearer {service.bearer(tenant)}"
        for symbol in ("REST", "USD"):
            ask(client, "POST", "/v1/priced-items", {"symbol": symbol, "name": symbol, "class": "Other"})
        desk = ask(client, "POST", "/v2/price-sources", {"name": "Desk"})["id"]
        ask(client, "PATCH", f"/v2/price-sources/{desk}/enable")
        priced = {"pricedAs": "REST", "priceType": "Market"}
        supported = ask(client, "POST", f"/v2/price-sources/{desk}/pairs", priced)["id"]
        ask(client, "POST", "/v2/pairs", priced | {"priceSources": [desk], "maxAge": None})
        entered = [{"price": "1.25", "effectiveFrom": "2020-01-01"}]
        ask(client, "POST", f"/v2/price-sources/{desk}/pairs/{supported}/prices", entered)
    done = service.ledgermart("cycle", "--json")
    assert done.returncode == 0, done.stdout + done.stderr
    with TestClient(create_app(service.settings)) as client:
        client.headers["Authorization"] = f"Bearer {service.bearer(tenant)}"
        (position,) = [
            row
            for row in ask(client, "GET", f"/v1/wallets/{tracked.id}/balances")["current"]
            if row["token"]["ledgerId"].lower() == resting.address
        ]
        detail = ask(client, "GET", f"/v1/wallets/{tracked.id}")
        (told,) = [row for row in ask(client, "GET", "/v1/networks")["data"] if row["name"] == "local"]
    service.close()
    decimals = world.call(resting.contract, resting.address, "decimals")
    quantity = Decimal(world.balance_of(resting, wallet, node.head())).scaleb(-decimals)
    assert (position["quantityRaw"], position["quantity"]) == (str(held), format(quantity, "f"))
    assert (Decimal(position["value"]), position["valueStatus"]) == (quantity * Decimal("1.25"), "Priced")
    assert Decimal(detail["totalValue"]) == quantity * Decimal("1.25")
    assert told["status"] == "Healthy"
    assert "REST" in told["statusDetail"]
    assert "8 decimals, its contract 6" in told["statusDetail"]


@pytest.mark.ci
def test_a_common_token_is_read_until_two_readings_agree(node: AnvilNode, make_service: MakeService) -> None:
    world = World(node, wallet_count=2)
    resting = world.deploy_token("REST", 6)
    opening = world.distribute(resting, 7)
    with FaultProxy(node.url) as proxy:
        service = make_service(LocalNetwork("local", proxy.url, common_tokens=[("RST", resting.address, 6)]))
        service.wallet(service.tenant(), world.wallets[0], tracked_from=instant(node, opening))
        failing = RpcFault(code=-32000, message="internal error", methods=("eth_call", "eth_getCode"))
        proxy.inject(failing)
        assert service.cycle().error is not None
        assert service.query("select * from raw.token_metadata") == []
        proxy.withdraw(failing)
        node.mine()
        service.cycle()
        described = "select token_address, symbol, decimals, read_at from raw.token_metadata"
        ((address, symbol, decimals, read_at),) = service.query(described)
        assert (address, symbol, decimals) == (resting.address, "REST", 6)
        node.mine()
        service.cycle()
        proxy.calls.clear()
        node.mine()
        service.cycle()
        assert service.query(described) == [(address, symbol, decimals, read_at)]
        asked = [params[0].get("data") for name, params in proxy.calls if name == "eth_call"]
        assert _DECIMALS_CALL not in asked
        with open_warehouse(service.settings.warehouse_path) as connection:
            found = {finding.check.name: finding for finding in check_batch(connection, "local", 4)}
        assert (found["decimals"].count, found["symbols"].count) == (0, 1)
        assert "symbol RST, its contract REST" in (found["symbols"].example or "")
        assert found["symbols"].check.is_warning
        assert service.query("select status, detail from raw.network_states") == [("Healthy", None)]
