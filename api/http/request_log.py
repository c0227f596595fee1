"""Request id and security headers of every response, and one log line per request.

The wrapper contains the whole application, because routing errors bypass middleware. Bodies, query strings and
credentials never reach the log.
"""

import logging
import re
import secrets
import time
from typing import Any

import msgspec
from litestar.enums import ScopeType
from litestar.types import ASGIApp, HTTPScope, Message, Receive, Scope, Send

from control import audit

_ID = re.compile(r"[A-Za-z0-9._:-]{1,128}")
_log = logging.getLogger("ledgermart.access")

SECURITY_HEADERS = {
    "server": "ledgermart",
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "content-security-policy": "default-src 'none'; frame-ancestors 'none'",
    "x-frame-options": "DENY",
    "cross-origin-resource-policy": "same-origin",
}


def request_id(scope: Any) -> str:
    """Return the id of a request: the client's `X-Request-Id` when it is well-formed, else a new one."""
    state: dict[str, Any] = scope["state"]
    if "request_id" not in state:
        sent = next((value.decode("latin-1") for name, value in scope["headers"] if name == b"x-request-id"), "")
        state["request_id"] = sent if _ID.fullmatch(sent) else f"req_{secrets.token_hex(12)}"
    found: str = state["request_id"]
    return found


def observed(app: ASGIApp) -> ASGIApp:
    """Wrap an application: add the common headers to every response, and log each request after its response."""

    async def application(scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != ScopeType.HTTP:
            await app(scope, receive, send)
            return
        scope.setdefault("state", {})
        audit.REQUEST_ID.set(request_id(scope))
        started = time.perf_counter()
        status = 0

        async def send_observed(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                present = {name.lower() for name, _ in message["headers"]}
                added = SECURITY_HEADERS | {"x-request-id": request_id(scope)} | scope["state"].get("headers", {})
                if scope["state"].get("may_be_framed"):
                    # Content-Security-Policy lists the allowed origins; X-Frame-Options cannot name origins.
                    del added["x-frame-options"]
                message["headers"] = [
                    *message["headers"],
                    *(
                        (name.encode("ascii"), value.encode("latin-1"))
                        for name, value in added.items()
                        if name.encode("ascii") not in present
                    ),
                ]
            await send(message)

        try:
            await app(scope, receive, send_observed)
        finally:
            _log_request(scope, status, time.perf_counter() - started)

    return application


def _log_request(scope: HTTPScope, status: int, seconds: float) -> None:
    principal = scope["state"].get("principal")
    client = scope["client"]
    line = {
        "requestId": request_id(scope),
        "method": scope["method"],
        "route": scope.get("path_template") or "",
        "status": status,
        "milliseconds": round(seconds * 1000, 2),
        "keyId": principal.key_id if principal else None,
        "client": client[0] if client else None,
    }
    _log.info(msgspec.json.encode(line).decode())
