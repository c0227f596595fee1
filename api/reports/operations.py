"""Specifications of the data routes of reports, for the OpenAPI document."""

from collections.abc import Mapping

from api.http import media_types
from api.http.route_specs import Example, RouteSpec
from api.reports.schemas.links import Report
from api.schema import Schema


def answering(report: Report, errors: tuple[int, ...], query: Mapping[str, str] | None = None) -> RouteSpec:
    """Return the specification of a route for a part of a report."""
    return RouteSpec(example=Example(query=query or {}), role=None, reports=(report,), errors=errors)


def saving(report: Report, row: type[Schema], errors: tuple[int, ...]) -> RouteSpec:
    """Return the specification of a route for all rows of a report as a file."""
    return RouteSpec(role=None, reports=(report,), errors=errors, row=row, answers_as=(media_types.CSV,))
