"""An id of another tenant gets the same response as an unknown id, in every path, query and body of the document."""

from collections.abc import Iterator
from typing import Any, NamedTuple

import pytest
from litestar.testing import TestClient

from api.examples import (
    EXAMPLE_LEDGER,
    EXAMPLE_MARKET_PAIR_ID,
    EXAMPLE_SOURCE_ID,
    EXAMPLE_SUPPORTED_PAIR_ID,
    EXAMPLE_SYMBOL,
    EXAMPLE_TOKEN_ID,
    EXAMPLE_UNUSED_LEDGER,
    EXAMPLE_WALLET_ID,
)
from api.http import media_types
from tests.api.document import (
    DOCUMENT,
    KEYED,
    OF_ONE_ANSWER,
    OPERATIONS,
    TABULAR,
    example_body,
    example_path,
    example_query,
    stored,
)
from tests.api.world import FOREIGN_TOKEN_ID, FOREIGN_WALLET_ID, World, copy_world

# Ids and names of the first tenant, taken from the document's examples. The second tenant sends them.
OF_THE_OTHER = {
    "token": EXAMPLE_TOKEN_ID,
    "wallet": EXAMPLE_WALLET_ID,
    "pair": EXAMPLE_MARKET_PAIR_ID,
    "supported-pair": EXAMPLE_SUPPORTED_PAIR_ID,
    "price-source": EXAMPLE_SOURCE_ID,
    "priced-item": EXAMPLE_SYMBOL,
    "ledger": EXAMPLE_UNUSED_LEDGER,
    "external": f"ext-{EXAMPLE_TOKEN_ID[-2:]}",
}
# Kinds of path parameters by the prefixes of their examples, or by their names.
KINDS_IN_PATHS = {
    "tok": "token",
    "wal": "wallet",
    "pair": "pair",
    "spair": "supported-pair",
    "src": "price-source",
    "op": "operation",
    "price": "quarantined-price",
    "act": "activity",
    "symbol": "priced-item",
    "/v1/networks/ledgers/{name}": "ledger",
    "/v1/networks/{name}": None,
}
# Query parameters and body fields that do not identify tenant data.
NO_IDS = (
    "accept", "action", "allowInverse", "asOf", "change", "class", "context", "counterparty", "cursor", "description",
    "direction", "displayName", "dryRun", "effectiveFrom", "embedOrigins", "explain", "from", "history", "interval",
    "ledgerId", "limit", "maxAge", "maxDeviation", "maxJump", "minAmount", "multiplier", "name", "native", "note",
    "price", "priceType", "q", "sort", "status", "symbol", "theme", "to", "trackingStatus", "type", "wallet",
    "windowSize",
)  # fmt: skip
# Kinds by the names of all query parameters and body fields.
KINDS_BY_NAME: dict[str, str | None] = {
    "tokenId": "token",
    "walletId": "wallet",
    "token": "token",
    "objectId": "token",
    "ledger": "ledger",
    "externalId": "external",
    "priceSource": "price-source",
    "priceSources": "price-source",
    "pricedAs": "priced-item",
    "pricedIn": "priced-item",
    "bridge": "priced-item",
    "pairId": "pair",
    "mappings": "price-source",
    **dict.fromkeys(NO_IDS),
}
# Names given to a new object: unique per tenant.
GIVEN = {("create_token", "externalId"), ("patch_token", "externalId"),
         ("create_wallet", "externalId"), ("patch_wallet", "externalId")}  # fmt: skip
# Statuses other than 422 for a body in which an unknown id is the only fault.
MISSING_IN_BODIES = {("put_token_priced_as", "pricedAs"): 409}


class SortKey(NamedTuple):
    """Place in a request that takes an id."""

    path: str
    method: str
    operation: dict[str, Any]
    name: str
    kind: str


def kind_in_path(path: str, parameter: dict[str, Any]) -> str | None:
    """Return the kind of object that a path parameter names."""
    before = path.partition("{" + parameter["name"] + "}")[0] + "{" + parameter["name"] + "}"
    for key in (before, parameter["name"], parameter["example"].partition("_")[0]):
        if key in KINDS_IN_PATHS:
            return KINDS_IN_PATHS[key]
    raise AssertionError(f"{parameter['name']} of {path}: add its kind to the table")


