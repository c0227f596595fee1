"""Price sources over HTTP, with the supported pairs and prices of manual sources."""

from typing import Any

from litestar.testing import TestClient

from api.examples import EXAMPLE_SOURCE_ID, EXAMPLE_SUPPORTED_PAIR_ID, EXAMPLE_SYMBOL
from tests.api.document import check
from tests.api.test_errors import problem
from tests.api.world import World

PATH = "/v2/price-sources"
SOURCE = f"{PATH}/{EXAMPLE_SOURCE_ID}"
PAIRS = f"{SOURCE}/pairs"
PRICES = f"{PAIRS}/{EXAMPLE_SUPPORTED_PAIR_ID}/prices"
CSV = {"Content-Type": "text/csv; charset=utf-8"}
JSON = {"Content-Type": "application/json"}


def listed(client: TestClient[Any], **query: str) -> list[dict[str, Any]]:
    data: list[dict[str, Any]] = client.get(PRICES, params={"limit": "1000", **query}).json()["data"]
    return data


def post_csv(client: TestClient[Any], text: str) -> Any:
    return client.post(PRICES, content=text.encode(), headers=CSV)


def pointers(answer: Any, status: int = 422, code: str = "invalid-body") -> list[str]:
    return [error["pointer"] for error in problem(answer, status, code)["errors"]]


def test_a_manual_source_is_disabled_until_enabled(client: TestClient[Any]) -> None:
    answer = client.post(PATH, json={"name": "Fund administrator"})
    assert answer.status_code == 201
    made = answer.json()
    assert answer.headers["location"] == f"{PATH}/{made['id']}"
    assert made.items() >= {"name": "Fund administrator", "kind": "Manual", "enabled": False, "status": None}.items()
    assert made["priceTypes"] == ["Ask", "Bid", "Trade", "Market", "NAV"]
    assert client.get(answer.headers["location"]).json() == made
    assert pointers(client.post(PATH, json={"name": made["name"]}), 409, "duplicate-source") == ["/name"]
    for action, enabled in (("enable", True), ("enable", True), ("disable", False), ("disable", False)):
        answer = client.patch(f"{PATH}/{made['id']}/{action}")
        assert (answer.status_code, answer.json()) == (200, made | {"enabled": enabled})
        assert client.get(f"{PATH}/{made['id']}").json()["enabled"] is enabled


def test_preconfigured_sources_with_their_last_poll(client: TestClient[Any]) -> None:
    sources = {source["id"]: source for source in client.get(PATH).json()["data"]}
    kraken = sources["src_kraken"]
    assert (kraken["name"], kraken["kind"], kraken["enabled"]) == ("Kraken", "Preconfigured", True)
    assert kraken["status"] == {"polledAt": "2026-02-01T00:30:00Z", "error": None}
    assert "Trade" in kraken["priceTypes"]
    assert "1d" in kraken["granularities"]
    assert kraken["createdAt"] is None
    assert sources["src_coinbase"]["status"]["error"] == "it answered 503 four times"
    assert sources["src_gemini"]["status"] is None
    assert client.get(f"{PATH}/src_kraken").json() == kraken
    for name in ("kraken", "coinbase", "gemini", "binance", "bitstamp"):
        assert f"src_{name}" in sources


def test_enabling_a_source_affects_one_tenant_only(world: World, client: TestClient[Any]) -> None:
    assert client.patch(f"{PATH}/src_kraken/disable").json()["enabled"] is False
    with world.client("foreign") as foreign:
        theirs = foreign.get(f"{PATH}/src_kraken").json()
    assert theirs["enabled"] is True
    assert theirs["status"] is None  # this tenant has no polls


