"""Authorization: the guard of every route that needs an API key.

The guard reads the control store once per request, by an index, so that a revoked key fails at once. `control.access`
has the rules. On PostgreSQL it also leases requests of the rate limit, once per batch.
"""

import logging
from typing import Any

from anyio import to_thread
from litestar import Request
from litestar.connection import ASGIConnection
from litestar.handlers import BaseRouteHandler

from api.errors import ApiError
from api.http import formats
from api.http.calls import Call, Services
from api.http.parameters import check_form, check_query
from api.http.rate_limits import address_key
from api.http.route_specs import OPERATION, QUERY_PARAMETERS, RouteSpec
from control import access
from control.access import Principal, Role
from control.clock import utc_now
from control.errors import Denied, StoreUnavailable, Unauthenticated

_log = logging.getLogger("ledgermart.api")


async def authorize(connection: ASGIConnection[Any, Any, Any, Any], handler: BaseRouteHandler) -> None:
    """Check key, rate, role, query parameters and acceptable formats, in this order, before anything is read.

    Raises:
        Unauthenticated: 401.
        ApiError: 429, 403, 400 or 406.
    """
    if isinstance(connection, Request) and connection.method == "OPTIONS":
        return  # the framework lists the methods of the path; that answer is public
    services: Services = connection.app.state.services
    operation: RouteSpec = handler.opt[OPERATION]
    state = connection.scope["state"]
    token, address = bearer(connection), address_key(connection.client.host if connection.client else None)
    services.refusals.check(address, token)
    try:
        principal = await to_thread.run_sync(_authenticate, services, token, limiter=services.keys)
    except Unauthenticated:
        services.refusals.add(address, token)
        raise
    services.refusals.forgive(token)
    state["principal"] = principal
    state["headers"] = await services.admit(principal.key_id)
    _require(principal, operation.role or Role.VIEWER)
    check_query(connection, handler.opt[QUERY_PARAMETERS])
    state["media_type"] = formats.negotiate(connection.headers.get("accept"), operation.media_types)
    check_form(connection, state["media_type"])


def provide_call(request: Request[Any, Any, Any]) -> Call:
    """Return the authorized request to its handler."""
    state = request.scope["state"]
    return Call(request.app.state.services, request, state["principal"], state["media_type"], utc_now())


def bearer(connection: ASGIConnection[Any, Any, Any, Any]) -> str:
    """Return the bearer credential of a request.

    Raises:
        Unauthenticated: the request has none.
    """
    scheme, _, token = (connection.headers.get("authorization") or "").partition(" ")
    if scheme.lower() != "bearer" or not token.strip():
        raise Unauthenticated(
            "the request has no credential; send Authorization: Bearer with the API key or the embed token"
        )
    return token.strip()


def _authenticate(services: Services, token: str) -> Principal:
    with services.store.read() as session:
        principal = access.authenticate(session, token)
    if access.is_touch_due(principal):
        try:
            with services.store.write_at_once() as session:
                access.touch(session, principal.key_id)
        except StoreUnavailable as error:
            # Recording the time of use must not delay or fail a request. The next request tries again.
            _log.info("the use of %s is not recorded: %s", principal.key_id, error)
    return principal


def _require(principal: Principal, role: Role) -> None:
    try:
        access.require(principal, role)
    except Denied as error:
        raise ApiError(403, "role-too-low", error.detail, required_role=role) from error
