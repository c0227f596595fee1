"""The OpenAPI 3.1 document, generated from the routes: signatures, docstrings, structs and `RouteSpec`.

This module repeats nothing that a route or a struct describes.
"""

from collections.abc import Iterator, Mapping
from collections.abc import Set as AbstractSet
from importlib.metadata import version
from pathlib import Path
from typing import Any

import msgspec
from litestar import Litestar
from litestar.handlers import HTTPRouteHandler
from litestar.params import ParameterKwarg
from litestar.routes import HTTPRoute
from litestar.types import Empty
from litestar.typing import FieldDefinition

from api.http import media_types
from api.http.openapi_links import add_links
from api.http.parameters import CONTEXT, ContextChoice, Declared
from api.http.route_specs import OPERATION, RouteSpec
from api.schema import AsOf, Coverage, Problem
from control.idempotency import KEY
from control.inputs import ExactNumber, whole

_EXAMPLES: dict[str, dict[str, dict[str, Any]]] = msgspec.json.decode(
    (Path(__file__).parent / "examples.json").read_bytes()
)
"""Example answers by operation, status and media type; `make examples` records them from the tests."""

_REF = "#/components/schemas/{name}"
_SECURITY = "apiKey"
_EMBED_SECURITY = "embedToken"

_STATUSES = {
    400: "The request is malformed, has an unknown parameter or field, or has a body where none is allowed.",
    401: "The API key or the embed token is missing or invalid.",
    403: "The key's role is too low, or the embed token is for another report.",
    404: "The tenant has no such object.",
    406: "The operation offers no format that `Accept` allows.",
    408: "The body came too slowly.",
    409: "The request conflicts with stored data, or its moment is not covered.",
    410: "The next page is not available: an earlier page has changed, its version is deleted or too old, or the "
    "service was restored from a backup.",
    413: "The body is larger than 1 MiB, or the form is larger than 16 KiB.",
    415: "The operation does not accept the media type of the body.",
    422: "A value is missing or invalid.",
    429: "Too many requests with this key, or too many forms or wrong keys from this address.",
    500: "An unexpected error. The log of the service has it under the request id.",
    503: "The service cannot answer now, or not before the first build of this release. `Retry-After` states when to "
    "retry.",
}

_DESCRIPTION = """\
Tokens and wallets of a tenant on blockchain networks: activities, cap tables, balances, prices and values.

Quantities, prices and values are decimal strings without exponent; `...Raw` are integer strings in base units. If a
number is null, its status field gives the reason. Times are UTC; ranges are `from` <= t < `to`. Unknown parameters and
fields are refused. HEAD works wherever GET does. Errors are problem details (RFC 9457). For lists and analyses,
`Accept: text/csv`, `application/x-ndjson` or `application/vnd.apache.parquet` returns all rows in one file."""

_RESPONSE_HEADERS = {
    "X-Request-Id": "Id of the request: the client's own id if it sent one.",
    "ETag": "Version of the answer. Send it in `If-None-Match` to get 304 while the answer has not changed.",
}
_RATE_HEADERS = {
    "RateLimit": "Requests left in the current rate-limit window (`r`), and seconds until the next one (`t`).",
    "RateLimit-Policy": "Allowed requests (`q`) in a rate-limit window of `w` seconds.",
}


def routes(app: Litestar) -> Iterator[tuple[str, str, HTTPRouteHandler]]:
    """Yield path, method and handler of every described route."""
    for route in app.routes:
        if isinstance(route, HTTPRoute):
            for method, (handler, _) in route.route_handler_map.items():
                if OPERATION in handler.opt:
                    yield route.path_format, method, handler


def query_parameters(handler: HTTPRouteHandler) -> dict[str, Declared]:
    """Return the query parameters that a route declares, by name."""
    return {name: _declared(field) for name, location, field in _parameters(handler) if location == "query"}


def argument_names(handler: HTTPRouteHandler) -> dict[str, str]:
    """Return the names of a route's parameters by the names of the function's arguments."""
    return {field.name: name for name, _, field in _parameters(handler)}