def test_a_supported_pair(client: TestClient[Any]) -> None:
    answer = client.post(PAIRS, json={"pricedAs": EXAMPLE_SYMBOL, "priceType": "Market"})
    made = answer.json()
    assert (made["pricedAs"], made["pricedIn"], made["priceType"]) == (EXAMPLE_SYMBOL, "USD", "Market")
    assert made["priceSource"] == EXAMPLE_SOURCE_ID
    assert made["id"].startswith("spair_")
    assert answer.headers["location"] == f"{PAIRS}/{made['id']}"
    assert client.get(answer.headers["location"]).json() == made
    assert client.get(PAIRS).json()["data"][-1] == made
    again = client.post(PAIRS, json={"pricedAs": EXAMPLE_SYMBOL, "pricedIn": "USD", "priceType": "Market"})
    assert problem(again, 409, "duplicate-supported-pair")["existingId"] == made["id"]
    assert pointers(again, 409, "duplicate-supported-pair") == ["/pricedAs", "/pricedIn", "/priceType"]
    assert client.delete(f"{PAIRS}/{made['id']}").status_code == 204
    problem(client.get(f"{PAIRS}/{made['id']}"), 404, "supported-pair-not-found")


def test_single_price_is_stored(world: World, client: TestClient[Any]) -> None:
    answer = client.post(PRICES, json={"price": 103.10, "effectiveFrom": "2026-03-31", "note": "March"})
    assert answer.status_code == 201
    made = answer.json()
    check({"$ref": "#/components/schemas/ManualPrice"}, made)
    assert (made["price"], made["effectiveFrom"], made["note"]) == ("103.1", "2026-03-31T00:00:00Z", "March")
    assert (made["revision"], made["isCurrent"]) == (1, True)
    assert made["createdBy"] == world.principals["admin"].key_id
    assert answer.headers["location"] == PRICES
    assert listed(client)[0] == made


def test_prices_are_read_exactly(client: TestClient[Any]) -> None:
    for written, text in (
        ("0.1", "0.1"),
        ("1e-7", "0.0000001"),
        ("123456789.123456789123456789", "123456789.123456789123456789"),
        ("99999999999999999999", "99999999999999999999"),
        ('"0.30000000000000000"', "0.3"),
        ('"1.5E+1"', "15"),
    ):
        body = f'{{"price": {written}, "effectiveFrom": "2026-03-31"}}'
        answer = client.post(PRICES, content=body, headers=JSON)
        assert answer.json()["price"] == text
        assert listed(client)[0]["price"] == text


def test_invalid_prices_are_refused(client: TestClient[Any]) -> None:
    before = listed(client)
    for written in (
        "0",
        "null",
        "true",
        '""',
        '"1,5"',
        '"NaN"',
        "1e20",
        "1e-19",
        '"1e99999999999999999999"',
        "1" * 4000,
    ):
        body = f'{{"price": {written}, "effectiveFrom": "2026-03-31"}}'
        assert pointers(client.post(PRICES, content=body.encode(), headers=JSON)) == ["/price"], written
    for written in ("NaN", "1e99999999999999999999", "1" * 5000, "01"):
        body = f'{{"price": {written}, "effectiveFrom": "2026-03-31"}}'
        problem(client.post(PRICES, content=body, headers=JSON), 400, "malformed-json")
    assert listed(client) == before


def test_many_prices_as_an_array(client: TestClient[Any]) -> None:
    before = listed(client)
    body = [
        {"price": "1.5", "effectiveFrom": "2026-04-01T10:00:00+02:00"},
        {"price": 2, "effectiveFrom": "2026-04-02", "note": None},
        {"price": "103", "effectiveFrom": "2026-01-31"},
    ]
    answer = client.post(PRICES, json=body)
    assert answer.status_code == 201
    check({"$ref": "#/components/schemas/ManualPriceBatch"}, answer.json())
    made = answer.json()["data"]
    assert [(price["price"], price["effectiveFrom"], price["revision"]) for price in made] == [
        ("1.5", "2026-04-01T08:00:00Z", 1),
        ("2", "2026-04-02T00:00:00Z", 1),
        ("103", "2026-01-31T00:00:00Z", 3),
    ]
    after = listed(client)
    assert len(after) == len(before) + 3
    assert [price["revision"] for price in after if price["effectiveFrom"] == "2026-01-31T00:00:00Z"] == [3, 2, 1]
    one = client.post(PRICES, json=[{"price": 1, "effectiveFrom": "2026-05-01"}]).json()
    assert [price["price"] for price in one["data"]] == ["1"]


