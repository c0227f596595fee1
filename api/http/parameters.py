"""Query parameters: declarations, and parsing of instants and moments.

OpenAPI documents the declared parameters. Requests with other parameters are refused.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Annotated, Any, Literal, TypeAlias, TypeVar
from urllib.parse import parse_qsl

from litestar.connection import ASGIConnection
from litestar.di import NamedDependency
from litestar.openapi.spec import Example
from litestar.params import PathParameter, QueryParameter, SkipValidation

from api.errors import invalid_parameter, listed_errors, malformed_parameters
from api.http import media_types
from api.schema import FieldError, Interval
from control.errors import shortened
from control.inputs import (
    CURSOR,
    INSTANT_OR_DAY,
    MOMENT,
    MOMENT_OR_TODAY,
    Keywords,
)
from control.instants import FORMS, is_day, read_block, read_instant_or_day, write_day

Provided = TypeVar("Provided")

Injected: TypeAlias = NamedDependency[SkipValidation[Provided]]
"""A dependency that a handler receives unchanged, under the argument's name."""

INSTANT = timedelta(microseconds=1)
"""Resolution of stored times. A moment that includes an instant ends this much after it."""

# Means the newest covered block, even if that is of an earlier day.
_TODAY = "today"
_MOMENT_FORMS = f"{FORMS}, block:N, {_TODAY}, yesterday or last-month-end"
# Parameters that accept days relative to the date of the request, such as `yesterday`.
_MOMENTS = frozenset({"asOf", "from", "to"})
_OF_PAGES = frozenset({"limit", "cursor"})

# Syntax of the declared types; later checks decide whether the value is allowed.
_FORMS = {
    "integer": (re.compile(r"-?\d+", re.ASCII), "a whole number such as 50"),
    "boolean": (re.compile("true|false|1|0", re.IGNORECASE | re.ASCII), "true or false"),
}


def in_path(name: str, description: str, example: str, form: Keywords) -> Any:
    """Declare a path parameter, with an id of the example data for the OpenAPI document.

    The form only documents the values. The functions that parse them refuse wrong values with their own codes.
    """
    return PathParameter(name=name, description=description, examples=[Example(value=example)], schema_extra=form)


_PAGES_ONLY = "Only for JSON. The other formats have all rows and return 400 `pages-only`."

Limit = Annotated[int, QueryParameter(ge=1, le=1000, description=f"Largest number of rows in a page. {_PAGES_ONLY}")]
Cursor = Annotated[
    str | None,
    QueryParameter(
        description=f"`nextCursor` of the previous page; the other parameters stay the same. {_PAGES_ONLY}",
        schema_extra=CURSOR,
    ),
]
From = Annotated[
    str | None,
    QueryParameter(
        name="from", description="Start of the range, included: an instant or a day, UTC.", schema_extra=INSTANT_OR_DAY
    ),
]
To = Annotated[
    str | None,
    QueryParameter(
        name="to", description="End of the range, not included: an instant or a day, UTC.", schema_extra=INSTANT_OR_DAY
    ),
]
AsOfMoment = Annotated[
    str | None,
    QueryParameter(
        name="asOf",
        description="Moment of the data: an instant, a day (its end; `yesterday` and `last-month-end` are days, UTC), "
        "`block:N`, or `today`, the newest covered block. Default: `today`.",
        schema_extra=MOMENT_OR_TODAY,
    ),
]
FromMoment = Annotated[
    str,
    QueryParameter(
        name="from",
        description="The earlier moment: an instant, a day (its end; `yesterday` and `last-month-end` are days, UTC), "
        "or `block:N`.",
        schema_extra=MOMENT,
    ),
]
ToMoment = Annotated[
    str | None,
    QueryParameter(
        name="to",
        description="The later moment, in the same forms as `asOf` of the cap table. Default: `today`, the newest "
        "covered block.",
        schema_extra=MOMENT_OR_TODAY,
    ),
]

