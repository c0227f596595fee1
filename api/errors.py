"""Every error as one shape: problem details (RFC 9457), from our own errors and from the framework's.

What is an error, and when, is decided where it is raised; nothing is decided here but how it looks.
"""

import logging
import re
from collections.abc import Mapping, Sequence
from datetime import datetime
from http import HTTPStatus
from typing import Any

import msgspec
from litestar import Request, Response
from litestar.exceptions import HTTPException, ValidationException
from msgspec import UNSET, UnsetType

from api import media_types
from api.operations import ARGUMENT_NAMES
from api.request_log import request_id
from api.schemas.common import FieldError, Gap, PairChoice, Problem
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
_MOST_ERRORS = 100  # of a body with many rows; enough to see what is wrong with it
_CAPITAL = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")

# What the framework raises before a handler runs; its own words are kept where they help.
_FRAMEWORK_PROBLEMS = {
    404: ("unknown-route", "this path does not exist; /openapi.json lists all paths"),
    405: ("method-not-allowed", "this path does not support the method; see the Allow header"),
    413: ("body-too-large", "the request body is larger than 1 MiB, or the form is larger than 16 KiB; send less"),
}


class ApiError(Exception):
    """An error with a place in the interface.

    Args:
        status: HTTP status.
        code: kebab-case kind, one of `api.problem_codes`.
        detail: sentence with the problem and its fix.
        errors: the single values that are wrong.
        headers: further response headers.
        existing_id: the object in the way (409).
        required_role: the lowest role that may do this (403).
        pairs: those of which the request must name one (409 `several-usd-pairs`).
        before: nearest covered instant before the moment asked for (409 `not-covered`).
        after: nearest covered instant after it.
        gaps: the missing ranges there.
    """

    def __init__(
        self,
        status: int,
        code: str,
        detail: str,
        *,
        errors: Sequence[FieldError] = (),
        headers: Mapping[str, str] | None = None,
        existing_id: str | UnsetType = UNSET,
        required_role: str | UnsetType = UNSET,
        pairs: Sequence[PairChoice] = (),
        before: datetime | UnsetType | None = UNSET,
        after: datetime | UnsetType | None = UNSET,
        gaps: Sequence[Gap] = (),
    ) -> None:
        super().__init__(detail)
        self.status = status
        self.code = code
        self.detail = detail
        self.errors = list(errors)
        self.headers = dict(headers or {})
        self.existing_id = existing_id
        self.required_role = required_role
        self.pairs = list(pairs)
        self.before = before
        self.after = after
        self.gaps = list(gaps)


def invalid_parameter(parameter: str, code: str, detail: str) -> ApiError:
    """Return the 422 of one bad query parameter, path parameter or header."""
    return ApiError(
        422, "invalid-parameter", detail, errors=[FieldError(parameter=parameter, code=code, detail=detail)]
    )


def malformed_parameters(errors: Sequence[FieldError]) -> ApiError:
    """Return the 400 of query parameters that cannot be read as what they are."""
    return ApiError(400, "malformed-parameter", "; ".join(error.detail for error in errors), errors=errors)


def invalid_body(errors: Sequence[FieldError], status: int = 422, code: str = "invalid-body") -> ApiError:
    """Return the error, a 422 by default, of one or more bad body fields; the first hundred are named."""
    shown = errors[:_MOST_ERRORS]
    details = [error.detail for error in shown]
    if len(errors) > len(shown):
        details.append(f"and {len(errors) - len(shown)} more")
    return ApiError(status, code, "; ".join(details), errors=shown)


def handle_error(request: Request[Any, Any, Any], error: Exception) -> Response[bytes]:
    """Answer any exception as a problem; what nobody expected is logged and answered without its text."""
    problem = _to_api_error(request, error)
    if problem is None:
        _log.exception("unexpected error, request %s", request_id(request.scope), exc_info=error)
        problem = ApiError(500, "internal-error", "the request failed; the log has the cause under this request id")
    return problem_response(request, problem)


def problem_response(request: Request[Any, Any, Any], error: ApiError) -> Response[bytes]:
    """Render one error as problem details."""
    body = Problem(
        type=f"urn:ledgermart:problem:{error.code}",
        title=HTTPStatus(error.status).phrase,
        status=error.status,
        detail=error.detail,
        instance=request.scope["path"],
        code=error.code,
        request_id=request_id(request.scope),
        errors=error.errors,
        existing_id=error.existing_id,
        required_role=error.required_role,
        pairs=error.pairs or UNSET,
        before=error.before,
        after=error.after,
        gaps=error.gaps or UNSET,
    )
    headers = {"Cache-Control": "no-store", **error.headers}
    return Response(
        msgspec.json.encode(body), status_code=error.status, media_type=media_types.PROBLEM, headers=headers
    )


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
        return invalid_body(errors, status=400, code="malformed-field")
    return invalid_body(errors)


def _from_validation(error: ValidationException, names: Mapping[str, str]) -> ApiError:
    """Make a 422 of the framework's findings about query and path parameters; bodies are read elsewhere."""
    findings = error.extra if isinstance(error.extra, list) else []
    errors = []
    for finding in findings:
        name = names.get(str(finding.get("key")), str(finding.get("key")))
        errors.append(FieldError(parameter=name, code="invalid", detail=f"{name}: {finding.get('message')}"))
    detail = "; ".join(found.detail for found in errors) or error.detail
    return ApiError(422, "invalid-parameter", detail, errors=errors)


def _kebab(text: str) -> str:
    return _CAPITAL.sub("-", text).replace(" ", "-").replace("_", "-").lower()
