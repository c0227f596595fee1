"""Error answers: problem details (RFC 9457), made from errors of this service and of the framework."""

import logging
import re
from collections.abc import Mapping, Sequence
from http import HTTPStatus
from typing import Any

import msgspec
from litestar import Request, Response
from litestar.exceptions import HTTPException, ValidationException
from litestar.types import HTTPScope, Send
from msgspec import UNSET

from api.errors import (
    MOST_ERRORS_IN_ROWS,
    ApiError,
    invalid_body,
    invalid_parameter,
    listed_errors,
    malformed_parameters,
)
from api.http import media_types
from api.http.request_log import request_id
from api.http.route_specs import ARGUMENT_NAMES
from api.schema import FieldError, PairChoice, Problem
from control.errors import (
    Conflict,
    ControlError,
    Denied,
    Invalid,
    InvalidValues,
    NotFound,
    StoreUnavailable,
    Unauthenticated,
    Unparseable,
)

_log = logging.getLogger("ledgermart.api")


# Longest texts in an answer, in characters. Longer ones are cut, so that an error never repeats a large request.
_LONGEST_DETAIL = 2000


_LONGEST_DETAIL_OF_ONE = 500


_LONGEST_PLACE = 200


_CAPITAL = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")


# Code and detail for errors that the framework raises before a handler runs. Other statuses keep its own detail.
_FRAMEWORK_PROBLEMS = {
    404: ("unknown-route", "this path does not exist; /openapi.json lists all paths"),
    405: ("method-not-allowed", "this path does not support the method; see the Allow header"),
    413: ("body-too-large", "the request body is larger than 1 MiB, or the form is larger than 16 KiB; send less"),
}


def handle_error(request: Request[Any, Any, Any], error: Exception) -> Response[bytes]:
    """Convert any exception to a problem. Log unexpected exceptions, and hide their text from the client."""
    if isinstance(error, StoreUnavailable) and error.cause is not None:
        _log.warning("request %s: %s", request_id(request.scope), error)
    problem = _to_api_error(request, error)
    if problem is None:
        _log.exception("unexpected error, request %s", request_id(request.scope), exc_info=error)
        problem = ApiError(500, "internal-error", "the request failed; the log has the cause under this request id")
    return problem_response(request, problem)


def problem_response(request: Request[Any, Any, Any], error: ApiError) -> Response[bytes]:
    """Render one error as problem details."""
    headers = {"Cache-Control": "no-store", **error.headers}
    return Response(
        _problem(request.scope, error), status_code=error.status, media_type=media_types.PROBLEM, headers=headers
    )


async def send_problem(scope: HTTPScope, send: Send, error: ApiError) -> None:
    """Send one error as problem details, for a request that does not reach the framework."""
    headers = {"Content-Type": media_types.PROBLEM, "Cache-Control": "no-store", **error.headers}
    encoded = [(name.lower().encode("ascii"), value.encode("latin-1")) for name, value in headers.items()]
    await send({"type": "http.response.start", "status": error.status, "headers": encoded})
    await send({"type": "http.response.body", "body": _problem(scope, error), "more_body": False})


def _problem(scope: HTTPScope, error: ApiError) -> bytes:
    body = Problem(
        type=f"urn:ledgermart:problem:{error.code}",
        title=HTTPStatus(error.status).phrase,
        status=error.status,
        detail=_cut(error.detail, _LONGEST_DETAIL),
        instance=_cut(scope["path"], _LONGEST_PLACE),
        code=error.code,
        request_id=request_id(scope),
        errors=[_cut_error(each) for each in error.errors],
        existing_id=error.existing_id,
        required_role=error.required_role,
        pairs=error.pairs or UNSET,
        before=error.before,
        after=error.after,
        gaps=error.gaps or UNSET,
    )
    return msgspec.json.encode(body)


def _cut_error(error: FieldError) -> FieldError:
    place = _LONGEST_PLACE
    return FieldError(
        code=error.code,
        detail=_cut(error.detail, _LONGEST_DETAIL_OF_ONE),
        pointer=UNSET if error.pointer is UNSET else _cut(error.pointer, place),
        parameter=UNSET if error.parameter is UNSET else _cut(error.parameter, place),
    )


def _cut(text: str, most: int) -> str:
    return text if len(text) <= most else f"{text[:most]}..."


def _to_api_error(request: Request[Any, Any, Any], error: Exception) -> ApiError | None:
    if isinstance(error, ApiError):
        return error
    if isinstance(error, ControlError):
        return _from_control(error, body_fields=request.method in ("POST", "PUT", "PATCH"))
    if isinstance(error, ValidationException):
        return _from_validation(error, request.route_handler.opt.get(ARGUMENT_NAMES, {}))
    if isinstance(error, HTTPException) and error.status_code < 500:
        code, detail = _FRAMEWORK_PROBLEMS.get(error.status_code, ("bad-request", error.detail))
        return ApiError(error.status_code, code, detail, headers=error.headers)
    return None


def _from_control(error: ControlError, *, body_fields: bool) -> ApiError | None:
    match error:
        case Invalid():
            if body_fields and error.field != "Idempotency-Key":
                return _from_values([error])
            if isinstance(error, Unparseable):
                return malformed_parameters([FieldError(parameter=error.field, code=error.code, detail=error.detail)])
            return invalid_parameter(error.field, error.code, error.detail)
        case InvalidValues():
            return _from_values(error.errors)
        case NotFound():
            return ApiError(404, f"{_kebab(error.kind)}-not-found", error.detail)
        case Conflict():
            pairs = [msgspec.convert(pair, PairChoice, from_attributes=True) for pair in error.pairs]
            errors = [FieldError(pointer=f"/{name}", code=error.code, detail=error.detail) for name in error.fields]
            existing_id = error.existing_id or UNSET
            return ApiError(409, error.code, error.detail, errors=errors, existing_id=existing_id, pairs=pairs)
        case Unauthenticated():
            return ApiError(401, "unauthenticated", error.detail, headers={"WWW-Authenticate": "Bearer"})
        case Denied():
            return ApiError(403, "role-too-low", error.detail)
        case StoreUnavailable():
            return ApiError(503, "control-store-unavailable", error.detail, headers={"Retry-After": "5"})
    return None


def _from_values(found: Sequence[Invalid]) -> ApiError:
    errors = [FieldError(pointer=f"/{each.field}", code=each.code, detail=each.detail) for each in found]
    if any(isinstance(each, Unparseable) for each in found):
        return listed_errors(400, "malformed-field", errors, MOST_ERRORS_IN_ROWS)
    return invalid_body(errors)


def _from_validation(error: ValidationException, names: Mapping[str, str]) -> ApiError:
    """Convert the framework's errors about query and path parameters to a 422; `api.http.bodies` checks bodies."""
    findings = error.extra if isinstance(error.extra, list) else []
    errors = []
    for finding in findings:
        name = names.get(str(finding.get("key")), str(finding.get("key")))
        errors.append(FieldError(parameter=name, code="invalid", detail=f"{name}: {finding.get('message')}"))
    if not errors:
        return ApiError(422, "invalid-parameter", error.detail)
    return listed_errors(422, "invalid-parameter", errors)


def _kebab(text: str) -> str:
    return _CAPITAL.sub("-", text).replace(" ", "-").replace("_", "-").lower()