def test_many_prices_as_csv(client: TestClient[Any]) -> None:
    text = '\ufeffeffectiveFrom,price,note\r\n2026-04-01,1.50,"said ""yes"",\nthen no"\r\n\r\n2026-04-02,2e-3,\r\n'
    made = post_csv(client, text).json()["data"]
    assert [(price["price"], price["note"]) for price in made] == [("1.5", 'said "yes",\nthen no'), ("0.002", None)]
    assert listed(client, **{"from": "2026-04-01"}) == made[::-1]
    made = post_csv(client, "price,effectiveFrom\n7,2026-04-01T00:00Z").json()["data"]
    assert [(price["price"], price["revision"]) for price in made] == [("7", 2)]


def test_every_wrong_cell_is_named_and_nothing_is_stored(client: TestClient[Any]) -> None:
    before = listed(client)
    rows = [("1", "2026-04-01"), ("abc", "x"), ("", "2026-04-03"), ("0", "2026-04-01"), ("5", "2026-04-05")]
    as_csv = "price,effectiveFrom\n" + "\n".join(",".join(row) for row in rows)
    as_json = [{"price": price, "effectiveFrom": day} for price, day in rows]
    del as_json[2]["price"]
    for answer in (post_csv(client, as_csv), client.post(PRICES, json=as_json)):
        found = problem(answer, 422, "invalid-body")["errors"]
        assert [error["pointer"] for error in found] == ["/1/price", "/2/price"]
        assert [error["detail"].partition(":")[0] for error in found] == ["row 2", "row 3"]
    rows[1:3] = [("1", "x"), ("-3", "2026-04-03")]
    as_csv = "price,effectiveFrom\n" + "\n".join(",".join(row) for row in rows)
    as_json = [{"price": price, "effectiveFrom": day} for price, day in rows]
    for answer in (post_csv(client, as_csv), client.post(PRICES, json=as_json)):
        found = problem(answer, 422, "invalid-body")["errors"]
        assert [error["pointer"] for error in found] == [
            "/1/effectiveFrom",
            "/2/price",
            "/3/price",
            "/3/effectiveFrom",
        ]
        assert "rows 1 and 4" in found[3]["detail"]
    assert listed(client) == before


def test_only_the_first_hundred_errors_are_named(client: TestClient[Any]) -> None:
    found = problem(client.post(PRICES, json=[{"price": 0, "effectiveFrom": "x"}] * 75), 422, "invalid-body")
    assert len(found["errors"]) == 100
    assert found["detail"].endswith("; and 140 more")


def test_malformed_csv_is_refused(client: TestClient[Any]) -> None:
    before = listed(client)
    for text, status, code in (
        ("", 422, "invalid-body"),
        ("price,effectiveFrom\n", 422, "invalid-body"),
        ("1,2026-04-01\n2,2026-04-02\n", 400, "malformed-csv"),
        ("price,effectiveFrom,price\n1,2026-04-01,2\n", 400, "malformed-csv"),
        ("price,effective_from\n1,2026-04-01\n", 400, "malformed-csv"),
        ('price,effectiveFrom\n"1,2026-04-01\n', 400, "malformed-csv"),
        ('price,effectiveFrom\n"1"x,2026-04-01\n', 400, "malformed-csv"),
        ("price;effectiveFrom\n1;2026-04-01\n", 400, "malformed-csv"),
        ("price,effectiveFrom\n1,2026-04-01,\n", 422, "invalid-body"),
        ("price,effectiveFrom\n1,2026-04-01\n2\n", 422, "invalid-body"),
        ("effectiveFrom\n2026-04-01\n", 422, "invalid-body"),
    ):
        problem(post_csv(client, text), status, code)
    assert listed(client) == before


def test_uneven_rows_are_named(client: TestClient[Any]) -> None:
    found = problem(post_csv(client, "price,effectiveFrom\n1,2026-04-01\n2\n3,a,b\n"), 422, "invalid-body")
    assert [error["pointer"] for error in found["errors"]] == ["/1", "/2"]
    assert found["errors"][0]["detail"] == "row 2: it has 1 cells, the header has 2"


