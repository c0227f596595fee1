"""Request bodies: read strictly, every wrong value named at once.

Whether a value fits what is stored is decided by the rules of the control store.
"""

import hashlib
from collections.abc import Awaitable, Callable
from decimal import Decimal
from typing import Any, TypeVar

import msgspec
from litestar import Request
from litestar.di import Provide

from api.errors import ApiError, invalid_body
from api.schemas.common import FieldError, Schema

Body = TypeVar("Body", bound=Schema)

# Numbers with a fraction stay exact; a float never comes into being.
_DECODER = msgspec.json.Decoder(float_hook=Decimal)


def body_of(body_type: type[Body]) -> Provide:
    """Return the dependency that reads the request body as a struct."""

    async def provide(request: Request[Any, Any, Any]) -> Body:
        media_type = (request.headers.get("content-type") or "").partition(";")[0].strip().lower()
        if media_type != "application/json":
            raise ApiError(415, "unsupported-media-type", "send the body as JSON, with Content-Type: application/json")
        content = await request.body()
        request.scope["state"]["body_hash"] = hashlib.sha256(content).hexdigest()
        return read_body(content, body_type)

    reader: Callable[[Request[Any, Any, Any]], Awaitable[Body]] = provide
    return Provide(reader)


def read_body(content: bytes, body_type: type[Body]) -> Body:
    """Read a JSON object as a struct.

    Raises:
        ApiError: 400 when it is not JSON or has unknown fields, 422 when values are missing or of the wrong type.
    """
    try:
        values = _DECODER.decode(content)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise ApiError(400, "malformed-json", f"the body is not JSON: {error}") from error
    if not isinstance(values, dict):
        raise invalid_body([FieldError(pointer="", code="invalid", detail="the body must be a JSON object")])
    fields = {field.encode_name: field for field in msgspec.structs.fields(body_type)}
    unknown = [
        FieldError(
            pointer=_pointer(name),
            code="unknown-field",
            detail=f"unknown field {name!r}; known here: {', '.join(fields)}",
        )
        for name in values
        if name not in fields
    ]
    if unknown:
        raise ApiError(400, "unknown-field", "; ".join(error.detail for error in unknown), errors=unknown)
    read: dict[str, Any] = {}
    wrong: list[FieldError] = []
    for name, field in fields.items():
        if name not in values:
            if field.required:
                wrong.append(FieldError(pointer=_pointer(name), code="missing", detail=f"{name} is missing"))
            continue
        try:
            read[field.name] = msgspec.convert(values[name], field.type)
        except msgspec.ValidationError as error:
            wrong.append(FieldError(pointer=_pointer(name), code="invalid", detail=f"{name}: {error}"))
    if wrong:
        raise invalid_body(wrong)
    return body_type(**read)


def _pointer(name: str) -> str:
    return "/" + name.replace("~", "~0").replace("/", "~1")
