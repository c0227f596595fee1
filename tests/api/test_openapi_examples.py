"""The OpenAPI document: valid, complete, and every operation's example executed against its own schema."""

from typing import Any

import pytest
from litestar.testing import TestClient
from openapi_spec_validator import validate

from api import media_types
from tests.api.document import DOCUMENT, check
from tests.api.test_reports import REPORTS
from tests.api.world import World

OPERATIONS = [
    pytest.param(path, method, operation, id=operation["operationId"])
    for path, methods in DOCUMENT["paths"].items()
    for method, operation in methods.items()
]


def test_the_document_is_openapi_31() -> None:
    assert DOCUMENT["openapi"].startswith("3.1.")
    validate(DOCUMENT)


@pytest.mark.parametrize(("path", "method", "operation"), OPERATIONS)
def test_every_operation_is_described(path: str, method: str, operation: dict[str, Any]) -> None:
    assert operation["summary"]
    assert operation["description"]
    assert "security" in operation
    guarded = path.startswith(("/v1/", "/v2/", "/embed/"))
    is_form = media_types.FORM in operation.get("requestBody", {}).get("content", {})
    assert bool(operation["security"]) == (guarded and not is_form)
    errors = {status for status in operation["responses"] if status >= "400"}
    assert "500" in errors
    if guarded:
        assert {"400", "401", "403", "406", "422", "429", "500", "503"} <= errors
    if "{" in path:
        assert "404" in errors
    for status in errors:
        resolved = DOCUMENT["components"]["responses"][status]
        assert list(resolved["content"]) == ["application/problem+json"]


@pytest.mark.parametrize(("path", "method", "operation"), OPERATIONS)
def test_the_example_of_every_operation_works(
    world: World, client: TestClient[Any], path: str, method: str, operation: dict[str, Any]
) -> None:
    query = {}
    for parameter in operation["parameters"]:
        if parameter["in"] == "path":
            path = path.replace("{" + parameter["name"] + "}", parameter["example"])
        elif "example" in parameter:
            query[parameter["name"]] = parameter["example"]
    body = operation.get("requestBody", {}).get("content", {}).get("application/json", {}).get("example")
    if operation["security"] == [{"embedToken": []}]:
        client.headers["Authorization"] = f"Bearer {embed_token(client, path)}"
    form = operation.get("requestBody", {}).get("content", {}).get(media_types.FORM, {}).get("example")
    if form is not None:
        # The document's own example stays as it is, for other tests.
        form = {**form, "token": embed_token(client, path)}
        del client.headers["Authorization"]
    answer = client.request(method.upper(), path, params=query, json=body, data=form)
    assert answer.status_code in {200, 201, 202, 204}, answer.text
    documented = operation["responses"][str(answer.status_code)].get("content")
    if documented is None:
        assert answer.content == b""
    elif media_types.JSON in documented:
        check(documented["application/json"]["schema"], answer.json())
    else:
        assert answer.headers["content-type"].partition(";")[0] in documented
    if body is not None:
        check(operation["requestBody"]["content"]["application/json"]["schema"], body)


def embed_token(client: TestClient[Any], path: str) -> str:
    """Return the token of a link to the report that a path is for, by default to the index page."""
    report = "cap-table" if "superset" in path else next((name for name in path.split("/") if name in REPORTS), "index")
    address, query = REPORTS[report]
    return str(client.get(address, params=query).json()["reportUrl"].partition("#t=")[2])


def test_a_wrong_answer_would_be_noticed(client: TestClient[Any]) -> None:
    answer = client.get("/v1/networks").json()
    del answer["data"][0]["chainId"]
    schema = {"$ref": "#/components/schemas/Networks"}
    with pytest.raises(Exception, match="chainId"):
        check(schema, answer)
