"""What data routes of reports share: how the OpenAPI document tells them, and how a page saves its rows."""

from collections.abc import Callable, Mapping
from typing import Any

from api import media_types
from api.bodies import MOST_FORM_BYTES
from api.operations import Example, Operation
from api.routes import Handler, post
from api.schemas.reports import Report

_TAG = "Embedded reports"


def answering(report: Report, errors: tuple[int, ...], query: Mapping[str, str] | None = None) -> Operation:
    """Describe a route that answers a part of a report."""
    return Operation(tag=_TAG, example=Example(query=query or {}), role=None, reports=(report,), errors=errors)


def saving(report: Report, row: type[Any], errors: tuple[int, ...], form: type[Any] | None = None) -> Operation:
    """Describe a route that answers all rows of a report as a file; `form` is what a page asks for it by."""
    return Operation(
        tag=_TAG,
        example=Example(body={"token": "eyJ..."}) if form else Example(),
        role=None,
        reports=(report,),
        errors=errors,
        row=row,
        answers_as=(media_types.CSV,),
        form=form,
    )


def saved_by_form(report: Report, row: type[Any], errors: tuple[int, ...], form: type[Any]) -> Callable[[Handler], Any]:
    """Return the route by which a page saves all rows of a report; `payload` is its form."""
    return post("/csv", saving(report, row, errors, form), request_max_body_size=MOST_FORM_BYTES)
