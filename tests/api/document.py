"""The OpenAPI document: its operations, requests made from its examples, and validation of responses against it."""

import re
import sqlite3
from collections.abc import Mapping
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from api.app import openapi_document
from api.examples import EXAMPLE_UNUSED_SOURCE_ID
from api.http import media_types
from control.settings import load_settings
from tests.api.world import World

DOCUMENT = openapi_document(load_settings({}))

OPERATIONS = [
    pytest.param(path, method, operation, id=operation["operationId"])
    for path, methods in DOCUMENT["paths"].items()
    for method, operation in methods.items()
]
GETS = [param for param in OPERATIONS if param.values[1] == "get"]
TABULAR = [
    param
    for param in GETS
    if media_types.PARQUET in param.values[2]["responses"]["200"]["content"]
]  # fmt: skip

# Headers that differ between two answers to the same request.
OF_ONE_ANSWER = {"x-request-id", "date", "ratelimit", "transfer-encoding"}

_ROLE = re.compile(r"Needs the role `(\w+)`\.")


def check(schema: dict[str, Any], value: Any) -> None:
    """Validate a value against a schema of the document."""
    Draft202012Validator(
        {**schema, "components": DOCUMENT["components"]}, format_checker=Draft202012Validator.FORMAT_CHECKER
    ).validate(value)


def role_of(operation: Mapping[str, Any]) -> str | None:
    """Return the role named by an operation's description; None if it needs no API key."""
    found = _ROLE.search(operation["description"])
    return found[1] if found else None


KEYED = [param for param in OPERATIONS if role_of(param.values[2])]
WRITES = [param for param in KEYED if param.values[1] != "get"]


def example_path(path: str, operation: Mapping[str, Any], values: Mapping[str, str] | None = None) -> str:
    """Return a path filled with the examples of its parameters; `values` override them."""
    examples = {one["name"]: one["example"] for one in operation["parameters"] if one["in"] == "path"}
    return path.format(**examples | dict(values or {}))


def example_query(operation: Mapping[str, Any]) -> dict[str, str]:
    """Return the examples of an operation's query parameters."""
    return {
        parameter["name"]: parameter["example"]
        for parameter in operation["parameters"]
        if parameter["in"] == "query" and "example" in parameter
    }


def example_body(operation: Mapping[str, Any], media_type: str = media_types.JSON) -> Any:
    """Return the example of an operation's body; None if it takes no body of this media type."""
    content = operation.get("requestBody", {}).get("content", {})
    return content.get(media_type, {}).get("example")


# Other path values and body fields for writes, where the plain example would change nothing.
_CHANGES: dict[str, tuple[dict[str, str], dict[str, Any]]] = {
    "patch_priced_item": ({}, {"class": "Other"}),
    "put_token_tracking": ({}, {"trackingStatus": "disabled"}),
    "put_wallet_tracking": ({}, {"trackingStatus": "disabled"}),
    "enable_price_source": ({"id": EXAMPLE_UNUSED_SOURCE_ID}, {}),
}


def ask(client: Any, path: str, method: str, operation: Mapping[str, Any], headers: Mapping[str, str]) -> Any:
    """Send the example request of an operation; a write changes something."""
    values, changes = _CHANGES.get(operation["operationId"], ({}, {}))
    body = example_body(operation)
    return client.request(
        method.upper(),
        example_path(path, operation, values),
        params=example_query(operation),
        json=body | changes if changes else body,
        headers=headers,
        follow_redirects=False,
    )


def stored(world: World) -> list[str]:
    """Return all rows of the control store except API keys, which record their last use."""
    with sqlite3.connect(world.settings.data_dir / "control.db") as connection:
        return [line for line in connection.iterdump() if not line.startswith('INSERT INTO "api_keys"')]
