"""Pairs over HTTP: creation, lists, updates, removal, links to tokens."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any

import pytest
from litestar.testing import TestClient
from sqlalchemy import update

from api.examples import (
    EXAMPLE_LINKED_TOKEN_ID,
    EXAMPLE_MARKET_PAIR_ID,
    EXAMPLE_PAIR_ID,
    EXAMPLE_SOURCE_ID,
    EXAMPLE_TOKEN_ID,
)
from control.clock import utc_now
from control.models import PairSource, PricePair
from control.pricing import pairs
from tests.api.marts import publish
from tests.api.test_errors import pointers, problem
from tests.api.world import World, marts_rows

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


def list_markets(world: World, *markets: Mapping[str, Any]) -> None:
    """Publish a version with more markets of Kraken."""
    rows = marts_rows(world)
    rows["price_markets"] += [
        {"source_id": "src_kraken", "is_active": True, "last_listed_at": "2026-02-01", **market} for market in markets
    ]
    publish(world.settings.serving_dir, 2, rows)


def add_items(client: TestClient[Any], *symbols: str) -> None:
    for symbol in symbols:
        body = {"symbol": symbol, "name": symbol, "class": "Other"}
        assert client.post("/v1/priced-items", json=body).status_code == 201


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
    found = problem(client.post(PAIRS, json=single | {"priceSource": "src_none"}), 422, "invalid-body")
    assert found["errors"][0]["pointer"] == "/priceSource"


def test_numbers_are_exact_in_every_notation(client: TestClient[Any]) -> None:
    body = BID | {"maxJump": 12.50, "maxDeviation": "0.000000000000000001", "maxAge": None}
    made = client.post(PAIRS, json=body).json()
    assert (made["maxJump"], made["maxDeviation"], made["maxAge"]) == ("12.5", "0.000000000000000001", None)


@pytest.mark.parametrize(
    ("change", "pointer"),
    [
        ({"pricedAs": None}, "/pricedAs"),
        ({"pricedAs": "XAU"}, "/priceSources"),
        ({"priceSource": "src_kraken"}, "/priceSources"),
        ({"maxAge": 86400}, "/maxAge"),
        ({"maxDeviation": "1e-19"}, "/maxDeviation"),
    ],
)
def test_invalid_fields_are_named_and_store_nothing(
    client: TestClient[Any], change: dict[str, Any], pointer: str
) -> None:
    before = client.get(PAIRS).json()
    found = problem(client.post(PAIRS, json=BID | change), 422, "invalid-body")
    assert [error["pointer"] for error in found["errors"]] == [pointer]
    assert client.get(PAIRS).json() == before


def test_unknown_sources_are_refused(client: TestClient[Any]) -> None:
    found = problem(client.post(PAIRS, json={"pricedAs": "BTC", "priceType": "Bid"}), 422, "invalid-body")
    assert [(error["pointer"], error["code"]) for error in found["errors"]] == [("/priceSources", "missing")]


def test_unknown_field_is_refused(client: TestClient[Any]) -> None:
    problem(client.post(PAIRS, json=BID | {"maxage": "P2D"}), 400, "unknown-field")
    problem(client.patch(PAIR, json={"priceType": "Bid"}), 400, "unknown-field")


def test_missing_market_names_the_searched_market_and_the_fix(client: TestClient[Any]) -> None:
    found = problem(client.post(PAIRS, json=BID | {"pricedAs": "USD", "pricedIn": "BTC"}), 422, "invalid-body")
    assert "searched USD/XXBT" in found["detail"]
    assert "allowInverse" in found["detail"]
    made = client.post(PAIRS, json=BID | {"pricedAs": "USD", "pricedIn": "BTC", "allowInverse": True}).json()
    assert made["mappings"] == [
        DIRECT | {"derivation": "Inverse", "markets": [{"id": "XXBTZUSD", "priceType": "Ask", "isInverted": True}]}
    ]


def test_bridged_pair_shows_its_two_markets(client: TestClient[Any]) -> None:
    add_items(client, "ETH")
    body = {"pricedAs": "ETH", "pricedIn": "BTC", "priceType": "Trade", "priceSources": ["src_kraken"]}
    problem(client.post(PAIRS, json=body | {"bridge": "USD"}), 422, "invalid-body")
    made = client.post(PAIRS, json=body | {"bridge": "USD", "allowInverse": True}).json()
    assert made["bridge"] == "USD"
    assert made["mappings"][0]["derivation"] == "Bridge"
    markets = [(market["id"], market["isInverted"]) for market in made["mappings"][0]["markets"]]
    assert markets == [("XETHZUSD", False), ("XXBTZUSD", True)]


def test_market_list_not_collected_gives_pending_mapping(client: TestClient[Any]) -> None:
    made = client.post(PAIRS, json=BID | {"priceType": "Trade", "pricedAs": "XAU", "priceSources": ["src_coinbase"]})
    assert made.status_code == 201
    assert made.json()["mappingStatus"] == "Pending"
    (mapping,) = made.json()["mappings"]
    assert (mapping["derivation"], mapping["markets"]) == (None, [])
    assert "not collected yet" in mapping["detail"]


def test_different_assets_under_one_ticker(world: World, client: TestClient[Any]) -> None:
    add_items(client, "LUNA")
    codes = {"base": "LUNA", "quote": "USD", "quote_code": "ZUSD"}
    list_markets(
        world,
        codes | {"market_id": "LUNAUSD", "base_code": "LUNA"},
        codes | {"market_id": "LUNA2USD", "base_code": "LUNA2"},
    )
    # The pointer to the current version is reread after a moment.
    with world.client() as fresh:
        found = problem(fresh.post(PAIRS, json=BID | {"pricedAs": "LUNA"}), 409, "ambiguous-market")
        assert "LUNA2USD (LUNA2/ZUSD), LUNAUSD (LUNA/ZUSD)" in found["detail"]
        assert pointers(found) == ["/priceSources/0"]
        mapping = {"mappings": [{"priceSource": "src_kraken", "symbol": "LUNA2"}]}
        assert fresh.put("/v1/priced-items/LUNA/mapping-symbols", json=mapping).status_code == 200
        made = fresh.post(PAIRS, json=BID | {"pricedAs": "LUNA"}).json()
        assert made["mappings"][0]["markets"] == [{"id": "LUNA2USD", "priceType": "Bid", "isInverted": False}]


def test_disabled_source_accepts_no_new_pair(client: TestClient[Any]) -> None:
    assert client.patch("/v2/price-sources/src_kraken/disable").json()["enabled"] is False
    found = problem(client.post(PAIRS, json=BID), 409, "price-source-disabled")
    assert found["existingId"] == "src_kraken"
    assert pointers(found) == ["/priceSources/0"]
    second = problem(client.post(PAIRS, json=BID | {"priceSources": ["src_gemini", "src_kraken"]}), 409, found["code"])
    assert pointers(second) == ["/priceSources/1"]
    one = {name: value for name, value in BID.items() if name != "priceSources"} | {"priceSource": "src_kraken"}
    assert pointers(problem(client.post(PAIRS, json=one), 409, found["code"])) == ["/priceSource"]
    assert client.patch(PAIR, json={"maxAge": "P2D", "priceSources": ["src_kraken"]}).status_code == 200


def test_duplicate_pair_names_the_first(client: TestClient[Any]) -> None:
    found = problem(client.post(PAIRS, json=BID | {"priceType": "Trade"}), 409, "duplicate-pair")
    assert found["existingId"] == EXAMPLE_MARKET_PAIR_ID
    assert pointers(found) == ["/pricedAs", "/pricedIn", "/priceType"]


def test_a_manual_pair_has_no_market(client: TestClient[Any]) -> None:
    found = client.get(f"{PAIRS}/{EXAMPLE_PAIR_ID}").json()
    assert (found["maxAge"], found["priceType"]) == ("P35D", "NAV")
    assert found["mappings"] == [
        {
            "priceSource": EXAMPLE_SOURCE_ID,
            "status": "Resolved",
            "derivation": "Manual",
            "markets": [],
            "detail": None,
        }
    ]


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
    events = client.get(f"/v1/audit-events?objectId={EXAMPLE_MARKET_PAIR_ID}").json()["data"]
    assert [event["action"] for event in events] == ["price-pair.update"] * 2


def test_invalid_changes_are_refused(client: TestClient[Any]) -> None:
    before = client.get(PAIR).json()
    found = problem(client.patch(PAIR, json={"maxJump": "-1"}), 422, "invalid-body")
    assert pointers(found) == ["/maxJump"]
    assert client.get(PAIR).json() == before


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
    assert client.put(LINK, json={"pricedAs": "BTC"}).json() == linked
    shown = client.get(f"/v1/tokens/{EXAMPLE_TOKEN_ID}").json()
    assert {name: shown[name] for name in linked} == linked
    (listed,) = [row for row in client.get("/v1/tokens?limit=100").json()["data"] if row["id"] == EXAMPLE_TOKEN_ID]
    assert (listed["pricedAs"], listed["pricedIn"]) == ("BTC", "USD")
    problem(client.delete(PAIR), 409, "pair-in-use")
    assert client.delete(LINK).status_code == 204
    assert client.delete(LINK).status_code == 204
    shown = client.get(f"/v1/tokens/{EXAMPLE_TOKEN_ID}").json()
    assert (shown["pricedAs"], shown["pairId"]) == (None, None)
    events = client.get(f"/v1/audit-events?objectId={EXAMPLE_TOKEN_ID}").json()["data"]
    assert [event["action"] for event in events] == ["token.unlink", "token.link"]


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


def test_link_without_item_or_pair_names_the_missing_step(client: TestClient[Any]) -> None:
    found = problem(client.put(LINK, json={"pricedAs": "GOLD"}), 409, "no-usd-pair")
    assert "POST 'GOLD' to /v1/priced-items" in found["detail"]
    assert pointers(found) == ["/pricedAs"]
    assert (
        "POST the pair to /v2/pairs"
        in problem(client.put(LINK, json={"pricedAs": "XAU"}), 409, "no-usd-pair")["detail"]
    )
    found = problem(client.put(LINK, json={"pricedAs": "FUND1", "pairId": EXAMPLE_MARKET_PAIR_ID}), 422, "invalid-body")
    assert [error["pointer"] for error in found["errors"]] == ["/pairId"]
    problem(client.put(LINK, json={}), 422, "invalid-body")
    assert client.get(f"/v1/tokens/{EXAMPLE_TOKEN_ID}").json()["pairId"] is None


def test_source_without_definition_shows_it(world: World, client: TestClient[Any]) -> None:
    with world.store.write() as session:
        stored = pairs.lock(session, world.tenant_id, EXAMPLE_MARKET_PAIR_ID)
        assert isinstance(stored, PricePair)
        session.execute(update(PairSource).where(PairSource.pair_key == stored.pair_key).values(source_id="src_closed"))
    found = client.get(PAIR).json()
    assert found["mappingStatus"] == "Unsupported"
    assert "no longer defined" in found["mappings"][0]["detail"]
