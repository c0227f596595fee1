"""What is said about each route beyond its signature: role, statuses, errors, and an example that a test executes.

OpenAPI, authorization and content negotiation all read it; nothing of it is repeated elsewhere.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from api.http import media_types
from api.schema import Schema
from control.access import Role
from control.subjects import Kind

# Keys of a route's `opt`: its Operation, and what `create_app` derives from its signature.
OPERATION = "operation"
QUERY_PARAMETERS = "query_parameters"
ARGUMENT_NAMES = "argument_names"


@dataclass(frozen=True, slots=True)
class Example:
    """An example request of the example data; `path` is given where its parameters' own examples do not fit."""

    path: Mapping[str, str] = field(default_factory=dict)
    query: Mapping[str, str] = field(default_factory=dict)
    body: Mapping[str, Any] | None = None


@dataclass(frozen=True, slots=True)
class Operation:
    """One operation of the interface; what the signature of its handler says `api.http.routes` fills in.

    Args:
        example: a request that succeeds on the example data.
        role: the lowest role that may call it; None needs no key.
        reports: the reports whose embed tokens it takes instead of a key; `role` is None then.
        statuses: success statuses and what each means.
        errors: error statuses beyond those that follow from path, signature and role.
        answers_as: media types of a successful answer, the default first, where it is not JSON, or rows in any form.
        of: what takes the place of `subject` in the handler's name, and of `{subject}` in its docstring, where one
            handler serves tokens and wallets.
        answer: struct of the JSON answer; None when there is no content.
        row: struct of a row in tabular answers; None when there is JSON alone.
        body: struct of the request body.
        form: struct of a form in place of a body; its field `token` is the embed token.
        dry_answer: struct of the answer with 200 to a request that is to store nothing, where that is another one.
        bulk_answer: struct of the answer to many; the body may then be an array of `body`, or CSV with its fields, too.
        other_rows: further structs that rows may have, as the parameters say.
        is_paged: it answers `Link`.
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
    # Always from the signature.
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
        """The status of a successful answer, where the handler does not say."""
        return 200 if 200 in self.statuses else next(iter(self.statuses))

    @property
    def is_guarded(self) -> bool:
        """Whether it needs a key or a token."""
        return self.role is not None or bool(self.reports)

    @property
    def is_conditional(self) -> bool:
        """Has a GET an ETag? It has if it needs an API key and its answer holds no token."""
        return self.role is not None and self.answers_as is None