def build_document(app: Litestar) -> dict[str, Any]:
    """Return the document of an application's routes."""
    described = sorted(routes(app), key=lambda entry: (entry[0], entry[1]))
    types: list[type[Any]] = [Problem, AsOf, Coverage]
    for _, _, handler in described:
        operation: RouteSpec = handler.opt[OPERATION]
        named = (
            operation.answer,
            operation.dry_answer,
            operation.bulk_answer,
            operation.body,
            operation.form,
            operation.row,
            *operation.other_rows,
        )
        types += [kind for kind in named if kind]
    _, schemas = msgspec.json.schema_components(types, schema_hook=_describe_type, ref_template=_REF)
    for kind in types:
        schemas[kind.__name__].update(getattr(kind, "rules", {}))
    paths: dict[str, dict[str, Any]] = {}
    for path, method, handler in described:
        paths.setdefault(path, {})[method.lower()] = _describe(path, handler)
    add_links(paths, schemas)
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "Ledgermart",
            "version": version("ledgermart"),
            "summary": "Self-hosted, multi-tenant warehouse and API for crypto tokens and wallets",
            "description": _DESCRIPTION,
            "license": {"name": "Apache-2.0", "identifier": "Apache-2.0"},
        },
        "servers": [{"url": "/"}],
        "tags": _sections({tag for _, _, handler in described for tag in handler.resolve_tags()}),
        "paths": paths,
        "components": {
            "schemas": schemas,
            "responses": {str(status): _problem_response(status) for status in _STATUSES},
            "securitySchemes": {
                _SECURITY: {
                    "type": "http",
                    "scheme": "bearer",
                    "bearerFormat": "lm_<keyId>_<secret>",
                    "description": "API key of one tenant with one role.",
                },
                _EMBED_SECURITY: {
                    "type": "http",
                    "scheme": "bearer",
                    "bearerFormat": "JWT",
                    "description": "Embed token of one report of one tenant, from the fragment of a report's link.",
                },
            },
        },
    }


# Sections of the document and their descriptions, in the order of the document.
_SECTIONS = {
    "Tokens": "Tokens that you track, with holders, activities, supply and market capitalization.",
    "Wallets": "Wallets that you track, with balances, activities and value.",
    "History requests": "Requests for history before tracking, and for gaps.",
    "Attestations": "Records that every balance at a past moment was checked against the chain.",
    "Networks and ledgers": "Networks with their state, and your ledgers of them.",
    "Pairs": "Pairs of items with their price sources, and their prices.",
    "Priced items": "Symbols of the items that have prices.",
    "Price sources": "Sources of prices, and the types of prices that each offers.",
    "Manual prices": "Prices that you enter.",
    "Reports": "Links to reports that you embed in your pages.",
    "Embedded reports": "Data for the pages of reports. Each request needs the embed token of a report link.",
    "Audit": "Changes to your configuration, with author and time.",
    "Quotas": "How much you may store, and how much you store.",
    "Operations": "Health of the service.",
}


def _sections(used: AbstractSet[str]) -> list[dict[str, str]]:
    """Return the sections of the document in order; raise if described and used sections differ."""
    if used != _SECTIONS.keys():
        raise ValueError(f"sections that are used and those that are described differ: {used ^ _SECTIONS.keys()}")
    return [{"name": name, "description": description} for name, description in _SECTIONS.items()]


def _describe(path: str, handler: HTTPRouteHandler) -> dict[str, Any]:
    operation: RouteSpec = handler.opt[OPERATION]
    # The framework wraps a handler that runs in a thread; the wrapped function has the docstring.
    function = getattr(handler.fn, "func", handler.fn)
    name, text = handler.handler_name, function.__doc__ or ""
    if operation.of is not None:
        name, text = name.replace("subject", operation.of), text.replace("{subject}", operation.of)
    summary, _, description = text.partition("\n\n")
    needed = "" if operation.role is None else f"\n\nNeeds the role `{operation.role}`."
    if operation.reports:
        needed = f"\n\nNeeds an embed token of the report {' or '.join(f'`{name}`' for name in operation.reports)}."
    example = operation.example
    is_created = "POST" in handler.http_methods and operation.role is not None
    described: dict[str, Any] = {
        "operationId": name,
        "tags": handler.resolve_tags(),
        "summary": summary.strip().removesuffix("."),
        "description": " ".join(description.split()) + needed,
        "security": _security(operation),
        "parameters": [
            _describe_parameter(name, location, field, example.path if location == "path" else example.query)
            for name, location, field in _parameters(handler)
        ],
        "responses": {
            **{
                str(status): _success(
                    operation, status, text, _EXAMPLES.get(name, {}).get(str(status), {}), is_created=is_created
                )
                for status, text in operation.statuses.items()
            },
            **(
                {"304": {"description": "The answer has not changed."}}
                if "GET" in handler.http_methods and operation.is_conditional
                else {}
            ),
            **{
                str(status): {"$ref": f"#/components/responses/{status}"} for status in _error_statuses(path, operation)
            },
        },
    }
    if is_created:
        described["parameters"].append(
            {
                "name": "Idempotency-Key",
                "in": "header",
                "required": False,
                "description": "A repeated request with the same key and body within 24 h gets the first answer again.",
                "schema": {"type": "string", "pattern": whole(KEY)},
            }
        )
    if operation.body is not None:
        described["requestBody"] = {"required": True, "content": _describe_body(operation, operation.body)}
    if operation.form is not None:
        form = {"schema": _reference(operation.form), "example": dict(operation.example.body or {})}
        described["requestBody"] = {"required": True, "content": {media_types.FORM: form}}
    return described


