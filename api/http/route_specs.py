"""Specification of each route beyond its signature: role, statuses, errors, and an example that a test executes.

OpenAPI, authorization and content negotiation read it. No other module repeats it.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from api.http import media_types
from api.schema import Schema
from control.access import Role
from control.subjects import Kind

# Keys of a route's `opt`: its RouteSpec, and values that `create_app` derives from its signature.
OPERATION = "operation"
QUERY_PARAMETERS = "query_parameters"
ARGUMENT_NAMES = "argument_names"


@dataclass(frozen=True, slots=True)
class Example:
    """An example request on the example data; `path` overrides the examples of the path parameters."""

    path: Mapping[str, str] = field(default_factory=dict)
    query: Mapping[str, str] = field(default_factory=dict)
    body: Mapping[str, Any] | None = None


@dataclass(frozen=True, slots=True)
class RouteSpec:
    """Specification of one API operation; `api.http.routes` adds the fields that follow from the handler's signature.

    Args:
        example: a request that succeeds on the example data.
        role: lowest role that may call the operation; None if it needs no key.
        reports: names of reports; the operation accepts their embed tokens instead of a key, and `role` is None.
        statuses: success statuses with their descriptions.
        errors: error statuses beyond those that follow from path, signature and role.
        answers_as: media types of a successful answer, the default first; None for JSON, or for all tabular forms.
        of: token or wallet, if one handler serves both; it replaces `subject` in the handler's name, and `{subject}`
            in its docstring.
        answer: struct of the JSON answer; None if there is no content.
        row: struct of a row in tabular answers; None if the operation answers only JSON.
        body: struct of the request body.
        form: struct of a form in place of a body; its field `token` is the embed token.
        dry_answer: struct of the 200 answer to a dry run, if it differs from `answer`.
        bulk_answer: struct of the answer to many rows; the body may then also be an array of `body`, or CSV.
        other_rows: further structs of rows; the parameters decide which one is used.
        is_paged: whether answers have a `Link` header.
    """

    example: Example = field(default_factory=Example)
    role: Role | None = Role.VIEWER
    reports: tuple[str, ...] = ()
    statuses: Mapping[int, str] = field(default_factory=lambda: {200: "The answer."})
    errors: tuple[int, ...] = ()
    answers_as: tuple[str, ...] | None = None
    of: Kind | None = None
    answer: type[Schema] | None = None
    row: type[Schema] | None = None
    body: type[Schema] | None = None
    # These always come from the signature.
    form: type[Schema] | None = None
    dry_answer: type[Schema] | None = None
    bulk_answer: type[Schema] | None = None
    other_rows: tuple[type[Schema], ...] = ()
    is_paged: bool = False

    @property
    def media_types(self) -> tuple[str, ...]:
        """Media types of a successful answer, the default first."""
        if self.answers_as is not None:
            return self.answers_as
        return media_types.TABULAR if self.row is not None else media_types.JSON_ONLY

    @property
    def status(self) -> int:
        """Default status of a successful answer."""
        return 200 if 200 in self.statuses else next(iter(self.statuses))

    @property
    def is_guarded(self) -> bool:
        """True if the operation needs an API key or an embed token."""
        return self.role is not None or bool(self.reports)

    @property
    def is_conditional(self) -> bool:
        """True if a GET has an ETag: it needs an API key, and its answer contains no token."""
        return self.role is not None and self.answers_as is None
