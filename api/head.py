"""HEAD on every path that has GET: the same work and headers without the body.

It wraps the whole application, so that no route can be without it. What a client may ask with which method is decided
by the routes.
"""

import asyncio

from litestar.enums import ScopeType
from litestar.types import ASGIApp, HTTPReceiveMessage, HTTPScope, Message, Receive, Scope, Send


def answering_head(app: ASGIApp) -> ASGIApp:
    """Wrap an application: HEAD is asked of it as GET, and what it sends as a body stays here."""

    async def application(scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != ScopeType.HTTP:
            await app(scope, receive, send)
        elif scope["method"] == "HEAD":
            await _without_body(app, scope, send)
        else:
            await app(scope, receive, _naming_head(send))

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
            await _naming_head(send)(message)
        elif not answered.is_set():
            answered.set()
            await send({"type": "http.response.body", "body": b"", "more_body": False})

    try:
        await app(asked, receive, send_start)
    finally:
        # Routing leaves it for whoever logs the request.
        scope["path_template"] = asked.get("path_template", "")


def _naming_head(send: Send) -> Send:
    """Name HEAD in `Allow` beside GET."""

    async def send_named(message: Message) -> None:
        if message["type"] == "http.response.start":
            message["headers"] = [
                (name, value + b", HEAD" if _names_get_alone(name, value) else value)
                for name, value in message["headers"]
            ]
        await send(message)

    return send_named


def _names_get_alone(name: bytes, value: bytes) -> bool:
    methods = {method.strip() for method in value.split(b",")}
    return name.lower() == b"allow" and b"GET" in methods and b"HEAD" not in methods