def _security(operation: RouteSpec) -> list[dict[str, list[str]]]:
    if operation.form is not None or not operation.is_guarded:
        return []  # a form's token is one of its fields
    return [{_EMBED_SECURITY if operation.reports else _SECURITY: []}]


def _describe_body(operation: RouteSpec, body: type[Any]) -> dict[str, Any]:
    one, example = _reference(body), dict(operation.example.body or {})
    if operation.bulk_answer is None:
        return {media_types.JSON: {"schema": one, "example": example}}
    many = {"type": "array", "items": one, "minItems": 1}
    columns = ",".join(field.encode_name for field in msgspec.structs.fields(body))
    text = f"A header line `{columns}` with the columns in any order, then one line per row; RFC 4180, UTF-8."
    return {
        media_types.JSON: {"schema": {"anyOf": [one, many]}, "example": example},
        media_types.CSV: {"schema": {"type": "string", "minLength": 1, "description": text}},
    }


def _describe_type(kind: type[Any]) -> dict[str, Any]:
    """Return the schema of a type that JSON does not have."""
    if kind is ExactNumber:
        return {"type": ["number", "string"]}
    raise NotImplementedError(f"{kind.__name__} has no schema")


def _parameters(handler: HTTPRouteHandler) -> Iterator[tuple[str, str, FieldDefinition]]:
    """Yield name, location and declaration of each parameter of dependencies, handler and tabular answer."""
    handed = (provider.parsed_fn_signature for provider in handler.resolve_dependencies().values())
    for signature in (*handed, handler.parsed_fn_signature):
        for name, field in signature.parameters.items():
            if isinstance(field.kwarg_definition, ParameterKwarg) and not field.is_di_field:
                yield field.kwarg_definition.name or name, str(field.kwarg_definition.param_type.value), field
    operation: RouteSpec = handler.opt[OPERATION]
    if operation.row is not None:
        yield CONTEXT, "query", FieldDefinition.from_annotation(ContextChoice, name=CONTEXT, default=None)


def _describe_parameter(
    name: str, location: str, field: FieldDefinition, examples: Mapping[str, str]
) -> dict[str, Any]:
    declared = field.kwarg_definition
    if not isinstance(declared, ParameterKwarg):
        raise TypeError(f"{name} is not declared as a parameter")
    schema = _schema_of(field) | (declared.schema_extra or {})
    for keyword, bound in (("minimum", declared.ge), ("maximum", declared.le)):
        if bound is not None:
            schema[keyword] = bound
    if field.default is not Empty and field.default is not None:
        schema["default"] = field.default
    described: dict[str, Any] = {
        "name": name,
        "in": location,
        "required": field.default is Empty,
        "description": declared.description or name,
        "schema": schema,
    }
    shown = examples.get(name, declared.examples[0].value if declared.examples else None)
    if shown is not None:
        described["example"] = int(shown) if schema.get("type") == "integer" else shown
    return described


def _declared(field: FieldDefinition) -> Declared:
    schema = _schema_of(field)
    return Declared(field.default is Empty, schema["type"], tuple(schema.get("enum", ())))


def _schema_of(field: FieldDefinition) -> dict[str, Any]:
    schema = msgspec.json.schema(field.annotation)
    if "anyOf" in schema:
        schema = next(choice for choice in schema["anyOf"] if choice != {"type": "null"})
    if "enum" in schema:
        schema = {"type": "string", "enum": [value for value in schema["enum"] if value is not None]}
    return schema


