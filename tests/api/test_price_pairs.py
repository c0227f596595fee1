"""Pairs over HTTP: creation, lists, updates, removal, links to tokens."""

from datetime import datetime
from typing import Any

from litestar.testing import TestClient

from api.examples import (
    EXAMPLE_LINKED_TOKEN_ID,
    EXAMPLE_MARKET_PAIR_ID,
    EXAMPLE_PAIR_ID,
    EXAMPLE_TOKEN_ID,
)
from control.clock import utc_now
from tests.api.test_errors import pointers, problem

PAIRS = "/v2/pairs"
PAIR = f"{PAIRS}/{EXAMPLE_MARKET_PAIR_ID}"
LINK = f"/v1/tokens/{EXAMPLE_TOKEN_ID}/priced-as"
BID = {"pricedAs": "BTC", "priceType": "Bid", "priceSources": ["src_kraken"]}
DIRECT = {
    "priceSource": "src_kraken",
    "status": "Resolved",
    "derivation": "Direct",
    "markets": [{"id": "XXBTZUSD", "priceType": "Bid", "isInverted": False}],
    "detail": None,
}


def test_pair_is_created_with_defaults(client: TestClient[Any]) -> None:
    before = utc_now()
    answer = client.post(PAIRS, json=BID)
    assert answer.status_code == 201
    made = answer.json()
    assert answer.headers["location"] == f"{PAIRS}/{made['id']}"
    created = datetime.fromisoformat(made.pop("createdAt"))
    assert before <= created <= utc_now()
    assert made.pop("updatedAt")
    assert made == {
        "id": made["id"],
        "pricedAs": "BTC",
        "pricedIn": "USD",
        "priceType": "Bid",
        "priceSources": ["src_kraken"],
        "maxAge": "P1D",
        "allowInverse": False,
        "bridge": None,
        "maxJump": None,
        "maxDeviation": None,
        "mappingStatus": "Resolved",
        "mappings": [DIRECT],
        "latestPrice": None,
    }
    assert client.get(answer.headers["location"]).json() == answer.json()
    assert client.get(PAIRS).json()["data"][-1] == answer.json()


def test_single_source_may_replace_the_list(client: TestClient[Any]) -> None:
    single = {"pricedAs": "BTC", "priceType": "Bid", "priceSource": "src_kraken"}
    assert client.post(PAIRS, json=single).json()["priceSources"] == ["src_kraken"]
    for body, pointer, code in (
        (single | {"priceSource": "src_none"}, "/priceSource", "unknown-source"),
        ({"pricedAs": "BTC", "priceType": "Bid"}, "/priceSources", "missing"),
        (single | BID, "/priceSources", "repeated"),
        (BID | {"maxDeviation": "1e-19"}, "/maxDeviation", "too-precise"),
    ):
        (error,) = problem(client.post(PAIRS, json=body), 422, "invalid-body")["errors"]
        assert (error["pointer"], error["code"]) == (pointer, code)


def test_bridged_pair_shows_its_two_markets(client: TestClient[Any]) -> None:
    assert client.post("/v1/priced-items", json={"symbol": "ETH", "name": "ETH", "class": "Other"}).status_code == 201
    body = {"pricedAs": "ETH", "pricedIn": "BTC", "priceType": "Trade", "priceSources": ["src_kraken"]}
    problem(client.post(PAIRS, json=body | {"bridge": "USD"}), 422, "invalid-body")
    made = client.post(PAIRS, json=body | {"bridge": "USD", "allowInverse": True}).json()
    assert made["bridge"] == "USD"
    assert made["mappings"][0]["derivation"] == "Bridge"
    markets = [(market["id"], market["isInverted"]) for market in made["mappings"][0]["markets"]]
    assert markets == [("XETHZUSD", False), ("XXBTZUSD", True)]


