"""Rules common to every operation of the document: HEAD, OPTIONS, and invalid values."""

from collections.abc import Iterator
from contextlib import contextmanager
from itertools import cycle
from pathlib import Path
from typing import Any

import httpx
import pytest

from api.examples import EXAMPLE_WALLET_ID
from api.http import media_types
from tests.api.document import (
    DOCUMENT,
    GETS,
    OF_ONE_ANSWER,
    OPERATIONS,
    TABULAR,
    example_path,
    example_query,
)
from tests.api.test_errors import problem
from tests.api.test_openapi_examples import embed_token
from tests.api.world import World, copy_world
from tests.e2e.serving import serving

PATHS = [pytest.param(path, methods, id=path) for path, methods in DOCUMENT["paths"].items()]
BODILESS = [param for param in OPERATIONS if "requestBody" not in param.values[2]]
# Operations with query parameters that are choices, numbers or truth values, and the schemas of these.
NO_TEXTS = [
    pytest.param(path, operation, schemas, id=operation["operationId"])
    for path, _, operation in (param.values for param in GETS)
    if (
        schemas := {
            one["name"]: one["schema"]
            for one in operation["parameters"]
            if one["in"] == "query" and ("enum" in one["schema"] or one["schema"]["type"] != "string")
        }
    )
]
# Each list of the document in one format of files, all three in turn.
FILES = [
    pytest.param(path, operation, form, id=operation["operationId"])
    for (path, _, operation), form in zip((param.values for param in TABULAR), cycle(media_types.FILES), strict=False)
]
# Query parameters that take an instant or a day.
MOMENTS = ("from", "to", "asOf")
TIMED = [
    pytest.param(path, operation, id=operation["operationId"])
    for path, _, operation in (param.values for param in GETS)
    if any(parameter["name"] in MOMENTS for parameter in operation["parameters"])
]
ENDS = [
    "0001-01-01",
    "0001-01-01T00:00:00Z",
    "0001-01-01T00:00:00+14:00",
    "0001-01-02",
    "9999-12-30",
    "9999-12-31",
    "9999-12-31T23:59:59.999999Z",
    "9999-12-31T23:59:59-14:00",
]
FARTHEST = [ENDS[2], ENDS[5], ENDS[7]]
UNDESCRIBED = ["/openapi.json", "/docs", "/docs/start.js"]


@pytest.fixture(scope="module")
def served(template: World, tmp_path_factory: pytest.TempPathFactory) -> Iterator[httpx.Client]:
    """A client with the admin's key for the application on a port."""
    with serve(template, tmp_path_factory.mktemp("served")) as client:
        yield client


@pytest.fixture(scope="module")
def valued_served(valued_template: World, tmp_path_factory: pytest.TempPathFactory) -> Iterator[httpx.Client]:
    """The same as `served`, with prices."""
    with serve(valued_template, tmp_path_factory.mktemp("valued")) as client:
        yield client


@contextmanager
def serve(template: World, directory: Path) -> Iterator[httpx.Client]:
    """Serve a copy of a world."""
    world = copy_world(template, directory)
    with (
        serving(world.settings) as url,
        httpx.Client(base_url=url, headers=world.headers(), timeout=None) as client,
    ):
        yield client
    world.store.close()


def credentials(client: Any, path: str, operation: dict[str, Any]) -> dict[str, str]:
    if path.startswith("/embed/"):
        return {"Authorization": f"Bearer {embed_token(client, path)}"}
    return {}


@pytest.mark.ci
@pytest.mark.parametrize(("path", "method", "operation"), GETS)
def test_head_is_get_without_the_body(served: httpx.Client, path: str, method: str, operation: dict[str, Any]) -> None:
    del method
    asked = {"params": example_query(operation), "headers": credentials(served, path, operation)}
    address = example_path(path, operation)
    got, head = served.get(address, **asked), served.head(address, **asked)
    assert got.status_code == head.status_code == 200, got.text
    assert head.content == b""
    told, kept = ({name: value for name, value in answer.headers.items() if name not in OF_ONE_ANSWER}
                  for answer in (got, head))  # fmt: skip
    assert kept == told


@pytest.mark.parametrize(("path", "operation", "form"), FILES)
def test_head_of_a_whole_collection_ends(served: httpx.Client, path: str, operation: dict[str, Any], form: str) -> None:
    query = {name: value for name, value in example_query(operation).items() if name != "limit"}
    asked = {"params": query, "headers": credentials(served, path, operation) | {"Accept": form}}
    address = example_path(path, operation)
    got, head = served.get(address, **asked), served.head(address, **asked)
    assert got.status_code == head.status_code == 200, got.text
    assert head.content == b""
    assert head.headers["content-type"] == got.headers["content-type"]
    assert ("etag" in head.headers) == ("etag" in got.headers)


@pytest.mark.parametrize("path", UNDESCRIBED)
def test_head_of_the_documentation(served: httpx.Client, path: str) -> None:
    got, head = served.get(path), served.head(path)
    assert (head.status_code, head.content) == (200, b"")
    assert head.headers["etag"] == got.headers["etag"]


@pytest.mark.ci
@pytest.mark.parametrize(("path", "method", "operation"), BODILESS)
def test_body_is_refused_by_operations_without_one(
    served: httpx.Client, path: str, method: str, operation: dict[str, Any]
) -> None:
    asked = {"params": example_query(operation), "headers": credentials(served, path, operation)}
    chunks = iter([b'{"enabled"', b": false}"])
    for content in (b"{}", chunks):
        answer = served.request(method, example_path(path, operation), content=content, **asked)
        assert "takes no body" in problem(answer, 400, "unexpected-body")["detail"]
    if method == "get":
        assert served.request(method, example_path(path, operation), content=b"", **asked).status_code == 200