def _success(
    operation: RouteSpec, status: int, text: str, examples: Mapping[str, Any], *, is_created: bool
) -> dict[str, Any]:
    if status == 303:
        headers = {"Location": "Address of the report."} | _RATE_HEADERS
        return {"description": text, "headers": _describe_headers(headers)}
    content: dict[str, Any] = {}
    if operation.dry_answer is not None and status == 200:
        content[media_types.JSON] = {"schema": _reference(operation.dry_answer)}
    elif operation.answer is not None:
        answers = [_reference(kind) for kind in (operation.answer, operation.bulk_answer) if kind]
        answer: dict[str, Any] = {**answers[0]} if len(answers) == 1 else {"anyOf": answers}
        content[media_types.JSON] = {"schema": answer}
    elif media_types.CSV in operation.media_types:
        content[media_types.CSV] = {
            "schema": {"type": "string", "description": "A header line, then one line per row."}
        }
    headers = {**_RESPONSE_HEADERS} | (_RATE_HEADERS if operation.is_guarded else {})
    if not operation.is_conditional:
        del headers["ETag"]
    if operation.row is not None:
        rows = [_reference(row) for row in (operation.row, *operation.other_rows)]
        row: dict[str, Any] = {"$ref": rows[0]["$ref"]} if len(rows) == 1 else {"anyOf": rows}
        content[media_types.CSV] = {
            "schema": {"type": "string", "description": "A header line, then one line per row; RFC 4180."}
        }
        content[media_types.NDJSON] = {
            "schema": {"type": "string", "description": "One JSON object per line.", "contentSchema": row}
        }
        content[media_types.PARQUET] = {
            "schema": {
                "type": "string",
                "contentMediaType": media_types.PARQUET,
                "description": "A Parquet file; its amounts are text. There is no example, because the file is binary.",
            }
        }
        content = {media_type: told for media_type, told in content.items() if media_type in operation.media_types}
        headers |= {
            "X-As-Of": "Only for CSV, NDJSON and Parquet. The value of `asOf`, written as JSON.",
            "X-Coverage": "Only for CSV, NDJSON and Parquet. The value of `coverage`, written as JSON, with at most "
            "20 gaps. `complete` is also false if holders or holdings may be unknown.",
            "X-Context": "Only for CSV, NDJSON and Parquet. A JSON object: the token or wallet as `subject`, and the "
            "fields that the JSON answer has outside its rows. Each list in it has at most 20 elements.",
            "Content-Disposition": "Only for CSV, NDJSON and Parquet. The name of the file.",
        }
    if operation.is_paged:
        headers["Link"] = 'Address of the next page, `rel="next"`; absent on the last page.'
    if is_created:
        headers |= {
            "Location": "Path of the object.",
            "Idempotency-Replayed": "`true` if the answer repeats the stored answer to an earlier request.",
        }
    for media_type in content.keys() & examples.keys():
        content[media_type]["example"] = examples[media_type]
    return {
        "description": text,
        "headers": _describe_headers(headers),
        **({"content": content} if content else {}),
    }


def _describe_headers(meanings: Mapping[str, str]) -> dict[str, Any]:
    return {
        name: {"description": meaning, "required": False, "schema": {"type": "string"}}
        for name, meaning in meanings.items()
    }


def _error_statuses(path: str, operation: RouteSpec) -> list[int]:
    statuses = {*operation.errors, 400, 500}
    if "{" in path:
        statuses.add(404)
    if operation.is_paged:
        statuses.add(410)
    if operation.is_guarded:
        statuses |= {401, 403, 406, 422, 429, 503}
    if operation.body is not None or operation.form is not None:
        statuses |= {408, 413, 415}
    return sorted(statuses)


def _problem_response(status: int) -> dict[str, Any]:
    content: dict[str, Any] = {"schema": _reference(Problem)}
    recorded = _EXAMPLES["problem"].get(str(status))
    if recorded is not None:
        content["example"] = recorded[media_types.PROBLEM]
    return {"description": _STATUSES[status], "content": {media_types.PROBLEM: content}}


def _reference(kind: type[Any]) -> dict[str, str]:
    return {"$ref": _REF.format(name=kind.__name__)}
