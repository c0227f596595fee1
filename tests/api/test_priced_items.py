"""Priced items over HTTP: responses, mappings to market lists, tables, errors, tenants."""

from dataclasses import replace
from pathlib import Path
from typing import Any

from litestar.testing import TestClient

from api.examples import EXAMPLE_SOURCE_ID, EXAMPLE_SYMBOL, EXAMPLE_TOKEN_ID, EXAMPLE_UNUSED_SYMBOL
from tests.api.test_errors import problem
from tests.api.world import World

PATH = "/v1/priced-items"
ITEM = f"{PATH}/{EXAMPLE_SYMBOL}"
ETHER = {"symbol": "ETH", "name": "Ether", "class": "Cryptocurrency"}


def put(client: TestClient[Any], *mappings: tuple[str, str], symbol: str = EXAMPLE_SYMBOL) -> Any:
    body = {"mappings": [{"priceSource": source, "symbol": text} for source, text in mappings]}
    return client.put(f"{PATH}/{symbol}/mapping-symbols", json=body)


def test_new_item_is_visible_at_once(client: TestClient[Any]) -> None:
    answer = client.post(PATH, json=ETHER)
    assert answer.status_code == 201
    assert answer.headers["location"] == f"{PATH}/ETH"
    made = answer.json()
    assert made.items() >= {**ETHER, "mappings": []}.items()
    assert client.get(answer.headers["location"]).json() == made
    assert client.get(PATH).json()["data"][-1] == made


def test_symbols_with_signs_work_in_paths(client: TestClient[Any]) -> None:
    for symbol in ("BRK.B", "x:y", "a+b", "c$", "d-e_f"):
        made = client.post(PATH, json=ETHER | {"symbol": symbol})
        assert client.get(made.headers["location"]).json()["symbol"] == symbol
    assert client.get(f"{PATH}/a%2Bb").json()["symbol"] == "a+b"


def test_duplicate_symbol_is_refused(client: TestClient[Any]) -> None:
    found = problem(client.post(PATH, json=ETHER | {"symbol": EXAMPLE_SYMBOL}), 409, "duplicate-symbol")
    assert found["existingId"] == EXAMPLE_SYMBOL
    assert repr(EXAMPLE_SYMBOL) in found["detail"]
    assert client.post(PATH, json=ETHER | {"symbol": EXAMPLE_SYMBOL.lower()}).status_code == 201


def test_invalid_items_are_refused(client: TestClient[Any]) -> None:
    before = client.get(PATH).json()
    cases: list[tuple[dict[str, Any], int, list[str]]] = [
        ({}, 422, ["/symbol", "/name", "/class"]),
        (ETHER | {"class": "Coin"}, 422, ["/class"]),
        (ETHER | {"symbol": "a b"}, 422, ["/symbol"]),
        (ETHER | {"name": 5}, 422, ["/name"]),
        (ETHER | {"ticker": "E"}, 400, ["/ticker"]),
    ]
    for body, status, pointers in cases:
        code = "invalid-body" if status == 422 else "unknown-field"
        found = problem(client.post(PATH, json=body), status, code)
        assert [error["pointer"] for error in found["errors"]] == pointers
    listed = "use one of Currency, Cryptocurrency, Commodity, Equity, Option, Fund, Other"
    assert listed in client.post(PATH, json=ETHER | {"class": "Coin"}).json()["detail"]
    tracking = client.put(f"/v1/tokens/{EXAMPLE_TOKEN_ID}/tracking", json={"trackingStatus": "on"})
    assert "use one of enabled, disabled" in problem(tracking, 422, "invalid-body")["detail"]
    assert client.get(PATH).json() == before


def test_a_change(client: TestClient[Any]) -> None:
    before = client.get(ITEM).json()
    changed = client.patch(ITEM, json={"class": "Other"}).json()
    assert changed == before | {"class": "Other", "updatedAt": changed["updatedAt"]}
    assert client.patch(ITEM, json={}).json() == changed
    problem(client.patch(ITEM, json={"symbol": "XBT"}), 400, "unknown-field")
    problem(client.patch(f"{PATH}/NONE", json={"name": "x"}), 404, "priced-item-not-found")


