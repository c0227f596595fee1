"""Request bodies: strict parsing that reports all wrong values in one error.

The control store checks whether a value fits the stored data.
"""

import csv
import hashlib
import io
import json
import re
import typing
from collections import Counter
from collections.abc import Awaitable, Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from enum import Enum
from functools import cache, partial
from typing import Any, Generic, NamedTuple, TypeVar
from urllib.parse import parse_qsl

import msgspec
from litestar import Request
from litestar.concurrency import sync_to_thread
from litestar.connection import ASGIConnection
from litestar.di import Provide
from litestar.handlers import BaseRouteHandler

from api.errors import ApiError, invalid_body, listed_errors
from api.http import media_types
from api.schema import FieldError
from control.errors import shortened
from control.inputs import DECIMAL_INPUT, ExactNumber, Schema

Body = TypeVar("Body", bound=Schema)
Result = TypeVar("Result")

MOST_FORM_BYTES = 16 * 1024
"""Largest body of a form: an embed token has up to 4 KiB, and filters have a few hundred bytes."""
_MOST_FORM_FIELDS = 50
_SMALL_BYTES = 32 * 1024
"""A body up to this size takes a few milliseconds to parse."""

# Numbers with a fraction become exact decimals, never floats.
_DECODER = msgspec.json.Decoder(float_hook=Decimal)
_WHOLE = re.compile(r"-?\d{1,19}", re.ASCII)


@dataclass(frozen=True, slots=True)
class Rows(Generic[Body]):
    """Rows of a body. `is_bulk` is False for a bare object, and True for an array or CSV, even of one row."""

    rows: Sequence[Body]
    is_bulk: bool


def body_of(body_type: type[Body]) -> Provide:
    """Return the dependency that reads the request body as a struct."""

    async def provide(request: Request[Any, Any, Any]) -> Body:
        return await _read_in_thread(request, read_body, await content_of(request, media_types.JSON), body_type)

    reader: Callable[[Request[Any, Any, Any]], Awaitable[Body]] = provide
    return Provide(reader)


def rows_of(body_type: type[Body]) -> Provide:
    """Return the dependency that reads the request body as `Rows`: an object, an array of objects, or CSV."""

    async def provide(request: Request[Any, Any, Any]) -> Rows[Body]:
        media_type = _media_type_of(request, media_types.JSON, media_types.CSV)
        content = await _content(request)
        read = read_csv if media_type == media_types.CSV else read_rows
        return await _read_in_thread(request, read, content, body_type)

    reader: Callable[[Request[Any, Any, Any]], Awaitable[Rows[Body]]] = provide
    return Provide(reader)


def form_of(body_type: type[Body]) -> Provide:
    """Return the dependency that reads a browser's form as a struct of texts and numbers."""

    async def provide(request: Request[Any, Any, Any]) -> Body:
        return await sync_to_thread(read_form, await content_of(request, media_types.FORM), body_type)

    reader: Callable[[Request[Any, Any, Any]], Awaitable[Body]] = provide
    return Provide(reader)


async def refuse_body(connection: ASGIConnection[Any, Any, Any, Any], _: BaseRouteHandler) -> None:
    """Refuse a body for an operation that takes none, since it would have no effect.

    Raises:
        ApiError: 400, the request has a body.
    """
    if isinstance(connection, Request) and (await connection.body()):
        detail = f"{connection.method} {connection.url.path} takes no body; send none"
        raise ApiError(
            400, "unexpected-body", detail, errors=[FieldError(pointer="", code="unexpected", detail=detail)]
        )


async def content_of(request: Request[Any, Any, Any], *known: str) -> bytes:
    """Return a request's body, which must have one of these media types.

    Raises:
        ApiError: 415, the body has another media type.
    """
    _media_type_of(request, *known)
    return await _content(request)


