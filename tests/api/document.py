"""The OpenAPI document of the routes, and answers checked against it."""

from typing import Any

from jsonschema import Draft202012Validator

from api.app import openapi_document
from control.settings import load_settings

DOCUMENT = openapi_document(load_settings({}))


def check(schema: dict[str, Any], value: Any) -> None:
    """Validate a value against a schema of the document."""
    Draft202012Validator(
        {**schema, "components": DOCUMENT["components"]}, format_checker=Draft202012Validator.FORMAT_CHECKER
    ).validate(value)
