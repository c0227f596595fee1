"""HEAD on every path that has GET, with the same headers and no body; and complete `Allow` headers.

The wrapper contains the whole application, so it works for every route. The routes decide which methods a path has.
"""

import asyncio

from litestar import Litestar
from litestar.enums import ScopeType
from litestar.routes import HTTPRoute
from litestar.types import ASGIApp, HTTPReceiveMessage, HTTPScope, Message, Receive, Scope, Send


def answering_head(app: Litestar) -> ASGIApp:
    """Wrap an application: run HEAD as GET and drop the body, and add missing methods to `Allow`."""
    routed = app.asgi_handler
    # For OPTIONS, the framework lists only the methods of one controller, but a path may have several controllers.
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
        # A stream runs until the client disconnects. HEAD needs no body, so report a disconnect.
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
        # Copy the matched route template back, so that the access log can report it.
        scope["path_template"] = asked.get("path_template", "")


def _with_head(methods: bytes) -> bytes:
    return methods + b", HEAD" if b"GET" in methods.split(b", ") else methods
