"""Links of the OpenAPI document name existing operations and parameters, and following them reaches objects."""

from typing import Any

import pytest
from litestar.testing import TestClient

from tests.api.document import DOCUMENT, OPERATIONS
from tests.api.world import World

BY_ID = {param.values[2]["operationId"]: param.values for param in OPERATIONS}
LINKS = [
    pytest.param(operation, link, id=f"{operation['operationId']}-{status}-{name}")
    for _, _, operation in (param.values for param in OPERATIONS)
    for status, answer in operation["responses"].items()
    for name, link in answer.get("links", {}).items()
]


def test_links_give_all_path_parameters_of_their_operations() -> None:
    assert len(LINKS) > 100
    for operation, link in (param.values for param in LINKS):
        target = BY_ID[link["operationId"]][2]
        declared = {one["name"]: one["in"] for one in target["parameters"]}
        assert link["parameters"].keys() <= declared.keys()
        assert {name for name, place in declared.items() if place == "path"} <= link["parameters"].keys()
        own = {one["name"] for one in operation["parameters"]}
        requested = [text for text in link["parameters"].values() if text.startswith("$request.")]
        assert {text.rpartition(".")[2] for text in requested} <= own


def follow(client: TestClient[Any], name: str, answer: Any, given: dict[str, str], body: Any = None) -> Any:
    """Send the request of a link in a response; return the successful response."""
    operation = next(one for one in BY_ID.values() if one[2]["operationId"] == given["operation"])[2]
    link = operation["responses"][str(answer.status_code)]["links"][name]
    values: dict[str, str] = {}
    for parameter, text in link["parameters"].items():
        found: Any = answer.json() if text.startswith("$response.") else None
        for part in text.partition("#/")[2].split("/") if found is not None else ():
            found = found[int(part)] if part.isdigit() else found[part]
        values[parameter] = found if found is not None else given[text.rpartition(".")[2]]
    path, method, _ = BY_ID[link["operationId"]]
    made = client.request(method, path.format(**values), json=body)
    assert made.is_success, made.text
    given |= values | {"operation": link["operationId"]}
    return made


def test_links_lead_from_creation_over_tracking_to_history(world: World) -> None:
    with world.client() as client:
        given = {"operation": "create_token"}
        body = {"ledger": "ethereum-main", "symbol": "DAI", "ledgerId": "0x" + "ab" * 20}
        answer = client.post("/v1/tokens", json=body)
        answer = follow(client, "put_token_tracking", answer, given, {"trackingStatus": "enabled"})
        answer = follow(client, "read_token", answer, given)
        assert answer.json()["symbol"] == "DAI"
        given["operation"] = "create_token"
        answer = client.post("/v1/tokens", json=body | {"ledgerId": "0x" + "ac" * 20})
        answer = follow(client, "request_token_history", answer, given, {"from": "creation"})
        answer = follow(client, "cancel_token_history_request", answer, given)
        assert answer.status_code == 202


def test_the_document_is_small() -> None:
    assert len(str(DOCUMENT)) < 1_500_000