def test_disabled_source_accepts_no_new_pair(client: TestClient[Any]) -> None:
    assert client.patch("/v2/price-sources/src_kraken/disable").json()["enabled"] is False
    found = problem(client.post(PAIRS, json=BID), 409, "price-source-disabled")
    assert found["existingId"] == "src_kraken"
    assert pointers(found) == ["/priceSources/0"]
    second = problem(client.post(PAIRS, json=BID | {"priceSources": ["src_gemini", "src_kraken"]}), 409, found["code"])
    assert pointers(second) == ["/priceSources/1"]
    one = {name: value for name, value in BID.items() if name != "priceSources"} | {"priceSource": "src_kraken"}
    assert pointers(problem(client.post(PAIRS, json=one), 409, found["code"])) == ["/priceSource"]


def test_patch_keeps_omitted_fields_and_null_clears_a_field(client: TestClient[Any]) -> None:
    before = client.get(PAIR).json()
    changed = client.patch(PAIR, json={"maxJump": None, "maxAge": "PT90M", "bridge": "FUND1"}).json()
    assert changed == before | {
        "maxJump": None,
        "maxAge": "PT90M",
        "bridge": "FUND1",
        "updatedAt": changed["updatedAt"],
    }
    assert client.get(PAIR).json() == changed
    assert client.patch(PAIR, json={}).json() == changed
    reordered = client.patch(PAIR, json={"priceSources": ["src_coinbase", "src_kraken"]}).json()
    assert [mapping["status"] for mapping in reordered["mappings"]] == ["Pending", "Resolved"]
    assert reordered["mappingStatus"] == "Pending"


def test_pair_in_use_cannot_be_removed_and_removed_pair_is_gone(client: TestClient[Any]) -> None:
    found = problem(client.delete(f"{PAIRS}/{EXAMPLE_PAIR_ID}"), 409, "pair-in-use")
    assert EXAMPLE_LINKED_TOKEN_ID in found["detail"]
    assert client.delete(PAIR).status_code == 204
    for path in (PAIR, f"{PAIR}/prices/async-operations", f"{PAIR}/prices/quarantined"):
        problem(client.get(path), 404, "pair-not-found")
    assert [pair["id"] for pair in client.get(PAIRS).json()["data"]] == [EXAMPLE_PAIR_ID]
    again = client.post(PAIRS, json=BID | {"priceType": "Trade"})
    assert again.status_code == 201
    assert again.json()["id"] != EXAMPLE_MARKET_PAIR_ID
    assert client.get(f"{PAIRS}/{again.json()['id']}/prices/async-operations").json()["data"] == []


def test_link_is_visible_at_once(client: TestClient[Any]) -> None:
    answer = client.put(LINK, json={"pricedAs": "BTC"})
    linked = {"id": EXAMPLE_TOKEN_ID, "pricedAs": "BTC", "pricedIn": "USD", "pairId": EXAMPLE_MARKET_PAIR_ID}
    assert (answer.status_code, answer.json()) == (200, linked)
    shown = client.get(f"/v1/tokens/{EXAMPLE_TOKEN_ID}").json()
    assert {name: shown[name] for name in linked} == linked
    (listed,) = [row for row in client.get("/v1/tokens?limit=100").json()["data"] if row["id"] == EXAMPLE_TOKEN_ID]
    assert (listed["pricedAs"], listed["pricedIn"]) == ("BTC", "USD")
    assert client.delete(LINK).status_code == 204
    shown = client.get(f"/v1/tokens/{EXAMPLE_TOKEN_ID}").json()
    assert (shown["pricedAs"], shown["pairId"]) == (None, None)


def test_ambiguous_link_needs_a_pair_id(client: TestClient[Any]) -> None:
    bid = client.post(PAIRS, json=BID).json()["id"]
    found = problem(client.put(LINK, json={"pricedAs": "BTC"}), 409, "several-usd-pairs")
    assert EXAMPLE_MARKET_PAIR_ID in found["detail"]
    assert pointers(found) == ["/pricedAs"]
    assert bid in found["detail"]
    trade = client.get(PAIR).json()
    assert found["pairs"] == [
        {"pairId": trade["id"], "priceType": "Trade", "priceSources": trade["priceSources"]},
        {"pairId": bid, "priceType": "Bid", "priceSources": BID["priceSources"]},
    ]
    assert client.put(LINK, json={"pricedAs": "BTC", "pairId": bid}).json()["pairId"] == bid
    assert client.put(LINK, json={"pricedAs": "FUND1"}).json()["pairId"] == EXAMPLE_PAIR_ID
