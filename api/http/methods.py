"""HEAD on every path that has GET, the same work and headers without the body; and the methods named in `Allow`.

It wraps the whole application, so that no route can be without it. What a client may ask with which method is decided
by the routes.
"""

import asyncio

from litestar import Litestar
from litestar.enums import ScopeType
from litestar.routes import HTTPRoute
from litestar.types import ASGIApp, HTTPReceiveMessage, HTTPScope, Message, Receive, Scope, Send


def answering_head(app: Litestar) -> ASGIApp:
    """Wrap an application: HEAD is asked of it as GET, and what it sends as a body stays here."""
    routed = app.asgi_handler
    # The framework's answers to OPTIONS name the methods of one controller of a path alone.
    methods = {
        route.path_format: ", ".join(sorted(route.route_handler_map)).encode("ascii")
        for route in app.routes
        if isinstance(route, HTTPRoute)
    }

    async def application(scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != ScopeType.HTTP:
            await routed(scope, receive, send)
        elif scope["method"] == "HEAD":
            await _without_body(routed, scope, send)
        else:

            async def send_named(message: Message) -> None:
                if message["type"] == "http.response.start":
                    allowed = methods.get(scope.get("path_template", "")) if scope["method"] == "OPTIONS" else None
                    message["headers"] = [
                        (name, _with_head(allowed or value)) if name.lower() == b"allow" else (name, value)
                        for name, value in message["headers"]
                    ]
                await send(message)

            await routed(scope, receive, send_named)

    return application


async def _without_body(app: ASGIApp, scope: HTTPScope, send: Send) -> None:
    asked: HTTPScope = {**scope, "method": "GET"}
    is_asked = False
    answered = asyncio.Event()

    async def receive() -> HTTPReceiveMessage:
        nonlocal is_asked
        if not is_asked:
            is_asked = True
            return {"type": "http.request", "body": b"", "more_body": False}
        # A stream waits for the client to leave; nobody wants the rest of this one.
        await answered.wait()
        return {"type": "http.disconnect"}

    async def send_start(message: Message) -> None:
        if message["type"] == "http.response.start":
            await send(message)
        elif not answered.is_set():
            answered.set()
            await send({"type": "http.response.body", "body": b"", "more_body": False})

    try:
        await app(asked, receive, send_start)
    finally:
        # Routing leaves it for whoever logs the request.
        scope["path_template"] = asked.get("path_template", "")


def _with_head(methods: bytes) -> bytes:
    return methods + b", HEAD" if b"GET" in methods.split(b", ") else methods
