"""Routes: a handler returns what it found, as structs, and the one answer is made of it here.

What a route answers and which body it takes is what its signature says; `Operation` says the rest.
"""

import typing
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from functools import partial, wraps
from types import UnionType
from typing import Any, TypeAlias, Union

import litestar
import msgspec
from litestar import Response
from litestar.di import Provide
from litestar.handlers import HTTPRouteHandler

from api import media_types
from api.bodies import Rows, body_of, form_of, rows_of
from api.calls import Tabular, Written
from api.operations import OPERATION, Operation
from api.schemas.common import Schema

Found: TypeAlias = Schema | Tabular[Any] | Written[Any] | Response[Any] | None
"""What handlers return: an answer, all rows of one, what a write stored, what is answered as it is, or nothing."""

Handler = Callable[..., Found]

_PAYLOAD = "payload"


def _route(kind: type[HTTPRouteHandler], path: str, operation: Operation, **options: Any) -> Callable[[Handler], Any]:
    """Return the decorator of a handler, which runs in a thread.

    Args:
        kind: the method.
        path: below that of the controller.
        operation: what the signature does not say; what it says of answers and body goes before the signature.
        options: of the framework.
    """

    def decorate(function: Handler) -> HTTPRouteHandler:
        hints = typing.get_type_hints(function)
        described = _complete(operation, hints)
        taken = _dependencies(described, hints)
        # Each answer has its own status.
        made = {"sync_to_thread": True, "status_code": 200, "dependencies": taken, OPERATION: described, **options}
        return kind(path, **made)(_answering(function, described))

    return decorate


get = partial(_route, litestar.get)
post = partial(_route, litestar.post)
put = partial(_route, litestar.put)
patch = partial(_route, litestar.patch)
delete = partial(_route, litestar.delete)


def _answering(function: Handler, operation: Operation) -> Callable[..., Response[Any]]:
    @wraps(function)
    def answer(*arguments: Any, **named: Any) -> Response[Any]:
        found = function(*arguments, **named)
        if isinstance(found, Response):
            return found
        if operation.is_guarded:
            answered: Response[Any] = named["call"].respond(found, operation)
            return answered
        return Response(msgspec.json.encode(found), media_type=media_types.JSON, headers={"Cache-Control": "no-store"})

    # What the framework is told: it would send rows as JSON where it is told of structs.
    answer.__annotations__ = {**function.__annotations__, "return": Response[Any]}
    return answer


def _complete(operation: Operation, hints: Mapping[str, Any]) -> Operation:
    answers: list[type[Schema]] = []
    rows: list[type[Schema]] = []
    for kind in _alternatives(hints["return"]):
        origin, arguments = typing.get_origin(kind), typing.get_args(kind)
        if origin is Tabular:
            rows += arguments
        elif origin is Written:
            answers += _alternatives(arguments[0])
        elif isinstance(kind, type) and issubclass(kind, Schema):
            answers.append(kind)
    answer, other = (*answers, None, None)[:2]
    taken = hints.get(_PAYLOAD)
    is_bulk = typing.get_origin(taken) is Rows
    body = typing.get_args(taken)[0] if is_bulk else taken
    return replace(
        operation,
        answer=operation.answer or answer,
        bulk_answer=other if is_bulk else None,
        dry_answer=None if is_bulk else other,
        row=operation.row or (rows[0] if rows else None),
        other_rows=tuple(rows[1:]),
        body=None if operation.form else operation.body or body,
        is_paged="cursor" in hints,
    )


def _dependencies(operation: Operation, hints: Mapping[str, Any]) -> dict[str, Provide]:
    if operation.form is not None:
        return {_PAYLOAD: form_of(operation.form)}
    if operation.body is None:
        return {}
    read = rows_of if typing.get_origin(hints[_PAYLOAD]) is Rows else body_of
    return {_PAYLOAD: read(operation.body)}


def _alternatives(annotation: Any) -> Iterator[Any]:
    if typing.get_origin(annotation) in (Union, UnionType):
        yield from typing.get_args(annotation)
    else:
        yield annotation