def form_fields(content: bytes) -> list[tuple[str, str]]:
    """Return names and values of a form (application/x-www-form-urlencoded, UTF-8), in their order.

    Raises:
        ApiError: 400, the content is not a form, or has more fields than any form of this service.
    """
    if content.count(b"&") >= _MOST_FORM_FIELDS:
        raise ApiError(
            400, "too-many-fields", f"the form has more than {_MOST_FORM_FIELDS} fields; send each field once"
        )
    try:
        return parse_qsl(content.decode("ascii"), keep_blank_values=True, errors="strict")
    except ValueError as error:
        raise ApiError(400, "malformed-form", "the body is not a form in UTF-8, percent-encoded") from error


def read_form(content: bytes, body_type: type[Body]) -> Body:
    """Read a form as a struct of texts and numbers; an empty field counts as absent.

    Raises:
        ApiError: 400, the content is not a form, or has unknown or repeated fields. 422, values are missing or
            malformed.
    """
    pairs = form_fields(content)
    known = {found.encode_name for found in _fields(body_type)}
    values = {name: _to_number(body_type, name, value) for name, value in pairs if value or name not in known}
    if len({name for name, _ in pairs}) < len(pairs):
        raise ApiError(400, "repeated-field", "a field occurs more than once in the form; send each field once")
    return _read_all([("", "", values)], body_type)[0]


def read_body(content: bytes, body_type: type[Body]) -> Body:
    """Read a JSON object as a struct.

    Raises:
        ApiError: 400, the content is not JSON or has unknown fields; 422, values are missing or have the wrong type.
    """
    values = _decode(content)
    if not isinstance(values, dict):
        raise invalid_body([FieldError(pointer="", code="invalid", detail="the body must be a JSON object")])
    return _read_all([("", "", values)], body_type)[0]


def read_rows(content: bytes, body_type: type[Body]) -> Rows[Body]:
    """Read a JSON object or an array of objects.

    Raises:
        ApiError: as for `read_body`, each error with its row; 422, the array is empty.
    """
    values = _decode(content)
    if not isinstance(values, list):
        return Rows([read_body(content, body_type)], is_bulk=False)
    if not values:
        raise invalid_body([FieldError(pointer="", code="empty", detail="the array is empty; send an object in it")])
    return Rows(_read_all(_numbered(values), body_type), is_bulk=True)


def read_csv(content: bytes, body_type: type[Body]) -> Rows[Body]:
    """Read CSV (RFC 4180, UTF-8). The header lists fields of a struct of texts and decimals, in any order.

    An empty cell counts as an absent field; empty lines are skipped. Errors number the rows after the header: from 1
    in `detail`, and from 0 in `pointer`, as if the body were an array of objects.

    Raises:
        ApiError: 400, the content is not CSV or has unknown columns. 422, there are no rows, a row has another length
            than the header, or values are missing or malformed.
    """
    lines = _csv_lines(content)
    header = next(lines, [])
    known = [found.encode_name for found in _fields(body_type)]
    unknown = [name for name in header if name not in known]
    if unknown or len(set(header)) < len(header):
        what = f"unknown column {unknown[0][:60]!r}" if unknown else "the header names a column twice"
        raise ApiError(400, "malformed-csv", f"{what}; the header takes {','.join(known)}")
    numbered = list(enumerate(lines, start=1))
    if not numbered:
        raise invalid_body([FieldError(pointer="", code="empty", detail="the body has no row; send a header and rows")])
    uneven = [
        FieldError(
            pointer=f"/{number - 1}",
            code="invalid",
            detail=f"row {number}: it has {len(cells)} cells, the header has {len(header)}",
        )
        for number, cells in numbered
        if len(cells) != len(header)
    ]
    if uneven:
        raise invalid_body(uneven)
    values = [{name: cell for name, cell in zip(header, cells, strict=True) if cell} for _, cells in numbered]
    return Rows(_read_all(_numbered(values), body_type), is_bulk=True)


@dataclass(slots=True)
class _Findings:
    """Errors of a body: unknown names, and values that are missing or have the wrong type."""

    unknown: list[FieldError] = field(default_factory=list)
    wrong: list[FieldError] = field(default_factory=list)

    def check(self) -> None:
        if self.unknown:
            raise listed_errors(400, "unknown-field", self.unknown)
        if self.wrong:
            raise invalid_body(self.wrong)


