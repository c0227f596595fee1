"""The OpenAPI document is valid and complete, and every example request works and matches its schema."""

import json
from typing import Any

import pytest
from litestar.testing import TestClient
from openapi_spec_validator import validate

from api.examples import EXAMPLE_TOKEN_ID, EXAMPLE_WALLET_ID
from api.http import media_types
from tests.api.document import DOCUMENT, OPERATIONS, check, example_body, example_path, example_query, role_of
from tests.api.marts import publish
from tests.api.recorded import FILE, PROBLEM, compare
from tests.api.test_attestations import record
from tests.api.test_reports import REPORTS
from tests.api.world import World, marts_rows


@pytest.mark.ci
def test_the_document_is_openapi_31() -> None:
    assert DOCUMENT["openapi"].startswith("3.1.")
    validate(DOCUMENT)


def test_every_operation_is_described() -> None:
    for path, _, operation in (param.values for param in OPERATIONS):
        assert operation["summary"], path
        assert operation["description"], path
        assert "security" in operation, path
        guarded = path.startswith(("/v1/", "/v2/", "/embed/"))
        is_form = media_types.FORM in operation.get("requestBody", {}).get("content", {})
        assert bool(operation["security"]) == (guarded and not is_form), path
        errors = {status for status in operation["responses"] if status >= "400"}
        expected = {"400", "401", "403", "406", "422", "429", "503"} if guarded else set()
        assert errors >= expected | {"500"} | ({"404"} if "{" in path else set()), path
        for status in errors:
            resolved = DOCUMENT["components"]["responses"][status]
            assert list(resolved["content"]) == ["application/problem+json"]


@pytest.mark.ci
@pytest.mark.parametrize(("path", "method", "operation"), OPERATIONS)
def test_example_of_every_operation_works_with_its_named_credential(
    request: pytest.FixtureRequest, path: str, method: str, operation: dict[str, Any]
) -> None:
    """The credential is a key of the lowest sufficient role, an embed token, or none."""
    is_shared = method == "get" and not path.endswith("/attestations")
    world: World = request.getfixturevalue("unchanged" if is_shared else "world")
    client: TestClient[Any] = request.getfixturevalue("reader" if is_shared else "client")
    if path.endswith("/attestations"):
        sums = {"balances_raw": "165", "balances": "165"}
        rows = [record(world, EXAMPLE_TOKEN_ID, 1, 160, **sums), record(world, EXAMPLE_WALLET_ID, 1, 160)]
        publish(world.settings.serving_dir, 2, marts_rows(world) | {"attestations": rows})
    address, query = example_path(path, operation), example_query(operation)
    body, form = example_body(operation), example_body(operation, media_types.FORM)
    if form is not None:
        # Other tests need the document's own example unchanged.
        form = {**form, "token": embed_token(client, path)}
    headers = {"Authorization": ""}
    if operation["security"] == [{"embedToken": []}]:
        headers["Authorization"] = f"Bearer {embed_token(client, path)}"
    elif operation["security"]:
        headers = world.headers(str(role_of(operation)))
    answer = client.request(method.upper(), address, params=query, json=body, data=form, headers=headers)
    assert answer.status_code in {200, 201, 202, 204}, answer.text
    documented = operation["responses"][str(answer.status_code)].get("content", {})
    assert bool(answer.content) == bool(documented)
    if documented:
        compare(operation["operationId"], answer, documented)
    if media_types.JSON in documented:
        check(documented[media_types.JSON]["schema"], answer.json())
    for media_type in sorted({media_types.CSV, media_types.NDJSON} & documented.keys()) if method == "get" else ():
        whole = {name: value for name, value in query.items() if name != "limit"}
        table = client.get(address, params=whole, headers=headers | {"Accept": media_type})
        assert table.headers["content-type"].partition(";")[0] == media_type
        compare(operation["operationId"], table, documented)
    if body is not None:
        check(operation["requestBody"]["content"]["application/json"]["schema"], body)


def test_every_success_has_an_example_in_each_text_format() -> None:
    recorded = json.loads(FILE.read_text())
    for operation in (parameters.values[2] for parameters in OPERATIONS):
        documented = {
            media_type
            for status, response in operation["responses"].items()
            if status < "300"
            for media_type in response.get("content", {})
        }
        shown = {
            media_type for answers in recorded.pop(operation["operationId"], {}).values() for media_type in answers
        }
        assert shown == documented - {media_types.PARQUET}, operation["operationId"]
    assert list(recorded) == [PROBLEM]


@pytest.mark.parametrize(
    ("status", "method", "path", "options"),
    [
        (400, "GET", "/v1/tokens?colour=red", {}),
        (401, "GET", "/v1/tokens", {"headers": {"Authorization": "Bearer unknown"}}),
        (404, "GET", "/v1/tokens/tok_01k9zr3m5e8v2c7q4w6t1x0zzz", {}),
        (406, "GET", f"/v1/tokens/{EXAMPLE_TOKEN_ID}", {"headers": {"Accept": "text/csv"}}),
        (409, "GET", f"/v1/tokens/{EXAMPLE_TOKEN_ID}/cap-table?asOf=block:220", {}),
        (413, "POST", "/v1/tokens", {"content": b" " * (2**20 + 1), "headers": {"Content-Type": media_types.JSON}}),
        (415, "POST", "/v1/tokens", {"content": b"symbol: DAI", "headers": {"Content-Type": "text/plain"}}),
        (422, "POST", "/v1/tokens", {"json": {"ledger": "ethereum-main"}}),
    ],
)
def test_recorded_error_of_a_status_matches_the_response(
    reader: TestClient[Any], status: int, method: str, path: str, options: dict[str, Any]
) -> None:
    headers = {"X-Request-Id": "req-1"} | options.get("headers", {})
    answer = reader.request(method, path, **options | {"headers": headers})
    assert answer.status_code == status, answer.text
    compare(PROBLEM, answer, DOCUMENT["components"]["responses"][str(status)]["content"])


def embed_token(client: TestClient[Any], path: str) -> str:
    """Return the token of a link to the report of a path, by default to the index page."""
    report = "cap-table" if "superset" in path else next((name for name in path.split("/") if name in REPORTS), "index")
    address, query = REPORTS[report]
    return str(client.get(address, params=query).json()["reportUrl"].partition("#t=")[2])