IntervalChoice = Annotated[
    Interval | None, QueryParameter(description="Length of the intervals of the history; `1d` by default.")
]


CONTEXT = "context"
ContextForm = Literal["columns", "comment"]
"""The place of a file's context in CSV: columns of each row, or one first line that begins with `#`."""
ContextChoice = Annotated[
    ContextForm | None,
    QueryParameter(
        name=CONTEXT,
        description="Only for CSV: the place of the fields that JSON has outside its rows, such as token, moment and "
        "statuses. `columns`: in columns `context....` of each row. `comment`: as JSON in the first line, after a `#`. "
        "By default they are only in the response headers.",
    ),
]
"""Parameter of every operation with a tabular form; `context_form` reads it, handlers do not receive it."""


@dataclass(frozen=True, slots=True)
class Declared:
    """A declared query parameter: its JSON type, whether it is required, and its values if they are listed."""

    is_required: bool
    type: str
    choices: tuple[str, ...] = ()

    @property
    def is_text(self) -> bool:
        """True if the parameter accepts any text."""
        return self.type == "string" and not self.choices


@dataclass(frozen=True, slots=True)
class TimeRange:
    """The requested range, `start` <= t < `end`; a bound is None if the request has none."""

    start: datetime | None
    end: datetime | None


@dataclass(frozen=True, slots=True)
class Moment:
    """The requested moment of a parameter or a field of the body: a block by number, or an exclusive `end`.

    Blocks and prices before `end` count. For an instant, `end` is one microsecond later, the resolution of stored
    times. For a day, it is the next midnight.
    """

    parameter: str
    text: str
    block_number: int | None = None
    end: datetime | None = None
    is_in_body: bool = False


def read_range(start: str | None, end: str | None) -> TimeRange:
    """Read `from` and `to`.

    Raises:
        Unparseable: a bound is malformed.
        ApiError: 422, the range is empty.
    """
    read = TimeRange(
        None if start is None else read_instant_or_day("from", start),
        None if end is None else read_instant_or_day("to", end),
    )
    if read.start is not None and read.end is not None and read.start >= read.end:
        raise invalid_parameter("to", "empty-range", "to must be later than from")
    return read


def read_moment(text: str | None, now: datetime, parameter: str = "asOf") -> Moment | None:
    """Read a moment: an instant, a day (its end) by date or by name, or `block:N`; None for `today` or no text.

    Args:
        text: value of the parameter.
        now: instant of the request, aware; it gives `yesterday` and `last-month-end` their dates.
        parameter: name of the parameter, for errors.

    Raises:
        Unparseable: the text is malformed.
        ApiError: 422, the moment is beyond the calendar.
    """
    if text is None or text == _TODAY:
        return None
    number = read_block(parameter, text)
    if number is not None:
        return Moment(parameter, text, block_number=number)
    written = write_day(text, now)
    instant = read_instant_or_day(parameter, written, _MOMENT_FORMS)
    span = timedelta(days=1) if is_day(written) else INSTANT
    return Moment(parameter, written, end=_add(parameter, instant, span))


def read_moments(start: str, end: str | None, now: datetime) -> tuple[Moment, Moment | None]:
    """Read the moments `from` and `to` as `read_moment` does; None as `to` means the newest covered block.

    Raises:
        Unparseable: `from` or `to` is malformed.
        ApiError: 422, `from` or `to` is beyond the calendar, or `from` is `today`.
    """
    first = read_moment(start, now, "from")
    if first is None:
        raise invalid_parameter("from", "newest", "from is the newest covered block; name an earlier moment")
    return first, read_moment(end, now, "to")


def query_items(connection: ASGIConnection[Any, Any, Any, Any]) -> list[tuple[str, str]]:
    """Return names and values of the query string, in their order."""
    return parse_qsl(connection.scope["query_string"].decode("latin-1"), keep_blank_values=True)


def dated_items(connection: ASGIConnection[Any, Any, Any, Any], now: datetime) -> list[tuple[str, str]]:
    """Return names and values of the query string, with names of days replaced by dates that stay the same later."""
    return [(name, write_day(value, now) if name in _MOMENTS else value) for name, value in query_items(connection)]