def places(where: str) -> list[Any]:
    """Return the places in paths, queries or bodies, as test parameters."""
    found = []
    for path, method, operation in (param.values for param in KEYED):
        if where == "body":
            named = {name: KINDS_BY_NAME[name] for name in fields_of(operation)}
        else:
            named = {
                one["name"]: kind_in_path(path, one) if where == "path" else KINDS_BY_NAME[one["name"]]
                for one in operation["parameters"]
                if one["in"] == where
            }
        found += [
            pytest.param(SortKey(path, method, operation, name, kind), id=f"{operation['operationId']}-{name}")
            for name, kind in named.items()
            if kind is not None and (operation["operationId"], name) not in GIVEN
        ]
    return found


def fields_of(operation: dict[str, Any]) -> list[str]:
    """Return the names of the fields of an operation's body."""
    content = operation.get("requestBody", {}).get("content", {})
    schemas = [content["application/json"]["schema"]] if "application/json" in content else []
    names: dict[str, None] = {}
    while schemas:
        schema = schemas.pop()
        schemas += schema.get("anyOf", [])
        if "$ref" in schema:
            schemas.append(DOCUMENT["components"]["schemas"][schema["$ref"].rpartition("/")[2]])
        names |= dict.fromkeys(schema.get("properties", ()))
    return list(names)


def unknown(text: str) -> str:
    """Return an unknown id or name of the same form."""
    return text[:-1] + ("1" if text.endswith("0") else "0")


class Second(NamedTuple):
    """The second tenant: its client, one of its objects of each kind, and all rows, which stay the same."""

    world: World
    client: TestClient[Any]
    own: dict[str, str]
    before: list[str]


@pytest.fixture(scope="module")
def second(template: World, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Second]:
    world = copy_world(template, tmp_path_factory.mktemp("second"))
    with world.client("foreign") as client:

        def make(path: str, **body: Any) -> str:
            answer = client.post(path, json=body)
            assert answer.status_code == 201, answer.text
            return str(answer.json().get("id"))

        for symbol in ("FUND1", "USD"):
            make("/v1/priced-items", symbol=symbol, name=symbol, **{"class": "Other"})
        source = make("/v2/price-sources", name="Desk")
        assert client.patch(f"/v2/price-sources/{source}/enable").status_code == 200
        supported = make(f"/v2/price-sources/{source}/pairs", pricedAs="FUND1", priceType="NAV")
        pair = make("/v2/pairs", pricedAs="FUND1", priceType="NAV", priceSources=[source])
        link = client.put(f"/v1/tokens/{FOREIGN_TOKEN_ID}/priced-as", json={"pricedAs": "FUND1"})
        assert link.status_code == 200
        # The first link to a report stores a row.
        assert client.get("/v1/reports").status_code == 200
        own = {
            "token": FOREIGN_TOKEN_ID,
            "wallet": FOREIGN_WALLET_ID,
            "pair": pair,
            "supported-pair": supported,
            "price-source": source,
            "priced-item": "FUND1",
            "ledger": EXAMPLE_LEDGER,
        }
        yield Second(world, client, own, stored(world))
    world.store.close()


def own_path(second: Second, place: SortKey, value: str | None = None) -> str:
    """Return a path with the second tenant's objects, and with the other tenant's from the place on.

    Args:
        second: owner of the objects.
        place: names the operation and, if a value is given, a parameter of its path.
        value: replaces the value of that parameter.
    """
    values: dict[str, str] = {}
    for parameter in (one for one in place.operation["parameters"] if one["in"] == "path"):
        if value is not None and parameter["name"] == place.name:
            values[place.name] = value
            break
        kind = kind_in_path(place.path, parameter)
        if kind in second.own:
            values[parameter["name"]] = second.own[kind]
    return example_path(place.path, place.operation, values)


def own_body(second: Second, place: SortKey) -> Any:
    """Return the example of a body with the second tenant's own objects."""
    body = example_body(place.operation)
    if not isinstance(body, dict):
        return body
    own = {
        "ledger": second.own["ledger"],
        "pricedAs": "FUND1",
        "pricedIn": "USD",
        "priceSources": [second.own["price-source"]],
        "mappings": [{"priceSource": second.own["price-source"], "symbol": "X"}],
        "priceType": "NAV",
    }
    return body | {name: value for name, value in own.items() if name in body}


def shown(answer: Any, text: str) -> tuple[Any, ...]:
    """Return status, headers and body of a response, without the requested id and headers like the date."""
    headers = {name: value for name, value in answer.headers.items() if name not in OF_ONE_ANSWER}
    body = answer.text.replace(answer.headers["x-request-id"], "").replace(text, "")
    return answer.status_code, headers, body