def test_mapping_status_follows_the_market_lists(client: TestClient[Any]) -> None:
    answer = put(
        client,
        ("src_kraken", "XXBT"),  # Kraken's own code
        ("src_coinbase", "BTC"),  # the list could not be collected
        ("src_gemini", "BTC"),  # no list yet
        (EXAMPLE_SOURCE_ID, "BTC"),  # manual source
    )
    assert answer.status_code == 200
    statuses = {mapping["priceSource"]: mapping["mappingStatus"] for mapping in answer.json()["mappings"]}
    assert statuses == {
        "src_kraken": "Resolved",
        "src_coinbase": "Pending",
        "src_gemini": "Pending",
        EXAMPLE_SOURCE_ID: "NotNeeded",
    }
    assert client.get(ITEM).json() == answer.json()
    for symbol, status in (("BTC", "Resolved"), ("ZUSD", "Resolved"), ("btc", "Unknown"), ("USDT", "Unknown")):
        (mapping,) = put(client, ("src_kraken", symbol)).json()["mappings"]
        assert mapping == {"priceSource": "src_kraken", "symbol": symbol, "mappingStatus": status}
    assert put(client).json()["mappings"] == []


def test_mapping_survives_removal_of_its_source_definition(world: World, tmp_path: Path) -> None:
    (tmp_path / "sources.toml").write_text("")
    with world.client(settings=replace(world.settings, price_sources_file=tmp_path / "sources.toml")) as client:
        (mapping,) = client.get(ITEM).json()["mappings"]
        assert mapping["priceSource"] == "src_kraken"
        assert client.get("/v2/price-sources/src_kraken").status_code == 404
        assert {source["kind"] for source in client.get("/v2/price-sources").json()["data"]} == {"Manual"}
        # Its list is still published.
        assert mapping["mappingStatus"] == "Resolved"
        put(client)
        problem(put(client, ("src_kraken", "XXBT")), 422, "invalid-body")


def test_invalid_mappings_are_refused(client: TestClient[Any]) -> None:
    before = client.get(ITEM).json()
    found = problem(put(client, ("src_kraken", "X"), ("src_none", "X")), 422, "invalid-body")
    assert [error["pointer"] for error in found["errors"]] == ["/mappings/1/priceSource"]
    for body, status, pointers in (
        ({}, 422, ["/mappings"]),
        ({"mappings": None}, 422, ["/mappings"]),
        ({"mappings": [5]}, 422, ["/mappings/0"]),
        ({"mappings": [{"symbol": 5}]}, 422, ["/mappings/0/priceSource", "/mappings/0/symbol"]),
        ({"mappings": [{"priceSource": "src_kraken", "symbol": "X", "a/b": 1}]}, 400, ["/mappings/0/a~1b"]),
    ):
        answer = client.put(f"{ITEM}/mapping-symbols", json=body)
        found = problem(answer, status, "invalid-body" if status == 422 else "unknown-field")
        assert [error["pointer"] for error in found["errors"]] == pointers
    problem(put(client, symbol="NONE"), 404, "priced-item-not-found")
    assert client.get(ITEM).json() == before


def test_removal(client: TestClient[Any]) -> None:
    found = problem(client.delete(f"{PATH}/FUND1"), 409, "item-in-use")
    assert "spair_" in found["detail"]
    assert client.delete(f"{PATH}/{EXAMPLE_UNUSED_SYMBOL}").status_code == 204
    for method in ("GET", "DELETE"):
        problem(client.request(method, f"{PATH}/{EXAMPLE_UNUSED_SYMBOL}"), 404, "priced-item-not-found")
    gold = {"symbol": EXAMPLE_UNUSED_SYMBOL, "name": "Gold", "class": "Commodity"}
    assert client.post(PATH, json=gold).status_code == 201
