"""Ledgers, tokens and wallets: creation, lists, tracking, idempotency, conditional requests and pages."""

from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

import pytest
from litestar.testing import TestClient
from sqlalchemy import update

from api.examples import EXAMPLE_LEDGER, EXAMPLE_UNUSED_LEDGER, EXAMPLE_WALLET_ID
from control.clock import utc_now
from control.models import TrackingWindow
from control.networks.definitions import load_networks
from control.settings import load_settings
from tests.api.test_errors import pointers, problem
from tests.api.world import FRESH_TOKEN_ID, LEDGER_OF_KEYS, NFT_TOKEN_ID, World

ADDRESS = "0x6B175474E89094C44Da98b954EedeAC495271d0F"
BODY = {"ledger": EXAMPLE_LEDGER, "symbol": "DAI", "ledgerId": ADDRESS.lower(), "externalId": "e1", "name": "Dai"}
BODY_OF_WALLET = {"ledger": EXAMPLE_LEDGER, "ledgerId": ADDRESS}


def test_networks_are_listed_with_the_state_of_their_nodes(client: TestClient[Any]) -> None:
    ethereum, sepolia, _ = client.get("/v1/networks").json()["data"]
    assert ethereum["status"] == "Healthy"
    assert ethereum["capabilities"] == {"internalTransfers": False, "archive": True, "inputAddresses": False}
    assert sepolia["status"] == "Disabled"
    assert "LEDGERMART_TEST_UNSET_RPC_URL" in sepolia["statusDetail"]
    assert sepolia["capabilities"] == {"internalTransfers": None, "archive": None, "inputAddresses": None}


def test_a_ledger_is_created_then_updated(client: TestClient[Any]) -> None:
    path = "/v1/networks/sepolia/ledgers"
    created = client.put(path, json={"name": "test", "displayName": "Test"})
    assert created.status_code == 201
    again = client.put(path, json={"name": "test", "description": "more"})
    assert again.status_code == 200
    assert again.json()["id"] == created.json()["id"]
    assert (again.json()["displayName"], again.json()["description"]) == (None, "more")
    stored = {name: value for name, value in again.json().items() if name != "warnings"}
    assert client.get("/v1/networks/ledgers/test").json() == stored
    assert client.get(f"/v1/networks/ledgers/{again.json()['id']}").json() == stored
    assert [ledger["name"] for ledger in client.get("/v1/networks/ledgers").json()["data"]] == [
        EXAMPLE_LEDGER,
        EXAMPLE_UNUSED_LEDGER,
        LEDGER_OF_KEYS,
        "test",
    ]


def test_every_write_on_a_disabled_network_warns(client: TestClient[Any]) -> None:
    ledger = client.put("/v1/networks/sepolia/ledgers", json={"name": "test"})
    token = client.post("/v1/tokens", json={**BODY, "ledger": "test"})
    wallet = client.post("/v1/wallets", json={"ledger": "test", "ledgerId": ADDRESS})
    for answer in (ledger, client.put("/v1/networks/sepolia/ledgers", json={"name": "test"}), token, wallet):
        assert answer.status_code in (200, 201)
        (warning,) = answer.json()["warnings"]
        assert warning["code"] == "network-disabled"
        assert warning["detail"].startswith("network 'sepolia' is disabled, so nothing is collected on it: ")
        assert "set LEDGERMART_TEST_UNSET_RPC_URL" in warning["detail"]
    # A later read has no warnings: `GET /v1/networks` shows the network's status.
    assert "warnings" not in client.get(f"/v1/tokens/{token.json()['id']}").json()

    enabled = client.put("/v1/networks/ethereum/ledgers", json={"name": "other"})
    for answer in (enabled, client.post("/v1/tokens", json=BODY), client.post("/v1/wallets", json=BODY_OF_WALLET)):
        assert answer.json()["warnings"] == []


def test_replayed_response_has_its_warnings(client: TestClient[Any]) -> None:
    client.put("/v1/networks/sepolia/ledgers", json={"name": "test"})
    body, key = {**BODY, "ledger": "test"}, {"Idempotency-Key": "warned"}
    first = client.post("/v1/tokens", json=body, headers=key)
    assert first.json()["warnings"]
    assert client.post("/v1/tokens", json=body, headers=key).json() == first.json()


def test_invalid_ledgers_are_refused(client: TestClient[Any]) -> None:
    conflict = problem(
        client.put("/v1/networks/sepolia/ledgers", json={"name": EXAMPLE_LEDGER}), 409, "ledger-on-other-network"
    )
    assert conflict["existingId"].startswith("led_")
    problem(client.put("/v1/networks/nowhere/ledgers", json={"name": "x"}), 404, "network-not-found")
    problem(client.put("/v1/networks/sepolia/ledgers", json={"name": "No"}), 422, "invalid-body")
    problem(client.get("/v1/networks/ledgers/nowhere"), 404, "ledger-not-found")