def both(second: Second, place: SortKey, other: str, **request: Any) -> Any:
    """Send a request with another tenant's id and with an unknown id; return the response, which must be the same.

    Args:
        second: the sender.
        place: where the id is.
        other: the id of the other tenant.
        request: functions from an id to the arguments of the request, by name.
    """
    answers = []
    for text in (other, unknown(other)):
        made = {name: make(text) for name, make in request.items()}
        answers.append((second.client.request(place.method.upper(), follow_redirects=False, **made), text))
    assert shown(*answers[0]) == shown(*answers[1])
    assert stored(second.world) == second.before
    return answers[0][0]


@pytest.mark.proof("an id of another tenant does not exist")
@pytest.mark.parametrize("place", places("path"))
def test_foreign_id_in_a_path_is_not_found(second: Second, place: SortKey) -> None:
    (other,) = [one["example"] for one in place.operation["parameters"] if one["name"] == place.name]
    # Some operations have examples that are not tenant-specific.
    other = OF_THE_OTHER.get(place.kind, other)
    query, body = example_query(place.operation), own_body(second, place)
    answer = both(
        second,
        place,
        other,
        url=lambda text: own_path(second, place, text),
        params=lambda _: query,
        json=lambda _: body,
    )
    assert (answer.status_code, answer.json()["code"]) == (404, f"{place.kind}-not-found")


@pytest.mark.parametrize("place", places("query"))
def test_foreign_id_in_a_query_is_not_found(second: Second, place: SortKey) -> None:
    query, path = example_query(place.operation), own_path(second, place)
    answer = both(
        second,
        place,
        OF_THE_OTHER[place.kind],
        url=lambda _: path,
        params=lambda text: query | {place.name: text},
    )
    if answer.status_code == 200:
        assert answer.json()["data"] == []
    elif answer.status_code == 404:
        assert answer.json()["code"] == f"{place.kind}-not-found"
    else:
        assert answer.status_code == 422, answer.text
        assert [error["parameter"] for error in answer.json()["errors"]] == [place.name]


@pytest.mark.parametrize("place", places("body"))
def test_foreign_id_in_a_body_is_not_found(second: Second, place: SortKey) -> None:
    body, path = own_body(second, place), own_path(second, place)
    lists = {"priceSources": lambda text: [text], "mappings": lambda text: [{"priceSource": text, "symbol": "X"}]}
    shape = lists.get(place.name, lambda text: text)
    # A single source replaces the list of sources.
    kept = {name: value for name, value in body.items() if (place.name, name) != ("priceSource", "priceSources")}
    answer = both(
        second,
        place,
        OF_THE_OTHER[place.kind],
        url=lambda _: path,
        json=lambda text: kept | {place.name: shape(text)},
    )
    expected = MISSING_IN_BODIES.get((place.operation["operationId"], place.name), 422)
    assert answer.status_code == expected, answer.text
    assert {error["pointer"].split("/")[1] for error in answer.json()["errors"]} == {place.name}


@pytest.mark.parametrize(
    ("path", "operation"),
    [
        pytest.param(path, operation, id=operation["operationId"])
        for path, _, operation in (param.values for param in TABULAR)
        if "{" not in path and path != "/v1/networks"
    ],
)
def test_lists_contain_nothing_of_another_tenant(second: Second, path: str, operation: dict[str, Any]) -> None:
    assert "limit" in {parameter["name"] for parameter in operation["parameters"]}

    def ids(who: str) -> set[str]:
        rows = second.client.get(f"{path}?limit=1000", headers=second.world.headers(who)).json()["data"]
        return {row["id"] for row in rows if row.get("kind") != "Preconfigured"}

    ours, theirs = ids("foreign"), ids("admin")
    assert ours
    assert theirs
    assert not ours & theirs
    for form in (media_types.CSV, media_types.NDJSON):
        text = second.client.get(path, headers={"Accept": form}).text
        assert all(one in text for one in ours)
        assert not any(one in text for one in theirs)


def test_the_index_links_to_no_report_of_another_tenant(second: Second) -> None:
    link = second.client.get("/v1/reports").json()["reportUrl"].partition("#t=")[2]
    ((path, method, operation),) = [
        param.values for param in OPERATIONS if param.values[2]["operationId"] == "link_from_index"
    ]
    for report, kind in (("cap-table", "token"), ("cap-table-changes", "token"), ("wallet-activity", "wallet")):
        more = {"from": "block:1"} if kind == "token" and report.endswith("changes") else {}
        place = SortKey(path, method, operation, "id", kind)
        answer = both(
            second,
            place,
            OF_THE_OTHER[kind],
            url=lambda _: path,
            json=lambda text, report=report, more=more: {"type": report, "id": text, **more},
            headers=lambda _: {"Authorization": f"Bearer {link}"},
        )
        assert (answer.status_code, answer.json()["code"]) == (404, f"{kind}-not-found")
