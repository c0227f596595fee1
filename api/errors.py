"""The error that every package of the API raises; `api.http.problems` converts it to an answer."""

from collections.abc import Mapping, Sequence
from datetime import datetime

from msgspec import UNSET, UnsetType

from api.schema import FieldError, Gap, PairChoice

_MOST_ERRORS = 20
MOST_ERRORS_IN_ROWS = 100  # enough to find the faults in a body of many rows
_MOST_DETAILS = 10


class ApiError(Exception):
    """An error with a place in the interface.

    Args:
        status: HTTP status.
        code: kebab-case kind, one of `api.http.problem_codes`.
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
    """Return the 400 of query parameters that cannot be parsed as their type."""
    return listed_errors(400, "malformed-parameter", errors)


def invalid_body(errors: Sequence[FieldError]) -> ApiError:
    """Return the 422 of one or more bad body fields; the first hundred are named."""
    return listed_errors(422, "invalid-body", errors, MOST_ERRORS_IN_ROWS)


def listed_errors(status: int, code: str, errors: Sequence[FieldError], most: int = _MOST_ERRORS) -> ApiError:
    """Return the error of one or more bad values: the first ones, at most `most`, and how many others there are."""
    details = [error.detail for error in errors[:_MOST_DETAILS]]
    if len(errors) > len(details):
        details.append(f"and {len(errors) - len(details)} more")
    return ApiError(status, code, "; ".join(details), errors=errors[:most])
