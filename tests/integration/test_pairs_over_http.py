"""A pair from its first request to its prices: over HTTP, with real cycles in between and an exchange on loopback."""

import shutil
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from litestar.testing import TestClient

from api.app import create_app
from tests.integration.conftest import READY_NETWORKS
from tests.integration.harness import Service
from tests.prices.exchange_server import ExchangeServer
from tests.prices.model import ScriptedMarket, steady

NOW = datetime(2026, 3, 9, 10, 30, tzinfo=UTC)
MARKETS = (ScriptedMarket("BTC", "USD", steady("67012.125")), ScriptedMarket("EUR", "USD", steady("1.25")))


class System:
    """A service, and a client of an operator's tenant."""

    def __init__(self, service: Service, client: TestClient[Any]) -> None:
        self.service = service
        self.client = client

    def cycle(self) -> None:
        """Run the command; new clients see the published version."""
        done = self.service.ledgermart("cycle", "--json")
        assert done.returncode == 0, done.stdout + done.stderr

    def post(self, path: str, body: Any = None, status: int = 201) -> dict[str, Any]:
        """POST and return the answer."""
        answer = self.client.post(path, json=body)
        assert answer.status_code == status, answer.text
        made: dict[str, Any] = answer.json()
        return made

    def get(self, path: str) -> dict[str, Any]:
        """GET the answer."""
        answer = self.client.get(path)
        assert answer.status_code == 200, answer.text
        found: dict[str, Any] = answer.json()
        return found


@pytest.fixture
def system(ready_folder: tuple[Path, str], tmp_path: Path) -> Iterator[System]:
    shutil.copytree(ready_folder[0], tmp_path / "ready")
    with ExchangeServer(MARKETS, now=lambda: NOW) as server:
        fields = {"requests_per_second": 100, "max_attempts": 1, "timeout_seconds": 60}
        definitions = server.write_definitions(tmp_path / "sources.toml", ("kraken",), **fields)
        variables = {"LEDGERMART_PRICE_SOURCES": str(definitions), "LEDGERMART_PRICE_POLL_SECONDS": "1"}
        service = Service(tmp_path / "ready", READY_NETWORKS, variables)
        with TestClient(create_app(service.settings)) as client:
            client.headers["Authorization"] = f"Bearer {service.bearer(service.tenant())}"
            yield System(service, client)
        service.close()


@pytest.mark.ci
def test_a_pair_is_resolved_polled_discovered_and_guarded(system: System) -> None:
    for symbol in ("BTC", "EUR", "USD", "GOLD", "FUND"):
        system.post("/v1/priced-items", {"symbol": symbol, "name": symbol, "class": "Other"})
    market = {"priceType": "Trade", "priceSources": ["src_kraken"], "maxAge": None}

    # There is no market list yet, so every market is accepted.
    made = system.post("/v2/pairs", market | {"pricedAs": "BTC"})
    crossed = {"pricedAs": "BTC", "pricedIn": "EUR", "bridge": "USD", "allowInverse": True}
    cross = system.post("/v2/pairs", market | crossed)
    assert (made["mappingStatus"], cross["mappingStatus"]) == ("Pending", "Pending")

    desk = system.post("/v2/price-sources", {"name": "Desk"})["id"]
    assert system.client.patch(f"/v2/price-sources/{desk}/enable").status_code == 200
    nav = {"pricedAs": "FUND", "priceType": "NAV"}
    supported = system.post(f"/v2/price-sources/{desk}/pairs", nav)["id"]
    fund = system.post("/v2/pairs", nav | {"priceSources": [desk], "maxAge": None, "maxJump": 25})["id"]
    entered = [{"price": "100", "effectiveFrom": "2026-01-01"}, {"price": "1000", "effectiveFrom": "2026-02-01"}]
    system.post(f"/v2/price-sources/{desk}/pairs/{supported}/prices", entered)
    asked = {"from": "2026-03-02", "to": "2026-03-04", "windowSize": "day"}
    discovery = system.post(f"/v2/pairs/{made['id']}/prices/discovery", asked, 202)

    system.cycle()

    found = system.get(f"/v2/pairs/{made['id']}")
    (mapping,) = found["mappings"]
    assert (mapping["status"], mapping["derivation"]) == ("Resolved", "Direct")
    assert found["latestPrice"]["price"] == "67012.125"
    assert found["latestPrice"]["priceSource"] == "src_kraken"
    found = system.get(f"/v2/pairs/{cross['id']}")
    assert found["mappings"][0]["derivation"] == "Bridge"
    # 67012.125 / 1.25, since 1 / 1.25 is exact.
    assert found["latestPrice"]["price"] == "53609.7"

    # Once the market list is stored, pairs with unlisted markets are refused with the fix.
    refused = system.client.post("/v2/pairs", json=market | {"pricedAs": "GOLD"})
    assert (refused.status_code, refused.json()["errors"][0]["pointer"]) == (422, "/priceSources")
    refused = system.client.post("/v2/pairs", json=market | {"pricedAs": "USD", "pricedIn": "EUR"})
    assert "allowInverse" in refused.json()["detail"]

    # 1000 jumped from 100 by more than 25 %.
    assert system.get(f"/v2/pairs/{fund}")["latestPrice"]["price"] == "100"
    (stopped,) = system.get(f"/v2/pairs/{fund}/prices/quarantined")["data"]
    assert (stopped["price"], stopped["reason"], stopped["decision"]) == ("1000", "Jump", None)
    assert stopped["effectiveFrom"] == "2026-02-01T00:00:00Z"
    accepted = system.post(f"/v2/pairs/{fund}/prices/quarantined/{stopped['id']}/accept", status=200)
    assert accepted == stopped | {"decision": "Accepted"}

    system.cycle()

    assert system.get(f"/v2/pairs/{fund}")["latestPrice"]["price"] == "1000"
    assert system.get(f"/v2/pairs/{fund}/prices/quarantined")["data"] == []
    done = system.get(f"/v2/pairs/{made['id']}/prices/async-operations/{discovery['id']}")
    assert (done["status"], done["pricesStored"], done["missing"], done["error"]) == ("Succeeded", 2, [], None)
    assert done["progress"] == {"done": 2, "total": 2, "unit": "windows"}
    history = system.get(f"/v2/pairs/{made['id']}/prices/history?priceSource=src_kraken&limit=1000")["data"]
    windows = [(row["windowStart"], row["effectiveFrom"]) for row in history if row["windowStart"]]
    assert windows == [
        ("2026-03-03T00:00:00Z", "2026-03-04T00:00:00Z"),
        ("2026-03-02T00:00:00Z", "2026-03-03T00:00:00Z"),
    ]