def test_a_token_is_added(client: TestClient[Any]) -> None:
    created = client.post("/v1/tokens", json=BODY)
    assert created.status_code == 201
    token = created.json()
    assert created.headers["location"] == f"/v1/tokens/{token['id']}"
    assert token["ledgerId"] == ADDRESS
    assert (token["trackingStatus"], token["contractStatus"], token["pricedIn"]) == ("disabled", "Unknown", None)
    assert token.pop("warnings") == []
    assert token in client.get("/v1/tokens").json()["data"]
    detail = client.get(created.headers["location"]).json()
    assert {name: detail[name] for name in token} == token
    assert (detail["windows"], detail["decimals"], detail["holderCount"]) == ([], None, None)
    assert detail["asOf"]["blockNumber"] is None
    duplicate = problem(client.post("/v1/tokens", json=BODY | {"ledgerId": ADDRESS}), 409, "duplicate-token")
    assert (duplicate["existingId"], pointers(duplicate)) == (token["id"], ["/ledgerId"])


def test_a_wallet_is_added(client: TestClient[Any]) -> None:
    body = {"ledger": EXAMPLE_LEDGER, "ledgerId": ADDRESS}
    created = client.post("/v1/wallets", json=body)
    assert created.status_code == 201
    assert created.json()["trackingStatus"] == "disabled"
    assert client.get(created.headers["location"]).json()["windows"] == []
    problem(client.post("/v1/wallets", json=body), 409, "duplicate-wallet")


def test_new_token_returns_empty_data_with_the_reason(client: TestClient[Any]) -> None:
    path = f"/v1/tokens/{FRESH_TOKEN_ID}"
    answer = client.get(f"{path}/activities").json()
    assert answer["data"] == []
    assert answer["asOf"] == {
        "ledger": EXAMPLE_LEDGER,
        "blockNumber": None,
        "blockHash": None,
        "blockTime": None,
        "finality": None,
        "at": None,
        "dataVersion": 1,
    }
    assert answer["coverage"]["complete"] is False
    assert [gap["reason"] for gap in answer["coverage"]["gaps"]] == ["NeverTracked"]
    table = client.get(f"{path}/cap-table").json()
    assert (table["data"], table["holderCount"], table["holderCountStatus"]) == ([], None, "NotYetCollected")
    assert (table["totalSupply"], table["totalSupplyStatus"]) == (None, "Unknown")
    client.put(f"{path}/tracking", json={"trackingStatus": "enabled"})
    coverage = client.get(f"{path}/cap-table").json()["coverage"]
    assert [gap["reason"] for gap in coverage["gaps"]] == ["NotYetCollected"]
    assert coverage["from"] is not None
    problem(client.get(f"{path}/cap-table?asOf=block:5"), 409, "not-covered")


def test_tracking_opens_and_closes_windows(world: World, client: TestClient[Any]) -> None:
    path = f"/v1/tokens/{FRESH_TOKEN_ID}/tracking"
    before = utc_now()
    enabled = client.put(path, json={"trackingStatus": "enabled"}).json()
    assert (enabled["trackingStatus"], enabled["pricedIn"]) == ("enabled", "USD")
    assert client.put(path, json={"trackingStatus": "enabled"}).json() == enabled
    opened = datetime.fromisoformat(enabled["windows"][0]["from"])
    assert before.replace(microsecond=0) <= opened <= utc_now()
    with world.store.write() as session:
        key = world.subject_keys[FRESH_TOKEN_ID]
        earlier = update(TrackingWindow).where(TrackingWindow.subject_key == key)
        session.execute(earlier.values(opened_at=opened - timedelta(minutes=1)))
    disabled = client.put(path, json={"trackingStatus": "disabled"}).json()
    assert disabled["windows"][0]["to"] is not None
    assert client.get(f"/v1/tokens/{FRESH_TOKEN_ID}").json()["windows"] == disabled["windows"]
    assert client.get("/v1/tokens?symbol=FRESH").json()["data"][0]["pricedIn"] == "USD"


def test_non_fungible_contract_cannot_be_tracked(client: TestClient[Any]) -> None:
    answer = client.put(f"/v1/tokens/{NFT_TOKEN_ID}/tracking", json={"trackingStatus": "enabled"})
    assert problem(answer, 422, "invalid-body")["errors"][0]["pointer"] == "/trackingStatus"
    assert client.get(f"/v1/tokens/{NFT_TOKEN_ID}").json()["windows"] == []
    problem(client.put(f"/v1/tokens/{NFT_TOKEN_ID}/tracking", json={"trackingStatus": "on"}), 422, "invalid-body")


def test_wallet_tracking(client: TestClient[Any]) -> None:
    path = f"/v1/wallets/{EXAMPLE_WALLET_ID}/tracking"
    answer = client.put(path, json={"trackingStatus": "disabled"}).json()
    assert set(answer) == {"id", "trackingStatus", "windows", "historyRequest", "historyEstimate"}
    assert answer["windows"][-1]["to"] is not None
    assert client.get("/v1/wallets?trackingStatus=enabled").json()["data"] == []


