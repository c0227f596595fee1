"""What holds for every operation of the document alike: HEAD, OPTIONS, and texts that are no value."""

import threading
import time
from collections.abc import Iterator
from typing import Any

import httpx
import pytest
import uvicorn

from api import media_types
from api.app import create_app
from tests.api.document import DOCUMENT
from tests.api.test_openapi_examples import embed_token
from tests.api.world import World, copy_world
from tests.chain.process import free_port

OPERATIONS = [
    pytest.param(path, method, operation, id=operation["operationId"])
    for path, methods in DOCUMENT["paths"].items()
    for method, operation in methods.items()
]
PATHS = [pytest.param(path, methods, id=path) for path, methods in DOCUMENT["paths"].items()]
GETS = [param for param in OPERATIONS if param.values[1] == "get"]
TABULAR = [
    param
    for param in GETS
    if media_types.PARQUET in param.values[2]["responses"]["200"]["content"]
]  # fmt: skip
UNDESCRIBED = ["/openapi.json", "/docs", "/docs/start.js"]

# What one answer alone has: an id, how many requests are left, the way its body is sent.
_OF_ONE_ANSWER = {"x-request-id", "date", "ratelimit", "transfer-encoding"}


@pytest.fixture(scope="module")
def served(template: World, tmp_path_factory: pytest.TempPathFactory) -> Iterator[httpx.Client]:
    """The application behind uvicorn on a port, and a client of it with the admin's key."""
    world = copy_world(template, tmp_path_factory.mktemp("served"))
    port = free_port()
    config = uvicorn.Config(create_app(world.settings), port=port, log_config=None, ws="none")
    server = uvicorn.Server(config)
    thread = threading.Thread(target=server.run, daemon=True)
    thread.start()
    while not server.started:
        assert thread.is_alive()
        time.sleep(0.01)
    with httpx.Client(base_url=f"http://127.0.0.1:{port}", headers=world.headers(), timeout=30) as client:
        yield client
    server.should_exit = True
    thread.join()
    world.store.close()


def example_path(path: str, operation: dict[str, Any]) -> str:
    """Return a path with the examples of its parameters."""
    for parameter in operation["parameters"]:
        if parameter["in"] == "path":
            path = path.replace("{" + parameter["name"] + "}", parameter["example"])
    return path


def example_query(operation: dict[str, Any]) -> dict[str, str]:
    return {
        parameter["name"]: parameter["example"]
        for parameter in operation["parameters"]
        if parameter["in"] == "query" and "example" in parameter
    }


def credentials(client: Any, path: str, operation: dict[str, Any]) -> dict[str, str]:
    if operation["security"] == [{"embedToken": []}]:
        return {"Authorization": f"Bearer {embed_token(client, path)}"}
    return {}


@pytest.mark.parametrize(("path", "method", "operation"), GETS)
def test_head_is_get_without_the_body(served: httpx.Client, path: str, method: str, operation: dict[str, Any]) -> None:
    del method
    asked = {"params": example_query(operation), "headers": credentials(served, path, operation)}
    address = example_path(path, operation)
    got, head = served.get(address, **asked), served.head(address, **asked)
    assert got.status_code == head.status_code == 200, got.text
    assert head.content == b""
    told, kept = ({name: value for name, value in answer.headers.items() if name not in _OF_ONE_ANSWER}
                  for answer in (got, head))  # fmt: skip
    assert kept == told


@pytest.mark.parametrize(("path", "method", "operation"), TABULAR)
@pytest.mark.parametrize("form", [media_types.CSV, media_types.NDJSON, media_types.PARQUET])
def test_head_of_a_whole_collection_ends(
    served: httpx.Client, path: str, method: str, operation: dict[str, Any], form: str
) -> None:
    del method
    asked = {"params": example_query(operation), "headers": credentials(served, path, operation) | {"Accept": form}}
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


def test_head_tells_errors_like_get(served: httpx.Client) -> None:
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