def test_head_returns_the_same_errors_as_get(served: httpx.Client) -> None:
    assert served.head("/v1/tokens?limmit=1").status_code == 400
    assert served.head("/v1/tokens", headers={"Authorization": ""}).status_code == 401
    assert served.head("/nowhere").status_code == 404
    refused = served.head("/embed/token")
    assert refused.status_code == 405
    assert "HEAD" not in refused.headers["allow"]


@pytest.mark.parametrize(("path", "methods"), PATHS)
def test_options_names_the_methods_of_a_path(served: httpx.Client, path: str, methods: dict[str, Any]) -> None:
    address = example_path(path, next(iter(methods.values())))
    for headers in ({}, {"Authorization": ""}, {"Authorization": "Bearer lm_x"}):
        answer = served.options(address, headers=headers)
        assert answer.status_code == 204, answer.text
        assert answer.content == b""
        expected = {*(method.upper() for method in methods), "OPTIONS"} | ({"HEAD"} if "get" in methods else set())
        assert {part.strip() for part in answer.headers["allow"].split(",")} == expected
        assert answer.headers["x-content-type-options"] == "nosniff"


@pytest.mark.parametrize(("path", "operation", "schemas"), NO_TEXTS)
def test_null_and_unknown_choices_are_refused_with_the_list_of_choices(
    served: httpx.Client, path: str, operation: dict[str, Any], schemas: dict[str, Any]
) -> None:
    def refuse(values: dict[str, str]) -> str:
        """Send these values, check that all of them are refused, and return the detail."""
        asked = {"params": example_query(operation) | values, "headers": credentials(served, path, operation)}
        found = problem(served.get(example_path(path, operation), **asked), 422, "invalid-parameter")
        assert {error["parameter"] for error in found["errors"]} == values.keys()
        return str(found["detail"])

    nulls = dict(zip(schemas, cycle(("null", "NULL", "Null")), strict=False))
    assert refuse(nulls).count("cannot be null") == len(nulls)
    choices = {name: schema["enum"] for name, schema in schemas.items() if "enum" in schema}
    if choices:
        detail = refuse(dict.fromkeys(choices, "Coin"))
        for name, listed in choices.items():
            assert f"{name} is 'Coin'; use one of {', '.join(listed)}" in detail


def test_null_is_an_ordinary_text_in_text_parameters(served: httpx.Client) -> None:
    found = served.get("/v1/tokens", params={"symbol": "null", "q": "null"})
    assert (found.status_code, found.json()["data"]) == (200, [])


@pytest.mark.ci
@pytest.mark.parametrize(("path", "operation"), TIMED)
def test_moments_at_the_ends_of_the_calendar(valued_served: httpx.Client, path: str, operation: dict[str, Any]) -> None:
    declared = {parameter["name"]: parameter["schema"] for parameter in operation["parameters"]}
    required_names = {one["name"] for one in operation["parameters"] if one["required"]}
    names = [name for name in MOMENTS if name in declared]
    lengths = declared.get("interval", {}).get("enum", [None])
    headers = credentials(valued_served, path, operation)
    required = {name: value for name, value in example_query(operation).items() if name not in MOMENTS}
    required |= {"from": "2026-02-01T00:04:00Z"} if "from" in required_names else {}
    address = example_path(path, operation)
    asked = [{name: text} for name in names for text in FARTHEST]
    asked += [
        {"from": first, "to": last}
        for first, last in (ENDS[:1] + ENDS[-3:-2], ENDS[:2][::-1])
        if {"from", "to"} <= set(names)
    ]
    for moments in asked:
        for length in lengths:
            query = required | moments | ({"interval": length} if length else {})
            answer = valued_served.get(address, params=query, headers=headers)
            assert answer.status_code in (200, 409, 422), (query, answer.text)
            if answer.status_code == 422:
                named = {error["parameter"] for error in answer.json()["errors"]}
                assert named <= {*moments, "interval"}, (query, answer.text)


@pytest.mark.parametrize("text", ENDS)
def test_moments_at_the_ends_of_the_calendar_in_bodies(valued_served: httpx.Client, text: str) -> None:
    timed = 0
    for path, methods in DOCUMENT["paths"].items():
        for method, operation in methods.items():
            if path.startswith("/embed/") or "requestBody" not in operation:
                continue
            example = operation["requestBody"]["content"][media_types.JSON]["example"]
            for name in ("from", "to", "effectiveFrom", "asOf"):
                if name not in example and not (name == "to" and "from" in example):
                    continue
                timed += 1
                answer = valued_served.request(method, example_path(path, operation), json=example | {name: text})
                assert answer.status_code in (200, 201, 202, 409, 422), (path, name, answer.text)
                if answer.status_code == 422:
                    assert {error["pointer"] for error in answer.json()["errors"]} <= {
                        "/from",
                        "/to",
                        f"/{name}",
                        "/windowSize",
                    }
    assert timed >= 7


@pytest.mark.parametrize("text", ENDS)
@pytest.mark.parametrize("name", ["from", "to"])
def test_reports_at_the_ends_of_the_calendar(valued_served: httpx.Client, name: str, text: str) -> None:
    link = valued_served.get("/v1/reports/wallet-activity", params={"walletId": EXAMPLE_WALLET_ID, name: text})
    if link.status_code == 422:
        assert [error["parameter"] for error in link.json()["errors"]] == [name]
        return
    headers = {"Authorization": f"Bearer {link.json()['reportUrl'].partition('#t=')[2]}"}
    for part in ("summary", "rows", "csv"):
        answer = valued_served.get(f"/embed/data/wallet-activity/{part}", headers=headers)
        assert answer.status_code == 200, answer.text
