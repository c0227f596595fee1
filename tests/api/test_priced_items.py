"""Priced items over HTTP: responses, errors, and mappings to market lists."""

from dataclasses import replace
from pathlib import Path
from typing import Any

from litestar.testing import TestClient

from api.examples import EXAMPLE_SOURCE_ID, EXAMPLE_SYMBOL
from tests.api.test_errors import problem
from tests.api.world import World

PATH = "/v1/priced-items"
ITEM = f"{PATH}/{EXAMPLE_SYMBOL}"
ETHER = {"symbol": "ETH", "name": "Ether", "class": "Cryptocurrency"}


def put(client: TestClient[Any], *mappings: tuple[str, str]) -> Any:
    body = {"mappings": [{"priceSource": source, "symbol": text} for source, text in mappings]}
    return client.put(f"{ITEM}/mapping-symbols", json=body)


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


def test_invalid_choice_in_a_body_is_refused_with_the_list_of_choices(client: TestClient[Any]) -> None:
    found = problem(client.post(PATH, json=ETHER | {"class": "Coin"}), 422, "invalid-body")
    assert [error["pointer"] for error in found["errors"]] == ["/class"]
    assert "use one of Currency, Cryptocurrency, Commodity, Equity, Option, Fund, Other" in found["detail"]


def test_a_change(client: TestClient[Any]) -> None:
    before = client.get(ITEM).json()
    changed = client.patch(ITEM, json={"class": "Other"}).json()
    assert changed == before | {"class": "Other", "updatedAt": changed["updatedAt"]}
    assert client.patch(ITEM, json={}).json() == changed


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
    found = problem(put(client, ("src_kraken", "X"), ("src_none", "X")), 422, "invalid-body")
    assert [error["pointer"] for error in found["errors"]] == ["/mappings/1/priceSource"]
    for mapping, status, pointers in (
        ({"symbol": 5}, 422, ["/mappings/0/priceSource", "/mappings/0/symbol"]),
        ({"priceSource": "src_kraken", "symbol": "X", "a/b": 1}, 400, ["/mappings/0/a~1b"]),
    ):
        answer = client.put(f"{ITEM}/mapping-symbols", json={"mappings": [mapping]})
        found = problem(answer, status, "invalid-body" if status == 422 else "unknown-field")
        assert [error["pointer"] for error in found["errors"]] == pointers
