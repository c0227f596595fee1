"""Routes: decorators that turn the structs returned by a handler into a response.

The handler's signature defines the answer and the body of a route. `RouteSpec` defines the rest.
"""

import typing
from collections.abc import Awaitable, Callable, Iterator, Mapping
from dataclasses import replace
from functools import partial, wraps
from types import NoneType, UnionType
from typing import Any, TypeAlias, Union

import litestar
import msgspec
from litestar import Response
from litestar.handlers import HTTPRouteHandler

from api.http import media_types
from api.http.bodies import MOST_FORM_BYTES, Rows, body_of, form_of, refuse_body, rows_of
from api.http.calls import NO_STORE, PENDING_WRITE, Tabular, Written
from api.http.route_specs import OPERATION, RouteSpec
from api.http.turns import Turns
from api.schema import Form, Schema

HandlerResult: TypeAlias = Schema | Tabular[Any] | Written[Any] | Response[Any] | None
"""Results of handlers: a struct, all rows of a tabular answer, a stored object, a finished response, or None."""

Handler = Callable[..., HandlerResult]

_CALL, _PAYLOAD, _CURSOR = "call", "payload", "cursor"
_PLAIN = RouteSpec()
_FORM_EXAMPLE = {"token": "eyJ..."}


def _route(
    kind: type[HTTPRouteHandler], path: str, operation: RouteSpec = _PLAIN, **options: Any
) -> Callable[[Handler], HTTPRouteHandler]:
    """Return the decorator of a handler, which runs in a thread unless the options say otherwise.

    Args:
        kind: the framework's class of handlers for one method.
        path: path below that of the controller.
        operation: specification beyond the signature. Its `answer`, `row` and `body` override the signature, for a
            handler that serves several structs.
        options: options of the framework; they override the ones set here.
    """

    def decorate(function: Handler) -> HTTPRouteHandler:
        hints = typing.get_type_hints(function)
        described = _complete(operation, hints)
        if described.is_guarded and _CALL not in hints:
            raise TypeError("a handler that needs a key or a token takes the call")
        # Streams use this status; all other responses set their own.
        made: dict[str, Any] = {"status_code": 200, OPERATION: described}
        if not described.is_guarded:
            made["sync_to_thread"] = True
        if described.form is not None:
            made |= {"dependencies": {_PAYLOAD: form_of(described.form)}, "request_max_body_size": MOST_FORM_BYTES}
        elif described.body is not None:
            read = rows_of if typing.get_origin(hints[_PAYLOAD]) is Rows else body_of
            made["dependencies"] = {_PAYLOAD: read(described.body)}
        else:
            made["guards"] = [refuse_body]
        answering = _taking_turns(function, described, kind) if described.is_guarded else _answering(function)
        return kind(path, **{**made, **options})(answering)

    return decorate


get = partial(_route, litestar.get)
post = partial(_route, litestar.post)
put = partial(_route, litestar.put)
patch = partial(_route, litestar.patch)
delete = partial(_route, litestar.delete)


def _answering(function: Handler) -> Callable[..., Response[Any]]:
    @wraps(function)
    def answer(*arguments: Any, **named: Any) -> Response[Any]:
        found = function(*arguments, **named)
        if isinstance(found, Response):
            return found
        return Response(msgspec.json.encode(found), media_type=media_types.JSON, headers=NO_STORE)

    return _declared(answer, function)


def _taking_turns(
    function: Handler, operation: RouteSpec, kind: type[HTTPRouteHandler]
) -> Callable[..., Awaitable[Response[Any]]]:
    """Return a handler that runs in a thread in its tenant's turn; writes with a key use a separate queue."""
    is_write = operation.role is not None and kind is not litestar.get

    def respond(*arguments: Any, **named: Any) -> Response[Any]:
        found = function(*arguments, **named)
        if isinstance(found, Response):
            return found
        answered: Response[Any] = named[_CALL].respond(found, operation)
        return answered

    @wraps(function)
    async def answer(*arguments: Any, **named: Any) -> Response[Any]:
        call = named[_CALL]
        turns: Turns = call.services.writes if is_write else call.services.reads
        answered = await turns.run(call.tenant_id, partial(respond, *arguments, **named))
        pending: Callable[[], None] | None = call.request.scope["state"].pop(PENDING_WRITE, None)
        if pending is not None:
            await call.services.writes.run(call.tenant_id, pending)
        return answered

    return _declared(answer, function)


def _declared(answer: Callable[..., Any], function: Handler) -> Callable[..., Any]:
    # Declare a Response to the framework. For a declared struct it would set the media type JSON, even for a stream.
    answer.__annotations__ = {**function.__annotations__, "return": Response[Any]}
    return answer


def _complete(operation: RouteSpec, hints: Mapping[str, Any]) -> RouteSpec:
    """Return the operation completed by the types in the handler's signature.

    Raises:
        TypeError: the signature is not valid for a handler.
    """
    written: list[type[Schema]] = []
    shown: list[type[Schema]] = []
    rows: list[type[Schema]] = []
    for kind in _alternatives(hints["return"]):
        origin, arguments = typing.get_origin(kind), typing.get_args(kind)
        plain = origin or kind
        if origin is Tabular:
            rows += arguments
        elif origin is Written:
            written += _alternatives(arguments[0])
        elif issubclass(plain, Schema):
            shown.append(plain)
        elif not issubclass(plain, (Response, NoneType)):
            raise TypeError(f"a handler returns structs, Tabular, Written, a Response or None, not {kind}")
    taken = hints.get(_PAYLOAD)
    is_bulk = typing.get_origin(taken) is Rows
    body = typing.get_args(taken)[0] if is_bulk else taken
    form = body if isinstance(body, type) and issubclass(body, Form) else None
    answer, other, *further = (*written, *shown, None, None)
    if any(further) or len(written) > (2 if is_bulk else 1) or len(shown) > 1:
        raise TypeError("a handler answers one struct, and another one where it takes many rows or a dry run")
    described = replace(
        operation,
        example=operation.example if form is None else replace(operation.example, body=_FORM_EXAMPLE),
        answer=operation.answer or answer,
        row=operation.row or (rows[0] if rows else None),
        body=None if form else operation.body or body,
        form=form,
        bulk_answer=other if is_bulk else None,
        dry_answer=None if is_bulk else other,
        other_rows=tuple(rows[1:]),
        is_paged=_CURSOR in hints,
    )
    if Schema in (described.answer, described.row):
        raise TypeError("where the signature says Schema, the operation says which")
    return described


def _alternatives(annotation: Any) -> Iterator[Any]:
    if typing.get_origin(annotation) in (Union, UnionType):
        yield from typing.get_args(annotation)
    else:
        yield annotation
