"""Requests of embedded reports, and their guard: it checks an embed token instead of an API key.

Tenant and parameters come only from the token. The guard reads the control store twice per request, by an index. So it
detects at once that the tenant's links, or the key that requested the link, are revoked.
"""

import gzip
from contextlib import AbstractContextManager
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import msgspec
from litestar import Request, Response
from litestar.concurrency import sync_to_thread
from litestar.connection import ASGIConnection
from litestar.handlers import BaseRouteHandler

from api.engine.serving import Serving, Snapshot
from api.errors import ApiError
from api.http import formats, media_types
from api.http.auth import bearer
from api.http.bodies import content_of, form_fields
from api.http.calls import NO_STORE, Services
from api.http.parameters import check_query
from api.http.rate_limits import address_key
from api.http.route_specs import OPERATION, QUERY_PARAMETERS, RouteSpec
from api.reports.assets import choose_coding
from api.reports.schemas.links import Report
from api.reports.tokens import SESSION, Claims, revoked, signer_of
from api.schema import Schema
from control import access, embedding
from control.clock import utc_now
from control.embedding import Present
from control.errors import Unauthenticated
from control.store import ControlStore

_LEAST_COMPRESSED = 1_024
_GZIP_LEVEL = 4


@dataclass(frozen=True, slots=True)
class EmbedCall:
    """A request of an embedded page with a valid token."""

    services: Services
    request: Request[Any, Any, Any]
    claims: Claims
    present: Present
    media_type: str
    now: datetime

    @property
    def store(self) -> ControlStore:
        """The control store."""
        return self.services.store

    @property
    def tenant_id(self) -> str:
        """The tenant of the request; it limits the visible data."""
        return self.claims.tenant

    @property
    def serving(self) -> Serving:
        """The published versions of the tenant's shard."""
        return self.services.shards.of(self.present.shard, self.present.shard_version)

    @property
    def report(self) -> Report:
        """The report of the request."""
        return self.claims.report

    @property
    def params(self) -> dict[str, str]:
        """The report's parameters by their names in the API, such as `tokenId` and `asOf`."""
        return self.claims.params

    @property
    def begun(self) -> datetime:
        """Start of the session. It gives `yesterday` its date, so that the date is stable while the page is open."""
        return datetime.fromtimestamp(self.claims.sxp, UTC) - SESSION

    def snapshot(self, data_version: int | None = None) -> AbstractContextManager[Snapshot]:
        """Open a version with the data that the page first read, or the version in force.

        Args:
            data_version: the tenant's data version that the page first read; None for the version in force.

        Raises:
            ApiError: 410, all versions with this data have been removed.
        """
        return self.serving.tenant_snapshot(self.tenant_id, data_version)

    def respond(self, found: Schema, operation: RouteSpec) -> Response[bytes]:
        """Return an uncacheable JSON response; compress large ones, since a year of days has about 200 kB."""
        content, headers = msgspec.json.encode(found), {**NO_STORE, "Vary": "Accept-Encoding"}
        accepted = self.request.headers.get("accept-encoding")
        contents = {"identity": content}
        if len(content) >= _LEAST_COMPRESSED and accepted is not None and "gzip" in accepted.lower():
            contents["gzip"] = gzip.compress(content, _GZIP_LEVEL, mtime=0)
        coding = choose_coding(accepted, contents)
        if coding != "identity":
            headers["Content-Encoding"] = coding
        return Response(contents[coding], status_code=operation.status, media_type=media_types.JSON, headers=headers)


async def authorize_embed(connection: ASGIConnection[Any, Any, Any, Any], handler: BaseRouteHandler) -> None:
    """Check token, its embed id and key, rate, report, query parameters and formats, in this order.

    Raises:
        Unauthenticated: 401, the request has no token.
        ApiError: 401, 429, 403, 400 or 406.
    """
    if isinstance(connection, Request) and connection.method == "OPTIONS":
        return  # the framework lists the methods of the path; that answer is public
    services: Services = connection.app.state.services
    operation: RouteSpec = handler.opt[OPERATION]
    state = connection.scope["state"]
    if operation.form is not None:
        # The credential is inside the form, so limit requests by address before reading the body.
        state["headers"] = services.limiter.admit(address_key(connection.client.host if connection.client else None))
    token = bearer(connection) if operation.form is None else await _form_token(connection)
    claims = signer_of(services).read(token)
    state["present"] = await sync_to_thread(_check_session, services, claims)
    state["claims"] = claims
    state["headers"] = await services.admit(f"embed {claims.tenant}")
    if claims.report not in operation.reports:
        detail = (
            f"the embed token is for the report {claims.report}; this operation needs {' or '.join(operation.reports)}"
        )
        raise ApiError(403, "wrong-report", detail)
    check_query(connection, handler.opt[QUERY_PARAMETERS])
    state["media_type"] = formats.negotiate(connection.headers.get("accept"), operation.media_types)


def provide_embed_call(request: Request[Any, Any, Any]) -> EmbedCall:
    """Return the authorized request to its handler."""
    state, services = request.scope["state"], request.app.state.services
    return EmbedCall(services, request, state["claims"], state["present"], state["media_type"], utc_now())


async def _form_token(connection: ASGIConnection[Any, Any, Any, Any]) -> str:
    """Return the field `token` of a form. Browsers save files by a form, so that no URL contains the token."""
    if not isinstance(connection, Request):
        raise TypeError("only requests have a form")
    content = await content_of(connection, media_types.FORM)
    tokens = [value for name, value in await sync_to_thread(form_fields, content) if name == "token"]
    if len(tokens) != 1 or not tokens[0]:
        raise Unauthenticated("the form needs exactly one embed token; send it in the field token")
    return tokens[0]


def _check_session(services: Services, claims: Claims) -> Present:
    """Check that the token's embed id and key are in force; return the embed id and the tenant's shard."""
    with services.store.read() as session:
        present = embedding.find_present(session, claims.tenant)
        is_key_valid = access.is_in_force(session, claims.tenant, claims.key)
    if present is None or present.embed_id != claims.embed or not is_key_valid:
        raise revoked()
    return present
