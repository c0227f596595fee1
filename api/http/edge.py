"""Checks before a request reaches the application: `Host`, the client's address, time of body and answer.

`api.server` limits the size and time of the head, and `api.http.connections` the connections of one client.
"""

import asyncio
import ipaddress
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from litestar.enums import ScopeType
from litestar.types import ASGIApp, HTTPScope, Message, Receive, ReceiveMessage, Scope, Send

from api.errors import ApiError
from api.http.problems import send_problem
from control import audit
from control.settings import IpNetwork


@dataclass(frozen=True, slots=True)
class Limits:
    """Limits on the time of a request, in seconds.

    Args:
        body_pause: longest pause between two pieces of a body.
        body: longest time for a whole body.
        answer_pause: longest time in which a client takes no byte of the answer.
        clock: monotonic clock in seconds.
    """

    body_pause: float = 10
    body: float = 60
    answer_pause: float = 60
    clock: Callable[[], float] = time.monotonic


DEFAULT_LIMITS = Limits()


def limited(app: ASGIApp, trusted_proxies: Sequence[IpNetwork], limits: Limits = DEFAULT_LIMITS) -> ASGIApp:
    """Wrap an application: refuse requests without exactly one `Host`, and end slow ones.

    Args:
        app: the application.
        trusted_proxies: networks of trusted proxies; `X-Forwarded-For` of other clients is ignored.
        limits: limits on the time of a request.
    """

    async def application(scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != ScopeType.HTTP:
            await app(scope, receive, send)
            return
        scope["client"] = _client(scope, trusted_proxies)
        address = ip_address_of(scope["client"][0]) if scope["client"] else None
        audit.CLIENT_ADDRESS.set(None if address is None else str(address))
        error = _check_host(scope)
        if error is not None:
            await send_problem(scope, send, error)
            return
        try:
            async with asyncio.timeout(None) as answer:
                await app(scope, _BodyReader(receive, limits).receive, _in_time(send, answer, limits.answer_pause))
        except TimeoutError:
            # The client stopped reading, so no status reaches it; the connection closes before the answer's end.
            if not answer.expired():
                raise

    return application


class _BodyReader:
    """Reader of a body within a time limit; after the end of the body, it waits for a disconnect without a limit."""

    def __init__(self, receive: Receive, limits: Limits) -> None:
        self._receive = receive
        self._limits = limits
        self._ends_at: float | None = None
        self._is_complete = False

    async def receive(self) -> ReceiveMessage:
        """Return the next piece of the body.

        Raises:
            ApiError: 408, the piece arrives too late; 400, the client disconnected before the end.
        """
        if self._is_complete:
            return await self._receive()
        now = self._limits.clock()
        if self._ends_at is None:
            self._ends_at = now + self._limits.body
        try:
            async with asyncio.timeout(min(self._limits.body_pause, self._ends_at - now)):
                message = await self._receive()
        except TimeoutError as error:
            raise self._too_slow() from error
        if message["type"] != "http.request":
            raise ApiError(400, "incomplete-body", "the connection ended before the body was complete")
        self._is_complete = not message.get("more_body", False)
        if not self._is_complete and self._limits.clock() >= self._ends_at:
            raise self._too_slow()
        return message

    def _too_slow(self) -> ApiError:
        detail = (
            f"the body came too slowly; send it within {self._limits.body:.0f} s, "
            f"without a pause above {self._limits.body_pause:.0f} s"
        )
        return ApiError(408, "body-too-slow", detail, headers={"Connection": "close"})


def _in_time(send: Send, answer: asyncio.Timeout, seconds: float) -> Send:
    """Return a `send` that ends the request if the client reads nothing for `seconds`."""
    loop = asyncio.get_running_loop()

    async def send_in_time(message: Message) -> None:
        answer.reschedule(loop.time() + seconds)
        await send(message)
        answer.reschedule(None)

    return send_in_time


def _check_host(scope: HTTPScope) -> ApiError | None:
    """Return the error of a missing or repeated `Host` (RFC 9112, 3.2); None if there is exactly one."""
    hosts = [value for name, value in scope["headers"] if name == b"host"]
    # granian adds an empty `Host` header to a request without one.
    is_missing = not any(hosts)
    if len(hosts) <= 1 and not (is_missing and scope["http_version"] not in ("1.0", "1")):
        return None
    detail = "the request has no Host header; send one" if is_missing else "the request has several Host headers"
    return ApiError(400, "bad-host", detail, headers={"Connection": "close"})


def _client(scope: HTTPScope, trusted: Sequence[IpNetwork]) -> tuple[str, int] | None:
    """Return the address of the client: the last address that is not a trusted proxy.

    Each proxy appends the address of its own client. The search begins at the end of the header, so it never reaches
    an entry that a client forged.
    """
    if scope["client"] is None:
        return None
    host, port = scope["client"]
    forwarded = b",".join(value for name, value in scope["headers"] if name == b"x-forwarded-for").decode("latin-1")
    hops = forwarded.split(",") if forwarded else []
    address = ip_address_of(host)
    while hops and address is not None and any(address in network for network in trusted):
        address = ip_address_of(hops.pop().strip())
        if address is not None:
            host, port = str(address), 0
    return host, int(port)


def ip_address_of(text: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    """Return the address of a text; None if it is none. An IPv4 address within IPv6 is the IPv4 address."""
    try:
        address = ipaddress.ip_address(text)
    except ValueError:
        return None
    # A dual-stack socket reports IPv4 addresses in this form.
    return getattr(address, "ipv4_mapped", None) or address