def test_unsupported_bodies_are_refused(client: TestClient[Any]) -> None:
    assert pointers(client.post(PRICES, json=[])) == [""]
    assert pointers(client.post(PRICES, json="x")) == [""]
    assert pointers(client.post(PRICES, json=[1, {"price": 1, "effectiveFrom": "2026-04-01"}])) == ["/0"]
    unknown = [{"price": 1, "effectiveFrom": "2026-04-01", "currency": "USD"}]
    assert pointers(client.post(PRICES, json=unknown), 400, "unknown-field") == ["/0/currency"]
    latin = "price,effectiveFrom,note\n1,2026-04-01,ü\n".encode("latin-1")
    problem(client.post(PRICES, content=latin, headers=CSV), 400, "malformed-csv")
    for media_type in ("text/csv; charset=latin-1", "text/plain", "application/x-ndjson", ""):
        answer = client.post(PRICES, content=b"{}", headers={"Content-Type": media_type})
        problem(answer, 415, "unsupported-media-type")
    problem(client.post(PAIRS, content=b"a\n1\n", headers=CSV), 415, "unsupported-media-type")


def test_body_of_one_mebibyte_is_accepted_and_a_larger_one_refused(client: TestClient[Any]) -> None:
    rows = [f"{1 + number}.5,{1970 + number // 28}-01-{1 + number % 28:02d},{'n' * 180}" for number in range(5_000)]
    text = "\n".join(["price,effectiveFrom,note", *rows])
    assert 900_000 < len(text) < 1 << 20
    made = post_csv(client, text).json()["data"]
    assert len(made) == 5_000
    assert made[-1]["price"] == "5000.5"
    before = listed(client)
    problem(post_csv(client, text + "\n" * ((1 << 20) - len(text) + 1)), 413, "body-too-large")
    assert listed(client) == before


def test_lists_by_time(client: TestClient[Any]) -> None:
    whole = listed(client)
    assert [(price["price"], price["revision"], price["isCurrent"]) for price in whole] == [
        ("102", 1, True),
        ("101.5", 2, True),
        ("101.25", 1, False),
    ]
    assert listed(client, **{"from": "2026-01-31", "to": "2026-02-28"}) == whole[1:]
    assert listed(client, **{"from": "2026-02-28"}) == whole[:1]
    problem(client.get(f"{PRICES}?from=2026-02-01&to=2026-02-01"), 422, "invalid-parameter")


def test_pair_accepts_a_manual_source_that_is_enabled_and_supports_it(client: TestClient[Any]) -> None:
    client.post("/v1/priced-items", json={"symbol": "FUND2", "name": "Second fund", "class": "Fund"})
    source = client.post(PATH, json={"name": "Administrator"}).json()["id"]
    asked = {"pricedAs": "FUND2", "pricedIn": "USD", "priceType": "NAV", "priceSources": [source]}
    problem(client.post("/v2/pairs", json=asked), 409, "price-source-disabled")
    client.patch(f"{PATH}/{source}/enable")
    assert pointers(client.post("/v2/pairs", json=asked)) == ["/priceSources"]
    supported = client.post(f"{PATH}/{source}/pairs", json={"pricedAs": "FUND2", "priceType": "NAV"}).json()["id"]
    price = {"price": "10.5", "effectiveFrom": "2026-01-31"}
    assert client.post(f"{PATH}/{source}/pairs/{supported}/prices", json=price).status_code == 201
    made = client.post("/v2/pairs", json=asked)
    assert made.status_code == 201
    assert (made.json()["mappingStatus"], made.json()["maxAge"]) == ("Resolved", "P35D")
    assert [(one["derivation"], one["markets"]) for one in made.json()["mappings"]] == [("Manual", [])]
    found = problem(client.delete(f"{PATH}/{source}/pairs/{supported}"), 409, "supported-pair-in-use")
    assert made.json()["id"] in found["detail"]
    problem(client.delete(f"{PATH}/{source}"), 409, "source-in-use")
    client.patch(f"{PATH}/{source}/disable")
    assert client.post(f"{PATH}/{source}/pairs/{supported}/prices", json=price).json()["revision"] == 2