def _media_type_of(request: Request[Any, Any, Any], *known: str) -> str:
    media_type, *parameters = (request.headers.get("content-type") or "").lower().split(";")
    found = media_type.strip()
    if found not in known:
        named = " or ".join(known)
        raise ApiError(415, "unsupported-media-type", f"send the body as {named}, with this media type in Content-Type")
    charsets = {part.partition("=")[2].strip(' "') for part in parameters if part.strip().startswith("charset=")}
    if not charsets <= {"utf-8", "us-ascii"}:
        raise ApiError(415, "unsupported-media-type", "send the body in UTF-8")
    return found


async def _read_in_thread(
    request: Request[Any, Any, Any],
    read: Callable[[bytes, type[Body]], Result],
    content: bytes,
    body_type: type[Body],
) -> Result:
    """Parse a body in a thread; a large body may take a second, so it waits for its tenant's turn."""
    if len(content) <= _SMALL_BYTES:
        return await sync_to_thread(read, content, body_type)
    state = request.scope["state"]
    tenant_id = state["principal"].tenant_id if "principal" in state else state["claims"].tenant
    found: Result = await request.app.state.services.parsing.run(tenant_id, partial(read, content, body_type))
    return found


async def _content(request: Request[Any, Any, Any]) -> bytes:
    content = await request.body()
    request.scope["state"]["body_hash"] = hashlib.sha256(content).hexdigest()
    return content


def _to_number(body_type: type[Schema], name: str, value: str) -> Any:
    """Convert a form's text to a whole number if the struct's field is one; return other text unchanged."""
    wanted = next((found.type for found in _fields(body_type) if found.encode_name == name), str)
    try:
        return msgspec.convert(value, wanted)
    except msgspec.ValidationError:
        # Keep text that is not a number: the later check reports it together with the other wrong values.
        return int(value) if _WHOLE.fullmatch(value) else value


def _decode(content: bytes) -> Any:
    try:
        read, repeated = _DECODER.decode(content), _find_repeated_key(content)
    except ArithmeticError as error:
        raise ApiError(400, "malformed-json", "the exponent of a number in the body is too large") from error
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise ApiError(400, "malformed-json", f"the body is not JSON: {error}") from error
    if repeated is not None:
        raise listed_errors(400, "repeated-field", [repeated])
    return read


class _Repeating(dict[str, Any]):
    """A JSON object that contains `key` more than once."""

    def __init__(self, pairs: Sequence[tuple[str, Any]]) -> None:
        super().__init__(pairs)
        self.key = Counter(key for key, _ in pairs).most_common(1)[0][0]


