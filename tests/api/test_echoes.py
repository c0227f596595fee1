"""Requests with tens of thousands of characters get small responses."""

from typing import Any
from urllib.parse import urlencode

import pytest
from litestar.testing import TestClient

from api.http import media_types
from tests.api.document import OPERATIONS, example_body, example_path, example_query
from tests.api.test_errors import problem
from tests.api.test_openapi_examples import embed_token

LONG = 60_000
MOST_BYTES = 12_000
MANY = ["x" * LONG, *(f"n{number}" for number in range(500))]

NAMED = [param for param in OPERATIONS if param.values[2]["security"]]
WITH_BODY = [param for param in NAMED if "requestBody" in param.values[2]]
_PARAMETERS = [
    (one, pytest.param(*param.values, one["name"], id=f"{param.id}-{one['name']}"))
    for param in NAMED
    for one in param.values[2]["parameters"]
]
# One operation for each query parameter with its schema, and for each kind of id.
WITH_TEXTS = {one["name"] + str(one["schema"]): param for one, param in _PARAMETERS if one["in"] == "query"}
WITH_IDS = {
    param.values[0].partition(f"{{{one['name']}}}")[0]: param for one, param in _PARAMETERS if one["in"] == "path"
}


def refused(client: TestClient[Any], path: str, method: str, operation: dict[str, Any], **asked: Any) -> Any:
    """Send a request, check that a short response refuses it, and return the response."""
    headers = {"Authorization": f"Bearer {embed_token(client, path)}"} if path.startswith("/embed/") else {}
    headers |= {"Accept": media_types.CSV} if "context=" in asked.get("query", "") else {}
    address = asked.get("address", example_path(path, operation))
    body = asked.get("body", example_body(operation))
    answer = client.request(method, f"{address}?{asked.get('query', '')}", json=body, headers=headers)
    assert 400 <= answer.status_code < 500, answer.text[:500]
    assert len(answer.content) < MOST_BYTES
    return answer


@pytest.mark.parametrize(("path", "method", "operation", "name"), WITH_TEXTS.values())
def test_a_long_value_is_refused_by_name(
    reader: TestClient[Any], path: str, method: str, operation: dict[str, Any], name: str
) -> None:
    query = {key: value for key, value in example_query(operation).items() if key not in ("limit", name)}
    answer = refused(reader, path, method, operation, query=urlencode(query | {name: "1" * LONG}))
    if answer.status_code != 404:  # the id of an object that does not exist
        assert [error["parameter"] for error in answer.json()["errors"]] == [name]
    if name == "q":
        assert "shorten it to 200" in problem(answer, 422, "invalid-parameter")["detail"]


@pytest.mark.ci
@pytest.mark.parametrize(("path", "method", "operation"), NAMED)
def test_unknown_parameters_are_refused_and_named_in_part(
    reader: TestClient[Any], path: str, method: str, operation: dict[str, Any]
) -> None:
    query = "&".join([urlencode(example_query(operation)), "limmit=5", "Limit=6", *MANY])
    found = problem(refused(reader, path, method, operation, query=query), 400, "unknown-parameter")
    assert [error["parameter"] for error in found["errors"]][:2] == ["limmit", "Limit"]
    assert len(found["errors"]) == 20
    assert found["detail"].endswith("; and 493 more")


@pytest.mark.parametrize(("path", "method", "operation", "name"), WITH_IDS.values())
def test_a_long_id_is_cut(
    reader: TestClient[Any], path: str, method: str, operation: dict[str, Any], name: str
) -> None:
    address, query = example_path(path, operation, {name: "x" * LONG}), urlencode(example_query(operation))
    refused(reader, path, method, operation, address=address, query=query)


@pytest.mark.parametrize(("path", "method", "operation"), WITH_BODY)
def test_unknown_fields_are_named_in_part(
    reader: TestClient[Any], path: str, method: str, operation: dict[str, Any]
) -> None:
    example = example_body(operation)
    body = example | dict.fromkeys(MANY, 1)
    found = problem(refused(reader, path, method, operation, body=body), 400, "unknown-field")
    assert len(found["errors"]) == 20
    for name in example:
        refused(reader, path, method, operation, body=example | {name: "x" * LONG})
