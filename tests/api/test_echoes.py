"""Requests with tens of thousands of characters get small responses."""

from collections.abc import Iterator
from typing import Any
from urllib.parse import urlencode

import pytest
from litestar.testing import TestClient

from api.http import media_types
from tests.api.document import OPERATIONS, example_body, example_path, example_query
from tests.api.test_errors import problem
from tests.api.test_openapi_examples import embed_token
from tests.api.world import World

LONG = 60_000
MOST_BYTES = 12_000

NAMED = [param for param in OPERATIONS if param.values[2]["security"]]
WITH_TEXTS = [
    pytest.param(path, method, operation, one["name"], id=f"{operation['operationId']}-{one['name']}")
    for path, method, operation in (param.values for param in NAMED)
    for one in operation["parameters"]
    if one["in"] == "query"
]
WITH_IDS = [param for param in NAMED if "{" in param.values[0]]
WITH_BODY = [param for param in NAMED if "requestBody" in param.values[2]]


@pytest.fixture(scope="module")
def caller(unchanged: World) -> Iterator[TestClient[Any]]:
    with unchanged.client() as client:
        yield client


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


@pytest.mark.parametrize(("path", "method", "operation", "name"), WITH_TEXTS)
def test_a_long_value_is_refused_by_name(
    caller: TestClient[Any], path: str, method: str, operation: dict[str, Any], name: str
) -> None:
    query = {key: value for key, value in example_query(operation).items() if key not in ("limit", name)}
    answer = refused(caller, path, method, operation, query=urlencode(query | {name: "1" * LONG}))
    if answer.status_code != 404:  # the id of an object that does not exist
        assert [error["parameter"] for error in answer.json()["errors"]] == [name]
    if name == "q":
        assert "shorten it to 200" in problem(answer, 422, "invalid-parameter")["detail"]


@pytest.mark.parametrize(("path", "method", "operation"), NAMED)
def test_unknown_parameters_are_named_in_part(
    caller: TestClient[Any], path: str, method: str, operation: dict[str, Any]
) -> None:
    for names in (["x" * LONG], [f"n{number}" for number in range(10_000)]):
        found = problem(refused(caller, path, method, operation, query="&".join(names)), 400, "unknown-parameter")
        assert len(found["errors"]) == min(len(names), 20)
        assert len(names) == 1 or found["detail"].endswith("; and 9990 more")


@pytest.mark.parametrize(("path", "method", "operation"), WITH_IDS)
def test_a_long_id_is_cut(caller: TestClient[Any], path: str, method: str, operation: dict[str, Any]) -> None:
    for parameter in operation["parameters"]:
        if parameter["in"] == "path":
            address = example_path(path, operation, {parameter["name"]: "x" * LONG})
            query = urlencode(example_query(operation))
            refused(caller, path, method, operation, address=address, query=query)


@pytest.mark.parametrize(("path", "method", "operation"), WITH_BODY)
def test_unknown_fields_are_named_in_part(
    caller: TestClient[Any], path: str, method: str, operation: dict[str, Any]
) -> None:
    example = example_body(operation)
    for names in (["x" * LONG], [f"n{number}" for number in range(10_000)]):
        body = example | dict.fromkeys(names, 1)
        found = problem(refused(caller, path, method, operation, body=body), 400, "unknown-field")
        assert len(found["errors"]) == min(len(names), 20)
    for name in example:
        refused(caller, path, method, operation, body=example | {name: "x" * LONG})