def _find_repeated_key(content: bytes) -> FieldError | None:
    """Return the error for a key that an object contains twice, or None. The decoder silently takes the last one."""
    found = False

    def make(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        nonlocal found
        made = dict(pairs)
        if found or len(made) == len(pairs):
            return made
        found = True
        return _Repeating(pairs)

    # Keep numbers as text: this search needs only the keys.
    places = [("", json.loads(content.decode(), object_pairs_hook=make, parse_int=str, parse_float=str))]
    while found and places:
        pointer, value = places.pop()
        if isinstance(value, _Repeating):
            detail = f"the key {value.key[:60]!r} occurs more than once in one object; send it once"
            return FieldError(pointer=pointer + _pointer(value.key), code="repeated-field", detail=detail)
        inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
        places += [(pointer + _pointer(str(name)), each) for name, each in inner]
    return None


def _csv_lines(content: bytes) -> Iterator[list[str]]:
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise ApiError(400, "malformed-csv", f"the body is not UTF-8: {error.reason} at byte {error.start}") from error
    reader = csv.reader(io.StringIO(text, newline=""), strict=True)
    try:
        for cells in reader:
            if cells:
                yield cells
    except csv.Error as error:
        raise ApiError(400, "malformed-csv", f"the body is not CSV: line {reader.line_num}: {error}") from error


def _numbered(values: Sequence[Any]) -> Iterator[tuple[str, str, Any]]:
    for index, value in enumerate(values):
        yield f"/{index}", f"row {index + 1}: ", value


def _read_all(places: Iterable[tuple[str, str, Any]], body_type: type[Body]) -> list[Body]:
    """Read objects. Each place is the JSON pointer of an object, the prefix of its errors, and the object."""
    findings = _Findings()
    read = [_read(values, body_type, pointer, label, findings) for pointer, label, values in places]
    findings.check()
    return [body for body in read if body is not None]


def _read(values: Any, body_type: type[Body], pointer: str, label: str, findings: _Findings) -> Body | None:
    """Read one object; if a required value is missing or wrong, return None and add the errors to the findings."""
    if not isinstance(values, dict):
        findings.wrong.append(FieldError(pointer=pointer, code="invalid", detail=f"{label}it must be a JSON object"))
        return None
    fields = _fields(body_type)
    known = {found.encode_name for found in fields}
    unknown = [name for name in values if name not in known]
    for name in unknown:
        detail = (
            f"{label}unknown field {shortened(name)!r}; known here: {', '.join(found.encode_name for found in fields)}"
        )
        findings.unknown.append(FieldError(pointer=pointer + _pointer(name), code="unknown-field", detail=detail))
    read: dict[str, Any] = {}
    for found in fields:
        name, place = found.encode_name, pointer + _pointer(found.encode_name)
        if name not in values:
            if found.required:
                findings.wrong.append(FieldError(pointer=place, code="missing", detail=f"{label}{name} is missing"))
        elif found.row_type is not None and isinstance(values[name], list):
            inner = [
                _read(value, found.row_type, f"{place}/{index}", label, findings)
                for index, value in enumerate(values[name])
            ]
            read[found.name] = inner
        else:
            try:
                read[found.name] = msgspec.convert(values[name], found.type, dec_hook=_to_exact)
            except msgspec.ValidationError as error:
                detail = f"{label}{name}: {_explain(error, found.type)}"
                findings.wrong.append(FieldError(pointer=place, code="invalid", detail=detail))
    is_whole = all(found.name in read or not found.required for found in fields)
    return body_type(**read) if is_whole else None


def _explain(error: msgspec.ValidationError, annotation: Any) -> str:
    choices = list(_choices(annotation)) if str(error).startswith("Invalid enum value") else []
    return f"{error}; use one of {', '.join(choices)}" if choices else str(error)


def _choices(annotation: Any) -> Iterator[str]:
    """Yield the allowed texts of a literal or an enum; for a list, yield those of its elements."""
    if typing.get_origin(annotation) is typing.Literal:
        yield from typing.get_args(annotation)
    elif isinstance(annotation, type) and issubclass(annotation, Enum):
        yield from (member.value for member in annotation)
    else:
        for inner in typing.get_args(annotation):
            yield from _choices(inner)


class _Field(NamedTuple):
    """A field of a struct; for a list of structs, `row_type` is the struct of its elements."""

    name: str
    encode_name: str
    type: Any
    required: bool
    row_type: type[Schema] | None


@cache
def _fields(body_type: type[Schema]) -> tuple[_Field, ...]:
    return tuple(
        _Field(found.name, found.encode_name, found.type, found.required, _row_type(found.type))
        for found in msgspec.structs.fields(body_type)
    )


def _row_type(annotation: Any) -> type[Schema] | None:
    while typing.get_origin(annotation) is typing.Annotated:
        annotation = typing.get_args(annotation)[0]
    if typing.get_origin(annotation) is not list:
        return None
    inner = typing.get_args(annotation)[0]
    return inner if isinstance(inner, type) and issubclass(inner, Schema) else None


def _to_exact(kind: type[Any], value: Any) -> ExactNumber:
    if kind is not ExactNumber:
        raise NotImplementedError(f"bodies have no {kind.__name__}")
    if isinstance(value, str) and DECIMAL_INPUT.fullmatch(value) is None:
        raise ValueError(f"{value[:40]!r} is not a decimal; write one such as 1.5")
    if isinstance(value, bool) or not isinstance(value, (str, int, Decimal)):
        raise ValueError("write a number, or a decimal in a string")
    try:
        return ExactNumber(value)
    except ArithmeticError as error:
        raise ValueError("its exponent is too large") from error


def _pointer(name: str) -> str:
    return "/" + name.replace("~", "~0").replace("/", "~1")