@pytest.mark.parametrize(
    ("query", "symbols"),
    [
        ("symbol=BIG", ["BIG"]),
        ("q=wid", ["WIDE"]),
        (f"ledger={EXAMPLE_LEDGER}&trackingStatus=disabled&sort=symbol", ["FRESH", "NFT"]),
        ("ledger=nowhere", []),
        ("ledgerId=0xBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBB", ["BIG"]),
        ("externalId=ext-02", ["WIDE"]),
        ("sort=-symbol&limit=2", ["WIDE", "UNKNOWN"]),
    ],
)
def test_lists_are_filtered_and_sorted(client: TestClient[Any], query: str, symbols: list[str]) -> None:
    assert [token["symbol"] for token in client.get(f"/v1/tokens?{query}").json()["data"]] == symbols


def test_a_failed_post_is_not_replayed(client: TestClient[Any]) -> None:
    headers = {"Idempotency-Key": "k-2"}
    problem(client.post("/v1/tokens", json=BODY | {"ledger": "later"}, headers=headers), 422, "invalid-body")
    client.put("/v1/networks/ethereum/ledgers", json={"name": "later"})
    assert client.post("/v1/tokens", json=BODY | {"ledger": "later"}, headers=headers).status_code == 201


def test_network_in_use_with_changed_definition_shows_it(client: TestClient[Any]) -> None:
    services = client.app.state.services
    (name, network) = next((n, d) for n, d in services.networks.items() if d.is_enabled)
    client.put(f"/v1/networks/{name}/ledgers", json={"name": "pinned"})
    services.networks = {
        **services.networks,
        name: replace(network, own=replace(network.own, chain_id=network.chain_id + 1)),
    }
    (shown,) = [n for n in client.get("/v1/networks").json()["data"] if n["name"] == name]
    assert shown["status"] == "Disabled"
    assert "is in use as" in shown["statusDetail"]


def test_idempotency_key_with_a_space_is_refused(client: TestClient[Any]) -> None:
    problem(client.post("/v1/tokens", json=BODY, headers={"Idempotency-Key": "a b"}), 422, "invalid-parameter")


def test_undefined_network_in_use_is_listed_for_its_tenants(client: TestClient[Any]) -> None:
    services = client.app.state.services
    before = {shown["name"]: shown for shown in client.get("/v1/networks").json()["data"]}
    services.networks = {name: network for name, network in services.networks.items() if name != "ethereum"}
    shown = client.get("/v1/networks").json()["data"]
    assert [network["name"] for network in shown] == [*services.networks, "ethereum"]
    assert shown[-1]["status"] == "Undefined"
    assert "restore its definition" in shown[-1]["statusDetail"]
    same = ("displayName", "family", "isTestnet", "chainId", "nativeSymbol", "addressFormat")
    assert [shown[-1][name] for name in same] == [before["ethereum"][name] for name in same]


def test_ledger_of_an_undefined_network_accepts_no_subjects(client: TestClient[Any]) -> None:
    services = client.app.state.services
    services.networks = {name: network for name, network in services.networks.items() if name != "ethereum"}
    for path, body in (("/v1/tokens", BODY), ("/v1/wallets", BODY_OF_WALLET)):
        found = problem(client.post(path, json=body), 409, "network-undefined")
        assert "restore its definition" in found["detail"]
    # Stored subjects stay readable, and filters accept their family's addresses.
    path = f"/v1/wallets/{EXAMPLE_WALLET_ID}/activities?counterparty="
    assert client.get(f"{path}{ADDRESS.lower()}").status_code == 200
    problem(client.get(f"{path}bc1qw508d6qejxtdg4y5r3zarvary0c5xw7kv8f3t4"), 422, "invalid-parameter")


def test_address_is_stored_and_found_in_the_networks_form(client: TestClient[Any]) -> None:
    services = client.app.state.services
    services.networks |= {"litecoin": load_networks(load_settings({}).networks_file, {})["litecoin"]}
    client.put("/v1/networks/litecoin/ledgers", json={"name": "coins"})
    old, canonical = "3GBygsGPvTdfKMbq4AKZZRu1sPMWPEsBfd", "MNQ7zkgMsaV67rsjA3JuP59RC5wxRXpwgE"
    wallet = client.post("/v1/wallets", json={"ledger": "coins", "ledgerId": old}).json()
    assert wallet["ledgerId"] == canonical
    for text in (old, canonical):
        assert [found["id"] for found in client.get(f"/v1/wallets?ledgerId={text}").json()["data"]] == [wallet["id"]]
        assert client.get(f"/v1/wallets/{wallet['id']}/activities?counterparty={text}").status_code == 200
    foreign = "bc1qw508d6qejxtdg4y5r3zarvary0c5xw7kv8f3t4"
    refused = client.get(f"/v1/wallets/{wallet['id']}/activities?counterparty={foreign}")
    assert problem(refused, 422, "invalid-parameter")["errors"][0]["code"] == "invalid-address"
    refused = client.post("/v1/wallets", json={"ledger": "coins", "ledgerId": foreign})
    assert problem(refused, 422, "invalid-body")["errors"][0]["code"] == "invalid-address"
    refused = client.post("/v1/tokens", json={"ledger": "coins", "symbol": "X", "ledgerId": canonical})
    assert problem(refused, 422, "invalid-body")["errors"][0]["code"] == "no-tokens"
