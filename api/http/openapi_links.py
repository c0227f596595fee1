"""Links of the OpenAPI document, from the values of an answer to later operations that take them.

They follow from the paths. `/v1/tokens` creates and lists objects for `/v1/tokens/{tokenId}` and the paths below it.
"""

import re
from collections.abc import Iterator, Mapping
from typing import Any

_PARAMETER = re.compile(r"\{(\w+)\}")
# Objects that are created under another path than that of their list.
_MADE_ELSEWHERE = {
    "/v1/networks/{name}/ledgers": "/v1/networks/ledgers",
    "/v2/pairs/{pairId}/prices/discovery": "/v2/pairs/{pairId}/prices/async-operations",
}

Paths = Mapping[str, Mapping[str, dict[str, Any]]]


def add_links(paths: Paths, schemas: Mapping[str, Any]) -> None:
    """Add links to the successful answers of all operations.

    Args:
        paths: paths of the document; the links are added to them.
        schemas: component schemas of the document.
    """
    for path, methods in paths.items():
        for method, operation in methods.items():
            found = {
                **dict(_to_objects(paths, schemas, path, method, operation)),
                **dict(_to_next_page(operation)),
                **({} if method == "get" else dict(_to_changed_object(paths, path))),
            }
            # A POST answers 200 to a dry run, which creates nothing.
            statuses = ("201", "202") if method == "post" else ("200", "201", "202")
            for status in operation["responses"].keys() & set(statuses):
                if found and "content" in operation["responses"][status]:
                    operation["responses"][status]["links"] = found


def _to_objects(
    paths: Paths, schemas: Mapping[str, Any], path: str, method: str, operation: dict[str, Any]
) -> Iterator[tuple[str, Any]]:
    """Yield links from the operation that lists or creates objects to all operations on one object."""
    collection = _MADE_ELSEWHERE.get(path, path)
    given = _PARAMETER.findall(path)
    prefix = f"{collection}/{{"
    for target, methods in paths.items():
        if not target.startswith(prefix):
            continue
        (name, *further) = _PARAMETER.findall(target[len(collection) :])
        if further:
            continue
        properties = _properties(schemas, operation, is_list=method == "get")
        key = name if name in properties else "id"
        if key not in properties:
            continue
        place = f"data/0/{key}" if method == "get" else key
        values = {each: f"$request.path.{each}" for each in given if f"{{{each}}}" in target}
        for linked in methods.values():
            yield linked["operationId"], _link(linked, values | {name: f"$response.body#/{place}"})


def _to_changed_object(paths: Paths, path: str) -> Iterator[tuple[str, Any]]:
    """Yield the link from a write below an object to the operation that reads this object."""
    above = [one for one in paths if one.endswith("}") and path.startswith(f"{one}/") and "get" in paths[one]]
    for target in above:
        linked = paths[target]["get"]
        yield (
            linked["operationId"],
            _link(linked, {name: f"$request.path.{name}" for name in _PARAMETER.findall(target)}),
        )


def _to_next_page(operation: dict[str, Any]) -> Iterator[tuple[str, Any]]:
    if any(one["name"] == "cursor" for one in operation["parameters"]):
        values = {
            one["name"]: f"$request.{one['in']}.{one['name']}" for one in operation["parameters"] if one["in"] == "path"
        }
        yield "nextPage", _link(operation, values | {"cursor": "$response.body#/page/nextCursor"})


def _link(target: dict[str, Any], values: Mapping[str, str]) -> dict[str, Any]:
    return {"operationId": target["operationId"], "parameters": dict(values)}


def _properties(schemas: Mapping[str, Any], operation: dict[str, Any], *, is_list: bool) -> Mapping[str, Any]:
    """Return the properties of the object in an answer, or of the rows of a list."""
    for status in ("200", "201", "202"):
        content = operation["responses"].get(status, {}).get("content", {}).get("application/json")
        if content is None:
            continue
        properties = _resolved(schemas, content["schema"]).get("properties", {})
        if not is_list:
            if "id" in properties or status != "200":
                return dict(properties)
            continue
        return dict(_resolved(schemas, properties.get("data", {}).get("items", {})).get("properties", {}))
    return {}


def _resolved(schemas: Mapping[str, Any], schema: Mapping[str, Any]) -> Mapping[str, Any]:
    if "anyOf" in schema:
        return _resolved(schemas, schema["anyOf"][0])
    return schemas[schema["$ref"].rpartition("/")[2]] if "$ref" in schema else schema