def check_query(connection: ASGIConnection[Any, Any, Any, Any], known: Mapping[str, Declared]) -> None:
    """Refuse query parameters that are unknown, repeated, malformed, empty or missing.

    Also refuse the text `null` except in free text: the framework would treat it as an absent value.

    Args:
        connection: the request.
        known: declared parameters of the operation, by name.

    Raises:
        ApiError: 400 for unknown, repeated and malformed parameters; 422 for values that are empty, `null`, missing or
            not listed. The error names the first of them.
    """
    errors: list[FieldError] = []
    malformed: list[FieldError] = []
    absent: list[FieldError] = []
    seen: set[str] = set()
    for name, value in query_items(connection):
        if name not in known:
            detail = f"unknown query parameter {shortened(name)!r}; known here: {', '.join(sorted(known)) or 'none'}"
            errors.append(FieldError(parameter=name, code="unknown-parameter", detail=detail))
        elif name in seen:
            detail = f"{name} is given more than once"
            errors.append(FieldError(parameter=name, code="repeated-parameter", detail=detail))
        elif not value:
            detail = f"{name} is empty; give a value or leave it out"
            absent.append(FieldError(parameter=name, code="empty", detail=detail))
        elif value.lower() == "null" and not known[name].is_text:
            values = f"use one of {', '.join(known[name].choices)}" if known[name].choices else "give a value"
            detail = f"{name} cannot be null; {values}, or leave it out"
            absent.append(FieldError(parameter=name, code="invalid", detail=detail))
        elif known[name].choices and value not in known[name].choices:
            detail = f"{name} is {value[:60]!r}; use one of {', '.join(known[name].choices)}"
            absent.append(FieldError(parameter=name, code="invalid", detail=detail))
        elif known[name].type in _FORMS and _FORMS[known[name].type][0].fullmatch(value) is None:
            detail = f"{name} is {value[:60]!r}; write {_FORMS[known[name].type][1]}"
            malformed.append(FieldError(parameter=name, code="malformed", detail=detail))
        seen.add(name)
    for name, declared in known.items():
        if declared.is_required and name not in seen:
            absent.append(FieldError(parameter=name, code="missing", detail=f"{name} is missing; give a value"))
    if errors:
        raise listed_errors(400, errors[0].code, errors)
    if malformed:
        raise malformed_parameters(malformed)
    if absent:
        raise listed_errors(422, "invalid-parameter", absent)


def check_form(connection: ASGIConnection[Any, Any, Any, Any], media_type: str) -> None:
    """Refuse parameters that do not fit the answer's format: `limit` and `cursor` for files, `context` without CSV.

    Args:
        connection: the request, after `check_query`.
        media_type: media type of the answer.

    Raises:
        ApiError: 400; the error names each parameter.
    """
    errors: list[FieldError] = []
    for name, _ in query_items(connection):
        if name in _OF_PAGES and media_type in media_types.FILES:
            detail = f"{name} is only for JSON; {media_type} has all rows in one answer, so leave it out"
            errors.append(FieldError(parameter=name, code="pages-only", detail=detail))
        elif name == CONTEXT and media_type != media_types.CSV:
            detail = f"{name} is only for CSV, not for {media_type}; leave it out, or accept {media_types.CSV}"
            errors.append(FieldError(parameter=name, code="csv-only", detail=detail))
    if errors:
        raise listed_errors(400, errors[0].code, errors)


def context_form(connection: ASGIConnection[Any, Any, Any, Any]) -> str | None:
    """Return the place of the context in CSV; None if the file has no context."""
    return dict(query_items(connection)).get(CONTEXT)


def _add(parameter: str, instant: datetime, span: timedelta) -> datetime:
    try:
        return instant + span
    except OverflowError as error:
        raise invalid_parameter(parameter, "out-of-range", f"{parameter} is too late") from error
